"""Blind baselines: how well members and non-members are separated without any model.

Das et al. (2024), *Blind Baselines Beat Membership Inference Attacks for Foundation
Models*: a baseline away from 0.5 shows that the sides of a benchmark differ by more
than membership, as by date in WikiMIA, and an AUC of a score may then show that
difference alone.

Two baselines have a direction that is fixed beforehand: a text whose latest year is
earlier, and a longer text, count as more likely members. Bag of words is trained, so it
finds a difference in any direction; each text is scored by a classifier that has seen
neither the text nor its label.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from contamination.errors import InputError
from contamination.membership.evaluate import Floats, auc
from contamination.membership.intervals import auc_interval
from contamination.scoring.status import OK
from contamination.statistics.inputs import as_array, as_booleans, as_whole_numbers
from contamination.tables import Layout, format_auc, lay_out

WORDS = "bag_of_words"
BASELINES = {WORDS: "Bag of words", "dates": "Dates", "length": "Length"}
SCORED = ("benchmark", "split", "status", "member", "fold", *BASELINES)
FIELDS = (
    "benchmark",
    "split",
    "baseline",
    "members",
    "non_members",
    "auc",
    "auc_low",
    "auc_high",
    "status",
)
FOLDS = 10
# Four digits that stand alone: not those of 20481 bytes.
YEAR = re.compile(r"(?<!\d)(?:1[5-9]\d\d|20[0-3]\d)(?!\d)")


def blind_rows(
    texts: Sequence[str],
    members: ArrayLike,
    *,
    benchmark: str,
    split: str,
    rng: np.random.Generator,
    status: str = OK,
    folds: int = FOLDS,
) -> pd.DataFrame:
    """Score one set of texts by every baseline: a row per text with the columns `SCORED`.

    All baselines are larger for members. Compare `bag_of_words` within a fold only:
    each fold has a classifier of its own, trained on the texts of the others. A set
    that is unavailable (`status` says why), or that has fewer than two texts on one
    side, is one row with its status.

    Parameters
    ----------
    texts, members
        (n,) each; True or 1 is a member.
    benchmark, split
        Names of the set of texts.
    rng
        Draws the folds; each has its share of members.
    status
        OK, or why the set is unavailable.
    folds
        Number of folds; fewer where one side has fewer texts.

    Raises
    ------
    InputError
        For labels of another number than texts, or of another kind.
    """
    from sklearn.model_selection import StratifiedKFold

    truth = as_booleans(members, "members", (len(texts),))
    sides = (int(truth.sum()), int((~truth).sum()))
    if status == OK and min(sides) < 2:
        status = f"failed: {sides[0]} members and {sides[1]} non-members: give two of each or more"
    columns: dict[str, Any] = {"member": [None]}
    if status == OK:
        seed = int(rng.integers(1 << 31))
        draw = StratifiedKFold(min(folds, *sides), shuffle=True, random_state=seed)
        fold = np.empty(len(texts), dtype=np.int64)
        for number, (_, held_out) in enumerate(draw.split(truth, truth)):
            fold[held_out] = number
        columns = {"member": truth, "fold": fold}
        columns[WORDS] = bag_of_words(texts, truth, fold)
        columns["dates"] = [-latest_year(text) for text in texts]
        columns["length"] = [float(len(text)) for text in texts]
    rows = pd.DataFrame(columns).assign(benchmark=benchmark, split=split, status=status)
    kinds = {"member": "boolean", "fold": "Int64"} | dict.fromkeys(BASELINES, "float64")
    return rows.reindex(columns=SCORED).astype(kinds)


def bag_of_words(texts: Sequence[str], members: ArrayLike, fold: ArrayLike) -> Floats:
    """Score the texts of each fold by a classifier of the others.

    Logistic regression on the words and signs that a text holds, weighted by their
    rarity; the vocabulary is that of the training texts.

    Parameters
    ----------
    texts
        n of them.
    members
        (n,), True or 1 is a member.
    fold
        (n,), whole numbers.

    Returns
    -------
    array
        Log-odds of membership (nats), (n,).

    Raises
    ------
    InputError
        Unless there are members and non-members outside of every fold.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import PredefinedSplit, cross_val_predict
    from sklearn.pipeline import make_pipeline

    truth = as_booleans(members, "members", (len(texts),))
    folds = as_whole_numbers(fold, "fold", (len(texts),))
    for number in np.unique(folds):
        if len(np.unique(truth[folds != number])) < 2:
            raise InputError(
                f"outside of fold {number} there are not both members and non-members: "
                "give fewer folds, or more texts"
            )
    # In programs signs are as informative as words.
    words = TfidfVectorizer(token_pattern=r"\w+|[^\w\s]", binary=True)
    classifier = make_pipeline(words, LogisticRegression())
    log_odds: Floats = cross_val_predict(
        classifier,
        list(texts),
        truth,
        cv=PredefinedSplit(folds),
        method="decision_function",
    )
    return log_odds


