"""What an audit of unlearning found: beside the truth where it is known, and in mean recalls."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from statsmodels.stats.proportion import proportion_confint

from contamination.membership.evaluate import auc
from contamination.membership.unlearning import is_suspicious
from contamination.tables import format_estimate, lay_out

PROBES = {"completion": "Completion", "exact": "Word for word", "answers": "Answers"}


def detection(ratio: ArrayLike, untreated: ArrayLike, windows: Sequence[float]) -> pd.DataFrame:
    """How well suspicion finds the chunks that unlearning left alone, where they are known.

    `ratio` (n,) is of `score_ratio`; `untreated` (n,) is True where nothing was done against the
    chunk. Raises InputError for other lengths, a ratio that is not finite, chunks of one kind
    alone, or a window of 1 or less.

    Returns a row per window: window, chunks, untreated, suspicious, hits (both), precision and
    recall with _low and _high (NaN of none), and two numbers that need no window, the same in every
    row: auc, the chance that the log ratio of an untreated chunk is nearer to 0 than that of a
    treated one, and auc_ratio, the chance that its ratio is smaller. Intervals are of 95% (Clopper
    and Pearson) and take chunks as independent.
    """
    values, truth = np.asarray(ratio, dtype=np.float64), np.asarray(untreated, dtype=bool)
    aucs = {"auc": auc(-np.abs(np.log(values)), truth), "auc_ratio": auc(-values, truth)}
    rows = []
    for window in windows:
        suspicious = is_suspicious(values, window=window)
        found, untreated_chunks = int(suspicious.sum()), int(truth.sum())
        hits = int((suspicious & truth).sum())
        row = {"window": window, "chunks": len(values), "untreated": untreated_chunks}
        row |= {"suspicious": found, "hits": hits}
        for name, of in (("precision", found), ("recall", untreated_chunks)):
            low, high = proportion_confint(hits, of, method="beta") if of else (np.nan, np.nan)
            row |= {name: hits / of if of else np.nan, f"{name}_low": low, f"{name}_high": high}
        rows.append(row | aucs)
    return pd.DataFrame(rows)


def detection_layout(found: pd.DataFrame) -> pd.DataFrame:
    """Lay out the rows of `detection` as text: a row per window, shares with their intervals."""

    def cells(row: dict[Any, Any]) -> dict[str, str]:
        line = {"Suspicious": f"{row['suspicious']}/{row['chunks']}"}
        for name in ("precision", "recall"):
            share = (row[name], row[f"{name}_low"], row[f"{name}_high"])
            line[name.capitalize()] = format_estimate(*share)
        return line | {
            "AUC, nearness": f"{row['auc']:.2f}",
            "AUC, ratio": f"{row['auc_ratio']:.2f}",
        }

    shown = found.assign(window=found["window"].map("{:g}".format))
    return lay_out(shown, {"window": "Window"}, cells)


def mean_recalls(table: pd.DataFrame, by: str = "suspicious") -> pd.DataFrame:
    """Mean of every probe and model over the two groups of chunks that a column of booleans makes.

    Takes the table of `audit_unlearning`. Returns probe (completion, exact, answers), model, yes
    and no (means where `by` is true, and where it is not), difference with difference_low and
    difference_high (1.96 standard errors; NaN of fewer than two chunks on a side).
    """
    rows = []
    for column in table.columns:
        probe, _, model = str(column).partition("_")
        if probe in PROBES:
            values, group = table[column].astype(float), table[by].astype(bool)
            sides = [values[group], values[~group]]
            yes, no = (side.mean() for side in sides)
            half = 1.96 * np.hypot(*(side.sem() for side in sides))
            rows.append((probe, model, yes, no, yes - no, yes - no - half, yes - no + half))
    names = ["probe", "model", "yes", "no", "difference", "difference_low", "difference_high"]
    return pd.DataFrame(rows, columns=names)


def recall_layout(means: pd.DataFrame, yes: str, no: str) -> pd.DataFrame:
    """Lay out the rows of `mean_recalls` as text; `yes` and `no` name the two groups of chunks."""

    def cells(row: dict[Any, Any]) -> dict[str, str]:
        difference = (row["difference"], row["difference_low"], row["difference_high"])
        return {
            yes: format_estimate(row["yes"], interval=False),
            no: format_estimate(row["no"], interval=False),
            "Difference": format_estimate(*difference),
        }

    shown = means.assign(probe=means["probe"].map(PROBES), model=means["model"].str.capitalize())
    return lay_out(shown, {"probe": "Probe", "model": "Model"}, cells)
