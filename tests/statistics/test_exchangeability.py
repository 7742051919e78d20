import itertools
import math

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from contamination.errors import InputError
from contamination.statistics import exchangeability, similarity
from contamination.statistics.exchangeability import (
    ascending_neighbours,
    autocorrelation,
    equal_neighbours,
    max_z,
    order_test,
    random_orderings,
    trend,
)
from contamination.statistics.option_order import ascents, in_turn, largest_test, sum_test
from contamination.statistics.similarity import neighbour_similarity
from fakes.level import check_every_level

STATISTICS = (equal_neighbours, ascending_neighbours, autocorrelation, trend)
CASES = st.tuples(
    st.lists(st.integers(2, 5), min_size=1, max_size=3),  # sizes of shards
    st.lists(st.integers(0, 3), min_size=15, max_size=15),
    st.integers(0, 2**32 - 1),
)


@pytest.fixture(autouse=True, scope="module")
def in_parts():
    """Work in parts of a few orderings, or rows of similarities, at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exchangeability, "CHUNK", 30)
        patch.setattr(similarity, "CHUNK", 30)
        yield


def bounds_of(sizes):
    stops = np.cumsum(sizes).tolist()
    return list(zip([0, *stops[:-1]], stops, strict=True))


def drawn(case):
    sizes, values, seed = case
    bounds = bounds_of(sizes)
    orderings = random_orderings(bounds, 4, rng=np.random.default_rng(seed))
    return np.array(values[: bounds[-1][1]]), orderings, bounds


def test_orderings_are_uniform_within_shards_after_the_canonical_one():
    canonical, *orderings = random_orderings([(0, 3), (3, 5)], 6000, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(canonical, np.arange(5))
    assert (np.sort(np.array(orderings)[:, :3], axis=1) == [0, 1, 2]).all()
    _, counts = np.unique(orderings, axis=0, return_counts=True)
    assert len(counts) == 12
    assert scipy.stats.chisquare(counts).pvalue > 1e-4


def neighbours(order, bounds):
    return pairs_at(order, bounds, lag=1)


def pairs_at(order, bounds, *, lag):
    """Return what stands so far apart inside a shard."""
    pairs = []
    for start, stop in bounds:
        pairs += [(order[i], order[i + lag]) for i in range(start, stop - lag)]
    return pairs


@given(CASES)
def test_statistics_by_brute_force(case):
    values, orderings, bounds = drawn(case)
    found = [statistic(values, orderings, bounds) for statistic in STATISTICS]
    x = scipy.stats.rankdata(values)
    place = np.arange(len(x), dtype=float)
    for a, b in bounds:
        x[a:b] -= x[a:b].mean()
        place[a:b] -= place[a:b].mean()
    for row, order in enumerate(orderings):
        pairs = neighbours(order, bounds)
        equal = np.mean([values[a] == values[b] for a, b in pairs])
        ascending = np.mean([(1 + np.sign(values[b] - values[a])) / 2 for a, b in pairs])
        serial = sum(x[a] * x[b] for a, b in pairs) / (x @ x) if x.any() else 0.0
        slope = x[order] @ place / np.sqrt((x @ x) * (place @ place)) if x.any() else 0.0
        expected = [equal, ascending, serial, slope]
        np.testing.assert_allclose([each[row] for each in found], expected, atol=1e-12)


def p_of(values, alternative):
    return order_test(values, alternative=alternative).p


def test_p_values_by_hand():
    assert p_of([3, 1, 2, 3, 0], "greater") == 2 / 5
    assert p_of([3, 1, 2, 2, 0], "greater") == 1 / 5
    # The mean is 2: distances 2, 1, 0, 2, 1.
    assert p_of([0, 1, 2, 4, 3], "two-sided") == 2 / 5
    assert p_of([0, 1, 2, 4, 3], "greater") == 1
    assert p_of([-9, 1, 2, 1, 0], "two-sided") == 1 / 5
    result = order_test([4.0, 1, 1, 2], alternative="greater")
    assert result.statistic == pytest.approx(2 / np.std([4, 1, 1, 2]))
    assert result.log10_p == pytest.approx(np.log10(1 / 4))


@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_rounding_is_a_tie(alternative):
    result = order_test([0.1 + 0.2, 0.3, 0.3], alternative=alternative)
    assert result.p == 1.0
    assert result.statistic == 0.0
    noisy = [0.3, 0.1 + 0.2, *[0.0] * 8]  # the draw ties with the canonical value but for its bits
    assert p_of(noisy, alternative) == p_of(noisy[1::-1] + noisy[2:], alternative) == 2 / 10


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_exact_over_all_orderings(statistic, alternative):
    """Whichever of all the orderings is the canonical one, few of them have a small p."""
    orderings = np.array(list(itertools.permutations(range(6))), dtype=np.int32)
    values = statistic([0, 0, 0, 1, 1, 2], orderings, [(0, 6)])
    p = np.array([p_of(np.roll(values, -shift), alternative) for shift in range(len(values))])
    assert p.min() < 0.2
    check_every_level(p)


def test_max_z_by_hand():
    values = np.array([[3.0, 1, 1, 1], [10, 10, 20, 20], [7, 7, 7, 7]])
    expected = [np.sqrt(3), 0, 1, 1]
    np.testing.assert_allclose(max_z(values), expected, atol=1e-12)
    rounding = np.array([[0.1 + 0.2, 0.3, 0.3, 0.3], [0.0, 1, 2, 3]])
    np.testing.assert_allclose(max_z(rounding)[-1], max_z(rounding[1:])[-1])
    assert max_z(rounding)[0] == 0


def unit_rows(rng, n, v=4):
    rows = rng.random((n, v))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_neighbour_similarity_by_brute_force(seed, one_shard):
    rng = np.random.default_rng(seed)
    bounds = [(0, 9)] if one_shard else [(0, 2), (2, 6), (6, 9)]
    rows = unit_rows(rng, 9)
    copies = rng.integers(0, 4, 9)
    orderings = random_orderings(bounds, 3, rng=rng)
    features = scipy.sparse.csr_matrix(rows)
    lags = (1, 2, 3, 10**9)
    means, close, has_twin = neighbour_similarity(
        features, orderings, bounds, lags=lags, threshold=0.9, copies=copies
    )
    assert not means[-1].any()  # nobody stands so far apart
    cosine = rows @ rows.T
    near = (cosine > 0.9) & (copies[:, None] != copies)
    np.testing.assert_array_equal(has_twin, near.any(axis=1))
    for j, order in enumerate(orderings):
        for index, lag in enumerate((1, 2, 3)):
            pairs = pairs_at(order, bounds, lag=lag)
            assert means[index, j] == pytest.approx(np.mean([cosine[p] for p in pairs]))
            if lag == 1:
                assert close[j] == pytest.approx(np.mean([near[p] for p in pairs]))


ALL = {k: np.array(list(itertools.permutations(range(k)))) for k in (2, 3, 4)}
VALUES = st.lists(st.integers(0, 3), min_size=2, max_size=4)
SMALL = arrays(
    np.int64, st.tuples(st.integers(1, 4), st.integers(2, 5)), elements=st.integers(-3, 3)
)


@given(VALUES)
def test_ascents_are_kendalls_s(values):
    found = ascents(values, ALL[len(values)])
    for arrangement, s in zip(ALL[len(values)], found, strict=True):
        pairs = itertools.combinations([values[i] for i in arrangement], 2)
        assert s == sum((b > a) - (b < a) for a, b in pairs)
    assert found.sum() == 0  # an order and its reverse cancel
    if len(set(values)) == len(values):
        tau = scipy.stats.kendalltau(range(len(values)), values).statistic
        assert found[0] == pytest.approx(tau * math.comb(len(values), 2))


@pytest.mark.parametrize("k", ALL)
def test_pairs_in_turn_by_brute_force(k):
    pairs = np.random.default_rng(k).integers(-5, 6, (k, k))
    for found, arrangement in zip(in_turn(pairs, ALL[k]), ALL[k].tolist(), strict=True):
        assert found == sum(pairs[a, b] for a, b in itertools.combinations(arrangement, 2))


def enumerated(values):
    """Two-sided p of the sum over rows, from all columns that could be drawn."""
    sums = np.array([sum(drawn) for drawn in itertools.product(*values.tolist())])
    observed = values[:, 0].sum()
    return min(1, 2 * min((sums >= observed).mean(), (sums <= observed).mean())), sums


@given(SMALL)
@settings(max_examples=80)
def test_sum_test_equals_enumeration(values):
    result = sum_test(values)
    p, sums = enumerated(values)
    assert result.p == pytest.approx(p, rel=1e-6, abs=0)
    assert result.log10_p == pytest.approx(math.log10(p), abs=1e-6)
    z = (values[:, 0].sum() - sums.mean()) / sums.std() if sums.std() else 0
    assert result.statistic == pytest.approx(z, abs=1e-9)


def test_the_largest_of_several_pays_for_the_choice():
    rng = np.random.default_rng(1)
    sums = rng.integers(0, 4, (3, 12, 6))
    sums[1, :, 0] = 3
    which, result = largest_test(sums)
    alone = sum_test(sums[1])
    assert which == 1
    assert result.statistic == alone.statistic
    assert result.p == pytest.approx(min(1, 3 * alone.p), rel=1e-9, abs=0)
    assert largest_test(np.zeros((2, 3, 4), dtype=int))[1].p == 1


def test_shards_that_leave_out_a_record_are_refused():
    orderings = np.array([[0, 1, 2], [2, 1, 0]])
    for statistic in STATISTICS:
        with pytest.raises(InputError, match="bounds end at 2"):
            statistic([1, 2, 3], orderings, [(0, 2)])
