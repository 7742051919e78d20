import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given
from hypothesis import strategies as st

from contamination.statistics import (
    contributions,
    pooled_exact_test,
    relabel_canonical,
    sampled_successor_scores,
    sampling_error,
    sharded_exact_monte_carlo,
    sharded_exact_p_values,
    sharded_exact_test,
)
from contamination.statistics.lattice import lattice_step
from fakes.level import check_every_level

BOTH = pytest.mark.parametrize("weights", ["equal", "inverse_sd"])


def enumerated(scores, weights, below=0.0):
    """P(T >= t - below) over all (m+1)^r canonical indices, from the definition of T."""
    sums = np.zeros(1)
    observed = 0.0
    noise = 1e-11
    for row in scores:
        share = row - row.mean()
        if weights == "inverse_sd":
            share = share / row.std() if np.ptp(row) > 0 else np.zeros_like(row)
        sums = np.add.outer(sums, share).ravel()
        observed += share[0]
        noise += 1e-11 * np.abs(share).max()
    return np.mean(sums >= observed - below - noise)


@pytest.mark.parametrize(
    ("head", "tail", "unit"),
    [
        (8.0, 2.0, 2.0),  # the last gap halves the unit twice
        (0.0, 2.0, 2.0),
        (1.0, 0.3, None),  # the last gap has no unit
        (0.3, 1.0, None),
    ],
)
def test_a_lattice_without_rounding_holds_all_gaps(head, tail, unit):
    gaps = np.full((2, 200), head)
    gaps[:, 0] = 0
    gaps[1, -1] = tail
    step, width = lattice_step([gaps])
    if unit is None:
        assert width == step * len(gaps) > 0
    else:
        assert (step, width) == (unit, 0.0)


def log10_by_counting(scores):
    """log10 P(T >= t) for integer scores and equal weights: big-integer polynomials, no floats."""
    law = {0: 1}
    for row in scores.astype(int).tolist():
        step: dict[int, int] = {}
        for total, count in law.items():
            for value in row:
                step[total + value] = step.get(total + value, 0) + count
        law = step
    observed = int(scores[:, 0].sum())
    hits = sum(count for total, count in law.items() if total >= observed)
    return float(mpmath.log10(hits) - len(scores) * mpmath.log10(scores.shape[1]))


def canonical_first(scores, rng, pull):
    """Move one of the larger scores of each shard to the front: `pull` of 1 takes the maximum."""
    ranked = np.sort(scores, axis=1)[:, ::-1]
    for row in ranked:
        j = rng.integers(max(1, round((1 - pull) * len(row))))
        row[0], row[j] = row[j], row[0]
    return ranked


@BOTH
def test_between_the_bounds_of_full_enumeration(law, weights):
    """The guarantee itself, P(T >= t) <= p <= P(T >= t - resolution), of one set and of several."""
    rng = np.random.default_rng(20)
    for _ in range(40):
        shapes = rng.integers(1, [5, 6], size=(int(rng.integers(1, 4)), 2))
        shapes[1:] = np.minimum(shapes[1:], 2)
        sets = [canonical_first(law(rng, r, m), rng, rng.random()) for r, m in shapes]
        rows = list(itertools.chain.from_iterable(sets))
        result = pooled_exact_test(sets, weights=weights)
        assert result.p >= enumerated(rows, weights) * (1 - 1e-12)
        assert result.p <= enumerated(rows, weights, result.resolution) * (1 + 1e-6)
        null_sd = np.sqrt(sum((contributions([s], weights=weights) ** 2).mean() for s in rows))
        assert result.resolution <= 0.02 * max(null_sd, 1e-300)
        assert result.shards == len(rows)
        assert result.permutations == shapes[:, 1].min()
        alone = sharded_exact_test(sets[0], weights=weights)
        again = pooled_exact_test(sets[:1], weights=weights)
        assert alone.log10_p == again.log10_p
        assert alone.z == again.z


