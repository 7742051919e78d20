"""How well a score separates members from non-members: ROC, AUC, TPR at a low FPR, and thresholds.

Larger scores stand for members; the direction is part of the score and is never chosen on the data
that it is judged by. Nor is a threshold: it is fitted on a validation split and then applied.
Curves are computed from weighted counts, since a bootstrap has a thousand of them.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from statsmodels.stats.proportion import proportion_confint

from contamination.errors import InputError
from contamination.statistics.inputs import check_finite

Floats = NDArray[np.float64]

FPRS = (0.05, 0.01, 0.001)
CHUNK = 1 << 22  # numbers of a bootstrap that exist at a time
ENDS = ((1 - 0.95) / 2, 1 - (1 - 0.95) / 2)  # quantiles of a 95% interval


def auc(scores: ArrayLike, members: ArrayLike) -> float:
    """Estimate the chance that a member has a larger score than a non-member; a tie counts half.

    `scores` and `members` are (n,) each; True, or 1, is a member. Raises InputError for a score
    that is not finite, for other lengths, and where members or non-members are missing.
    """
    values, truth = _check(scores, members)
    return float(_measures(values, truth, np.ones((1, len(values))))[0, 0])


def evaluate(
    table: pd.DataFrame,
    members: ArrayLike,
    *,
    rng: np.random.Generator,
    resamples: int = 1000,
) -> pd.DataFrame:
    """Judge every column of a table of scores, as `membership_scores` gives it.

    The result has a row per score, with the columns score, members, non_members, auc, tpr_at_5_fpr,
    tpr_at_1_fpr and tpr_at_0.1_fpr; each measure is followed by its 95% interval, _low and _high:
    percentiles of a bootstrap that draws members and non-members apart. A text without a score
    (NaN) is left out for that score; the counts say so, and measures are NaN where no member or no
    non-member is left. Raises InputError as `auc` does.

    Parameters
    ----------
    table : a row per text, a column per score.
    members : (n,), True or 1 is a member.
    rng : draws the resamples; every score is judged on the same stream, in the order of columns.
    """
    _, truth = _check(np.zeros(len(table)), members)  # wrong labels are wrong for every score
    measures = ["auc", *(f"tpr_at_{100 * fpr:g}_fpr" for fpr in FPRS)]
    rows = []
    for name in table.columns:
        scores = table[name].to_numpy(dtype=np.float64)
        known = ~np.isnan(scores)
        sizes = [int((known & (truth == side)).sum()) for side in (True, False)]
        row = {"score": name, "members": sizes[0], "non_members": sizes[1]}
        point, low, high = np.full((3, len(measures)), np.nan)
        if all(sizes):
            values, sides = _check(scores[known], truth[known])
            (point,) = _measures(values, sides, np.ones((1, len(values))))
            draws = _draw_texts(values, sides, rng, resamples)
            again = [_measures(values, sides, weights) for weights in draws]
            low, high = np.quantile(np.concatenate(again), ENDS, axis=0)
        for i, measure in enumerate(measures):
            row |= {measure: point[i], f"{measure}_low": low[i], f"{measure}_high": high[i]}
        rows.append(row)
    return pd.DataFrame(rows)


def weighted_aucs(table: pd.DataFrame, members: ArrayLike, weights: Floats) -> Floats:
    """Compute the AUC of every score from texts drawn with `weights` (rows, n), (rows, scores).

    A weight says how often a text was drawn, so that one resample can serve several models. `table`
    and `members` as in `evaluate`, without NaN; errors as in `auc`.
    """
    columns = (_check(table[name], members) for name in table.columns)
    return np.stack([_measures(*column, weights)[:, 0] for column in columns], axis=1)


def fit_threshold(non_members: ArrayLike, *, fpr: float) -> float:
    """Return the smallest of the scores of non-members (n,) that at most a share `fpr` reaches.

    Other texts with that score or more are called members; inf, where no score will do, calls none.
    """
    values = np.asarray(non_members, dtype=np.float64)
    candidates = np.unique(values)
    reached = (values >= candidates[:, None]).mean(axis=1)
    return float(candidates[reached <= fpr + 1e-12].min(initial=np.inf))


def detected_share(scores: ArrayLike, threshold: float) -> tuple[float, float, float]:
    """Return the share of texts that are called members, and its 95% interval.

    The interval, of Clopper and Pearson, takes the texts as independent. `scores` are (n,), n >= 1;
    a text whose score is NaN is called none.
    """
    called = np.asarray(scores, dtype=np.float64) >= threshold
    low, high = proportion_confint(int(called.sum()), len(called), method="beta")
    return float(called.mean()), float(low), float(high)


def _check(scores: ArrayLike, members: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    """Scores (n,) and the truth (n,), if a curve can be drawn of them."""
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(members)
    if values.ndim != 1 or truth.shape != values.shape:
        raise InputError(f"scores of shape {values.shape}, labels of {truth.shape}: give (n,) each")
    if not np.isin(truth, [0, 1]).all():
        raise InputError("a label is neither 0 nor 1: give 1, or True, for a member and 0 for none")
    check_finite(values, "scores")
    truth = truth.astype(bool)
    if truth.all() or not truth.any():
        found = f"{int(truth.sum())} members and {int((~truth).sum())} non-members"
        raise InputError(f"{found}: an ROC curve needs at least one of each; add the other class")
    return values, truth


def _measures(scores: Floats, members: NDArray[np.bool_], weights: Floats) -> Floats:
    """AUC and the TPR at each of `FPRS`, (rows, 1 + len(FPRS)), under weights (rows, n)."""
    order = np.argsort(-scores)
    last = np.flatnonzero(np.diff(scores[order], append=np.inf))  # of texts with equal scores
    sides = [weights[:, order] * (members[order] == side) for side in (False, True)]
    reached = np.pad(np.cumsum(sides, axis=-1)[..., last], ((0, 0), (0, 0), (1, 0)))
    fpr, tpr = reached / reached[..., -1:]
    # The largest TPR among thresholds with at most that FPR.
    rates = [np.where(fpr <= most, tpr, 0).max(axis=-1) for most in FPRS]
    return np.stack([np.trapezoid(tpr, fpr, axis=-1), *rates], axis=-1)


def _draw_texts(
    scores: Floats, members: NDArray[np.bool_], rng: np.random.Generator, resamples: int
) -> Iterator[Floats]:
    """Yield how often each text is drawn, (rows, n), some resamples at a time."""
    order = np.argsort(-scores, kind="stable")
    sides = [order[members[order] == side] for side in (False, True)]
    step = max(1, CHUNK // (2 * len(np.unique(scores))))
    for start in range(0, resamples, step):
        weights = np.empty((min(step, resamples - start), len(scores)))
        for side in sides:
            drawn = rng.integers(len(side), size=(len(weights), len(side)))
            cells = (drawn + len(side) * np.arange(len(drawn))[:, None]).ravel()
            weights[:, side] = np.bincount(cells, minlength=drawn.size).reshape(drawn.shape)
        yield weights
