"""ROC, AUC and thresholds against scikit-learn and against counting."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contamination.errors import InputError
from contamination.membership.evaluate import auc, evaluate, fit_threshold


def sample(n: int, gap: float, *, digits: int = 9, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    members = rng.random(n) < 0.4
    return np.round(rng.normal(size=n) + gap * members, digits), members


@pytest.mark.parametrize(("gap", "digits"), [(0.0, 9), (1.0, 0), (-2.0, 9)])
def test_the_area_is_the_chance_that_a_member_has_the_larger_score(gap, digits):
    scores, members = sample(80, gap, digits=digits)
    pairs = [(a > b) + (a == b) / 2 for a in scores[members] for b in scores[~members]]
    assert auc(scores, members) == pytest.approx(np.mean(pairs), abs=1e-12)
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
        assert (row["members"], row["non_members"]) == (members.sum(), (~members).sum())
        for measure in ("auc", "tpr_at_5_fpr", "tpr_at_1_fpr"):
            assert row[f"{measure}_low"] <= row[measure] <= row[f"{measure}_high"]


def test_the_interval_is_that_of_resampled_members_and_non_members():
    scores, members = sample(80, 0.8, digits=1)
    row = judged({"s": scores}, members, resamples=2000).loc["s"]
    rng = np.random.default_rng(1)
    areas, rates = [], []
    for _ in range(2000):
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


def test_the_rate_is_kept_on_average_on_other_text():
    rng = np.random.default_rng(3)
    drawn = rng.normal(size=(2000, 40))
    fitted = [fit_threshold(row, fpr=0.05) for row in drawn]
    assert stats.norm.sf(fitted).mean() == pytest.approx(2 / 41, abs=0.003)


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