@BOTH
@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=6))
def test_no_p_is_below_the_least_that_the_scores_allow(weights, rows):
    """The least is reached where every canonical score is a largest one of its shard."""
    scores = np.array(rows, dtype=float)
    result = sharded_exact_test(scores, weights=weights)
    assert result.log10_p >= result.log10_least - 1e-12
    best = sharded_exact_test(np.sort(scores, axis=1)[:, ::-1], weights=weights)
    assert best.log10_p == pytest.approx(best.log10_least, abs=1e-9)
    assert best.log10_least == result.log10_least


@BOTH
@pytest.mark.parametrize("shapes", [[(3, 3)], [(2, 2), (1, 5)]])
def test_every_choice_of_canonical_index_gives_a_valid_p(law, weights, shapes):
    """P(p <= alpha) <= alpha at every alpha, exactly, over all assignments under H0."""
    rng = np.random.default_rng(21)
    sets = [law(rng, r, m) for r, m in shapes]
    p = []
    for index in itertools.product(*(range(m + 1) for r, m in shapes for _ in range(r))):
        chosen = iter(index)
        swapped = [relabel_canonical(scores, [next(chosen) for _ in scores]) for scores in sets]
        p.append(pooled_exact_test(swapped, weights=weights).p)
    check_every_level(p)


@BOTH
def test_an_order_that_all_shards_share_is_no_null_hypothesis(weights):
    """Ten shards sorted upwards or downwards by one coin: each is in either order half the time.

    A score of ascending order then has p = 2^-10 half the time.
    """
    upwards = sharded_exact_test([[1.0, 0.0]] * 10, weights=weights)
    downwards = sharded_exact_test([[0.0, 1.0]] * 10, weights=weights)
    assert upwards.p == pytest.approx(2**-10)
    assert downwards.p == 1


def exact_gaps(row, weights):
    """w_i (L[i, j] - L[i, 0]) of one shard, and the rounding of a score in the same units."""
    numbers = [Fraction(score) for score in row]
    gaps = [number - numbers[0] for number in numbers]
    rounding = Fraction(1, 10**12) * max(abs(number) for number in numbers)
    if weights == "equal":
        return gaps, rounding
    if max(gaps) - min(gaps) <= rounding:
        return [Fraction(0)] * len(row), Fraction(0)
    mean = sum(gaps) / len(row)
    variance = sum((gap - mean) ** 2 for gap in gaps) / len(row)
    sd = Fraction(math.isqrt(int(variance * 10**160)), 10**80)
    return [gap / sd for gap in gaps], rounding / sd


@st.composite
def shards_far_from_zero(draw):
    """Scores whose differences may be as small as the rounding of the scores."""
    orderings = draw(st.integers(2, 4))
    differences = st.sampled_from([0, 0.1, 0.1 + 0.2, 0.3, -0.4, 0.5, 7, 1e-3, 1e-9])
    shard = st.lists(differences, min_size=orderings, max_size=orderings)
    offsets = st.sampled_from([0.0, -1e3, 1e9, 1e12, -1e13, 1e15])
    shifts = draw(st.lists(offsets, min_size=1, max_size=3))
    return [[shift + difference for difference in draw(shard)] for shift in shifts]


@BOTH
@given(shards_far_from_zero())
@example([[1e12, 1e12 + 0.5], [0.0, -0.4]])  # 0.5 is rounding of 1e12, and more than 0.4
def test_no_p_is_below_the_true_one_however_far_scores_are_from_zero(weights, scores):
    gaps, rounding = zip(*(exact_gaps(row, weights) for row in scores), strict=True)
    sums = [sum(chosen) for chosen in itertools.product(*gaps)]
    zero = Fraction(-1, 10**40)  # of square roots with 80 digits
    result = sharded_exact_test(scores, weights=weights)
    many = sharded_exact_p_values(scores, [[0] * len(scores)], weights=weights)
    true_p = float(Fraction(sum(total >= zero for total in sums), len(sums)))
    assert result.p >= true_p * (1 - 1e-12)
    assert many[0] >= true_p * (1 - 1e-12)
    if weights == "equal":
        lowest = zero - Fraction(result.resolution) - sum(rounding)
        most = float(Fraction(sum(total >= lowest for total in sums), len(sums)))
        assert result.p <= most * (1 + 1e-6)


