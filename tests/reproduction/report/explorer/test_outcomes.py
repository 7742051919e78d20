"""Every number that the explorer shows of a store is the one that the tests give."""

import numpy as np
import pytest
import scipy.stats

from contamination.audit.battery import COUNTED, TESTS, sampling_stream
from contamination.errors import InputError
from contamination.scoring.store import open_store
from contamination.statistics import shard_z_scores, sharded_exact_test
from fakes.made_up_sets import make_set, make_store
from reproduction.report.explorer.outcomes import DRAWS, Outcome, store_outcomes

SET = make_set("some")


def _outcomes(path) -> dict[tuple[str, str | None], Outcome]:
    return {(o.test, o.b): o for o in store_outcomes(open_store(path))[0]}


@pytest.fixture
def orderings(tmp_path):
    return make_store(tmp_path, "m", SET, "orderings", 6, gain=0.4)


@pytest.fixture
def successors(tmp_path):
    return make_store(tmp_path, "m", SET, "successors", 3, tokens_per_example=32, gain=0.4)


@pytest.mark.parametrize(
    ("test", "b"),
    [
        ("sharded_t", None),
        ("sharded_exact", None),
        ("token_standardised", None),
        ("boundary", "16"),
    ],
)
def test_p_values_of_orderings_are_those_of_the_battery(orderings, test, b) -> None:
    expected = TESTS[test].result(open_store(orderings), 9)
    outcome = _outcomes(orderings)[test, b]
    assert outcome.result.log10_p == pytest.approx(expected.log10_p, rel=1e-9)
    assert (outcome.result.shards, outcome.result.permutations) == (6, 9)


def test_p_values_of_successors_and_of_the_whole_set_are_those_of_the_battery(
    successors, tmp_path
) -> None:
    expected = TESTS["successor"].result(open_store(successors), 0)
    assert _outcomes(successors)["successor", "32"].result.log10_p == pytest.approx(
        expected.log10_p, rel=1e-9
    )
    whole = make_store(tmp_path, "m", SET, "orderings", 1, permutations=19)
    ((outcome,), _) = store_outcomes(open_store(whole))
    assert outcome.test == "permutation"
    assert outcome.result.p == TESTS["permutation"].result(open_store(whole), 19).p


@pytest.mark.parametrize("first", [8, 32])
def test_b_counts_the_first_tokens_of_an_example(tmp_path, first) -> None:
    """A store that keeps no more than b tokens has the same numbers in full."""
    long = make_store(tmp_path, "m", SET, "successors", 3)
    scores = []
    for shard in range(3):
        matrix = open_store(long).successors(shard, first)
        off = ~np.eye(len(matrix), dtype=bool)
        # Least squares by brute force: mean, predecessor and successor effects.
        a, b = np.nonzero(off)
        design = np.column_stack([a == i for i in range(8)] + [b == i for i in range(8)])
        design = design.astype(float)
        fit = design @ np.linalg.lstsq(design, matrix[off], rcond=None)[0]
        matrix[off] -= fit
        rng = sampling_stream(open_store(long), shard)
        orders = np.tile(np.arange(8), (10_001, 1))
        orders[1:] = rng.permuted(orders[1:], axis=1)
        scores.append([matrix[o[:-1], o[1:]].sum() for o in orders])
    outcome = _outcomes(long)["successor", str(first)]
    np.testing.assert_allclose(outcome.by_shard, shard_z_scores(scores), rtol=1e-6)
    assert outcome.result.log10_p == pytest.approx(sharded_exact_test(scores).log10_p, rel=1e-6)


def test_evidence_of_the_shards_adds_up(orderings) -> None:
    sums = open_store(orderings).log_probs(9)
    found = _outcomes(orderings)
    z = (sums[:, 0] - sums.mean(axis=1)) / sums.std(axis=1)
    np.testing.assert_allclose(found["sharded_exact", None].by_shard, z, rtol=1e-9)
    assert found["sharded_exact", None].canonical == pytest.approx(z.sum() / np.sqrt(6))
    np.testing.assert_allclose(
        found["sharded_t", None].by_shard, sums[:, 0] - sums[:, 1:].mean(axis=1), rtol=1e-9
    )


def _upper_share(outcome: Outcome) -> float:
    counts, edges = outcome.null
    middles = (edges[1:] + edges[:-1]) / 2
    return counts[middles >= outcome.canonical].sum() / counts.sum()


def test_null_distributions_hold_the_p_value_in_their_upper_tail(orderings, tmp_path) -> None:
    for outcome in _outcomes(orderings).values():
        assert _upper_share(outcome) == pytest.approx(outcome.result.p, abs=0.05)
        assert outcome.null[0].sum() == pytest.approx(DRAWS, rel=0.003)
    _, edges = _outcomes(orderings)["sharded_t", None].null
    assert edges[-1] == pytest.approx(scipy.stats.t(5).ppf(0.999))
    whole = make_store(tmp_path, "m", SET, "orderings", 1, permutations=19)
    ((outcome,), _) = store_outcomes(open_store(whole))
    assert outcome.null[0].sum() == 19


def test_joint_p_pays_for_the_choices(orderings, successors) -> None:
    for path in (orderings, successors):
        outcomes, joint = store_outcomes(open_store(path))
        exact = [o.result.p for o in outcomes if o.test != "sharded_t"]
        assert [each.p for each in joint.marginals] == pytest.approx(exact, rel=0.2)
        assert 0.9 * min(exact) < joint.p < 1.1 * len(exact) * min(exact)


@pytest.mark.parametrize(
    ("first", "allowed"),
    [(8, ["8"]), (31, ["8", "16"]), (32, ["8", "16", "32"]), (33, [*COUNTED]), (None, [*COUNTED])],
)
def test_b_reaches_as_far_as_the_store(tmp_path, first, allowed) -> None:
    path = make_store(tmp_path, "m", SET, "successors", 3, tokens_per_example=first)
    assert [b for _, b in _outcomes(path)] == allowed


def test_stores_that_cannot_be_used_are_refused(tmp_path, orderings) -> None:
    short = make_store(tmp_path, "m", SET, "successors", 3, tokens_per_example=5)
    cut = make_store(tmp_path, "m", SET, "orderings", 4, tokens_per_example=16)
    canonical = make_store(tmp_path, "m", SET, "orderings", 3, permutations=0)
    interrupted = open_store(orderings)
    header = interrupted.header
    extra = header.examples((0, 10))
    values = np.zeros(int(header.stored[extra].sum()), dtype=np.float32)
    interrupted.append([((0, 10), extra, values)])
    for path, message in (
        (short, "keeps 5 tokens of an example, too few"),
        (cut, "keeps 16 tokens of an example alone"),
        (canonical, "no shuffled ordering is scored yet"),
        (orderings, "ordering 10 of shard 1 is not scored yet"),
    ):
        with pytest.raises(InputError, match=message):
            store_outcomes(open_store(path))
