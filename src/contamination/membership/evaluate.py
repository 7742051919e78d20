"""The separation of members from non-members by a score: ROC, AUC, TPR and thresholds.

Larger scores stand for members; the direction is part of the score and is never chosen
on the data that it is judged by. Nor is a threshold: it is fitted on a validation split
and then applied. Curves are computed from weighted counts, which serve every resample of
a bootstrap.
"""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest

from contamination.errors import InputError
from contamination.membership.intervals import auc_interval, tpr_interval
from contamination.membership.scores import missing_reason
from contamination.statistics.inputs import (
    as_array,
    as_booleans,
    as_count,
    as_floats,
    as_number,
    as_numbers,
    as_scalar,
    check_finite,
    check_generator,
)

Floats = NDArray[np.float64]
Labels = NDArray[np.bool_]

FPRS = (0.05, 0.01, 0.001)
MOST_DRAWN = 1e15  # times that a text may be drawn; sums of them are exact
_ROUNDING = 1e-12  # of a share of texts


def auc(scores: ArrayLike, members: ArrayLike) -> float:
    """Estimate the chance that a member has a larger score than a non-member.

    A tie counts half.

    Parameters
    ----------
    scores
        (n,), finite; larger for members.
    members
        (n,), True or 1 is a member.

    Raises
    ------
    InputError
        For a score that is not a finite number, other lengths, and where members or
        non-members are missing.

    Examples
    --------
    >>> auc([0.9, 0.4, 0.5, 0.1], [1, 1, 0, 0])
    0.75
    """
    values, truth = _as_labelled(scores, members)
    return float(_measures(values, truth, np.ones((1, len(values))))[0, 0])


def evaluate(
    table: pd.DataFrame,
    members: ArrayLike,
    *,
    rng: np.random.Generator,
    resamples: int = 1000,
) -> pd.DataFrame:
    """Judge every column of a table of scores, as `membership_scores` gives it.

    Parameters
    ----------
    table
        A row per text, a column per score. A text without a score (NaN) is left out for
        that score.
    members
        (n,), True or 1 is a member.
    rng
        Draws the intervals of the TPR; every score is judged on the same stream, in the
        order of columns.
    resamples
        Draws for the interval of a TPR, 1 or more.

    Returns
    -------
    A row per score: score, members, non_members, without_score (texts that are left
    out), reason (why, or empty), auc with auc_low and auc_high
    (`contamination.membership.intervals`), and for 5, 1 and 0.1%: tpr_at_5_fpr with its
    ends, the share of members above a threshold that at most 5% of the non-members
    reach, and false_positives_at_5_fpr, the number of non-members that may reach it.
    Where that is 0, as of fewer than 100 non-members at 1%, the TPR is the share of
    members above *every* non-member. Ends are 95% intervals; that of a TPR also counts
    that few non-members leave its threshold open (`tpr_interval`). Measures are NaN
    where no member or no non-member is left.

    Raises
    ------
    InputError
        For a score that is infinite, labels of another length or another kind, where
        members or non-members are missing, or for no resample.

    Examples
    --------
    >>> table = pd.DataFrame({"loss": [0.9, 0.4, 0.5, 0.1]})
    >>> judged = evaluate(table, [1, 1, 0, 0], rng=np.random.default_rng(0), resamples=99)
    >>> judged[["score", "auc", "tpr_at_1_fpr", "false_positives_at_1_fpr"]].to_dict("records")
    [{'score': 'loss', 'auc': 0.75, 'tpr_at_1_fpr': 0.5, 'false_positives_at_1_fpr': 0}]
    """
    check_generator(rng)
    draws = as_count(resamples, "resamples", 1)
    _check_table(table)
    # Wrong labels are wrong for all scores.
    _, truth = _as_labelled(np.zeros(len(table)), members)
    rows = [
        _judge(str(name), as_floats(table[name], str(name)), truth, rng, draws)
        for name in table.columns
    ]
    return pd.DataFrame(rows)