@BOTH
def test_many_choices_at_once_between_the_bounds_of_full_enumeration(law, weights):
    """One law for all choices of canonical orderings, with the guarantee of the test of each."""
    rng = np.random.default_rng(5)
    for _ in range(10):
        r = int(rng.integers(1, 5))
        m = int(rng.integers(1, 7))
        scores = law(rng, r, m)
        canonical = rng.integers(m + 1, size=(6, r))
        found = sharded_exact_p_values(scores, canonical, weights=weights)
        for p, chosen in zip(found, canonical, strict=True):
            swapped = relabel_canonical(scores, chosen)
            resolution = sharded_exact_test(swapped, weights=weights).resolution
            assert p >= enumerated(swapped, weights) * (1 - 1e-12)
            assert p <= enumerated(swapped, weights, 1.01 * resolution) * (1 + 1e-6) + 1e-6


@pytest.mark.parametrize("pull", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("r", [1, 7, 60])
def test_far_tail_against_big_integers(r, pull):
    rng = np.random.default_rng(2)
    scores = canonical_first(rng.geometric(0.3, (r, 40)).astype(float), rng, pull)
    result = sharded_exact_test(scores, weights="equal")
    exact = log10_by_counting(scores)
    assert result.log10_p == pytest.approx(exact, rel=1e-6, abs=1e-6)
    assert result.log10_p >= exact - 1e-15 * abs(exact)  # round-off never errs downwards


@BOTH
@pytest.mark.parametrize(
    ("wins", "r"), [(30, 100), (60, 100), (85, 100), (99, 100), (100, 100), (395, 400)]
)
def test_far_tail_is_binomial_for_one_high_score_in_ten(wins, r, weights):
    """log10 p from -6 to -380; all shards alike, so both weightings give the binomial tail."""
    scores = np.zeros((r, 10))
    scores[:wins, 0] = scores[wins:, 5] = 2.5
    with mpmath.workdps(30):
        tail = sum(mpmath.binomial(r, k) * mpmath.mpf(9) ** (r - k) for k in range(wins, r + 1))
        exact = float(mpmath.log10(tail)) - r
    result = sharded_exact_test(scores, weights=weights)
    assert result.log10_p == pytest.approx(exact, rel=1e-7)
    assert result.log10_p >= exact - 1e-15 * abs(exact)
    assert result.p == max(10**result.log10_p, np.finfo(float).tiny)  # never 0


@BOTH
def test_every_canonical_score_the_maximum(weights):
    """The end of the scale, (m+1)^-r and its tied version, has no rounding at all."""
    rng = np.random.default_rng(3)
    scores = -np.sort(-rng.normal(size=(50, 251)), axis=1)
    result = sharded_exact_test(scores, weights=weights)
    assert result.log10_p == pytest.approx(-50 * np.log10(251), rel=1e-12)
    scores[:10, 1] = scores[:10, 0]
    tied = sharded_exact_test(scores, weights=weights)
    assert tied.log10_p == pytest.approx(10 * np.log10(2) - 50 * np.log10(251), rel=1e-12)


@BOTH
def test_ties_survive_float_noise(weights):
    """0.1 + 0.2 and 0.3 are one score, whichever of them is canonical and however it is summed."""
    noisy = np.array([[0.3, 0.1 + 0.2, 0.1], [0.1 + 0.2, 0.3, 0.1], [0.3, 0.3, 0.1]])
    clean = np.array([[3.0, 3.0, 1.0]] * 3)
    expected = sharded_exact_test(clean, weights=weights).p
    assert expected == pytest.approx((2 / 3) ** 3)
    assert sharded_exact_test(noisy, weights=weights).p == pytest.approx(expected)
    just_above = np.array([[0.1 + 0.2, 0.3, 0.1]] * 3)
    assert sharded_exact_test(just_above, weights=weights).p == pytest.approx(expected)
    noisy[2] = [0.1, 0.3, 0.3]  # no longer the maximum: through the lattice
    assert sharded_exact_test(noisy, weights=weights).p == pytest.approx(1 - 1 / 27 - 6 / 27)
    silent = sharded_exact_test(np.full((3, 5), -0.1), weights=weights)
    assert silent.p == 1.0
    assert silent.log10_p == 0.0
    assert silent.z == 0.0


@BOTH
def test_moments(law, weights):
    scores = law(np.random.default_rng(5), 3, 5)
    result = sharded_exact_test(scores, weights=weights)
    shares = contributions(scores, weights=weights)
    sums = np.add.outer(np.add.outer(shares[0], shares[1]), shares[2])
    assert sums.mean() == pytest.approx(0, abs=1e-9)
    assert result.statistic == pytest.approx(shares[:, 0].sum())
    assert result.z == pytest.approx(result.statistic / sums.std())
    assert result.shards == 3
    assert result.permutations == 5
    z = contributions(scores, weights="inverse_sd")[:, 0]
    varies = np.ptp(scores, axis=1) > 0
    np.testing.assert_allclose(z[varies], scipy.stats.zscore(scores[varies], axis=1)[:, 0])
    assert not z[~varies].any()


@BOTH
def test_monte_carlo_is_near_the_exact_p(weights):
    rng = np.random.default_rng(8)
    for _ in range(20):
        scores = rng.standard_t(3, size=(20, 31))
        scores[:, 0] += 0.3
        exact = sharded_exact_test(scores, weights=weights)
        sampled = sharded_exact_monte_carlo(scores, weights=weights, resamples=4000, rng=rng)
        assert sampled.statistic == exact.statistic
        assert sampled.p == pytest.approx(exact.p, abs=4.5 * (exact.p / 4000) ** 0.5 + 1 / 4000)


def test_monte_carlo_counts_ties_and_adds_one():
    rng = np.random.default_rng(9)
    tied = np.array([[0.3, 0.1 + 0.2], [0.1 + 0.2, 0.3]])
    assert sharded_exact_monte_carlo(tied, resamples=100, rng=rng).p == 1.0
    summed = np.array([[0, 0.7], [0, 0.1], [0.8, 0]])  # 0.7 + 0.1 - 0.8 is -1e-16 in floats
    p_values = []
    for _ in range(2):
        result = sharded_exact_monte_carlo(
            summed,
            weights="equal",
            resamples=10_000,
            rng=np.random.default_rng(9),
        )
        p_values.append(result.p)
    p, again = p_values
    assert p == again == pytest.approx(5 / 8, abs=0.02)  # 4 standard errors; 4/8 without the tie
    strongest = np.zeros((30, 20))
    strongest[:, 0] = 1
    result = sharded_exact_monte_carlo(strongest, resamples=999, rng=rng)
    assert result.p == 0.001
    assert result.log10_p == pytest.approx(-3)


def test_another_sample_of_orderings_moves_log10_p_by_its_standard_error():
    rng = np.random.default_rng(5)
    shards = [rng.normal(size=(8, 8)) + 1.2 * np.eye(8, k=1) for _ in range(5)]
    p, errors = [], []
    for _ in range(25):
        scores = np.array([sampled_successor_scores(s, resamples=1000, rng=rng) for s in shards])
        p.append(sharded_exact_test(scores).log10_p)
        errors.append(sampling_error(scores))
    assert np.mean(p) < -6
    assert 0.6 < np.std(p) / np.mean(errors) < 1.6


def test_a_sampling_error_has_no_empty_blocks():
    scores = np.random.default_rng(6).normal(size=(5, 4))
    assert sampling_error(scores) == sampling_error(scores, blocks=3)


def test_a_sampling_error_is_that_of_the_jackknife():
    """Tukey's formula: the variance is (g - 1) / g times the squares of g estimates."""
    scores = np.random.default_rng(6).normal(size=(4, 7))
    estimates = []
    for left_out in range(1, 7):
        estimates.append(sharded_exact_test(np.delete(scores, left_out, axis=1)).log10_p)
    squares = (np.array(estimates) - np.mean(estimates)) ** 2
    expected = math.sqrt(5 / 6 * squares.sum())
    assert sampling_error(scores) == pytest.approx(expected, rel=1e-9, abs=0)
