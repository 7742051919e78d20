"""Per-token log-probabilities against a reference that is slow and simple."""

import shutil
from typing import ClassVar

import numpy as np
import pytest
import torch

from contamination.device import has_bfloat16
from contamination.errors import InputError
from contamination.scoring import local
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.testsets.orderings import ordering
from fakes.float64_loop import float64_loop, random_ids, scored
from fakes.tiny_models import configure

CONTEXT = 16
FLOAT32_NATS = 1e-4
BFLOAT16_NATS = 0.1


@pytest.fixture
def float32(monkeypatch):
    monkeypatch.setattr(local, "has_bfloat16", lambda device: False)


@pytest.mark.parametrize(
    ("capabilities", "faster"),
    [
        ({"cpu_name": "AMD EPYC", "avx512_bf16": True}, True),
        ({"cpu_name": "Intel Xeon", "avx512_bf16": True, "amx_bf16": False}, False),
        ({"cpu_name": "Intel Xeon", "avx512_bf16": True, "amx_bf16": True}, True),
        ({"bf16": True}, True),  # Arm
    ],
)
def test_bfloat16_is_taken_where_it_is_faster(monkeypatch, capabilities, faster):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    assert has_bfloat16(torch.device("cpu")) is faster


def test_bfloat16_stays_within_its_tolerance(monkeypatch, model_directory):
    monkeypatch.setattr(local, "has_bfloat16", lambda device: True)
    scorer = TransformersScorer(model_directory)
    assert scorer.dtype is torch.bfloat16
    ids = random_ids(300)
    (values,) = scored(scorer, [ids])
    error = np.abs(values - float64_loop(model_directory, ids, CONTEXT))
    assert error.max() < BFLOAT16_NATS
    assert error.mean() < BFLOAT16_NATS / 5
    # The logarithms are taken in float32: few of bfloat16's 256 steps a binade are hit.
    assert len(np.unique(values)) > 0.9 * len(values)


def test_equal_windows_are_read_once(model_directory):
    """Of 26 orderings of three examples there are six; of long sequences the beginning is equal."""
    scorer = TransformersScorer(model_directory)
    examples = [random_ids(5, seed) for seed in range(3)]
    orders = [ordering((0, 3), i, seed=0, dataset="d", shard=0) for i in range(26)]
    sequences = [np.concatenate([examples[a], examples[b], examples[c]]) for a, b, c in orders]
    start = random_ids(CONTEXT, 9)
    sequences += [np.concatenate([start, random_ids(7, seed)]) for seed in (1, 2)]
    rows: list[int] = []
    scorer.head.layer.register_forward_hook(lambda _, inputs, __: rows.append(len(inputs[0])))
    values = scored(scorer, sequences)
    assert sum(rows) == 6 * 15 + CONTEXT + 2 * 7
    for ids, found in zip(sequences, values, strict=True):
        np.testing.assert_allclose(found, scored(scorer, [ids])[0], rtol=0, atol=BFLOAT16_NATS)
    firsts = {tuple(order): values[i].tobytes() for i, order in reversed([*enumerate(orders)])}
    assert all(values[i].tobytes() == firsts[tuple(order)] for i, order in enumerate(orders))


def test_windows_that_differ_in_what_is_scored_are_not_taken_for_each_other(model_directory):
    """The same inputs: another last token, or fewer tokens."""
    scorer = TransformersScorer(model_directory)
    ids = random_ids(12)
    other = np.append(ids[:-1], (ids[-1] + 1) % 300)
    asked = [(ids, 0), (other, 0), (ids, 6)]
    together = dict(scorer.token_logprobs(*zip(*asked, strict=True)))
    for i, (of, first) in enumerate(asked):
        alone = dict(scorer.token_logprobs([of], [first]))[0]
        np.testing.assert_allclose(together[i], alone, rtol=0, atol=BFLOAT16_NATS)


@pytest.mark.parametrize(
    ("precision", "batch_tokens"),
    [("float32", 1), ("float32", 40), ("float32", 100_000), ("bfloat16", 40)],
)
def test_batches_padding_and_company_do_not_matter(
    monkeypatch, model_directory, precision, batch_tokens
):
    """Each sequence alone, against all of them together in either order."""
    atol = {"float32": FLOAT32_NATS, "bfloat16": BFLOAT16_NATS}[precision]
    monkeypatch.setitem(local.LOGITS, "cpu", 7 * 300 if batch_tokens == 40 else 2048 * 300)
    sequences = [random_ids(length, seed) for seed, length in enumerate([3, 40, 16, 1, 17, 40, 90])]
    source = ModelSource(str(model_directory), precision=precision)
    scorer = TransformersScorer(source, batch_tokens=batch_tokens)
    alone = [scored(scorer, [ids])[0] for ids in sequences]
    together = scored(scorer, sequences) + scored(scorer, sequences[::-1])
    for values, expected in zip(together, alone + alone[::-1], strict=True):
        np.testing.assert_allclose(values, expected, rtol=0, atol=atol)


def test_the_same_call_gives_the_same_bits(model_directory):
    """So an interrupted store equals an uninterrupted one, in any precision."""
    sequences = [random_ids(length, length) for length in (3, 40, 16, 17)]
    first, again = (scored(TransformersScorer(model_directory), sequences) for _ in range(2))
    for values, expected in zip(again, first, strict=True):
        np.testing.assert_array_equal(values, expected)


class Limited:
    """The network, but for the exception that `fault(inputs, calls)` returns, if it does."""

    def __init__(self, scorer: TransformersScorer, fault) -> None:
        assert scorer.head is not None  # looked at by the whole network, before the faults begin
        self.network, self.fault = scorer.model.base_model, fault
        self.shapes: list[tuple[int, int]] = []
        scorer.__dict__["body"] = self

    def __call__(self, input_ids, **options):
        self.shapes.append(tuple(input_ids.shape))
        error = self.fault(input_ids, len(self.shapes))
        if error is not None:
            raise error
        return self.network(input_ids=input_ids, **options)


NO_MEMORY = {
    "GPU": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB."),
    "CPU": RuntimeError(
        "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate 68719476736 bytes. Error code 12 (Cannot allocate memory)"
    ),
    "Apple": RuntimeError("MPS backend out of memory (MPS allocated: 8.00 GB)"),
}


class TestFaults:
    sequences: ClassVar = [random_ids(length, length) for length in (3, 40, 16, 1, 17, 41, 90, 8)]

    @pytest.fixture
    def expected(self, float32, model_directory) -> list[np.ndarray]:
        return scored(TransformersScorer(model_directory), self.sequences)

    def check(self, scorer: TransformersScorer, expected: list[np.ndarray]) -> None:
        results = list(scorer.token_logprobs(self.sequences))
        assert sorted(index for index, _ in results) == list(range(len(self.sequences)))
        for index, values in results:
            np.testing.assert_allclose(values, expected[index], rtol=0, atol=FLOAT32_NATS)

    @pytest.mark.parametrize(
        ("error", "room"), [*zip(NO_MEMORY.values(), [CONTEXT, 70, 150], strict=True)]
    )
    def test_batches_become_smaller_until_they_fit(self, model_directory, expected, error, room):
        scorer = TransformersScorer(model_directory, batch_tokens=1000)
        limited = Limited(scorer, lambda inputs, _: error if inputs.numel() > room else None)
        self.check(scorer, expected)
        assert room // 2 < scorer.batch_tokens <= room
        refused = sum(rows * width > room for rows, width in limited.shapes)
        assert 1 <= refused <= 6
        self.check(scorer, expected)  # and the next call begins with what has been learnt
        assert sum(rows * width > room for rows, width in limited.shapes) == refused

    def test_results_on_their_way_are_neither_lost_nor_doubled(self, model_directory, expected):
        """Memory runs out once, after so many batches that fitted."""
        for when in (1, 8):
            scorer = TransformersScorer(model_directory, batch_tokens=2 * CONTEXT)
            faults = {when: NO_MEMORY["GPU"]}
            limited = Limited(scorer, lambda _, calls, faults=faults: faults.get(calls))
            self.check(scorer, expected)
            assert len(limited.shapes) > 8
            assert scorer.batch_tokens <= CONTEXT

    def test_a_network_that_overflows_is_refused(self, model_directory):
        scorer = TransformersScorer(ModelSource(str(model_directory), precision="float16"))

        class Overflowing(Limited):
            def __call__(self, input_ids, **options):
                output = super().__call__(input_ids, **options)
                output.last_hidden_state[0, -1] = float("nan")
                return output

        Overflowing(scorer, lambda *_: None)
        with pytest.raises(InputError, match=r"not finite; its weights .* overflow in .*float16"):
            list(scorer.token_logprobs(self.sequences))


@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
def test_the_tokens_asked_for_alone_are_scored_and_with_the_value_that_they_have_in_the_whole(
    float32, model_directory, share
):
    sequences = [random_ids(length, length) for length in (40, 16, 1, 90, 7)]
    scorer = TransformersScorer(model_directory, batch_tokens=50)
    whole = scored(scorer, sequences)
    rows: list[int] = []
    scorer.head.layer.register_forward_hook(lambda _, inputs, __: rows.append(len(inputs[0])))
    firsts = [round((1 - share) * len(ids)) for ids in sequences]
    results = dict(scorer.token_logprobs(sequences, firsts))
    assert sorted(results) == list(range(len(sequences)))
    for index, first in enumerate(firsts):
        whole[index][:first] = np.nan
        np.testing.assert_allclose(results[index], whole[index], rtol=0, atol=FLOAT32_NATS)
    assert sum(rows) == sum(map(len, sequences)) - sum(firsts)


@pytest.mark.parametrize(("special", "expected"), [({"eos_token": "!"}, "!"), ({}, None)])
def test_the_first_token_is_conditioned_on_the_start_token(
    float32, model_directory, tmp_path, special, expected
):
    directory = shutil.copytree(model_directory, tmp_path / "model")
    tokens = {"bos_token": None, "eos_token": None} | special
    configure(directory, "tokenizer_config.json", **tokens)
    scorer = TransformersScorer(directory)
    start = 0 if expected is None else scorer.tokenizer.convert_tokens_to_ids(expected)
    assert scorer.start == start
    ids = random_ids(3)
    wanted = float64_loop(directory, ids, CONTEXT, start)
    np.testing.assert_allclose(scored(scorer, [ids])[0], wanted, rtol=0, atol=FLOAT32_NATS)
