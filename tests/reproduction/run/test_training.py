import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from transformers import GPT2LMHeadModel

from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from fakes import training_run
from fakes.made_up_scorer import Breakdown
from fakes.training_run import SHAPE, SPEC, STEPS, run, tokens
from reproduction.run import network, training
from reproduction.run.network import gpt2_config
from reproduction.run.profile import Architecture
from reproduction.run.training import block_starts, learning_rate_at

CHECKPOINT = "model.checkpoint"


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


def weights(directory) -> bytes:
    return (directory / "model.safetensors").read_bytes()


def record_steps(patch: pytest.MonkeyPatch) -> list:
    """Return a list that grows by one entry (batch, parameter groups, loss) per step."""
    steps, real = [], training._step

    def recorded(accelerator, model, optimizer, batch, spec):
        groups = [dict(group) for group in optimizer.param_groups]
        loss = real(accelerator, model, optimizer, batch, spec)
        steps.append((batch.copy(), groups, loss))
        return loss

    patch.setattr(training, "_step", recorded)
    return steps


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
                run(tokenizer, tmp_path / "model", **changes)

    return run_until


@pytest.fixture
def steps_run(monkeypatch):
    return record_steps(monkeypatch)


def command(*arguments) -> list:
    return [sys.executable, training_run.__file__, *arguments]


@pytest.fixture(scope="session")
def tokenizer_directory(tokenizer, tmp_path_factory):
    directory = tmp_path_factory.mktemp("tokenizer")
    tokenizer.save_pretrained(directory)
    return directory


def blocks_of(stream: np.ndarray, context: int, *, rng: np.random.Generator) -> np.ndarray:
    starts = block_starts(len(stream), context, rng=rng)
    return np.stack([stream[start : start + context + 1] for start in starts])


class TestBlocks:
    @given(length=st.integers(2, 300), context=st.integers(1, 40), seed=st.integers(0, 9))
    def test_every_token_but_the_first_and_the_tail_is_a_target_once(self, length, context, seed):
        stream = np.arange(length, dtype=np.int32)
        if length <= context:
            with pytest.raises(InputError, match=f"{length} tokens.*one block of {context}"):
                blocks_of(stream, context, rng=np.random.default_rng(seed))
            return
        blocks = blocks_of(stream, context, rng=np.random.default_rng(seed))
        count = (length - 1) // context
        assert blocks.shape == (count, context + 1)
        assert blocks.dtype == np.int32
        assert sorted(blocks[:, 1:].ravel().tolist()) == list(range(1, 1 + count * context))
        assert length - (1 + count * context) < context  # the tail fills no block
        np.testing.assert_array_equal(np.diff(blocks), 1)  # a target follows its input


class TestLearningRate:
    spec = replace(SPEC, learning_rate=2.0, warmup_steps=4)

    def rates(self, steps: int, **changes) -> list[float]:
        return [learning_rate_at(s, steps, replace(self.spec, **changes)) for s in range(steps)]

    def test_it_rises_in_equal_steps_then_falls_along_a_cosine_to_a_tenth(self):
        rates = self.rates(104)
        assert rates[:5] == [0.5, 1.0, 1.5, 2.0, 2.0]
        assert (np.diff(rates[4:]) < 0).all()
        assert rates[4 + 50] == pytest.approx(1.1)  # half-way between 2 and 0.2
        assert rates[4 + 25] == pytest.approx(1.1 + 0.9 * 0.5**0.5)
        assert 0.2 < rates[-1] < 0.201
        assert learning_rate_at(104, 104, self.spec) == pytest.approx(0.2)


