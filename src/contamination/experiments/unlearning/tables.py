"""What an audit of unlearning found: beside the truth where it is known, and in mean recalls."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from statsmodels.stats.proportion import proportion_confint

from contamination.experiments.unlearning.audit import is_suspicious
from contamination.membership.evaluate import auc
from contamination.results.tables import format_estimate

PROBES = {"completion": "Completion", "exact": "Word for word", "answers": "Answers"}


def detection(ratio: ArrayLike, untreated: ArrayLike, windows: Sequence[float]) -> pd.DataFrame:
    """How well suspicion finds the chunks that unlearning left alone, where they are known.

    Intervals are of 95% (Clopper and Pearson) and take chunks as independent.

    Parameters
    ----------
    ratio : (n,), of `score_ratio`.
    untreated : (n,), True where nothing was done against the chunk.
    windows : to be tried, one row each.

    Returns
    -------
    DataFrame
        window, chunks, untreated, suspicious, hits (both), precision and recall with _low and _high
        (NaN of none), and two numbers that need no window, the same in every row: auc, the chance
        that the log ratio of an untreated chunk is nearer to 0 than that of a treated one, and
        auc_ratio, the chance that its ratio is smaller.

    Raises
    ------
    InputError
        Other lengths, a ratio that is not finite, chunks of one kind alone, or a window of 1 or
        less.
    """
    values, truth = np.asarray(ratio, dtype=np.float64), np.asarray(untreated, dtype=bool)
    aucs = {"auc": auc(-np.abs(np.log(values)), truth), "auc_ratio": auc(-values, truth)}
    rows = []
    for window in windows:
        suspicious = is_suspicious(values, window=window)
        counts = {
            "chunks": len(values),
            "untreated": int(truth.sum()),
            "suspicious": int(suspicious.sum()),
            "hits": int((suspicious & truth).sum()),
        }
        shares: dict[str, float] = {}
        for name, of in (("precision", counts["suspicious"]), ("recall", counts["untreated"])):
            shares |= dict.fromkeys((name, f"{name}_low", f"{name}_high"), np.nan)
            if of:
                low, high = proportion_confint(counts["hits"], of, method="beta")
                shares |= {name: counts["hits"] / of, f"{name}_low": low, f"{name}_high": high}
        rows.append({"window": window, **counts, **shares, **aucs})
    return pd.DataFrame(rows)


def detection_layout(found: pd.DataFrame) -> pd.DataFrame:
    """Lay out the rows of `detection` as text: a row per window, shares with their intervals."""
    shown = pd.DataFrame({"Window": found["window"].map("{:g}".format)})
    shown["Suspicious"] = [f"{row.suspicious}/{row.chunks}" for row in found.itertuples()]
    for name in ("precision", "recall"):
        shares = found[[name, f"{name}_low", f"{name}_high"]].to_numpy()
        shown[name.capitalize()] = [format_estimate(*share) for share in shares]
    shown["AUC, nearness"] = found["auc"].map("{:.2f}".format)
    shown["AUC, ratio"] = found["auc_ratio"].map("{:.2f}".format)
    return shown


def mean_recalls(table: pd.DataFrame, by: str = "suspicious") -> pd.DataFrame:
    """Mean of every probe and model over two groups of chunks.

    Parameters
    ----------
    table : of `audit_unlearning`.
    by : column of booleans, such as suspicious.

    Returns
    -------
    DataFrame
        probe (completion, exact, answers), model, yes and no (means where `by` is true, and where
        it is not), difference with difference_low and difference_high (1.96 standard errors; NaN of
        fewer than two chunks on a side).
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
    rows = []
    for row in means.itertuples():
        sides = [format_estimate(one, one, one, interval=False) for one in (row.yes, row.no)]
        difference = format_estimate(row.difference, row.difference_low, row.difference_high)
        rows.append((PROBES[row.probe], row.model.capitalize(), *sides, difference))
    return pd.DataFrame(rows, columns=["Probe", "Model", yes, no, "Difference"])