def missing_scores(table: pd.DataFrame) -> pd.DataFrame:
    """Count the texts that have no score, by score: a row each, with score, texts and reason.

    `table` is that of `membership_scores`; scores that all texts have are left out.

    Examples
    --------
    >>> table = pd.DataFrame({"loss": [1.0, 2.0], "ppl_50": [1.0, np.nan]})
    >>> missing_scores(table).to_dict("records")
    [{'score': 'ppl_50', 'texts': 1, 'reason': 'the text has fewer than 50 scored tokens'}]
    """
    counts = table.isna().sum()
    missing = counts[counts > 0]
    return pd.DataFrame(
        {
            "score": [str(name) for name in missing.index],
            "texts": [int(count) for count in missing],
            "reason": [missing_reason(str(name)) for name in missing.index],
        }
    )


def _judge(
    name: str, scores: Floats, truth: Labels, rng: np.random.Generator, draws: int
) -> dict[str, object]:
    """Judge one score: a row of `evaluate`."""
    known = ~np.isnan(scores)
    members = int((known & truth).sum())
    non_members = int((known & ~truth).sum())
    without = int((~known).sum())
    row: dict[str, object] = {
        "score": name,
        "members": members,
        "non_members": non_members,
        "without_score": without,
        "reason": missing_reason(name) if without else "",
    }
    measures = ["auc", *(_tpr_name(fpr) for fpr in FPRS)]
    point, low, high = np.full((3, len(measures)), np.nan)
    if members and non_members:
        values, sides = _as_labelled(scores[known], truth[known])
        point = _measures(values, sides, np.ones((1, len(values))))[0]
        low[0], high[0] = auc_interval(values[sides], values[~sides])
        for index, fpr in enumerate(FPRS, start=1):
            low[index], high[index] = tpr_interval(
                values[sides], values[~sides], fpr=fpr, rng=rng, draws=draws
            )
    for index, measure in enumerate(measures):
        row[measure] = point[index]
        row[f"{measure}_low"] = low[index]
        row[f"{measure}_high"] = high[index]
    for fpr in FPRS:
        row[f"false_positives_at_{100 * fpr:g}_fpr"] = int(fpr * non_members + _ROUNDING)
    return row


def _tpr_name(fpr: float) -> str:
    return f"tpr_at_{100 * fpr:g}_fpr"


def weighted_aucs(table: pd.DataFrame, members: ArrayLike, weights: ArrayLike) -> Floats:
    """Compute the AUC of every score from texts drawn with `weights` (rows, n), (rows, scores).

    A weight says how often a text was drawn, so that one resample can serve several
    models.

    Parameters
    ----------
    table, members
        Same as in `evaluate`, without NaN.
    weights
        (rows, n), 0 to 1e15, with members and non-members in every row.

    Raises
    ------
    InputError
        For tables and labels that `auc` refuses, or a weight outside of its limits.

    Examples
    --------
    >>> table = pd.DataFrame({"loss": [0.9, 0.4, 0.5, 0.1]})
    >>> weighted_aucs(table, [1, 1, 0, 0], [[1, 1, 1, 1], [2, 0, 1, 1]])
    array([[0.75],
           [1.  ]])
    """
    _check_table(table)
    drawn = as_array(weights, "weights", (None, len(table)))
    if not ((drawn >= 0) & (drawn <= MOST_DRAWN)).all():
        raise InputError(
            f"weights are not all from 0 to {MOST_DRAWN:g}: give how often each text was drawn"
        )
    columns = []
    for name in table.columns:
        values, truth = _as_labelled(table[name], members)
        for side in (True, False):
            if not drawn[:, truth == side].any(axis=1).all():
                raise InputError(
                    "weights has a row without members, or without non-members",
                )
        columns.append(_measures(values, truth, drawn)[:, 0])
    return np.stack(columns, axis=1)


