"""How well a score tells members from non-members: ROC, AUC, TPR at a low FPR, and thresholds.

Larger scores stand for members; the direction is part of the score and is never chosen on the data
that it is judged by. Nor is a threshold: it is fitted on a validation split and then applied.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError

Floats = NDArray[np.float64]

FPRS = (0.05, 0.01, 0.001)
CHUNK = 1 << 22  # numbers of a bootstrap that exist at a time


@dataclass(frozen=True, eq=False)
class Roc:
    """Receiver operating characteristic: texts with a score >= threshold are called members.

    Attributes
    ----------
    thresholds, fpr, tpr : (u + 1,), from (inf, 0, 0) down to the smallest of u distinct scores,
        where both rates are 1. Members and non-members with the same score enter together.
    """

    thresholds: Floats
    fpr: Floats
    tpr: Floats

    @property
    def auc(self) -> float:
        """Chance that a member has a larger score than a non-member; a tie counts half."""
        return float(np.trapezoid(self.tpr, self.fpr))

    def tpr_at(self, fpr: float) -> float:
        """Largest true positive rate among thresholds with at most that false positive rate."""
        return float(_tpr_at(self.fpr, self.tpr, fpr))


def roc(scores: ArrayLike, members: ArrayLike) -> Roc:
    """ROC curve of scores (n,) with the truth (n,): True, or 1, is a member.

    Raises
    ------
    InputError
        A score that is not finite, members and non-members not both there, or other lengths.
    """
    values, counts = _counts(scores, members)
    fpr, tpr = _rates(counts)
    return Roc(np.concatenate([[np.inf], values]), fpr, tpr)


def evaluate(
    table: pd.DataFrame,
    members: ArrayLike,
    *,
    rng: np.random.Generator,
    resamples: int = 1000,
    level: float = 0.95,
) -> pd.DataFrame:
    """Judge every column of a table of scores, as `membership_scores` gives it.

    A text without a score (NaN, as PPL_200 of a short text) is left out for that score; the counts
    tell, and measures are NaN where no member or no non-member is left. Intervals are percentiles
    of a bootstrap that draws members and non-members apart.

    Parameters
    ----------
    table : a row per text, a column per score.
    members : (n,), True or 1 is a member.
    rng : draws the resamples; every score is judged on the same stream, in the order of columns.

    Returns
    -------
    DataFrame
        Columns score, members, non_members, auc, auc_low, auc_high, tpr_at_5_fpr, tpr_at_1_fpr,
        tpr_at_0.1_fpr, each measure with _low and _high.

    Raises
    ------
    InputError
        As `roc`, or fewer than 1 resample.
    """
    if resamples < 1:
        raise InputError(f"{resamples} resamples: a bootstrap needs 1 or more")
    truth = np.asarray(members)
    _counts(np.zeros(len(table)), truth)  # labels are as wrong for one score as for another
    measures = ["auc", *(f"tpr_at_{100 * fpr:g}_fpr" for fpr in FPRS)]
    tail = (1 - level) / 2
    rows = []
    for name in table.columns:
        scores = table[name].to_numpy(dtype=np.float64)
        known = ~np.isnan(scores)
        sizes = [int((known & (truth == side)).sum()) for side in (1, 0)]
        row = {"score": name, "members": sizes[0], "non_members": sizes[1]}
        if all(sizes):
            try:
                _, counts = _counts(scores[known], truth[known])
            except InputError as error:
                raise InputError(f"{name}: {error}") from None
            point = _measures(counts)
            low, high = np.quantile(_bootstrap(counts, rng, resamples), [tail, 1 - tail], axis=0)
        else:
            point, low, high = np.full((3, len(measures)), np.nan)
        for i, measure in enumerate(measures):
            row |= {measure: point[i], f"{measure}_low": low[i], f"{measure}_high": high[i]}
        rows.append(row)
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Threshold:
    """A threshold chosen on a validation split, to be applied to another one.

    Attributes
    ----------
    value : texts with a score of it or more are called members; inf calls none.
    """

    value: float

    @classmethod
    def at_fpr(cls, scores: ArrayLike, members: ArrayLike, *, fpr: float) -> "Threshold":
        """Fit the smallest threshold whose false positive rate on the split is at most `fpr`.

        Oren, table 5, with 0.05. Raises `InputError` as `roc` does.
        """
        curve = roc(scores, members)
        return cls(float(curve.thresholds[curve.fpr <= fpr][-1]))

    @classmethod
    def at_best_accuracy(cls, scores: ArrayLike, members: ArrayLike) -> "Threshold":
        """Fit the threshold of the highest accuracy on the split, the largest of equally good ones.

        Shi, section 5. Raises `InputError` as `roc` does.
        """
        curve = roc(scores, members)
        truth = np.asarray(members, dtype=bool)
        right = curve.tpr * truth.sum() + (1 - curve.fpr) * (~truth).sum()
        return cls(float(curve.thresholds[np.argmax(np.round(right))]))

    def apply(self, scores: ArrayLike) -> NDArray[np.bool_]:
        """Tell which texts are called members, (n,); a score that is NaN calls none."""
        return np.asarray(scores, dtype=np.float64) >= self.value


def _counts(scores: ArrayLike, members: ArrayLike) -> tuple[Floats, NDArray[np.int64]]:
    """Distinct scores (u,), descending, and how many non-members and members have each, (2, u)."""
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(members)
    if values.ndim != 1 or truth.shape != values.shape:
        raise InputError(
            f"scores of shape {values.shape} and labels of shape {truth.shape}: give (n,) and (n,)"
        )
    if not np.isin(truth, [0, 1]).all():
        raise InputError("a label is neither 0 nor 1: give 1, or True, for a member and 0 for none")
    if not np.isfinite(values).all():
        index = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InputError(f"score {index} is {values[index]}: leave that text out")
    truth = truth.astype(bool)
    if truth.all() or not truth.any():
        found = f"{int(truth.sum())} members and {int((~truth).sum())} non-members"
        raise InputError(f"{found}: an ROC curve needs at least one of each; add the other class")
    distinct, which = np.unique(-values, return_inverse=True)
    counts = [np.bincount(which[side], minlength=len(distinct)) for side in (~truth, truth)]
    return -distinct, np.array(counts)


def _rates(counts: NDArray[np.int64]) -> Floats:
    """False and true positive rates, (2, ..., u + 1), of counts (2, ..., u)."""
    reached = np.cumsum(counts, axis=-1, dtype=np.float64)
    reached /= reached[..., -1:]
    return np.concatenate([np.zeros((*counts.shape[:-1], 1)), reached], axis=-1)


def _tpr_at(fpr: Floats, tpr: Floats, most: float) -> Floats:
    best: Floats = np.where(fpr <= most, tpr, 0).max(axis=-1)
    return best


def _measures(counts: NDArray[np.int64]) -> Floats:
    """AUC and the TPR at each of `FPRS`, (..., 1 + len(FPRS)), of counts (2, ..., u)."""
    fpr, tpr = _rates(counts)
    auc = np.trapezoid(tpr, fpr, axis=-1)
    return np.stack([auc, *(_tpr_at(fpr, tpr, most) for most in FPRS)], axis=-1)


def _bootstrap(counts: NDArray[np.int64], rng: np.random.Generator, resamples: int) -> Floats:
    """Measures of resamples of the non-members and of the members, (resamples, ...)."""
    step = max(1, CHUNK // counts.size)
    distinct = counts.shape[1]
    sides = [np.repeat(np.arange(distinct), side) for side in counts]
    parts = []
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        offsets = distinct * np.arange(size)[:, None]
        drawn = [side[rng.integers(len(side), size=(size, len(side)))] + offsets for side in sides]
        again = [np.bincount(which.ravel(), minlength=size * distinct) for which in drawn]
        parts.append(_measures(np.array(again).reshape(2, size, distinct)))
    return np.concatenate(parts)