def latest_year(text: str) -> float:
    """Return the latest year, 1500 to 2039, that a text mentions.

    It is 0 if none: nothing is late.

    Examples
    --------
    >>> latest_year("From 1999 to 2003: 20481 bytes.")
    2003.0
    """
    years = [int(digits) for digits in YEAR.findall(text)]
    return float(max(years, default=0))


def blind_table(scored: pd.DataFrame) -> pd.DataFrame:
    """Judge every baseline on every set of texts.

    Dates and length are judged by `contamination.membership.evaluate.auc`, bag of words
    by `auc_over_folds`.

    Parameters
    ----------
    scored
        Rows of `blind_rows`, of one set or of several.

    Returns
    -------
    DataFrame
        A row per baseline and set, with the columns `FIELDS`; AUCs have 95% intervals.
        A set without scores is one row without a baseline.
    """
    index = ["benchmark", "split", "status"]
    rows: list[dict[Any, Any]] = []
    for keys, texts in scored.groupby(index, sort=False):
        row = dict(zip(index, keys, strict=True))
        if row["status"] != OK:
            rows.append(row | {"baseline": ""})
            continue
        members = texts["member"].to_numpy(dtype=bool)
        folds = texts["fold"].to_numpy(dtype=np.int64)
        for name in BASELINES:
            scores = texts[name].to_numpy(dtype=np.float64)
            if name == WORDS:
                area, low, high = auc_over_folds(scores, members, folds)
            else:
                area = auc(scores, members)
                low, high = auc_interval(scores[members], scores[~members])
            of_baseline = {
                "baseline": name,
                "members": int(members.sum()),
                "non_members": int((~members).sum()),
                "auc": area,
                "auc_low": low,
                "auc_high": high,
            }
            rows.append(row | of_baseline)
    table = pd.DataFrame(rows, columns=list(FIELDS))
    return table.astype({"members": "Int64", "non_members": "Int64"})


def auc_over_folds(
    scores: ArrayLike, members: ArrayLike, folds: ArrayLike
) -> tuple[float, float, float]:
    """Return the mean over folds of the AUC within a fold, and its 95% interval.

    Parameters
    ----------
    scores
        (n,), out-of-fold scores; each fold has a classifier of its own, so that scores
        of two folds do not compare.
    members
        (n,), True or 1 is a member.
    folds
        (n,), whole numbers.

    Raises
    ------
    InputError
        For a score that is not a finite number, other lengths, fewer than two folds, or
        a fold without members or without non-members.

    Notes
    -----
    The interval is that of Student's t with the variance of Nadeau and Bengio (2003,
    Machine Learning 52, section 4): what a classifier is tested on has trained the
    others, so the folds are not independent. It assumes folds of about the same size.

    Examples
    --------
    >>> scores = [0.9, 0.1, 0.8, 0.2, 5.3, 5.4]
    >>> auc_over_folds(scores, [1, 0, 1, 0, 1, 0], [0, 0, 0, 0, 1, 1])[0]
    0.5
    """
    values = as_array(scores, "scores", (None,))
    truth = as_booleans(members, "members", (len(values),))
    fold = as_whole_numbers(folds, "folds", (len(values),))
    areas = np.array([auc(values[fold == i], truth[fold == i]) for i in np.unique(fold)])
    count = len(areas)
    if count < 2:
        raise InputError(f"folds has {count} fold(s): give two or more")
    mean = float(areas.mean())
    # 1 / (count - 1): texts that a classifier is tested on, for each that it is trained
    # on.
    error = np.sqrt(areas.var(ddof=1) * (1 / count + 1 / (count - 1)))
    half = float(stats.t.ppf(0.975, count - 1) * error)
    return mean, max(0.0, mean - half), min(1.0, mean + half)


def blind_layout(table: pd.DataFrame) -> Layout:
    """Lay out `blind_table`: a row for each set of texts, a column for each baseline.

    Bold: the 95% interval leaves out 0.5. Sets without scores are left out.
    """

    def cell(row: dict[Any, Any]) -> dict[str, str]:
        baseline = BASELINES[row["baseline"]]
        return {"Members": f"{row['members']:,}", baseline: format_auc(row)}

    index = {"benchmark": "Texts", "split": "Split"}
    return lay_out(table[table["status"] == OK], index, cell)
