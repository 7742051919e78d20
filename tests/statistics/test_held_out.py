"""Published against held-out records: brute force, levels, ties, bounds."""

import itertools
from functools import partial

import numpy as np
import pytest
import scipy.stats

from contamination.errors import InputError
from contamination.statistics import adjust
from contamination.statistics.conformal import conformal_p_values, read_at_least
from contamination.statistics.held_out import (
    STATISTICS,
    held_out_test,
    sides_test,
)
from contamination.statistics.sides import Sides

TRIALS = 400


def _binomial_bounds(alpha: float) -> int:
    """Return the most rejections at alpha of all trials that chance allows 1 time in 10,000."""
    return int(scipy.stats.binom.isf(1e-4, TRIALS, alpha))


def _divided(strata: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return labels that divide each stratum in halves."""
    published = np.zeros(len(strata), dtype=bool)
    for stratum in np.unique(strata):
        places = np.flatnonzero(strata == stratum)
        published[rng.permutation(places)[: len(places) // 2]] = True
    return published


@pytest.mark.parametrize("statistic", STATISTICS)
def test_p_is_that_of_all_divisions(statistic: str) -> None:
    """Sixty thousand draws agree with the list of all 70 divisions, to four standard errors."""
    rng = np.random.default_rng(1)
    scores = np.round(rng.normal(size=8), 1)
    published = np.arange(8) < 4
    contributions = STATISTICS[statistic](scores[None] - scores.mean())[0]
    observed = contributions[published].sum()
    sums = [contributions[list(chosen)].sum() for chosen in itertools.combinations(range(8), 4)]
    exact = np.mean(np.array(sums) >= observed - 1e-9)
    p = held_out_test(scores, published, statistic=statistic, resamples=60_000, rng=rng).p
    assert p == pytest.approx(exact, abs=4 * np.sqrt(exact / 60_000) + 2e-5)


def test_rank_sum_is_that_of_wilcoxon() -> None:
    """Without strata or ties, p is that of the exact test of Mann and Whitney."""
    rng = np.random.default_rng(2)
    published = np.arange(20) < 10
    scores = rng.normal(size=20) + 0.5 * published
    exact = scipy.stats.mannwhitneyu(
        scores[published], scores[~published], alternative="greater", method="exact"
    )
    p = held_out_test(scores, published, resamples=60_000, rng=rng).p
    assert p == pytest.approx(exact.pvalue, abs=0.005)


def test_of_pairs_only_the_sign_is_drawn() -> None:
    """In strata of two, aligned ranks are a signed-rank test: all 4,096 signs are listed."""
    rng = np.random.default_rng(3)
    differences = rng.normal(size=12) + 0.4
    ranks = scipy.stats.rankdata(np.abs(differences)) - 0.5
    observed = (np.sign(differences) * ranks).sum()
    signs = np.array(list(itertools.product([-1, 1], repeat=12)))
    exact = np.mean(signs @ ranks >= observed - 1e-9)
    result = held_out_test(
        np.concatenate([differences, np.zeros(12)]),
        np.arange(24) < 12,
        strata=np.tile(np.arange(12), 2),
        resamples=60_000,
        rng=rng,
    )
    assert result.p == pytest.approx(exact, abs=4 * np.sqrt(exact / 60_000) + 2e-5)


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("strata", [np.zeros(40), np.arange(40) // 8, np.arange(40) // 2])
def test_level(statistic: str, strata: np.ndarray) -> None:
    """Of several dependent scores with ties and heavy tails, alpha of the clean draws rejects."""
    rng = np.random.default_rng(4)
    scores = np.round(rng.standard_t(2, size=(3, 40)) + rng.normal(size=40), 1)
    p_values = []
    for _ in range(TRIALS):
        published = _divided(strata, rng)
        result = held_out_test(
            scores, published, strata=strata, statistic=statistic, resamples=99, rng=rng
        )
        p_values.append(result.p)
    for alpha in (0.05, 0.01):
        assert np.count_nonzero(np.array(p_values) <= alpha) <= _binomial_bounds(alpha)


def test_strata_take_away_what_differs_between_them() -> None:
    """Sides of unlike sources differ; within sources they do not."""
    rng = np.random.default_rng(5)
    source = np.repeat([0, 1], 40)
    published = np.concatenate([np.arange(40) < 30, np.arange(40) < 10])
    scores = 5.0 * (source == 0) + rng.normal(size=80)
    assert held_out_test(scores, published, resamples=999, rng=rng).p < 0.01
    within = held_out_test(scores, published, strata=source, resamples=999, rng=rng)
    assert within.p > 0.05


def test_a_few_read_records_are_found_by_the_tail() -> None:
    """Three of forty loud records move Savage scores more than ranks."""
    rng = np.random.default_rng(6)
    published = np.arange(80) < 40
    scores = rng.normal(size=80)
    scores[:3] += 6
    p_values = {}
    for statistic in ("rank", "tail"):
        result = held_out_test(
            scores, published, statistic=statistic, resamples=9_999, rng=np.random.default_rng(7)
        )
        p_values[statistic] = result.p
    assert p_values["tail"] < p_values["rank"]


@pytest.mark.parametrize("scale", [2.0**-900, 1.0, 2.0**900])
def test_scale_and_shift_change_nothing(scale: float) -> None:
    """The p-value does not depend on the unit of the scores."""
    scores = np.random.default_rng(8).normal(size=30)
    published = np.arange(30) % 2 == 0
    plain = held_out_test(scores, published, resamples=199, rng=np.random.default_rng(9))
    scaled = held_out_test(scores * scale, published, resamples=199, rng=np.random.default_rng(9))
    assert scaled.p == plain.p


def test_scores_that_are_all_equal_say_nothing() -> None:
    """Ties count against the observed division."""
    published = np.arange(10) < 5
    rng = np.random.default_rng(0)
    assert held_out_test(np.ones(10), published, resamples=99, rng=rng).p == 1


def test_least_p_of_few_records() -> None:
    """Two records a side have six divisions."""
    rng = np.random.default_rng(0)
    result = held_out_test([4.0, 3.0, 2.0, 1.0], [1, 1, 0, 0], resamples=9_999, rng=rng)
    assert 10**result.log10_least == pytest.approx(1 / 6)


def test_sides_that_differ_are_named() -> None:
    """Words that one side has are a distance of means, whatever the lengths are."""
    rng = np.random.default_rng(10)
    published = np.arange(60) < 30
    vectors = rng.normal(size=(60, 5))
    vectors[published, 0] += 2
    lengths = rng.normal(size=60)
    p_values, p = sides_test(
        [lengths], published, similarity=vectors @ vectors.T, resamples=999, rng=rng
    )
    assert p_values[0] > 0.05
    assert p_values[1] == 0.001
    assert p < 0.01


def test_one_mark_that_a_side_has_is_enough() -> None:
    """Among 40 marks that both sides share, one is on one side alone: in either direction."""
    rng = np.random.default_rng(13)
    published = np.arange(40) < 20
    marks = rng.random((41, 40)) < 0.3
    for side in (published, ~published):
        marks[7] = side
        p_values, p = sides_test([np.zeros(40)], published, marks=marks, resamples=999, rng=rng)
        assert p_values.tolist() == [1.0, 0.001]
        assert p < 0.01


def test_marks_by_hand() -> None:
    """Six divisions of four records; a mark that all have, or a stratum shares, says nothing."""
    published = [1, 1, 0, 0]
    marks = [[1, 1, 0, 0], [1, 1, 1, 1]]
    rng = np.random.default_rng(14)
    features = [[0.0] * 4]
    p_values, _ = sides_test(features, published, marks=marks, resamples=9_999, rng=rng)
    assert p_values[1] == pytest.approx(1 / 3, abs=0.02)  # this division and its mirror image
    strata = [0, 1, 0, 1]
    within, _ = sides_test(
        features, published, marks=[[1, 0, 1, 0]], strata=strata, resamples=99, rng=rng
    )
    assert within[1] == 1
    none, _ = sides_test(features, published, marks=np.zeros((0, 4)), resamples=99, rng=rng)
    assert none[1] == 1


def test_level_of_blind_baselines() -> None:
    """Two features, a distance and marks, under random divisions of the same records."""
    rng = np.random.default_rng(11)
    vectors = rng.normal(size=(30, 4))
    marks = rng.random((12, 30)) < rng.random((12, 1))
    features = np.round(rng.normal(size=(2, 30)), 1)
    strata = np.arange(30) // 6
    rejected = 0
    for _ in range(TRIALS):
        p = sides_test(
            features,
            _divided(strata, rng),
            similarity=vectors @ vectors.T,
            marks=marks,
            strata=strata,
            resamples=99,
            rng=rng,
        )[1]
        rejected += p <= 0.05
    assert rejected <= _binomial_bounds(0.05)


@pytest.mark.parametrize("chosen", ["at random", "lowest"])
@pytest.mark.parametrize("read", [0, 10, 30])
def test_bound_on_read_records(read: int, chosen: str) -> None:
    """The bound exceeds the truth in at most alpha of the draws, whichever records were read.

    If the records with the lowest scores were read, the unread ones are not like those
    that the draw held back.
    """
    rng = np.random.default_rng(12)
    published = np.arange(100) < 50
    bounds = []
    for _ in range(TRIALS):
        scores = rng.normal(size=100)
        if chosen == "lowest":
            scores[:50].sort()
        scores[:read] += 6
        bounds.append(read_at_least(scores, published, level=0.05))
    assert np.count_nonzero(np.array(bounds) > read) <= _binomial_bounds(0.05)
    assert np.mean(bounds) >= read - 8


@pytest.mark.parametrize("chosen", ["at random", "lowest"])
def test_the_list_of_read_records_keeps_its_false_discovery_rate(chosen: str) -> None:
    """Of the records listed, at most alpha were not read on average, to four standard errors."""
    rng = np.random.default_rng(14)
    published = np.arange(250) < 50
    wrong = []
    found = 0
    for _ in range(TRIALS):
        scores = rng.normal(size=250)
        if chosen == "lowest":
            scores[:50].sort()
        scores[:25] += 6
        p_values = conformal_p_values(scores, published)
        corrected = adjust(np.log10(p_values), method="benjamini_hochberg").p
        listed = np.flatnonzero(np.asarray(corrected) <= 0.05)
        unread = np.count_nonzero(listed >= 25)
        wrong.append(unread / max(len(listed), 1))
        found += len(listed) - unread
    assert np.mean(wrong) <= 0.05 + 4 * np.std(wrong) / np.sqrt(TRIALS)
    assert found > 24 * TRIALS


def test_conformal_p_values_are_uniform() -> None:
    """An unread record has each rank among the held-out ones with the same chance."""
    rng = np.random.default_rng(13)
    published = np.arange(20) < 1
    ranks = []
    for _ in range(4_000):
        ranks.append(conformal_p_values(rng.normal(size=20), published)[0] * 20)
    counts = np.bincount(np.rint(ranks).astype(int), minlength=21)[1:]
    assert scipy.stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"scores": [1.0, np.nan, 2.0, 3.0]}, "scores"),
        ({"scores": [1.0, 2.0]}, "2 records"),
        ({"scores": [[[1.0]]]}, "scores"),
        ({"published": [1, 1, 1, 1]}, "held-out"),
        ({"published": [1, 0, 2, 0]}, "published"),
        ({"strata": [0, 1, 2, 3]}, "stratum"),
        ({"strata": [0, 0]}, "strata"),
        ({"names": ["a", "b"]}, "names"),
        ({"statistic": "median"}, "median"),
        ({"resamples": 0}, "resamples"),
        ({"rng": 1}, "rng"),
    ],
)
def test_bad_input(arguments: dict[str, object], named: str) -> None:
    """Each bad argument is named."""
    good: dict[str, object] = {
        "scores": [4.0, 3.0, 2.0, 1.0],
        "published": [1, 1, 0, 0],
        "resamples": 9,
        "rng": np.random.default_rng(0),
    }
    given = good | arguments
    scores = given.pop("scores")
    published = given.pop("published")
    with pytest.raises(InputError, match=named):
        held_out_test(scores, published, **given)  # type: ignore[arg-type]  # plain: one table


@pytest.mark.parametrize("function", [conformal_p_values, partial(read_at_least, level=0.05)])
def test_single_records_are_judged_by_one_score(function) -> None:
    with pytest.raises(InputError, match="2 scores of each record"):
        function([[5.0, 1.0, 2.0], [0.0, 9.0, 9.0]], [1, 0, 0])


def test_draws_keep_the_sides_of_each_stratum() -> None:
    """Every drawn division publishes as many of a stratum, and all are drawn alike."""
    strata = np.array([0, 1, 0, 1, 1, 2])
    sides = Sides.of([1, 0, 0, 1, 1, 1], strata)
    (drawn,) = sides.draws(6_000, rng=np.random.default_rng(14))
    for stratum in range(3):
        inside = strata == stratum
        assert set(drawn[:, inside].sum(axis=1)) == {int(sides.published[inside].sum())}
    _, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(counts) == 6
    assert scipy.stats.chisquare(counts).pvalue > 1e-4


def test_a_held_out_record_of_the_same_score_counts_as_one_above() -> None:
    """By hand: of three held-out scores 3, 2, 0, one is at least 3, and two are at least 2."""
    p_values = conformal_p_values([3.0, 2.0, 1.0, 3.0, 2.0, 0.0], [1, 1, 1, 0, 0, 0])
    assert p_values.tolist() == [0.5, 0.75, 0.75]


def test_scores_that_are_all_equal_bound_nothing() -> None:
    assert read_at_least(np.ones(80), np.arange(80) < 40, level=0.05) == 0
