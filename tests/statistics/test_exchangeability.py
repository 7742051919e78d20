import itertools

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from contamination.errors import InputError
from contamination.statistics import exchangeability
from contamination.statistics.exchangeability import (
    ascending_neighbours,
    autocorrelation,
    equal_neighbours,
    max_z,
    neighbour_similarity,
    order_test,
    random_orderings,
    trend,
)

STATISTICS = (equal_neighbours, ascending_neighbours, autocorrelation, trend)
CASES = st.tuples(
    st.lists(st.integers(2, 5), min_size=1, max_size=3),  # sizes of shards
    st.lists(st.integers(0, 3), min_size=15, max_size=15),
    st.integers(0, 2**32 - 1),
)


def bounds_of(sizes):
    stops = np.cumsum(sizes).tolist()
    return list(zip([0, *stops[:-1]], stops, strict=True))


def drawn(case):
    sizes, values, seed = case
    bounds = bounds_of(sizes)
    orderings = random_orderings(bounds, 4, rng=np.random.default_rng(seed))
    return np.array(values[: bounds[-1][1]]), orderings, bounds


def test_orderings_are_canonical_first_and_stay_within_shards():
    bounds = [(0, 4), (4, 6), (6, 11)]
    orderings = random_orderings(bounds, 50, rng=np.random.default_rng(0))
    assert orderings.shape == (51, 11)
    np.testing.assert_array_equal(orderings[0], np.arange(11))
    for start, stop in bounds:
        block = orderings[:, start:stop]
        np.testing.assert_array_equal(np.sort(block, axis=1), np.tile(range(start, stop), (51, 1)))
    again = random_orderings(bounds, 50, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(orderings, again)


def test_orderings_are_uniform_and_independent_over_shards():
    orderings = random_orderings([(0, 3), (3, 5)], 6000, rng=np.random.default_rng(1))[1:]
    _, counts = np.unique(orderings, axis=0, return_counts=True)
    assert len(counts) == 12
    assert scipy.stats.chisquare(counts).pvalue > 1e-4


def neighbours(order, bounds):
    return [(order[i], order[i + 1]) for a, b in bounds for i in range(a, b - 1)]


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


@pytest.mark.parametrize("statistic", STATISTICS)
def test_working_in_parts_changes_nothing(statistic, monkeypatch):
    rng = np.random.default_rng(4)
    bounds = [(0, 7), (7, 12)]
    orderings = random_orderings(bounds, 10, rng=rng)
    values = rng.integers(0, 4, 12)
    whole = statistic(values, orderings, bounds)
    monkeypatch.setattr(exchangeability, "_CHUNK", 3 * 12)
    assert whole.shape == (11,)
    np.testing.assert_allclose(statistic(values, orderings, bounds), whole, atol=1e-14)


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
    assert result.z == pytest.approx(2 / np.std([4, 1, 1, 2]))
    assert result.log10_p == pytest.approx(np.log10(1 / 4))


@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_rounding_is_a_tie(alternative):
    result = order_test([0.1 + 0.2, 0.3, 0.3], alternative=alternative)
    assert (result.p, result.z) == (1.0, 0.0)
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
    for alpha in p:
        assert (p <= alpha).mean() <= alpha + 1e-12


def test_calibrated_by_sampling():
    """Not only valid but near its level: 1/20 of exchangeable orders are rejected at 0.05."""
    rng = np.random.default_rng(5)
    trials, alpha, bounds = 600, 0.05, [(0, 12), (12, 25)]
    low, high = scipy.stats.binom.ppf([1e-4, 1 - 1e-4], trials, alpha)
    rejections = dict.fromkeys(STATISTICS[1:], 0)
    for _ in range(trials):
        values = rng.exponential(size=25)
        orderings = random_orderings(bounds, 99, rng=rng)
        for statistic in rejections:
            found = statistic(values, orderings, bounds)
            rejections[statistic] += p_of(found, "two-sided") <= alpha
    # Shares of neighbours are discrete, so that ties cost them a part of the level.
    assert low <= rejections[autocorrelation] <= high
    assert low <= rejections[trend] <= high
    assert 0 < rejections[ascending_neighbours] <= high


def test_bad_input():
    with pytest.raises(InputError, match="permutations is 0"):
        random_orderings([(0, 3)], 0, rng=np.random.default_rng(0))
    with pytest.raises(InputError, match="no shuffled ordering"):
        p_of([1.0], "greater")
    with pytest.raises(InputError, match="ordering 1 is nan"):
        p_of([1.0, np.nan], "greater")


def test_max_z_by_hand():
    values = np.array([[3.0, 1, 1, 1], [10, 10, 20, 20], [7, 7, 7, 7]])
    expected = [np.sqrt(3), 0, 1, 1]
    np.testing.assert_allclose(max_z(values), expected, atol=1e-12)
    rounding = np.array([[0.1 + 0.2, 0.3, 0.3, 0.3], [0.0, 1, 2, 3]])
    np.testing.assert_allclose(max_z(rounding)[-1], max_z(rounding[1:])[-1])
    assert max_z(rounding)[0] == 0


@given(st.integers(0, 2**32 - 1))
def test_max_z_treats_all_orderings_alike(seed):
    rng = np.random.default_rng(seed)
    values, shuffle = rng.normal(size=(3, 6)), rng.permutation(6)
    np.testing.assert_allclose(max_z(values[:, shuffle]), max_z(values)[shuffle])


def unit_rows(rng, n, v=4):
    rows = rng.random((n, v))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_neighbour_similarity_by_brute_force(seed, one_shard):
    rng = np.random.default_rng(seed)
    bounds = [(0, 9)] if one_shard else [(0, 2), (2, 6), (6, 9)]
    rows, copies = unit_rows(rng, 9), rng.integers(0, 4, 9)
    orderings = random_orderings(bounds, 3, rng=rng)
    choices = {"lags": (1, 2, 3), "threshold": 0.9, "copies": copies}
    found = neighbour_similarity(scipy.sparse.csr_matrix(rows), orderings, bounds, **choices)
    cosine = rows @ rows.T
    near = (cosine > 0.9) & (copies[:, None] != copies)
    np.testing.assert_array_equal(found.has_twin, near.any(axis=1))
    for j, order in enumerate(orderings):
        for index, lag in enumerate((1, 2, 3)):
            pairs = [(order[i], order[i + lag]) for a, b in bounds for i in range(a, b - lag)]
            assert found.means[index, j] == pytest.approx(np.mean([cosine[p] for p in pairs]))
            if lag == 1:
                assert found.close[j] == pytest.approx(np.mean([near[p] for p in pairs]))


def test_blocks_of_similarities_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    rows, bounds = unit_rows(rng, 20), [(0, 12), (12, 20)]
    orderings = random_orderings(bounds, 5, rng=rng)
    settings_ = {"lags": (1, 4), "threshold": 0.95, "copies": np.arange(20)}
    whole = neighbour_similarity(rows, orderings, bounds, **settings_)
    monkeypatch.setattr(exchangeability, "_CHUNK", 60)
    parts = neighbour_similarity(rows, orderings, bounds, **settings_)
    np.testing.assert_allclose(parts.means, whole.means, rtol=1e-14)
    np.testing.assert_array_equal(parts.close, whole.close)
    np.testing.assert_array_equal(parts.has_twin, whole.has_twin)
    assert whole.has_twin.any()
