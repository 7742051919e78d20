"""Toy models whose whole distribution can be computed in a loop, and signals made from it."""

from pathlib import Path

import numpy as np
import pytest

TEXTS = [
    "apple river stone. It was 5.\nÉtude №3.",
    "Tower, tower: QUIET maple!",
    "orbit!",
    "green lamp cloud river apple apple stone maple tower quiet orbit lamp green. " * 3,
]


@pytest.fixture(scope="session")
def texts() -> list[str]:
    return TEXTS


@pytest.fixture(scope="session")
def distributions():
    """Return a function: log-probabilities of the whole vocabulary before each token, float64.

    One forward pass in float64 for each token, in the windows of Oren's appendix A.
    """
    import torch
    from transformers import AutoModelForCausalLM

    @torch.inference_mode()
    def of(directory: Path, ids: np.ndarray, context: int) -> np.ndarray:
        model = AutoModelForCausalLM.from_pretrained(directory).double().eval()
        stream = [model.config.bos_token_id, *np.asarray(ids).tolist()]
        rows, begin = [], 0
        while len(rows) < len(ids):
            while len(rows) < min(begin + context, len(ids)):
                logits = model(torch.tensor([stream[begin : len(rows) + 1]])).logits[0, -1]
                rows.append(torch.log_softmax(logits, dim=0).numpy())
            begin += context // 2
        return np.array(rows)

    return of


@pytest.fixture
def float32(monkeypatch):
    from contamination.scoring import loading

    monkeypatch.setattr(loading, "has_bfloat16", lambda device: False)


@pytest.fixture(scope="session")
def seen_and_unseen(prose) -> tuple[list[str], list[str]]:
    """Return texts that the model of `trained` has read many times, and others like them."""
    return [text[:90] for text in prose[:20]], [text[:90] for text in prose[20:]]


@pytest.fixture(scope="session")
def trained(tokenizer, seen_and_unseen, tmp_path_factory) -> Path:
    """Return a model that has read its texts until it knows them by heart: some seconds."""
    import torch
    from transformers import GPT2LMHeadModel

    from contamination.pretraining.profile import Architecture
    from contamination.pretraining.training import gpt2_config
    from contamination.testsets.tokens import tokenize

    torch.manual_seed(0)
    shape = Architecture(n_embd=64, n_layer=2, n_head=2, n_positions=96)
    model = GPT2LMHeadModel(gpt2_config(shape, len(tokenizer), tokenizer.eos_token_id))
    sequences = tokenize(tokenizer, seen_and_unseen[0])
    width = max(map(len, sequences)) + 1
    inputs = torch.full((len(sequences), width), tokenizer.eos_token_id)
    labels = torch.full_like(inputs, -100)
    for row, ids in enumerate(sequences):
        inputs[row, 1 : len(ids) + 1] = torch.from_numpy(ids)
        labels[row, 1 : len(ids) + 1] = inputs[row, 1 : len(ids) + 1]
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(200):
        optimiser.zero_grad()
        model(input_ids=inputs, labels=labels).loss.backward()
        optimiser.step()
    directory = tmp_path_factory.mktemp("trained")
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory
