"""Continuations of shared prefixes against one float64 forward pass for each of them."""

import itertools
import math
from collections.abc import Callable, Iterator
from functools import cache
from operator import itemgetter
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM

from contamination.errors import InputError
from contamination.scoring import local
from contamination.scoring import prefix as module
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.scoring.prefix import attention_mask, continuation_logprobs
from fakes.made_up_scorer import MadeUpScorer, log_probs_of
from fakes.tiny_models import SIZES, common

CONTEXT = 40
WINDOW = 12
FLOAT32_NATS = 1e-4
BFLOAT16_NATS = 0.1

GPT_NEO = {
    "vocab_size": 300,
    "hidden_size": 32,
    "num_layers": 2,
    "num_heads": 4,
    "attention_types": [[["global", "local"], 1]],
    "window_size": WINDOW,
    "max_position_embeddings": 10 * CONTEXT,
}
MPT = {"vocab_size": 300, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 10 * CONTEXT}
ALIBI = {"num_attention_heads": 4, "alibi": True, "max_position_embeddings": CONTEXT}
MODELS: dict[str, tuple[str, dict[str, object]]] = common(CONTEXT, WINDOW) | {
    "GPT-Neo": ("gpt_neo", GPT_NEO),
    "MPT": ("mpt", MPT),
    "Falcon": ("falcon", SIZES | ALIBI),
}
# Most inputs for which prefixes are shared. GPT-Neo has windows of its own, BLOOM and MPT have no
# positions, Falcon refuses masks, and Mamba has no keys.
MOST = dict.fromkeys(MODELS, 0) | dict.fromkeys(["GPT-2", "Llama", "GPT-NeoX"], CONTEXT)
MOST |= dict.fromkeys(["Mistral", "Gemma 2"], WINDOW)


@pytest.fixture
def make(directories) -> Callable[..., TransformersScorer]:
    def scorer(
        name: str = "GPT-2",
        precision: str = "float32",
        attention: str | None = None,
        batch_tokens: int | None = None,
    ) -> TransformersScorer:
        source = ModelSource(
            str(directories(name)), context=CONTEXT, precision=precision, attention=attention
        )
        return TransformersScorer(source, batch_tokens=batch_tokens)

    return scorer


@pytest.fixture
def ran(monkeypatch) -> list:
    """Return a list that fills with the batches of pieces whose prefix the network shares."""
    run, batches = module._run, []

    def recorded(scorer, pieces):
        values = run(scorer, pieces)
        batches.append(pieces)
        return values

    monkeypatch.setattr(module, "_run", recorded)
    return batches


def ids(length: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, length]).integers(1, 300, length, dtype=np.int32)


def group(prefix: int, *lengths: int) -> tuple[np.ndarray, list[np.ndarray]]:
    return ids(prefix), [ids(length, 1 + i) for i, length in enumerate(lengths)]


GROUPS = [
    group(5, 4, 4, 4),  # fits into the sliding windows
    group(9, 3, 3, 3, 3),
    group(0, 4, 2, 4),
    group(1, 1, 1, 1),  # the prefix predicts them all
    group(25, 8, 8, 8, 8, 8, 8, 8),
    group(30, 6, 0, 3, 1, 9),
    group(32, 8, 8),  # exactly the context
    group(33, 8, 8, 7),  # one more than the context, for two of them
    group(60, 9, 2, 2),  # a prefix that is itself longer than the context
    group(12, CONTEXT, CONTEXT, 1),  # no room for any prefix
    group(21, 5),
    group(7),
    group(8, 0, 0),
]
# By the most inputs for which prefixes are shared: those in which some two continuations share one.
SHARED = {CONTEXT: set(range(10)), WINDOW: {0, 1, 2, 3}, 0: set()}


@given(st.integers(0, 900), st.lists(st.integers(1, 60), min_size=1, max_size=30))
def test_rows_hold_all_longer_continuations_in_equal_numbers_at_the_least_cost(width, lengths):
    prefix, continuations = group(width, *lengths)
    piece = module.Piece(0, prefix, continuations, list(range(len(lengths))))
    longer = [each for each in continuations if len(each) > 1]
    rows = piece.rows()
    assert list(itertools.chain.from_iterable(rows)) == longer
    if not longer:
        return
    inputs = sum(len(each) - 1 for each in longer) / len(longer)

    def cost(count: int) -> float:
        longest = math.ceil(len(longer) / count) * inputs
        keys = 1 + width + longest
        return count * (longest * (module.NETWORK + keys) + module.COPY * keys)

    assert cost(len(rows)) == min(cost(count) for count in range(1, len(longer) + 1))
    ends = np.linspace(0, len(longer), 1 + len(rows)).round()
    assert [len(row) for row in rows] == np.diff(ends).tolist()


