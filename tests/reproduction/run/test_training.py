import json
import shutil
from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import GPT2LMHeadModel

from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from fakes.made_up_scorer import Breakdown
from fakes.training_run import (
    CHECKPOINT,
    SHAPE,
    SPEC,
    STEPS,
    largest_difference,
    record_steps,
    run,
    tokens,
    weights,
)
from reproduction.run import network, training
from reproduction.run.network import gpt2_config
from reproduction.run.profile import Architecture
from reproduction.run.training import block_starts, learning_rate_at


@pytest.fixture(scope="module")
def trained(tokenizer, tmp_path_factory):
    """Return a whole run: its directory, what it says of itself, and each of its steps."""
    directory = tmp_path_factory.mktemp("trained") / "model"
    with pytest.MonkeyPatch.context() as patch:
        steps = record_steps(patch)
        return SimpleNamespace(directory=directory, summary=run(tokenizer, directory), steps=steps)


@pytest.fixture(scope="module")
def uninterrupted(trained) -> bytes:
    return weights(trained.directory)


@pytest.fixture
def interrupt(monkeypatch, tokenizer, tmp_path):
    """Return a function that trains until some step and leaves what a broken run leaves."""

    def run_until(step: int, **changes) -> None:
        count = iter(range(step))

        def breaks_down(*arguments):
            if next(count, None) is None:
                raise Breakdown
            return real(*arguments)

        real = training._step
        with monkeypatch.context() as patch:
            patch.setattr(training, "_step", breaks_down)
            with pytest.raises(Breakdown):
                run(changes.pop("tokenizer", tokenizer), tmp_path / "model", **changes)

    return run_until


@pytest.fixture
def steps_run(monkeypatch):
    return record_steps(monkeypatch)


def blocks_of(stream: np.ndarray, context: int, *, rng: np.random.Generator) -> np.ndarray:
    starts = block_starts(len(stream), context, rng=rng)
    return np.stack([stream[start : start + context + 1] for start in starts])


@given(length=st.integers(2, 300), context=st.integers(1, 40), seed=st.integers(0, 9))
def test_every_token_but_the_first_and_the_tail_is_a_target_once(length, context, seed):
    stream = np.arange(length, dtype=np.int32)
    if length <= context:
        assert not block_starts(length, context, rng=np.random.default_rng(seed)).size
        return
    blocks = blocks_of(stream, context, rng=np.random.default_rng(seed))
    count = (length - 1) // context
    assert blocks.shape == (count, context + 1)
    assert sorted(blocks[:, 1:].ravel().tolist()) == list(range(1, 1 + count * context))
    np.testing.assert_array_equal(np.diff(blocks), 1)  # a target follows its input


def test_the_rate_rises_in_equal_steps_then_falls_along_a_cosine_to_a_tenth():
    spec = replace(SPEC, learning_rate=2.0, warmup_steps=4)
    rates = [learning_rate_at(s, 104, spec) for s in range(105)]
    assert rates[:5] == [0.5, 1.0, 1.5, 2.0, 2.0]
    assert (np.diff(rates[4:]) < 0).all()
    # Half-way between 2 and 0.2, a quarter of the way, and at the end.
    middle = [rates[4 + 50], rates[4 + 25], rates[104]]
    assert middle == pytest.approx([1.1, 1.1 + 0.9 * 0.5**0.5, 0.2])


class TestTraining:
    def test_each_block_is_read_once_at_the_rate_of_its_step(self, trained):
        order = random_stream(1, "order of blocks")
        blocks = blocks_of(tokens(), SHAPE.n_positions, rng=order)
        shuffled = block_starts(1001, 10, rng=np.random.default_rng(0))
        assert (shuffled != np.arange(0, 1000, 10)).sum() > 80
        assert len(blocks) == STEPS * SPEC.batch_size
        read = np.concatenate([batch for batch, *_ in trained.steps])
        np.testing.assert_array_equal(read, blocks)
        for step, (_, groups, _) in enumerate(trained.steps):
            assert {group["lr"] for group in groups} == {learning_rate_at(step, STEPS, SPEC)}
        assert trained.summary["steps"] == STEPS
        assert trained.summary["tokens"] == blocks[:, 1:].size
        assert trained.summary["final_loss"] == np.mean([loss for *_, loss in trained.steps])

    def test_weight_decay_is_for_matrices_alone(self, trained):
        for group in trained.steps[0][1]:
            matrices = {p.ndim >= 2 for p in group["params"]}
            assert matrices == {group["weight_decay"] == SPEC.weight_decay}
            assert group["weight_decay"] in (0, SPEC.weight_decay)

    def test_what_it_saves_can_be_scored_and_says_how_it_was_made(self, tokenizer, trained):
        scorer = TransformersScorer(trained.directory)
        ((_, values),) = scorer.token_logprobs([np.array([1, 2, 3], dtype=np.int32)])
        assert np.isfinite(values).all()
        assert scorer.tokenizer.get_vocab() == tokenizer.get_vocab()
        assert json.loads((trained.directory / "training.json").read_text()) == trained.summary
        assert trained.summary["parameters"] == sum(p.numel() for p in scorer.model.parameters())
        left = [path.name for path in trained.directory.parent.iterdir()]
        assert left == ["model"]  # and no checkpoint


