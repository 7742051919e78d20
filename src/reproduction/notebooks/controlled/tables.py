"""What became of controlled contamination: AUCs with intervals, trends, Shi's conclusions, layouts.

All models of an experiment score the same texts, so what varies is compared in pairs: a resample of
the texts is one for all models. It says what other texts would have given, not what another
training run would have.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from contamination.membership.evaluate import ENDS, Floats, evaluate, weighted_aucs
from contamination.tables import MISSING, Layout, format_auc, lay_out

SIZE, COUNT, RATE = "corpus_size", "dup_count", "learning_rate"  # experiments: what varies
OUTLIER, INSIDE = "outlier", "in-distribution"  # contaminants
BASE, TRAINED = "base", "trained"  # models
KEYS = (
    *("experiment", "contaminant", "dataset", "model"),
    *("corpus_tokens", "dup_count", "learning_rate"),
)
PUBLISHED = ("Table 3", "Table 7", "Table 4")  # of Shi

MEAN = "mean"  # over the outlier sets
VARIED = {SIZE: "corpus_tokens", COUNT: "dup_count", RATE: "learning_rate"}  # experiment -> key
CONCLUSIONS = (  # experiment, contaminant, sign of the trend, what Shi finds
    (SIZE, OUTLIER, 1, "Figure 5a: the larger the text, the easier outliers are detected"),
    (SIZE, INSIDE, -1, "Figure 5b: the larger the text, the harder in-distribution ones are"),
    (COUNT, OUTLIER, 1, "Figure 5c: the higher the duplication count, the easier"),
    (RATE, OUTLIER, 1, "Table 4: the higher the learning rate, the easier"),
)
TREND = ("first_auc", "last_auc", "slope", "slope_low", "slope_high")
POOLED = [name for name in KEYS if name != "dataset"]  # keys of a mean over sets
CONTROL = "Control: before training, no AUC of the experiment on size is off 0.5"


def auc_table(scored: pd.DataFrame, *, rng: np.random.Generator, resamples: int) -> pd.DataFrame:
    """Measure AUC and TPR at 5% FPR of every score in every cell, and means over the outlier sets.

    The columns are `KEYS`, score, members, non_members, and auc and tpr_at_5_fpr, each with _low
    and _high (95%). In rows with the dataset `MEAN` every outlier set has the same
    weight, and the TPR has no interval.
    """
    parts = []
    for key, cell in scored.groupby(list(KEYS), sort=False):
        found = evaluate(cell[scores_of(scored)], cell["member"], rng=rng, resamples=resamples)
        found = found.drop(columns=found.filter(regex=r"^tpr_at_(1|0\.1)_"))
        parts.append(found.assign(**dict(zip(KEYS, key, strict=True))))
    table = pd.concat(parts, ignore_index=True)
    keys = [*POOLED, "score"]
    outliers = table[table["contaminant"] == OUTLIER].groupby(keys, sort=False)
    mean, total = ("auc", "tpr_at_5_fpr"), ("members", "non_members")
    means = outliers.agg(dict.fromkeys(mean, "mean") | dict.fromkeys(total, "sum")).reset_index()
    intervals = [
        (*key, score, *np.quantile(values[1:, i], ENDS))
        for key, values in mean_draws(scored, rng=rng, resamples=resamples).items()
        for i, score in enumerate(scores_of(scored))
    ]
    ends = pd.DataFrame(intervals, columns=[*keys, "auc_low", "auc_high"])
    means = means.merge(ends, on=keys, how="left").assign(dataset=MEAN)
    first = [*KEYS, *(name for name in table if name not in KEYS)]
    return pd.concat([table, means], ignore_index=True)[first]


def scores_of(scored: pd.DataFrame) -> list[str]:
    """Name the columns that hold scores."""
    return [str(name) for name in scored if name not in {*KEYS, "member", "text"}]


def mean_draws(
    scored: pd.DataFrame, *, rng: np.random.Generator, resamples: int
) -> dict[tuple[Any, ...], Floats]:
    """Average the AUC over the sets of a contaminant: `POOLED` -> (1 + resamples, scores).

    The measured mean stands first. Halves of a set, and members by their duplication counts, are
    resampled apart; one resample serves every model.
    """
    weights: dict[tuple[Any, ...], Floats] = {}  # (1 + resamples, texts), the first row all once
    found: dict[tuple[Any, ...], list[Floats]] = {}
    for key, cell in scored.groupby(list(KEYS), sort=False):
        at = dict(zip(KEYS, key, strict=True))
        halves = []
        for member in (True, False):
            half = at["experiment"], at["dataset"], member, at["dup_count"] * member
            if half not in weights:
                count = int((cell["member"] == member).sum())
                drawn = rng.multinomial(count, np.full(count, 1 / count), size=resamples)
                weights[half] = np.concatenate([np.ones((1, count)), drawn])
            halves.append(weights[half])
        cell = cell.sort_values(["member", "text"], ascending=[False, True])
        aucs = weighted_aucs(cell[scores_of(scored)], cell["member"], np.hstack(halves))
        found.setdefault(tuple(at[name] for name in POOLED), []).append(aucs)
    return {name: np.mean(values, axis=0) for name, values in found.items()}


def trends(scored: pd.DataFrame, *, rng: np.random.Generator, resamples: int) -> pd.DataFrame:
    """Measure how the mean AUC changes with what an experiment varies.

    A row per experiment, contaminant and score: first_auc and last_auc, at the smallest and the
    largest value, and slope, the least-squares change of the AUC per doubling of that value, with
    slope_low and slope_high (95%, bootstrap in pairs).
    """
    points: dict[tuple[str, str], dict[float, Floats]] = {}
    for key, values in mean_draws(scored, rng=rng, resamples=resamples).items():
        at = dict(zip(POOLED, key, strict=True))
        if at["model"] == TRAINED:
            line = points.setdefault((at["experiment"], at["contaminant"]), {})
            line[at[VARIED[at["experiment"]]]] = values
    rows = []
    for (experiment, contaminant), line in points.items():
        x = np.log2(np.array(sorted(line), dtype=np.float64))
        values = np.stack([line[point] for point in sorted(line)])  # (x, 1 + resamples, scores)
        centred = x - x.mean()
        slopes = np.tensordot(centred, values, axes=1) / (centred**2).sum()
        low, high = np.quantile(slopes[1:], ENDS, axis=0)
        numbers = scores_of(scored), values[0, 0], values[-1, 0], slopes[0], low, high
        rows += [(experiment, contaminant, *one) for one in zip(*numbers, strict=True)]
    return pd.DataFrame(rows, columns=["experiment", "contaminant", "score", *TREND])


def conclusions(table: pd.DataFrame, found: pd.DataFrame, *, score: str) -> pd.DataFrame:
    """Confront the conclusions of Shi with `auc_table` and `trends`, by one score (Shi's: Min-K%).

    A conclusion holds ("yes") where the interval of the slope lies on its side of 0, and does not
    ("no") where it lies on the other; it is "undecided" where the interval holds 0, and "—" where
    nothing was measured. The control is undecided where an interval leaves out 0.5: of twenty, one
    does by chance.
    """
    rows, found = [], found[found["score"] == score].set_index(["experiment", "contaminant"])
    for experiment, contaminant, sign, claim in CONCLUSIONS:
        measured = holds = MISSING
        if (experiment, contaminant) in found.index:
            first, last, slope, low, high = found.loc[(experiment, contaminant), list(TREND)]
            change = f"{slope:+.3f} ({low:+.3f} to {high:+.3f})".replace("-", "−")
            measured = f"AUC {first:.2f} to {last:.2f}; per doubling {change}"
            holds = "undecided" if low <= 0 <= high else "yes" if low * sign > 0 else "no"
        rows.append((claim, measured, holds))
    control = table[(table["model"] == BASE) & (table["experiment"] == SIZE)]
    control = control[(control["score"] == score) & (control["dataset"] != MEAN)]
    off = (control["auc_low"] > 0.5) | (control["auc_high"] < 0.5)
    measured = (
        f"AUC {control['auc'].min():.2f} to {control['auc'].max():.2f}; "
        f"0.5 is outside of {off.sum()} of {len(control)} intervals"
    )
    rows.append((CONTROL, measured, "undecided" if off.any() else "yes"))
    return pd.DataFrame(rows, columns=["conclusion", "measured", "holds"])


def main_layout(table: pd.DataFrame, labels: Mapping[str, str]) -> Layout:
    """Lay out Table 3, at the largest size: a row for each score that `labels` name.

    Columns are the outlier sets, their mean with its interval, that mean before training, its TPR
    at 5% FPR (Table 7), and in-distribution contaminants; bold where the interval leaves out 0.5.
    """
    rows = table[(table["experiment"] == SIZE) & table["score"].isin(list(labels))]
    rows = rows[rows["corpus_tokens"].isin([0, rows["corpus_tokens"].max()])]
    outliers = rows.loc[rows["contaminant"] == OUTLIER, "dataset"].unique()  # the mean is the last

    def cells(row: dict[Any, Any]) -> dict[str, str]:
        mean = row["dataset"] == MEAN
        if row["model"] == BASE:
            return {"Before training": format_auc(row)} if mean else {}
        rate = {"TPR at 5% FPR": f"{row['tpr_at_5_fpr']:.0%}"} if mean else {}
        return {row["dataset"].capitalize(): format_auc(row, interval=mean)} | rate

    last = ("Before training", "TPR at 5% FPR")
    return lay_out(
        rows.assign(method=rows["score"].map(labels)),
        {"method": "Method"},
        cells,
        rows_first=tuple(labels.values()),
        columns_first=[*(name.capitalize() for name in outliers), *last],
    )


def rate_layout(table: pd.DataFrame, score: str) -> Layout:
    """Lay out Table 4: a row per learning rate, the base model first, a column per set."""
    rows = table[(table["experiment"] == RATE) & (table["score"] == score)]
    rows = rows.sort_values("learning_rate", kind="stable")
    named = rows["learning_rate"].map(lambda rate: f"{rate:g}" if rate else "before training")
    return lay_out(
        rows.assign(learning_rate=named),
        {"learning_rate": "Learning rate"},
        lambda row: {row["dataset"].capitalize(): format_auc(row, interval=row["dataset"] == MEAN)},
    )


def published_layout(headline: pd.DataFrame) -> Layout:
    """Lay out what Shi prints in Tables 3, 7 and 4: a row per method, a column per set."""
    rows = headline[headline["table"].isin(PUBLISHED)]
    parts = rows["setting"].str.partition(" lr ")  # a learning rate, of Table 4
    rates = parts[2].map(lambda rate: f", rate {rate}" if rate else "")
    rows = rows.assign(
        set=parts[0].replace("downstream average", "Average"),
        method=rows["method"].replace("Min-20% Prob", "Min-20%") + rates,
    )
    rows = rows.sort_values("table", key=lambda names: names.map(PUBLISHED.index), kind="stable")
    index = {"table": "Table", "method": "Method", "metric": "Measure"}
    return lay_out(rows, index, lambda row: {row["set"]: f"{row['value']:g}"})
