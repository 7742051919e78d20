"""Texts of many lengths, and a model that knows some of them by heart."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def texts() -> list[str]:
    return [
        "apple river stone. It was 5.\nÉtude №3.",
        "Tower, tower: QUIET maple!",
        "orbit!",
        "green lamp cloud river apple apple stone maple tower quiet orbit lamp green. " * 3,
    ]


@pytest.fixture
def float32(monkeypatch):
    from contamination.scoring import local

    monkeypatch.setattr(local, "has_bfloat16", lambda device: False)


@pytest.fixture(scope="session")
def members(prose) -> list[str]:
    """Return texts that the model of `trained` has read many times."""
    return [text[:90] for text in prose[:20]]


@pytest.fixture(scope="session")
def non_members(prose) -> list[str]:
    """Return texts like the members that no model has read."""
    return [text[:90] for text in prose[20:]]


@pytest.fixture(scope="session")
def trained(tokenizer, members, tmp_path_factory) -> Path:
    """Return a model that has read the members until it knows them by heart: some seconds."""
    import torch
    from transformers import GPT2LMHeadModel

    from contamination.testsets.tokens import tokenize
    from reproduction.run.network import gpt2_config
    from reproduction.run.profile import Architecture

    torch.manual_seed(0)
    shape = Architecture(n_embd=64, n_layer=2, n_head=2, n_positions=96)
    model = GPT2LMHeadModel(gpt2_config(shape, len(tokenizer), tokenizer.eos_token_id))
    sequences = tokenize(tokenizer, members)
    width = max(map(len, sequences)) + 1
    inputs = torch.full((len(sequences), width), tokenizer.eos_token_id)
    labels = torch.full_like(inputs, -100)
    for row, ids in enumerate(sequences):
        inputs[row, 1 : len(ids) + 1] = torch.from_numpy(ids)
        labels[row, 1 : len(ids) + 1] = inputs[row, 1 : len(ids) + 1]
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(110):
        optimiser.zero_grad()
        model(input_ids=inputs, labels=labels).loss.backward()
        optimiser.step()
    directory = tmp_path_factory.mktemp("trained")
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


@pytest.fixture(scope="session")
def taught(trained):
    """Return a scorer of the model of `trained`."""
    from contamination.scoring.loading import ModelSource
    from contamination.scoring.local import TransformersScorer

    return TransformersScorer(ModelSource(str(trained), precision="float32"))