def fit_threshold(non_members: ArrayLike, *, fpr: float) -> float:
    """Return the smallest of the scores of non-members (n,) that at most a share `fpr` reaches.

    Other texts with that score or more are called members; inf, where no score will do,
    calls none. Raises InputError for no score, one that is not a finite number, or a
    share outside 0 to 1.

    Examples
    --------
    >>> fit_threshold([0.1, 0.2, 0.3, 0.4], fpr=0.25)
    0.4
    """
    values = as_numbers(non_members, "non_members", -np.inf, np.inf)
    share = as_number(fpr, "fpr", 0.0, 1.0)
    candidates = np.unique(values)
    smaller = np.searchsorted(np.sort(values), candidates, side="left")
    reached = (len(values) - smaller) / len(values)
    return float(candidates[reached <= share + _ROUNDING].min(initial=np.inf))


def detected_share(scores: ArrayLike, threshold: float) -> tuple[float, float, float]:
    """Return the share of texts that are called members, and its 95% interval.

    The interval, of Clopper and Pearson, takes the texts as independent. `scores` are
    (n,), n >= 1; a text whose score is NaN is called none. Raises InputError for no
    text, or a threshold that is NaN.

    Examples
    --------
    >>> [round(share, 3) for share in detected_share([0.9, 0.4, 0.5, 0.1], 0.5)]
    [0.5, 0.068, 0.932]
    """
    values = as_floats(scores, "scores")
    if values.ndim != 1 or not len(values):
        raise InputError(
            f"scores has shape {values.shape}: give one or more, shape (n,)",
        )
    called = values >= as_scalar(threshold, "threshold")
    test = binomtest(int(called.sum()), len(called))
    interval = test.proportion_ci(0.95, method="exact")
    return float(called.mean()), float(interval.low), float(interval.high)


def _check_table(table: pd.DataFrame) -> None:
    """Raise InputError unless `table` has a column for each score, under different names."""
    if not isinstance(table, pd.DataFrame) or table.columns.empty:
        raise InputError(
            f"table is {table!r:.40}: give a DataFrame with a column for each score",
        )
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()][0]
        raise InputError(f"table has two columns {twice!r}: rename or drop one")


def _as_labelled(scores: ArrayLike, members: ArrayLike) -> tuple[Floats, Labels]:
    """Return scores (n,) and the truth (n,), if a curve can be drawn of them."""
    values = as_floats(scores, "scores")
    labels = as_floats(members, "labels")
    if values.ndim != 1 or labels.shape != values.shape:
        raise InputError(
            f"scores of shape {values.shape}, labels of {labels.shape}: give (n,) each"
        )
    try:
        truth = as_booleans(labels, "labels", (None,))
    except InputError as error:
        raise InputError(
            "a label is neither 0 nor 1: give 1, or True, for a member and 0 for none"
        ) from error
    check_finite(values, "scores")
    count = int(truth.sum())
    if count in (0, len(truth)):
        raise InputError(
            f"{count} members and {len(truth) - count} non-members: an ROC curve needs "
            "at least one of each; add the other class"
        )
    return values, truth


def _measures(scores: Floats, members: Labels, weights: Floats) -> Floats:
    """Compute AUC and the TPR at each of `FPRS`, (rows, 1 + len(FPRS)), under weights (rows, n)."""
    order = np.argsort(-scores)
    descending = scores[order]
    # Of equal scores.
    last = np.flatnonzero(np.append(descending[1:] != descending[:-1], True))
    sides = [weights[:, order] * (members[order] == side) for side in (False, True)]
    counts = np.cumsum(sides, axis=-1)[..., last]
    reached = np.pad(counts, ((0, 0), (0, 0), (1, 0)))
    fpr, tpr = reached / reached[..., -1:]
    # The largest TPR among thresholds with at most that FPR.
    rates = [np.where(fpr <= most, tpr, 0).max(axis=-1) for most in FPRS]
    areas = np.trapezoid(tpr, fpr, axis=-1)
    return np.stack([areas, *rates], axis=-1)