class TestTraining:
    def test_each_block_is_read_once_at_the_rate_of_its_step(self, trained):
        order = random_stream(1, "order of blocks")
        blocks = blocks_of(tokens(), SHAPE.n_positions, rng=order)
        assert len(blocks) == STEPS * SPEC.batch_size
        np.testing.assert_array_equal(
            np.concatenate([batch for batch, *_ in trained.steps]), blocks
        )
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

    def test_the_same_seed_gives_the_same_bytes_and_the_mean_loss_of_the_last_steps(
        self, tokenizer, tmp_path, uninterrupted, steps_run, monkeypatch
    ):
        monkeypatch.setattr(training, "LAST_STEPS", 4)
        torch.manual_seed(99)  # what ran before must not matter
        torch.rand(3)
        summary = run(tokenizer, tmp_path / "model")
        assert weights(tmp_path / "model") == uninterrupted
        assert summary["final_loss"] == np.mean([loss for *_, loss in steps_run[-4:]])

    def test_it_learns(self, tokenizer, tmp_path):
        """A stream that repeats 0, 1, 2, 3 is learnt to the last nat; the loss is in nats."""
        stream = np.tile(np.arange(4, dtype=np.int32), 2400)
        spec = replace(SPEC, learning_rate=0.03)
        summary = run(tokenizer, tmp_path / "model", tokens=stream, spec=spec)
        assert 0 < summary["final_loss"] < 0.05

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
    @pytest.mark.parametrize(
        "change",
        [
            {"spec": replace(SPEC, micro_batch_size=3)},
            {"spec": replace(SPEC, batch_size=1, micro_batch_size=2)},
            {"tokens": tokens()[: SPEC.batch_size * SHAPE.n_positions]},  # a token too few
        ],
        ids=["not a multiple", "smaller than a micro-batch", "less than a batch"],
    )
    def test_a_batch_that_cannot_be_made_is_refused(self, tokenizer, tmp_path, change):
        with pytest.raises(InputError, match="batch_size"):
            run(tokenizer, tmp_path / "model", **change)
        assert list(tmp_path.iterdir()) == []
        with pytest.raises(InputError, match="one block"):
            run(tokenizer, tmp_path / "model", tokens=tokens()[: SHAPE.n_positions])

    def test_a_diverging_run_is_told_and_saves_nothing(self, tokenizer, tmp_path, monkeypatch):
        monkeypatch.setattr(training, "_step", lambda *_: float("nan"))
        with pytest.raises(InputError, match=r"test: the loss is nan at step 0.*learning_rate"):
            run(tokenizer, tmp_path / "model")
        assert list(tmp_path.iterdir()) == []

    def test_a_full_disk_keeps_the_last_checkpoint(
        self, tokenizer, tmp_path, monkeypatch, interrupt, uninterrupted
    ):
        interrupt(7)
        before = [path.read_bytes() for path in sorted((tmp_path / CHECKPOINT).iterdir())]

        def full(tensors, path):
            path.write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(training.torch, "save", full)
            with pytest.raises(InputError, match="no space left"):
                run(tokenizer, tmp_path / "model")
        assert [p.name for p in tmp_path.iterdir()] == [CHECKPOINT]
        kept = sorted((tmp_path / CHECKPOINT).iterdir())
        assert [path.read_bytes() for path in kept] == before
        run(tokenizer, tmp_path / "model")
        assert weights(tmp_path / "model") == uninterrupted


