"""The tests of the registry against slow references: what min-p combines, and that it may."""

import itertools
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats

from contamination.audit import registry, shard_scores
from contamination.audit.registry import TESTS
from contamination.audit.shard_scores import COUNTED, TOKEN_SCORES, min_p_successors
from contamination.scoring.store import Header, ShardTokens, create_store
from contamination.statistics import centred_successors, sharded_exact_test, successor_scores
from fakes.level import check_level
from fakes.made_up_store import HEADER, units

LONGEST = 40


def made_up_store(
    rng, *, shards=2, size=4, gain=0.0, where=slice(None), noise=1.0, tokens_per_example=None
):
    """Stand in for a store of successors: tokens whose canonical pairs gain nats at `where`."""
    lengths = tuple(rng.integers(5, LONGEST, shards * size).tolist())
    header = Header("m", "w", "d", "r", "text/1", 1, shards, lengths, "successors")
    header = replace(header, tokens_per_example=tokens_per_example)
    tokens = []
    for start, stop in header.bounds:
        held = np.arange(header.stored.max()) < header.stored[start:stop, None]
        values = rng.normal(-3, noise, (size, size, header.stored.max()))
        pairs = np.arange(size - 1), np.arange(1, size)
        added = np.zeros(values.shape)
        added[*pairs, where] = gain
        values = np.where(held, values + added, 0).astype(np.float32)
        values[np.arange(size), np.arange(size)] = np.nan
        tokens.append(values)
    return SimpleNamespace(
        header=header,
        successor_tokens=lambda shard, b: tokens[shard][:, :, :b],
        successors=lambda shard, b: tokens[shard][:, :, :b].sum(axis=2, dtype=np.float64),
        resolution=lambda tokens: 0.0,
        shards_in_turn=nullcontext,
    )


def all_orderings(store):
    """Scores of all k! orderings of every shard by every number of tokens, (q, r, k!)."""
    rows = []
    for b in COUNTED.values():
        matrices = [store.successors(shard, b) for shard in range(store.header.shards)]
        orders = list(itertools.permutations(range(len(matrices[0]))))
        rows.append([successor_scores(centred_successors(m), orders) for m in matrices])
    return np.array(rows)


@pytest.mark.parametrize("gain", [0.0, 0.5, 1.0])
def test_min_p_against_all_choices_of_orderings(gain):
    """Two shards of 24 orderings have 576 sums for each of four numbers of tokens."""
    store = made_up_store(np.random.default_rng(3), gain=gain)
    scores = all_orderings(store)
    shares = (scores - scores.mean(axis=2, keepdims=True)) / scores.std(axis=2, keepdims=True)
    z = (shares[:, 0, :, None] + shares[:, 1, None, :]).reshape(len(scores), -1)
    p = scipy.stats.rankdata(-np.round(z, 9), "max", axis=1) / z.shape[1]
    exact = np.mean(p.min(axis=0) <= p[:, 0].min() * (1 + 1e-9))
    result = TESTS["min_p"].result(store, 0)
    assert result.p == pytest.approx(exact, rel=0.25)
    assert result.log10_p == pytest.approx(np.log10(result.p))
    assert result.best == f"successor_{list(COUNTED)[p[:, 0].argmin()]}"
    assert result.test == "min_p"
    assert result.shards == 2
    for name, marginal, each in zip(result.names, result.marginals, p[:, 0], strict=True):
        assert marginal.p == pytest.approx(each, rel=0.2), name


def test_all_numbers_of_tokens_see_the_same_orderings(monkeypatch):
    store = made_up_store(np.random.default_rng(0), size=5)
    monkeypatch.setattr(shard_scores, "SAMPLED_ORDERINGS", 50)
    scores = min_p_successors(store, 1)
    assert scores.shape == (4, 51)
    everything = all_orderings(store)[:, 1]
    found = np.abs(everything[:, :, None] - scores[:, None, :]).max(axis=0) < 1e-4
    assert found.any(axis=0).all()  # one ordering gives all four scores
    np.testing.assert_allclose(scores[:, 0], everything[:, 0], atol=1e-4)
    assert len(np.unique(scores[0].round(6))) > 30
    few = min_p_successors(made_up_store(np.random.default_rng(4), tokens_per_example=12), 0)
    np.testing.assert_array_equal(few[1], few[3])  # fewer tokens are kept than counted


def test_options_are_the_exact_test_on_all_arrangements_of_each_record(tmp_path):
    """A row of the store is a record; nothing of it depends on the permutations of the order."""
    header = replace(HEADER, kind="alternatives", shards=3, example_tokens=(2, 1, 3, 4, 2, 2))
    store = create_store(tmp_path, header)
    store.append(units(0, header))
    test = TESTS["options"]
    assert not test.stops
    scores = test.scores(store, 99)
    np.testing.assert_array_equal(scores, store.variants())
    assert scores.shape == (3, 2)
    found = test.result(store, 99)
    assert found.test == "options"
    assert found.p == sharded_exact_test(scores, weights="equal").p
    # A quiet item of another opinion has no vote as loud as that of the others.
    loud = np.array([[5.0, 0, 0, 0], [5.0, 0, 0, 0], [0, 0.1, 0, 0]])
    assert test.result_from_scores(store, loud).p < sharded_exact_test(loud).p


@pytest.mark.parametrize("test", TESTS.values(), ids=list(TESTS))
def test_every_test_says_how_a_shard_is_scored(test):
    """Options are read from the store as they are; all others need a function."""
    has_scores = test.from_store is not None or (test.name, test.b) in TOKEN_SCORES
    assert has_scores or test.kind == "alternatives"


# --- laws of every test, also of one that is registered tomorrow ---------------------------------


@pytest.mark.parametrize("score", TOKEN_SCORES.values(), ids=map(str, TOKEN_SCORES))
@pytest.mark.parametrize("resolution", [0.0, 2.0])
def test_a_score_of_tokens_treats_all_orderings_alike(score, resolution):
    """Else it knows which of them is the canonical one, and its p is no p-value."""
    rng = np.random.default_rng(0)
    lengths = (3, 20, 9)
    example = np.repeat(range(3), lengths)
    position = np.concatenate([np.arange(length, dtype=np.int32) for length in lengths])
    leading = example == rng.integers(3, size=(8, 1))
    values = rng.normal(-3, 1, leading.shape).astype(np.float32)
    tokens = ShardTokens(values, leading, position, resolution)
    for order in (np.arange(8)[::-1], rng.permutation(8)):
        moved = tokens._replace(logprobs=values[order], leading=leading[order])
        np.testing.assert_allclose(score(moved), score(tokens)[order], atol=1e-9)


OF_PAIRS = [test for test in TESTS.values() if test.kind == "successors"]


@pytest.mark.parametrize("test", OF_PAIRS, ids=lambda test: test.name)
def test_a_test_of_pairs_keeps_its_level(test, monkeypatch):
    """On stores in which no pair is special."""
    monkeypatch.setattr(shard_scores, "SAMPLED_ORDERINGS", 99)
    monkeypatch.setattr(registry, "MIN_P_DRAWS", 99)
    rng = np.random.default_rng(0)
    p_values = [test.result(made_up_store(rng), 0).p for _ in range(60)]
    check_level(p_values, 0.1, 0.5, reached=False)


def test_legends_tell_tests_apart_in_colour_and_in_grey():
    shown = [(test.label, test.colour, test.marker) for test in TESTS.values()]
    assert [len(set(column)) for column in zip(*shown, strict=True)] == [len(TESTS)] * 3


def test_every_test_has_a_line_of_help():
    assert all(test.help.strip() for test in TESTS.values())