class TestBadInput:
    def test_a_batch_that_cannot_be_made_and_a_loss_that_is_none_save_nothing(
        self, tokenizer, tmp_path, monkeypatch
    ):
        monkeypatch.setattr(training, "_step", lambda *_: float("nan"))
        few = tokens()[: SPEC.batch_size * SHAPE.n_positions]  # a token too few
        for change, told in [
            ({"spec": replace(SPEC, micro_batch_size=3)}, "batch_size"),
            ({"spec": replace(SPEC, batch_size=1)}, "batch_size"),  # below a micro-batch
            ({"tokens": few}, "batch_size"),
            ({"tokens": few[: SHAPE.n_positions]}, "the 0 blocks"),
            ({}, "loss is nan at step 0.*learning_rate"),
        ]:
            with pytest.raises(InputError, match=told):
                run(tokenizer, tmp_path / "model", **change)
            assert list(tmp_path.iterdir()) == []


class TestResuming:
    def test_a_checkpoint_of_another_run_is_not_used(
        self, tokenizer, tmp_path, interrupt, steps_run, uninterrupted
    ):
        grown = deepcopy(tokenizer)  # the stream may be the same where the tokenizer grew
        grown.add_tokens(["<extra>"])
        for change in (
            {"tokens": tokens(1)},
            {"spec": replace(SPEC, learning_rate=0.02)},
            {"shape": replace(SHAPE, n_head=4)},  # the same tensors, another function
            {"tokenizer": grown},
        ):
            interrupt(12, **change)
            assert (tmp_path / CHECKPOINT).exists()
            steps_run.clear()
            run(tokenizer, tmp_path / "model")
            assert len(steps_run) == STEPS
            assert weights(tmp_path / "model") == uninterrupted
            shutil.rmtree(tmp_path / "model")

    def test_a_checkpoint_of_another_recipe_is_not_used(
        self, tokenizer, tmp_path, interrupt, steps_run, monkeypatch
    ):
        interrupt(12)
        steps_run.clear()
        monkeypatch.setattr(training, "RECIPE", training.RECIPE + 1)
        run(tokenizer, tmp_path / "model")
        assert len(steps_run) == STEPS

    def test_a_damaged_checkpoint_is_not_used(
        self, tokenizer, tmp_path, interrupt, steps_run, uninterrupted
    ):
        """Any bit of weights, moments, losses or step, or the end of a file: the same model."""
        interrupt(12)
        (path,) = (tmp_path / CHECKPOINT).iterdir()
        whole = path.read_bytes()
        rng = random_stream(0, "bits of a checkpoint")
        for cut in (0, 0, 9):
            spoilt = bytearray(whole[: len(whole) - cut])
            spoilt[int(rng.integers(len(spoilt)))] ^= (1 << int(rng.integers(8))) * (not cut)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(spoilt)
            steps_run.clear()
            run(tokenizer, tmp_path / "model")
            assert len(steps_run) == STEPS
            assert weights(tmp_path / "model") == uninterrupted
            shutil.rmtree(tmp_path / "model")


@pytest.mark.parametrize(
    ("shape", "published"),
    [
        (Architecture(n_embd=1536, n_layer=48, n_head=24, n_positions=2048), 1_440_256_512),  # Oren
        (Architecture(n_embd=768, n_layer=12, n_head=12, n_positions=1024), 124_439_808),  # GPT-2
    ],
)
def test_the_number_of_parameters_is_that_which_was_published(shape, published):
    with torch.device("meta"):
        model = GPT2LMHeadModel(gpt2_config(shape, 50257, 0))
    assert sum(p.numel() for p in model.parameters()) == published


def test_micro_batches_add_up_to_the_batch(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(network, "has_bfloat16", lambda device: False)
    for size in (1, 8):
        run(tokenizer, tmp_path / str(size), spec=replace(SPEC, micro_batch_size=size))
    assert largest_difference(tmp_path / "1", tmp_path / "8") < 1e-3