class TestResuming:
    """A checkpoint is written every 5 of 18 steps."""

    @pytest.mark.parametrize(("step", "saved"), [(4, 0), (12, 10)])
    def test_an_interrupted_run_goes_on_from_its_checkpoint_to_the_same_bytes(
        self, tokenizer, tmp_path, interrupt, request, trained, step, saved
    ):
        interrupt(step)
        assert (tmp_path / CHECKPOINT).exists() == (saved > 0)
        steps_run = request.getfixturevalue("steps_run")
        summary = run(tokenizer, tmp_path / "model")
        assert len(steps_run) == STEPS - saved
        assert weights(tmp_path / "model") == weights(trained.directory)
        assert not (tmp_path / CHECKPOINT).exists()
        assert summary["final_loss"] == trained.summary["final_loss"]

    @pytest.mark.parametrize(
        ("how", "saved"), [(("kill-at-step", "13"), 10), (("kill-while-saving", "2"), 5)]
    )
    def test_a_killed_run_goes_on_to_the_same_bytes(
        self, tokenizer, tokenizer_directory, tmp_path, request, uninterrupted, how, saved
    ):
        """SIGKILL, in a process of its own: between checkpoints, and with half of one written."""
        child = subprocess.run(
            command(tokenizer_directory, tmp_path / "model", *how), check=False, capture_output=True
        )
        assert child.returncode == -signal.SIGKILL, child.stderr
        assert not (tmp_path / "model").exists()
        assert (tmp_path / CHECKPOINT).exists()
        steps_run = request.getfixturevalue("steps_run")
        run(tokenizer, tmp_path / "model")
        assert len(steps_run) == STEPS - saved
        assert weights(tmp_path / "model") == uninterrupted

    @pytest.mark.parametrize(
        "change",
        [
            {"tokens": tokens(1)},
            {"spec": replace(SPEC, learning_rate=0.02)},
            {"shape": replace(SHAPE, n_head=4)},  # the same tensors, another function
        ],
        ids=["data", "hyper-parameters", "heads"],
    )
    def test_a_checkpoint_of_another_run_is_not_used(
        self, tokenizer, tmp_path, interrupt, steps_run, uninterrupted, change
    ):
        interrupt(12, **change)
        assert (tmp_path / CHECKPOINT).exists()
        steps_run.clear()
        run(tokenizer, tmp_path / "model")
        assert len(steps_run) == STEPS
        assert weights(tmp_path / "model") == uninterrupted

    def test_a_damaged_checkpoint_is_not_used(
        self, tokenizer, tmp_path, interrupt, steps_run, uninterrupted
    ):
        """Any bit of weights, moments, losses or step, or the end of a file: the same model."""
        interrupt(12)
        files = sorted((tmp_path / CHECKPOINT).iterdir())
        whole = {path: path.read_bytes() for path in files}
        rng = random_stream(0, "bits of a checkpoint")
        for path in [*files, *files, *files]:
            spoilt = bytearray(whole[path])
            spoilt[int(rng.integers(len(spoilt)))] ^= 1 << int(rng.integers(8))
            shutil.rmtree(tmp_path / CHECKPOINT, ignore_errors=True)
            (tmp_path / CHECKPOINT).mkdir()
            for each, contents in whole.items():
                each.write_bytes(spoilt if each == path else contents)
            if rng.integers(3) == 0:
                path.write_bytes(whole[path][:-9])
            steps_run.clear()
            run(tokenizer, tmp_path / "model")
            # Of the record, a blank may have become another.
            assert len(steps_run) == STEPS or path.suffix == ".json"
            assert weights(tmp_path / "model") == uninterrupted
            shutil.rmtree(tmp_path / "model")

    def test_a_checkpoint_of_another_vocabulary_is_not_used(self, tokenizer, tmp_path, interrupt):
        """The stream may be the same where the tokenizer grew."""
        interrupt(12)
        grown = deepcopy(tokenizer)
        grown.add_tokens(["<extra>"])
        summary = run(grown, tmp_path / "model")
        fresh = run(grown, tmp_path / "fresh")
        assert summary["final_loss"] == fresh["final_loss"]
        assert weights(tmp_path / "model") == weights(tmp_path / "fresh")


def test_two_processes_train_the_weights_of_one(
    tokenizer, tokenizer_directory, tmp_path, uninterrupted
):
    """Gradients are added up in another order: within 0.001 where weights are about 1.

    Half a batch, or one process's share of the gradients, would differ by 0.1.
    """
    launched = launch_two(tokenizer_directory, tmp_path / "model")
    half = STEPS * SPEC.batch_size * SHAPE.n_positions // 2
    assert launched.stdout.splitlines() == [f"{half} targets in 1 of 2 processes"] * 2
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "model.safetensors").write_bytes(uninterrupted)
    assert largest_difference(tmp_path / "model", tmp_path / "one") < 1e-3


