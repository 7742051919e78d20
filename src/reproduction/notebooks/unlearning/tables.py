"""Tables and the figure of notebook 11: suspicious chunks, and what models write.

A chunk is suspicious where unlearning hardly moved its Min-K% Prob: the ratio of the
scores of the unlearned and the original model lies within (1 / window, window), which
is 1.15 in Shi, section 7.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest

from contamination.errors import InputError
from contamination.membership.evaluate import auc
from contamination.tables import Layout, format_estimate, lay_out
from reproduction.notebooks.unlearning.settings import (
    CLEAN,
    MODELS,
    ORIGINAL,
    UNLEARNED,
)
from reproduction.output.figures import MODEL_COLOURS, READ, UNREAD

Floats = NDArray[np.float64]

RATIOS = {"ratio": "Min-K%", "perplexity_ratio": "Perplexity"}
PROBES = {
    "completion": "Second half",
    "exact": "Second half, exactly",
    "answers": "Answer",
}
COLOURS = {ORIGINAL: READ, UNLEARNED: MODEL_COLOURS[2], CLEAN: UNREAD}
LEFT_ALONE = ("Left alone", MODEL_COLOURS[4], "o")
TO_BE_FORGOTTEN = ("To be forgotten", MODEL_COLOURS[3], "s")


def audit_chunks(measured: Mapping[str, pd.DataFrame], *, window: float) -> pd.DataFrame:
    """Audit an unlearned model chunk by chunk.

    Parameters
    ----------
    measured
        The tables of the measurement.
    window
        Of ratios; above 1.

    Returns
    -------
    table
        chunk, treated, ratio, perplexity_ratio, suspicious (by the first), and for each
        model NAME: min_k_NAME, loss_NAME, completion_NAME, exact_NAME, answers_NAME.

    Raises
    ------
    InputError
        For a window of 1 or less, or a score of which no ratio can be taken.
    """
    scores = [measured[name].add_suffix(f"_{name}") for name in MODELS]
    table = pd.concat([measured["chunks"], *scores], axis=1)
    ratio = score_ratio(table["min_k_original"], table["min_k_unlearned"])
    table.insert(2, "ratio", ratio)
    change = table["loss_original"] - table["loss_unlearned"]
    table.insert(3, "perplexity_ratio", np.exp(change))
    table.insert(4, "suspicious", is_suspicious(ratio, window))
    return table


def score_ratio(original: ArrayLike, unlearned: ArrayLike) -> Floats:
    """Return the score under the unlearned model by that under the original one, (n,).

    Scores are mean log-probabilities (nats) of the same chunks, so below 0. Above 1 a
    chunk became less likely. Where the original model knows it by heart, its score is
    near 0, and a small change is a large ratio. Raises InputError for a score that is
    not finite and below 0.
    """
    before = np.asarray(original, dtype=np.float64)
    after = np.asarray(unlearned, dtype=np.float64)
    usable = np.isfinite(before) & np.isfinite(after) & (before < 0) & (after < 0)
    if not usable.all():
        number = int(np.argmin(usable))
        raise InputError(
            f"chunk {number} has the scores {before[number]} and {after[number]}: a "
            "ratio needs log-probabilities below 0; leave the chunk out",
        )
    ratio: Floats = after / before
    return ratio


def is_suspicious(ratio: Floats, window: float) -> NDArray[np.bool_]:
    """Return which ratios (n,) lie within (1 / window, window), without its ends."""
    if not window > 1:
        raise InputError(f"a window of {window}: give a number above 1, such as 1.15")
    return (ratio > 1 / window) & (ratio < window)


def detection(table: pd.DataFrame, windows: Sequence[float]) -> pd.DataFrame:
    """Count how well suspicion finds the chunks that unlearning left alone.

    Parameters
    ----------
    table
        The table of `audit_chunks`.
    windows
        Of ratios.

    Returns
    -------
    A row for each ratio (score: `ratio` or `perplexity_ratio`) and window: chunks,
    untreated, suspicious, hits (both), precision and recall with _low and _high (95%,
    Clopper and Pearson; NaN of none), and without a window: auc, the chance that the
    log ratio of an untreated chunk is nearer to 0 than that of a treated one, and
    auc_ratio, the chance that it is smaller.
    """
    untreated = ~table["treated"].to_numpy(dtype=bool)
    rows = []
    for score in RATIOS:
        ratio = table[score].to_numpy()
        for window in windows:
            suspicious = is_suspicious(ratio, window)
            hits = int((suspicious & untreated).sum())
            row = {"score": score, "window": window, "chunks": len(table)}
            row |= {
                "untreated": int(untreated.sum()),
                "suspicious": int(suspicious.sum()),
            }
            row |= {"hits": hits}
            row |= _share("precision", hits, int(suspicious.sum()))
            row |= _share("recall", hits, int(untreated.sum()))
            row["auc"] = auc(-np.abs(np.log(ratio)), untreated)
            row["auc_ratio"] = auc(-ratio, untreated)
            rows.append(row)
    return pd.DataFrame(rows)


def _share(name: str, hits: int, total: int) -> dict[str, float]:
    """Return a share and the ends of its 95% interval, under its name; NaN of none."""
    if not total:
        return dict.fromkeys((name, f"{name}_low", f"{name}_high"), np.nan)
    interval = binomtest(hits, total).proportion_ci()
    return {
        name: hits / total,
        f"{name}_low": interval.low,
        f"{name}_high": interval.high,
    }


def detection_layout(detections: pd.DataFrame) -> Layout:
    """Lay out the rows of `detection`: a row for each ratio and window."""

    def cells(row: dict[Any, Any]) -> dict[str, str]:
        return {
            "Suspicious": f"{row['suspicious']}/{row['chunks']}",
            "Precision": _estimate(row, "precision"),
            "Recall": _estimate(row, "recall"),
            "AUC, nearness to 1": f"{row['auc']:.2f}",
            "AUC, ratio": f"{row['auc_ratio']:.2f}",
        }

    shown = detections.assign(score=detections["score"].map(RATIOS))
    shown["window"] = shown["window"].map("{:g}".format)
    return lay_out(shown, {"score": "Ratio of", "window": "Window"}, cells)


def _estimate(row: Mapping[Any, Any], name: str) -> str:
    """Write a share with its interval."""
    return format_estimate(row[name], row[f"{name}_low"], row[f"{name}_high"])


def mean_recalls(table: pd.DataFrame, by: str) -> pd.DataFrame:
    """Compute the mean of every probe and model over two groups of chunks.

    Parameters
    ----------
    table
        The table of `audit_chunks`.
    by
        Column of truth values that makes the groups: suspicious or treated.

    Returns
    -------
    probe (of `PROBES`), model, yes and no (means where `by` is true, and where it is
    not), difference with _low and _high (1.96 standard errors; NaN of fewer than two
    chunks on a side).
    """
    group = table[by].astype(bool)
    rows = []
    for model in MODELS:
        for probe in PROBES:
            values = table[f"{probe}_{model}"].astype(float)
            yes = values[group]
            no = values[~group]
            difference = yes.mean() - no.mean()
            half = 1.96 * np.hypot(yes.sem(), no.sem())
            row = {"probe": probe, "model": model, "yes": yes.mean(), "no": no.mean()}
            row |= {"difference": difference, "difference_low": difference - half}
            rows.append(row | {"difference_high": difference + half})
    return pd.DataFrame(rows)


def recall_layout(means: pd.DataFrame, yes: str, no: str) -> Layout:
    """Lay out the rows of `mean_recalls`; `yes` and `no` name the two groups."""

    def cells(row: dict[Any, Any]) -> dict[str, str]:
        return {
            yes: format_estimate(row["yes"], interval=False),
            no: format_estimate(row["no"], interval=False),
            "Difference": _estimate(row, "difference"),
        }

    probes = means["probe"].map(PROBES)
    shown = means.assign(probe=probes, model=means["model"].str.capitalize())
    return lay_out(shown, {"model": "Model", "probe": "Written"}, cells)


def plot_unlearning(table: pd.DataFrame, *, window: float) -> Figure:
    """Draw the ratio of every chunk, and mean recalls by model and suspicion.

    Above, the `window` of suspicious ratios is shaded. Below, means over the suspicious
    chunks are filled, over the others hollow, with 1.96 standard errors, cut at 0 and 1.
    """
    figure = plt.figure(figsize=(6.6, 5.4))
    grid = figure.add_gridspec(2, 2, height_ratios=[1, 1.1])
    _draw_ratios(figure.add_subplot(grid[0, :]), table, window)
    for column, probe in enumerate(("completion", "answers")):
        axes = figure.add_subplot(grid[1, column])
        for place, model in enumerate(MODELS):
            values = table[f"{probe}_{model}"]
            filled = values[table["suspicious"]]
            hollow = values[~table["suspicious"]]
            _draw_mean(axes, place - 0.18, filled, COLOURS[model], hollow=False)
            _draw_mean(axes, place + 0.18, hollow, COLOURS[model], hollow=True)
        axes.set_xticks(range(len(MODELS)), [name.capitalize() for name in MODELS])
        axes.set(
            xlim=(-0.5, len(MODELS) - 0.5),
            ylim=(-0.05, 1.05),
            yticks=np.linspace(0, 1, 6),
        )
        axes.set_title(PROBES[probe], fontsize="medium")
        axes.grid(visible=False, axis="x")
        axes.set_ylabel("" if column else "Mean ROUGE-L recall")
    handles = [
        Line2D([], [], ls="", marker="o", color="0.35", label="suspicious chunks"),
        Line2D(
            [],
            [],
            ls="",
            marker="^",
            color="0.35",
            mfc="white",
            label="other chunks",
        ),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize="small")
    return figure


def _draw_ratios(axes: Axes, table: pd.DataFrame, window: float) -> None:
    """Draw the ratios of all chunks in their order, on a logarithmic scale."""
    axes.axhspan(1 / window, window, color="0.88", zorder=0, label="Suspicious")
    rank = table["ratio"].rank(method="first")
    for is_treated, style in ((False, LEFT_ALONE), (True, TO_BE_FORGOTTEN)):
        label, colour, marker = style
        rows = table["treated"] == is_treated
        axes.plot(
            rank[rows],
            table["ratio"][rows],
            marker,
            color=colour,
            label=label,
            ms=4.5,
        )
    axes.set_yscale("log", base=2)
    lowest = min(0.5, table["ratio"].min())
    highest = max(2.0, table["ratio"].max())
    axes.set_ylim(0.9 * lowest, 1.1 * highest)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set(xlabel="Chunks, in the order of their ratio", ylabel="Ratio of Min-K%")
    axes.legend(loc="upper left", fontsize="small")


def _draw_mean(
    axes: Axes,
    place: float,
    values: pd.Series,
    colour: str,
    *,
    hollow: bool,
) -> None:
    """Draw the mean of values, if there are any, with 1.96 standard errors.

    A recall lies between 0 and 1, so the interval ends there.
    """
    if values.empty:
        return
    mean = values.mean()
    ends = None
    if len(values) > 1:
        error = 1.96 * values.sem()
        ends = [[min(error, mean)], [min(error, 1 - mean)]]
    marker = "^" if hollow else "o"
    face = "white" if hollow else colour
    axes.errorbar(place, mean, ends, fmt=marker, color=colour, mfc=face, ms=6)
