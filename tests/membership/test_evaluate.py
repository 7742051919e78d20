"""ROC, AUC and thresholds against scikit-learn and against counting."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from contamination.errors import InputError
from contamination.membership.evaluate import Threshold, auc, evaluate, weighted_aucs


def sample(n: int, gap: float, *, digits: int = 9, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    members = rng.random(n) < 0.4
    return np.round(rng.normal(size=n) + gap * members, digits), members


CASES = [(300, 0.0, 9), (300, 1.0, 9), (300, 1.0, 0), (31, 0.5, 1), (50, -2.0, 9)]


@pytest.mark.parametrize(("n", "gap", "digits"), CASES)
def test_the_area_is_the_chance_that_a_member_has_the_larger_score(n, gap, digits):
    scores, members = sample(n, gap, digits=digits)
    pairs = [(a > b) + (a == b) / 2 for a in scores[members] for b in scores[~members]]
    assert auc(scores, members) == pytest.approx(np.mean(pairs), abs=1e-12)
    assert auc(scores, members) == pytest.approx(roc_auc_score(members, scores), abs=1e-12)
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
    assert list(found.index) == ["good", "bad"]
    for name, values in (("good", scores), ("bad", -scores)):
        row = found.loc[name]
        assert row["auc"] == auc(values, members)
        for fpr in (0.05, 0.01, 0.001):
            assert row[f"tpr_at_{100 * fpr:g}_fpr"] == tpr_at(values, members, fpr)
        assert row["members"] == members.sum()
        assert row["non_members"] == (~members).sum()
        for measure in ("auc", "tpr_at_5_fpr", "tpr_at_1_fpr"):
            assert row[f"{measure}_low"] <= row[measure] <= row[f"{measure}_high"]


def test_the_interval_is_that_of_resampled_members_and_non_members():
    """Against a bootstrap in a loop, which draws other numbers from the same law."""
    scores, members = sample(80, 0.8, digits=1)
    row = judged({"s": scores}, members, resamples=4000).loc["s"]
    rng = np.random.default_rng(1)
    areas, rates = [], []
    for _ in range(4000):
        a = rng.choice(scores[members], members.sum())
        b = rng.choice(scores[~members], (~members).sum())
        areas.append(np.mean((a[:, None] > b) + (a[:, None] == b) / 2))
        allowed = [t for t in (*np.unique([*a, *b]), np.inf) if np.mean(b >= t) <= 0.05]
        rates.append(np.mean(a >= allowed[0]))
    low, high = np.quantile(areas, [0.025, 0.975])
    assert row["auc_low"] == pytest.approx(low, abs=0.01)
    assert row["auc_high"] == pytest.approx(high, abs=0.01)
    low, high = np.quantile(rates, [0.025, 0.975])
    assert row["tpr_at_5_fpr_low"] == pytest.approx(low, abs=0.05)
    assert row["tpr_at_5_fpr_high"] == pytest.approx(high, abs=0.05)


def test_the_interval_holds_a_half_as_often_as_it_says():
    held = 0
    for seed in range(200):
        scores, members = sample(100, 0.0, seed=seed)
        row = judged({"s": scores}, members, resamples=200).loc["s"]
        held += row["auc_low"] <= 0.5 <= row["auc_high"]
    assert 178 <= held <= 200  # 0.95 within four standard errors


def test_weights_count_a_text_as_often_as_it_is_drawn():
    rng = np.random.default_rng(2)
    scores, members = np.round(rng.normal(size=(2, 16)), 0), np.arange(16) < 7
    weights = rng.integers(0, 3, (20, 16))
    weights[:, [0, -1]] += 1  # none leaves out a class
    table = pd.DataFrame(scores.T, columns=["a", "b"])
    found = weighted_aucs(table, members, weights.astype(float))
    for row, times in zip(found, weights, strict=True):
        drawn = np.repeat(scores, times, axis=1)
        wanted = [auc(column, np.repeat(members, times)) for column in drawn]
        np.testing.assert_allclose(row, wanted, rtol=1e-12)


def test_groups_are_drawn_whole_and_for_all_scores_at_once_by_the_seed_alone():
    rng = np.random.default_rng(5)
    groups = np.repeat(list("abcdef"), 4)
    groups[12:16] = "a"  # of which members and non-members share the name
    members = np.repeat([1, 0], [12, 12])
    scores = rng.normal(size=24) + np.repeat(rng.normal(size=6), 4)
    found = judged({"s": scores, "t": scores}, members, groups=groups, resamples=300)
    draws = np.random.default_rng(0)
    sides, again = np.split(scores.reshape(6, 4), 2), []
    for _ in range(300):
        a, b = (side[draws.integers(3, size=3)].ravel() for side in sides)
        again.append(np.mean(a[:, None] > b))
    wanted = np.quantile(again, [0.025, 0.975])
    for _, row in found.iterrows():
        np.testing.assert_allclose([row["auc_low"], row["auc_high"]], wanted, rtol=1e-9)


@pytest.mark.parametrize("digits", [9, 0])
@pytest.mark.parametrize("fpr", [0.05, 0.2, 0.0])
def test_a_threshold_keeps_its_false_positive_rate_on_the_split(fpr, digits):
    scores, members = sample(300, 1.0, digits=digits)
    threshold = Threshold.at_fpr(scores, members, fpr=fpr)
    called = threshold.apply(scores)
    assert called[~members].mean() <= fpr
    assert called[members].mean() == tpr_at(scores, members, fpr)
    smaller = scores[scores < threshold.value].max()
    assert (scores[~members] >= smaller).mean() > fpr


@pytest.mark.parametrize("digits", [9, 0])
def test_the_best_accuracy_is_the_best(digits):
    scores, members = sample(200, 1.0, digits=digits)
    threshold = Threshold.at_best_accuracy(scores, members)
    accuracy = [((scores >= t) == members).mean() for t in [*scores, np.inf]]
    assert (threshold.apply(scores) == members).mean() == max(accuracy)
    equal = [t for t, a in zip([*scores, np.inf], accuracy, strict=True) if a == max(accuracy)]
    assert threshold.value == max(equal)


def threshold_of(non_members, fpr):
    return Threshold.at_fpr_of_non_members(non_members, fpr=fpr)


def test_the_rate_is_kept_on_average_on_other_text():
    rng = np.random.default_rng(3)
    rates = [stats.norm.sf(threshold_of(rng.normal(size=40), 0.05).value) for _ in range(2000)]
    assert np.mean(rates) == pytest.approx(2 / 41, abs=0.003)


@pytest.mark.parametrize(
    ("scores", "members", "named"),
    [
        ([1.0, 2.0], [1, 1], "0 non-members"),
        ([1.0, np.nan], [1, 0], "score 1 "),
        ([1.0, 2.0], [1, 2], "label"),
        ([1.0, 2.0, 3.0], [1, 0], "(3,)"),
    ],
)
def test_what_cannot_be_judged_is_refused(scores, members, named):
    with pytest.raises(InputError, match=re.escape(named)):
        auc(scores, members)