def test_two_micro_batches_give_the_same_bits_in_one_process_and_in_two(
    tokenizer, tokenizer_directory, tmp_path
):
    """Each of two reads its share at once, although a micro-batch would hold more."""
    run(tokenizer, tmp_path / "one", spec=replace(SPEC, micro_batch_size=SPEC.batch_size // 2))
    launch_two(tokenizer_directory, tmp_path / "two", "micro-batch", SPEC.batch_size)
    assert weights(tmp_path / "two") == weights(tmp_path / "one")
    summaries = [json.loads((tmp_path / n / "training.json").read_text()) for n in ("one", "two")]
    assert summaries[0]["final_loss"] == summaries[1]["final_loss"]


def launch_two(*arguments) -> subprocess.CompletedProcess:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launched = subprocess.run(
        [*launcher, "--nproc-per-node", "2", *map(str, command(*arguments)[1:])],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ,
    )
    assert launched.returncode == 0, launched.stderr
    return launched


def largest_difference(left, right) -> float:
    """Compare weights, but for the bias of the keys.

    It shifts all attention logits of a query alike, so its gradient is zero up to rounding, which
    Adam blows up to full steps.
    """
    left, right = (load_file(directory / "model.safetensors") for directory in (left, right))
    assert left.keys() == right.keys()
    width = SHAPE.n_embd
    differences = []
    for name in left:
        difference = (left[name] - right[name]).abs()
        if name.endswith("attn.c_attn.bias"):
            difference[width : 2 * width] = 0
        differences.append(float(difference.max()))
    return max(differences)


OREN = Architecture(n_embd=1536, n_layer=48, n_head=24, n_positions=2048)
GPT2_VOCABULARY = 50257
SMALL = Architecture(n_embd=8, n_layer=3, n_head=2, n_positions=10)


def closed_formula(shape: Architecture, vocabulary: int) -> int:
    """Count by hand: embeddings (the output shares the input's), blocks, final layer norm."""
    d = shape.n_embd
    attention = (d * 3 * d + 3 * d) + (d * d + d)
    feed_forward = (d * 4 * d + 4 * d) + (4 * d * d + d)
    layer_norm = 2 * d
    block = attention + feed_forward + 2 * layer_norm
    return (vocabulary + shape.n_positions) * d + shape.n_layer * block + layer_norm


@pytest.mark.parametrize(
    ("shape", "vocabulary", "published"),
    [
        (OREN, GPT2_VOCABULARY, 1_440_256_512),
        (Architecture(768, 12, 12, 1024), GPT2_VOCABULARY, 124_439_808),  # GPT-2 small
        (SMALL, 300, None),
        (Architecture(64, 1, 1, 256), 300, None),
    ],
)
def test_the_number_of_parameters_is_that_of_the_formula(shape, vocabulary, published):
    with torch.device("meta"):
        model = GPT2LMHeadModel(gpt2_config(shape, vocabulary, 0))
    count = sum(p.numel() for p in model.parameters())
    assert count == closed_formula(shape, vocabulary)
    assert count == (published or count)


def test_blocks_are_shuffled_with_the_seed():
    stream = np.arange(1001)
    first, again, other = (
        blocks_of(stream, 10, rng=np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first[:, 0] != other[:, 0]).sum() > 80
    assert (first[:, 0] != np.arange(0, 1000, 10)).sum() > 80


def test_micro_batches_add_up_to_the_batch(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(network, "has_bfloat16", lambda device: False)
    for size in (1, 8):
        run(tokenizer, tmp_path / str(size), spec=replace(SPEC, micro_batch_size=size))
    assert largest_difference(tmp_path / "1", tmp_path / "8") < 1e-3


def test_the_loss_of_a_model_that_has_learnt_nothing_is_the_log_of_the_vocabulary(
    tokenizer, tmp_path
):
    spec = replace(SPEC, learning_rate=0.0)
    summary = run(tokenizer, tmp_path / "model", spec=spec)
    assert summary["final_loss"] == pytest.approx(np.log(len(tokenizer)), abs=0.05)


def test_the_configuration_is_of_the_shape_asked_for_without_dropout():
    config = gpt2_config(SMALL, 300, 7)
    assert (config.n_embd, config.n_layer, config.n_head, config.n_positions) == (8, 3, 2, 10)
    assert (config.vocab_size, config.bos_token_id, config.eos_token_id) == (300, 7, 7)
    # In training mode, where dropout acts, two passes agree.
    model = GPT2LMHeadModel(config).train()
    ids = torch.arange(10)[None]
    assert torch.equal(model(ids).logits, model(ids).logits)