def run(scorer, groups=GROUPS) -> np.ndarray:
    """Return all values in order, as one array, checked for their form."""
    results = sorted(continuation_logprobs(scorer, groups), key=itemgetter(0))
    assert [index for index, _ in results] == list(range(len(groups)))
    values = []
    for _, of_group in results:
        values += of_group
    lengths = []
    for _, continuations in groups:
        lengths += [len(continuation) for continuation in continuations]
    assert [len(each) for each in values] == lengths
    assert all(each.dtype == np.float32 for each in values)
    return np.concatenate(values)


@pytest.fixture(scope="module")
def reference(directories) -> Callable[..., np.ndarray]:
    """Return a function that scores each continuation alone, in float64, by the whole model."""

    @torch.inference_mode()
    def values(name: str, groups=GROUPS) -> np.ndarray:
        model = AutoModelForCausalLM.from_pretrained(directories(name)).double().eval()
        return np.concatenate([logprobs(model, *pair).numpy() for pair in alone(groups)])

    of_all = cache(values)
    return lambda name, groups=None: of_all(name) if groups is None else values(name, groups)


def alone(groups) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield what is kept of the prefix, and the continuation, for each that has a token."""
    for prefix, continuations in groups:
        for c in filter(len, continuations):
            yield prefix[max(0, len(prefix) - (CONTEXT - len(c))) :], c


def logprobs(model, kept: np.ndarray, continuation: np.ndarray) -> torch.Tensor:
    stream = torch.tensor([[0, *kept.tolist(), *continuation.tolist()]])
    logits = model(stream[:, :-1], use_cache=False).logits[0].log_softmax(1)
    return logits.gather(1, stream[0, 1:, None])[len(kept) :, 0]


PRECISIONS = [(name, "float32") for name in MODELS] + [("GPT-2", "bfloat16"), ("Llama", "bfloat16")]


@pytest.mark.parametrize(("name", "precision"), PRECISIONS)
def test_values_agree_with_a_float64_pass_for_each(make, reference, ran, name, precision):
    error = np.abs(run(make(name, precision)) - reference(name))
    if precision == "bfloat16":
        assert ran and error.max() < BFLOAT16_NATS and error.mean() < BFLOAT16_NATS / 5
        return
    # The selective scan of a Mamba cancels: its two layers multiply an error some hundred times.
    assert error.max() <= (10 * FLOAT32_NATS if name == "Mamba" else FLOAT32_NATS)
    pieces = itertools.chain(*ran[1:])  # the first is the comparison
    used = {piece.group for piece in pieces}
    assert used == SHARED[MOST[name]]
    assert bool(ran) == bool(used)


@pytest.mark.parametrize(
    ("name", "batch_tokens"), [("GPT-2", 45), ("Llama", 1), ("Llama", 150), ("Llama", 100_000)]
)
def test_batches_padding_and_company_do_not_matter(
    make, reference, monkeypatch, ran, name, batch_tokens
):
    if batch_tokens == 150:  # little of the output layer at a time, and many short rows
        monkeypatch.setitem(local.LOGITS, "cpu", 7 * 300)
        for unit in ("COPY", "NETWORK"):
            monkeypatch.setattr(module, unit, 1)
    expected = reference(name)
    scorer = make(name, batch_tokens=batch_tokens)
    np.testing.assert_allclose(run(scorer), expected, rtol=0, atol=FLOAT32_NATS)
    for pieces in ran:
        widest = max(piece.width for piece in pieces)
        assert widest * len(pieces) <= max(batch_tokens, widest)
        assert all(len(p.members) == 1 for p in pieces if p.width > batch_tokens)
    assert bool(ran) == (batch_tokens > 1)
    backwards = GROUPS[::-1]
    expected = reference(name, GROUPS[::-1])
    values = run(make(name, batch_tokens=batch_tokens), backwards)
    np.testing.assert_allclose(values, expected, rtol=0, atol=FLOAT32_NATS)


def test_a_mask_that_is_added_suits_eager_attention_and_no_other_is_given_one(
    make, reference, monkeypatch, ran
):
    monkeypatch.setattr(module, "ATTENTIONS", ("eager",))
    run(make())
    assert not ran
    values = run(make("Llama", attention="eager"))
    np.testing.assert_allclose(values, reference("Llama"), rtol=0, atol=FLOAT32_NATS)
    assert ran


def test_everything_goes_through_network_and_output_layer_once(make):
    scorer = make()
    groups = [group(20, *[6] * 4), group(20, *[6] * 4), group(9, *[3] * 4)]
    run(scorer, groups)  # with the comparison
    read, rows = [], []
    scorer.model.get_input_embeddings().register_forward_hook(
        lambda _, inputs, __: read.append(inputs[0].numel())
    )
    scorer.head.layer.register_forward_hook(lambda _, inputs, __: rows.append(len(inputs[0])))
    run(scorer, groups[:2])
    assert sum(read) == 2 * (1 + 20 + 4 * 5)
    assert sum(rows) == 2 * (1 + 4 * 5)
    rows.clear()
    run(scorer, groups)  # one with less, and padding
    assert sum(rows) == 2 * (1 + 4 * 5) + (1 + 4 * 2)


def test_memory_running_out_halves_batches_and_then_groups(make, reference, monkeypatch):
    scorer = make()
    run_ = module._run
    allowed = 1000
    sizes = []

    def limited(scorer, pieces):
        size = sum(piece.width for piece in pieces)
        if size > allowed:
            raise torch.OutOfMemoryError("of this test")
        sizes.append(size)
        return run_(scorer, pieces)

    monkeypatch.setattr(module, "_run", limited)
    expected = reference("GPT-2")
    run(scorer)
    assert max(sizes) > 150
    sizes.clear()
    allowed = 50  # a group has 75 tokens
    np.testing.assert_allclose(run(scorer), expected, rtol=0, atol=FLOAT32_NATS)
    assert 40 < max(sizes) <= 50
    assert scorer.batch_tokens < 4096
    allowed = 20
    with pytest.raises(InputError, match="does not fit into memory"):
        run(scorer)


def every_key(blocks, widths, longest, dtype):
    return torch.zeros_like(attention_mask(blocks, widths, longest, dtype))


def of_the_neighbour(blocks, widths, longest, dtype):
    return attention_mask(torch.zeros_like(blocks), widths, longest, dtype)


def padding_of_prefixes(blocks, widths, longest, dtype):
    return attention_mask(blocks, torch.full_like(widths, longest), longest, dtype)


refused = Mock(side_effect=TypeError("of this test"))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("fault", [every_key, of_the_neighbour, padding_of_prefixes, refused])
def test_a_network_that_sees_something_else_never_shares(
    make, reference, monkeypatch, ran, precision, fault
):
    monkeypatch.setattr(module, "attention_mask", fault)
    scorer = make("Llama", precision)
    atol = FLOAT32_NATS if precision == "float32" else BFLOAT16_NATS
    for _ in range(2):
        np.testing.assert_allclose(run(scorer), reference("Llama"), rtol=0, atol=atol)
    assert len(ran) <= 1  # the one that was compared


def test_padding_is_compared_where_one_group_is_the_longest_and_the_widest(
    make, reference, monkeypatch
):
    monkeypatch.setattr(module, "attention_mask", padding_of_prefixes)
    groups = [group(25, *[6] * 6), group(3, 4, 4), group(9, 4, 4)]
    expected = reference("Llama", groups)
    np.testing.assert_allclose(run(make("Llama"), groups), expected, rtol=0, atol=FLOAT32_NATS)


@pytest.mark.parametrize("window", ["x", ["a"], {"a": 1}, "256", -3, True, 2.5])
def test_a_window_that_the_architecture_does_not_have_may_be_anything(make, reference, window):
    """Llama keeps any value of a key that it does not know."""
    scorer = make("Llama")
    scorer.config.sliding_window = window
    groups = GROUPS[:2]
    expected = reference("Llama", groups)
    np.testing.assert_allclose(run(scorer, groups), expected, rtol=0, atol=FLOAT32_NATS)


def test_larger_groups_are_compared_again(make, reference, monkeypatch, ran):
    """A window that the configuration hides does not matter in groups that it exceeds."""
    monkeypatch.setattr(module, "BY_INDEX", ())
    scorer = make("GPT-Neo")
    shared = []
    small, large = [group(2, 3, 3, 3)], [group(30, 6, 6, 6)]
    for groups in (small, large, small):
        right = reference("GPT-Neo", groups)
        before = len(ran)
        np.testing.assert_allclose(run(scorer, groups), right, rtol=0, atol=FLOAT32_NATS)
        shared.append(len(ran) - before)
    assert shared == [2, 1, 0]  # compared and used, compared, neither


# --- scorers of any kind --------------------------------------------------------------------------


def made_up(batch_tokens: int = 4096) -> MadeUpScorer:
    """Return a scorer of which no network is known."""
    scorer = MadeUpScorer(None, batch_tokens=batch_tokens)
    scorer.context = CONTEXT
    return scorer


def test_any_scorer_gets_each_continuation_behind_its_prefix():
    scorer = made_up()
    whole = [np.concatenate(pair) for pair in alone(GROUPS)]
    values = run(scorer)
    assert sorted(map(bytes, scorer.sequences)) == sorted(map(bytes, whole))
    ends = [len(continuation) for _, continuation in alone(GROUPS)]
    expected = [log_probs_of(ids)[-end:] for ids, end in zip(whole, ends, strict=True)]
    np.testing.assert_array_equal(values, np.concatenate(expected))


@pytest.mark.parametrize("kind", ["any", "network"])
def test_what_cannot_be_scored_is_refused(make, kind):
    scorer = made_up() if kind == "any" else make()
    unknown = np.array([300, 1], dtype=np.int32)
    with pytest.raises(InputError, match="continuation 1 of group 1 has 41 tokens, but the contex"):
        run(scorer, [group(3, 4, 4), group(3, 4, CONTEXT + 1)])
    for groups in ([(unknown, [ids(3)] * 2)], [(ids(3), [ids(3), unknown])]):
        with pytest.raises(InputError, match="token 300, but the model knows 300"):
            run(make(), groups)
