"""Tables of controlled contamination: AUCs, trends, Shi's conclusions, layouts.

All models of an experiment score the same texts, so what varies is compared in pairs: a
resample of the texts is one for all models. It says what other texts would have given,
not what another training run would have.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from contamination.membership.evaluate import Floats, evaluate, weighted_aucs
from contamination.membership.intervals import ENDS
from contamination.tables import MISSING, Layout, format_auc, format_sides, lay_out

# Experiments: what varies.
SIZE = "corpus_size"
COUNT = "dup_count"
RATE = "learning_rate"
# Contaminants.
OUTLIER = "outlier"
INSIDE = "in-distribution"
# Models.
BASE = "base"
TRAINED = "trained"
KEYS = (
    "experiment",
    "contaminant",
    "dataset",
    "model",
    "corpus_tokens",
    "dup_count",
    "learning_rate",
)
PUBLISHED = ("Table 3", "Table 7", "Table 4")  # of Shi
# `source` of a published cell that we could not check, and the mark of such a cell.
NO_TEXT = "no text at hand"
UNCHECKED = "†"

MEAN = "mean"  # over the outlier sets
TEXTS = "Texts, injected + held out"  # head of the line that counts them
# experiment -> key
VARIED = {SIZE: "corpus_tokens", COUNT: "dup_count", RATE: "learning_rate"}
CONCLUSIONS = (  # experiment, contaminant, sign of the trend, what Shi finds
    (
        SIZE,
        OUTLIER,
        1,
        "Figure 5a: the larger the text, the easier outliers are detected",
    ),
    (
        SIZE,
        INSIDE,
        -1,
        "Figure 5b: the larger the text, the harder in-distribution ones are",
    ),
    (COUNT, OUTLIER, 1, "Figure 5c: the higher the duplication count, the easier"),
    (RATE, OUTLIER, 1, "Table 4: the higher the learning rate, the easier"),
)
TREND = ("first_auc", "last_auc", "slope", "slope_low", "slope_high")
POOLED = [name for name in KEYS if name != "dataset"]  # keys of a mean over sets
CONTROL = "Control: before training, no AUC of the experiment on size is off 0.5"


def auc_table(
    scored: pd.DataFrame,
    *,
    rng: np.random.Generator,
    resamples: int,
) -> pd.DataFrame:
    """Measure AUC and TPR at 5% FPR of every score in every cell.

    Parameters
    ----------
    scored
        The table of the measurement.
    rng
        Draws the resamples.
    resamples
        Of the bootstrap.

    Returns
    -------
    table
        The columns are `KEYS`, score, members, non_members, and auc and tpr_at_5_fpr,
        each with _low and _high (95%). In rows with the dataset `MEAN` every outlier
        set has the same weight, and the TPR has no interval.
    """
    parts = []
    for key, cell in scored.groupby(list(KEYS), sort=False):
        judged = evaluate(
            cell[scores_of(scored)],
            cell["member"],
            rng=rng,
            resamples=resamples,
        )
        judged = judged.drop(columns=judged.filter(regex=r"^tpr_at_(1|0\.1)_"))
        for name, value in zip(KEYS, key, strict=True):
            judged[name] = value
        parts.append(judged)
    table = pd.concat(parts, ignore_index=True)
    means = _means_over_outliers(table).merge(
        _intervals_of_means(scored, rng=rng, resamples=resamples),
        on=[*POOLED, "score"],
        how="left",
    )
    means["dataset"] = MEAN
    others = [name for name in table if name not in KEYS]
    return pd.concat([table, means], ignore_index=True)[[*KEYS, *others]]


def _means_over_outliers(table: pd.DataFrame) -> pd.DataFrame:
    """Return means of AUC and TPR over the outlier sets, and sums of their texts."""
    outliers = table[table["contaminant"] == OUTLIER].groupby(
        [*POOLED, "score"],
        sort=False,
    )
    how = {"auc": "mean", "tpr_at_5_fpr": "mean", "members": "sum", "non_members": "sum"}
    return outliers.agg(how).reset_index()


def _intervals_of_means(
    scored: pd.DataFrame,
    *,
    rng: np.random.Generator,
    resamples: int,
) -> pd.DataFrame:
    """Return the interval of the mean AUC over sets, for each model and score."""
    rows = []
    for key, draws in mean_draws(scored, rng=rng, resamples=resamples).items():
        for i, score in enumerate(scores_of(scored)):
            low, high = np.quantile(draws[1:, i], ENDS)
            rows.append((*key, score, low, high))
    return pd.DataFrame(rows, columns=[*POOLED, "score", "auc_low", "auc_high"])


def scores_of(scored: pd.DataFrame) -> list[str]:
    """Name the columns that hold scores."""
    return [str(name) for name in scored if name not in {*KEYS, "member", "text"}]


def mean_draws(
    scored: pd.DataFrame,
    *,
    rng: np.random.Generator,
    resamples: int,
) -> dict[tuple[Any, ...], Floats]:
    """Average the AUC over the sets of a contaminant: `POOLED` -> (1 + resamples, scores).

    The measured mean stands first. Halves of a set, and members by their duplication
    counts, are resampled apart; one resample serves every model.

    Parameters
    ----------
    scored
        Scores of single texts.
    rng
        Draws the resamples.
    resamples
        Number of them.
    """
    # (1 + resamples, texts), the first row all once
    weights: dict[tuple[Any, ...], Floats] = {}
    aucs: dict[tuple[Any, ...], list[Floats]] = {}
    for key, cell in scored.groupby(list(KEYS), sort=False):
        cell_key = dict(zip(KEYS, key, strict=True))
        halves = []
        for member in (True, False):
            # Non-members of all duplication counts are the same texts.
            dup_count = cell_key["dup_count"] if member else 0
            half = (cell_key["experiment"], cell_key["dataset"], member, dup_count)
            if half not in weights:
                count = int((cell["member"] == member).sum())
                drawn = rng.multinomial(count, np.full(count, 1 / count), size=resamples)
                weights[half] = np.concatenate([np.ones((1, count)), drawn])
            halves.append(weights[half])
        cell = cell.sort_values(["member", "text"], ascending=[False, True])
        of_cell = weighted_aucs(
            cell[scores_of(scored)],
            cell["member"],
            np.hstack(halves),
        )
        pooled_key = tuple(cell_key[name] for name in POOLED)
        aucs.setdefault(pooled_key, []).append(of_cell)
    return {key: np.mean(of_sets, axis=0) for key, of_sets in aucs.items()}


def trends(
    scored: pd.DataFrame,
    *,
    rng: np.random.Generator,
    resamples: int,
) -> pd.DataFrame:
    """Measure how the mean AUC changes with what an experiment varies.

    Parameters
    ----------
    scored
        The table of the measurement.
    rng
        Draws the resamples.
    resamples
        Of the bootstrap.

    Returns
    -------
    trends
        A row per experiment, contaminant and score: first_auc and last_auc, at the
        smallest and the largest value, and slope, the least-squares change of the AUC
        per doubling of that value, with slope_low and slope_high (95%, bootstrap in
        pairs).
    """
    points: dict[tuple[str, str], dict[float, Floats]] = {}
    for key, draws in mean_draws(scored, rng=rng, resamples=resamples).items():
        cell = dict(zip(POOLED, key, strict=True))
        if cell["model"] == TRAINED:
            line = points.setdefault((cell["experiment"], cell["contaminant"]), {})
            varied = cell[VARIED[cell["experiment"]]]
            line[varied] = draws
    rows = []
    for (experiment, contaminant), line in points.items():
        x = np.log2(np.array(sorted(line), dtype=np.float64))
        # (x, 1 + resamples, scores)
        aucs = np.stack([line[point] for point in sorted(line)])
        centred = x - x.mean()
        slopes = np.tensordot(centred, aucs, axes=1) / (centred**2).sum()
        low, high = np.quantile(slopes[1:], ENDS, axis=0)
        for i, score in enumerate(scores_of(scored)):
            first = aucs[0, 0, i]
            last = aucs[-1, 0, i]
            rows.append(
                (
                    experiment,
                    contaminant,
                    score,
                    first,
                    last,
                    slopes[0, i],
                    low[i],
                    high[i],
                ),
            )
    return pd.DataFrame(rows, columns=["experiment", "contaminant", "score", *TREND])


def conclusions(
    table: pd.DataFrame,
    slopes: pd.DataFrame,
    *,
    score: str,
) -> pd.DataFrame:
    """Compare the conclusions of Shi with the AUCs measured here, by one score.

    A conclusion holds ("yes") where the interval of the slope lies on its side of 0,
    and does not ("no") where it lies on the other; it is "undecided" where the interval
    holds 0, and "—" where nothing was measured. The control is undecided where an
    interval leaves out 0.5: of twenty, one does by chance.

    Parameters
    ----------
    table
        The table of `auc_table`.
    slopes
        The table of `trends`.
    score
        Name of the score that the conclusions are about.
    """
    of_score = slopes[slopes["score"] == score]
    of_score = of_score.set_index(["experiment", "contaminant"])
    rows = []
    for experiment, contaminant, sign, claim in CONCLUSIONS:
        if (experiment, contaminant) not in of_score.index:
            rows.append((claim, MISSING, MISSING))
            continue
        trend = of_score.loc[(experiment, contaminant), list(TREND)]
        first, last, slope, low, high = trend
        change = f"{slope:+.3f} ({low:+.3f} to {high:+.3f})".replace("-", "−")
        measured = f"AUC {first:.2f} to {last:.2f}; per doubling {change}"
        rows.append((claim, measured, _holds(low, high, sign)))
    rows.append((CONTROL, *_control(table, score)))
    return pd.DataFrame(rows, columns=["conclusion", "measured", "holds"])


def _holds(low: float, high: float, sign: int) -> str:
    """Judge whether a slope has a sign, by the ends of its interval."""
    if low <= 0 <= high:
        return "undecided"
    if low * sign > 0:
        return "yes"
    return "no"


def _control(table: pd.DataFrame, score: str) -> tuple[str, str]:
    """Judge whether AUCs before training are 0.5."""
    before = table[(table["model"] == BASE) & (table["experiment"] == SIZE)]
    before = before[(before["score"] == score) & (before["dataset"] != MEAN)]
    off = (before["auc_low"] > 0.5) | (before["auc_high"] < 0.5)
    measured = (
        f"AUC {before['auc'].min():.2f} to {before['auc'].max():.2f}; "
        f"0.5 is outside of {off.sum()} of {len(before)} intervals"
    )
    return measured, "undecided" if off.any() else "yes"


def main_layout(table: pd.DataFrame, labels: Mapping[str, str]) -> Layout:
    """Lay out Table 3, at the largest size: a row for each score that `labels` name.

    Columns are the outlier sets, their mean with its interval, that mean before
    training, its TPR at 5% FPR (Table 7), and in-distribution contaminants; bold where
    the interval leaves out 0.5. The first line says how many texts both sides have.
    """
    rows = table[(table["experiment"] == SIZE) & table["score"].isin(list(labels))]
    rows = rows[rows["corpus_tokens"].isin([0, rows["corpus_tokens"].max()])]
    # the mean is the last
    outliers = rows.loc[rows["contaminant"] == OUTLIER, "dataset"].unique()

    def cells(row: dict[Any, Any]) -> dict[str, str]:
        is_mean = row["dataset"] == MEAN
        if row["method"] == TEXTS:
            counts = {row["dataset"].capitalize(): format_sides(row)}
            if is_mean:
                counts["Before training"] = format_sides(row)
                counts["TPR at 5% FPR"] = format_sides(row)
            return counts
        if row["model"] == BASE:
            return {"Before training": format_auc(row)} if is_mean else {}
        shown = {row["dataset"].capitalize(): format_auc(row, interval=is_mean)}
        if is_mean:
            shown["TPR at 5% FPR"] = f"{row['tpr_at_5_fpr']:.0%}"
        return shown

    columns = [name.capitalize() for name in outliers]
    counts = rows[rows["model"] != BASE].drop_duplicates("dataset").assign(method=TEXTS)
    return lay_out(
        pd.concat([counts, rows.assign(method=rows["score"].map(labels))]),
        {"method": "Method"},
        cells,
        rows_first=(TEXTS, *labels.values()),
        columns_first=[*columns, "Before training", "TPR at 5% FPR"],
    )


def rate_layout(table: pd.DataFrame, score: str) -> Layout:
    """Lay out Table 4: a row per learning rate, a column per set.

    The first line says how many texts both sides have.
    """

    def name_rate(rate: float) -> str:
        return f"{rate:g}" if rate else "before training"

    def cell(row: dict[Any, Any]) -> dict[str, str]:
        is_mean = row["dataset"] == MEAN
        heading = row["dataset"].capitalize()
        if row["learning_rate"] == TEXTS:
            return {heading: format_sides(row)}
        return {heading: format_auc(row, interval=is_mean)}

    rows = table[(table["experiment"] == RATE) & (table["score"] == score)]
    rows = rows.sort_values("learning_rate", kind="stable")
    rows = rows.assign(learning_rate=rows["learning_rate"].map(name_rate))
    counts = rows.drop_duplicates("dataset").assign(learning_rate=TEXTS)
    return lay_out(pd.concat([counts, rows]), {"learning_rate": "Learning rate"}, cell)


def published_layout(headline: pd.DataFrame) -> Layout:
    """Lay out Shi's Tables 3, 7 and 4: a row per method, a column per set.

    A dagger marks the cells that are in no text at hand, by their `source`.
    """

    def cell(row: dict[Any, Any]) -> dict[str, str]:
        mark = UNCHECKED if row["source"] == NO_TEXT else ""
        return {row["set"]: f"{row['value']:g}{mark}"}

    rows = headline[headline["table"].isin(PUBLISHED)]
    parts = rows["setting"].str.partition(" lr ")  # a learning rate, of Table 4
    rates = parts[2].map(lambda rate: f", rate {rate}" if rate else "")
    rows = rows.assign(
        set=parts[0].replace("downstream average", "Average"),
        method=rows["method"].replace("Min-20% Prob", "Min-20%") + rates,
    )
    rows = rows.sort_values("table", key=lambda names: names.map(PUBLISHED.index), kind="stable")
    index = {"table": "Table", "method": "Method", "metric": "Measure"}
    return lay_out(rows, index, cell)
