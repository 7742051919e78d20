"""ROC, AUC and thresholds against scikit-learn and against counting."""

import itertools
import re
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.nonparametric import rank_compare_2indep

from contamination.errors import InputError
from contamination.membership.evaluate import (
    auc,
    detected_share,
    evaluate,
    fit_threshold,
    weighted_aucs,
)
from contamination.membership.intervals import _delong, auc_interval, tpr_interval


def sample(n: int, gap: float, *, digits: int = 9, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    members = rng.random(n) < 0.4
    return np.round(rng.normal(size=n) + gap * members, digits), members


@pytest.mark.parametrize(("gap", "digits"), [(0.0, 9), (1.0, 0), (-2.0, 9)])
def test_the_area_is_the_chance_that_a_member_has_the_larger_score(gap, digits):
    scores, members = sample(80, gap, digits=digits)
    wins = []
    for own, other in itertools.product(scores[members], scores[~members]):
        wins.append((own > other) + (own == other) / 2)
    assert auc(scores, members) == pytest.approx(np.mean(wins), abs=1e-12)
    assert auc(-scores, members) == pytest.approx(1 - auc(scores, members))  # no side is chosen


def judged(table: dict, members, **arguments) -> pd.DataFrame:
    fixed = {"rng": np.random.default_rng(0)}
    return evaluate(pd.DataFrame(table), members, **(fixed | arguments)).set_index("score")


def tpr_at(scores, members, fpr):
    """The best of all thresholds with no more false positives."""
    called = [scores >= threshold for threshold in [*scores, np.inf]]
    return max(one[members].mean() for one in called if one[~members].mean() <= fpr)


@pytest.mark.parametrize("digits", [9, 0])
def test_a_row_for_each_score(digits):
    scores, members = sample(400, 1.5, digits=digits)
    found = judged({"good": scores, "bad": -scores}, members)
    for name, values in (("good", scores), ("bad", -scores)):
        row = found.loc[name]
        assert row["auc"] == auc(values, members)
        for fpr in (0.05, 0.01, 0.001):
            assert row[f"tpr_at_{100 * fpr:g}_fpr"] == tpr_at(values, members, fpr)
        assert row["members"] == members.sum()
        assert row["non_members"] == (~members).sum()
        for measure in ("auc", "tpr_at_5_fpr", "tpr_at_1_fpr"):
            assert row[f"{measure}_low"] <= row[measure] <= row[f"{measure}_high"]


@pytest.mark.parametrize(
    ("sizes", "shift", "fpr"), [((20, 20), 2, 0.01), ((10, 200), 0, 0.05), ((50, 50), 2, 0.001)]
)
def test_the_interval_of_a_rate_holds_it_at_least_as_often_as_it_says(sizes, shift, fpr):
    rng = np.random.default_rng(4)
    rate = stats.norm.sf(stats.norm.isf(fpr) - shift)
    held = 0
    for _ in range(400):
        members = rng.normal(shift, 1, sizes[0])
        low, high = tpr_interval(members, rng.normal(size=sizes[1]), fpr=fpr, rng=rng, draws=300)
        held += low <= rate <= high
    assert held >= stats.binom.ppf(1e-4, 400, 0.95)


def test_the_interval_of_a_rate_has_a_width_also_where_no_member_is_found():
    scores = np.concatenate([np.arange(10.0) - 100, np.arange(100.0)])
    row = judged({"s": scores}, np.arange(110) < 10).loc["s"]
    exact = stats.binomtest(0, 10).proportion_ci(0.95, method="exact")
    assert row["tpr_at_5_fpr_high"] == pytest.approx(exact.high, abs=0.05)


def test_the_interval_of_a_rate_is_of_clopper_and_pearson_where_the_threshold_is_known():
    rng = np.random.default_rng(5)
    members = np.repeat([2.0, -1.0], [12, 8])
    found = tpr_interval(members, rng.random(1_000), fpr=0.05, rng=rng, draws=40_000)
    exact = stats.binomtest(12, 20).proportion_ci(0.95, method="exact")
    assert found == pytest.approx((exact.low, exact.high), abs=0.01)


@pytest.mark.parametrize("sizes", [(20, 20), (10, 90), (90, 10), (200, 200)])
@pytest.mark.parametrize("area", [0.5, 0.98, 0.995])
@pytest.mark.parametrize("spread", [1.0, 2.0])
def test_the_interval_of_an_area_holds_it_as_often_as_it_says(area, sizes, spread):
    """Members have the spread of non-members or twice that; percentiles held 0.98 in 78%."""
    rng = np.random.default_rng([sizes[0], int(1000 * area)])
    shift = stats.norm.ppf(area) * np.sqrt(1 + spread**2)
    held = 0
    for _ in range(300):
        low, high = auc_interval(rng.normal(shift, spread, sizes[0]), rng.normal(size=sizes[1]))
        held += low <= area <= high
    assert held >= stats.binom.ppf(1e-4, 300, 0.95)


def test_the_variance_of_an_area_is_that_of_statsmodels():
    rng = np.random.default_rng(2)
    members = np.round(rng.normal(0.7, 1, 30), 1)  # some are equal
    non_members = np.round(rng.normal(0, 2, 21), 1)
    compared = rank_compare_2indep(members, non_members)
    assert _delong(members, non_members) == pytest.approx((compared.prob1, compared.var_prob))


def test_the_interval_of_an_area_has_a_width_also_where_all_members_lie_above():
    low, high = auc_interval(np.arange(20.0) + 20, np.arange(20.0))
    assert 0.8 < low < 0.95
    assert high == 1
    mirrored = auc_interval(np.arange(20.0), np.arange(20.0) + 20)
    assert mirrored == pytest.approx((0, 1 - low))
    assert auc_interval(np.ones(1), np.ones(50)) == (0, 1)


@pytest.mark.parametrize(("count", "allowed"), [(19, 0), (99, 0), (100, 1), (250, 2)])
def test_a_rate_says_how_many_non_members_may_be_called(count, allowed):
    scores = np.arange(count + 10.0)
    row = judged({"s": scores}, scores >= count, resamples=5).loc["s"]
    assert row["false_positives_at_1_fpr"] == allowed
    assert row["false_positives_at_5_fpr"] == count // 20


def test_texts_without_a_score_are_counted_and_the_reason_is_given():
    table = {"ppl_200": [np.nan, np.nan, 1.0, 2.0], "loss": [1.0, 2.0, 3.0, 4.0]}
    found = judged(table, [1, 0, 1, 0], resamples=5)
    assert found["without_score"].to_dict() == {"ppl_200": 2, "loss": 0}
    assert "200" in found.loc["ppl_200", "reason"]
    assert found.loc["loss", "reason"] == ""


def test_the_rate_is_kept_on_average_on_other_text():
    rng = np.random.default_rng(3)
    drawn = rng.normal(size=(2000, 40))
    fitted = [fit_threshold(row, fpr=0.05) for row in drawn]
    assert stats.norm.sf(fitted).mean() == pytest.approx(2 / 41, abs=0.003)


def test_a_threshold_is_the_smallest_score_that_few_enough_reach():
    rng = np.random.default_rng(4)
    for fpr in (0.0, 0.05, 0.3, 1.0):
        values = rng.integers(0, 12, size=30) / 4
        few_enough = [x for x in values if np.mean(values >= x) <= fpr]
        assert fit_threshold(values, fpr=fpr) == min(few_enough, default=np.inf)


def test_the_memory_of_a_threshold_is_in_proportion_to_the_scores():
    values = np.random.default_rng(5).normal(size=5000)
    tracemalloc.start()
    fit_threshold(values, fpr=0.05)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20 * values.nbytes


@pytest.mark.parametrize(
    ("scores", "members", "named"),
    [
        ([1.0, 2.0], [1, 1], "0 non-members"),
        ([1.0, np.nan], [1, 0], "scores[1] is nan"),
        ([1.0, 2.0], [1, 2], "label"),
        ([1.0, 2.0, 3.0], [1, 0], "(3,)"),
    ],
)
def test_what_cannot_be_judged_is_refused(scores, members, named):
    with pytest.raises(InputError, match=re.escape(named)):
        auc(scores, members)


RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"s": [1.0, 2.0, 3.0]})
REFUSED = [
    (lambda: auc(np.ma.masked_less([1.0, 2.0], 1.5), [1, 0]), "masked"),
    (lambda: auc(["a", "b"], [1, 0]), "real numbers"),
    (lambda: auc([1j, 2.0], [1, 0]), "complex"),
    (lambda: auc([1.0, 2.0], ["yes", "no"]), "labels"),
    (lambda: weighted_aucs(TABLE, [1, 0, 0], [[1, 1, -1]]), "weights are not all from 0"),
    (lambda: weighted_aucs(TABLE, [1, 0, 0], [[1e308] * 3]), "weights are not all from 0"),
    (lambda: weighted_aucs(TABLE[[]], [1, 0, 0], [[1, 1, 1]]), "a column for each score"),
    (lambda: evaluate([1.0, 2.0], [1, 0], rng=RNG), "a column for each score"),
    (lambda: evaluate(pd.concat([TABLE, TABLE], axis=1), [1, 0, 0], rng=RNG), "columns 's'"),
    (lambda: fit_threshold([], fpr=0.05), "one or more"),
    (lambda: weighted_aucs(TABLE, [1, 0, 0], [[0, 1, 1]]), "without members"),
    (lambda: weighted_aucs(TABLE, [1, 0, 0], [[1, 1]]), "weights has shape"),
    (lambda: fit_threshold([np.nan, 1.0], fpr=0.05), "non_members[0] is nan"),
    (lambda: fit_threshold([1.0], fpr=2.0), "fpr"),
    (lambda: detected_share([], 0.5), "one or more"),
    *(
        (lambda bad=bad: detected_share([1.0], bad), "threshold")
        for bad in (np.nan, None, "1", 1j, [0.5])
    ),
    (lambda: judged({"s": [1.0, 2.0]}, [1, 0], resamples=0), "resamples"),
]


@pytest.mark.parametrize(("call", "named"), REFUSED)
def test_what_is_no_array_of_numbers_is_refused(call, named):
    with pytest.raises(InputError, match=re.escape(named)) as caught:
        call()
    assert "\n" not in str(caught.value)
