"""Figures of detection: AUCs across domains, and densities of a score on both sides."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from reproduction.notebooks.assumptions.labels import ENTROPY, FIRST, LABELS, MEM, MIN_K
from reproduction.output.figures import READ, UNREAD, say_nothing

SIDES = {True: "members", False: "non-members"}
COLOURS = {"members": READ, "non-members": UNREAD}

# Scores that are the logarithm of what their label names.
AXES = {"loss": "Log-probability (nats per token)"}
AXES |= {f"entropy_{k}": f"−{LABELS[f'entropy_{k}']} (nats, mean over positions)" for k in ENTROPY}
AXES |= {f"mem_{k}": f"{LABELS[f'mem_{k}']} (share of tokens)" for k in MEM}
AXES |= {f"min_prob_{k}": f"{LABELS[f'min_prob_{k}']} (mean probability)" for k in MIN_K}
AXES |= {f"ppl_{k}": f"Log-probability, first {k} tokens (nats per token)" for k in FIRST}
# Scores that are mean probabilities: most lie near 0, and only their magnitudes can be told apart.
PROBABILITIES = ("min_prob_",)
# Titles in the place of the names of columns.
TITLES = LABELS | {f"ppl_{k}": f"Perplexity, first {k} tokens" for k in FIRST}


def plot_cross(cross: pd.DataFrame, metrics: Sequence[str], phase: str) -> Figure:
    """Draw `cross_table` as a heat map for each metric (Fu, Figures 1, 18-20).

    A cell where both sides are of one domain has a frame.
    """
    chosen = cross[cross["phase"] == phase]
    if chosen.empty:
        return say_nothing("No cell was measured")
    rows = list(chosen["seen_domain"].unique())
    columns = list(chosen["unseen_domain"].unique())
    down = len(metrics) // 2
    size = (1.8 + 0.6 * len(columns), 1.4 + (0.4 + 0.28 * len(rows)) * down)
    figure, grid = plt.subplots(
        down,
        2,
        figsize=size,
        sharex=True,
        sharey=True,
        squeeze=False,
    )
    panels = grid.ravel()
    for axes, metric in zip(panels, metrics, strict=True):
        cells = chosen[chosen["metric"] == metric].set_index(
            ["seen_domain", "unseen_domain"],
        )
        values = cells["auc_percent"].unstack().reindex(index=rows, columns=columns)
        sns.heatmap(
            values.astype(float),
            ax=axes,
            cmap="RdBu_r",
            vmin=0,
            vmax=100,
            cbar=False,
            annot=True,
            fmt=".0f",
            annot_kws={"fontsize": "small"},
        )
        _frame_own_domains(axes, rows, columns)
        axes.set(xlabel="", ylabel="")
        # Two lines, where the panels are narrower than a long title.
        axes.set_title(TITLES[metric].replace(", ", ",\n"))
        axes.tick_params(axis="x", rotation=60)
        axes.tick_params(axis="y", rotation=0)
        axes.grid(visible=False)
    figure.colorbar(panels[0].collections[0], ax=panels, label="AUC (%)")
    figure.supxlabel("Domain of the non-members", fontsize="medium")
    figure.supylabel("Domain of the members", fontsize="medium")
    return figure


def _frame_own_domains(axes: Axes, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Draw a frame around each cell whose row and column are the same domain."""
    for line, name in enumerate(rows):
        if name in columns:
            corner = (columns.index(name), line)
            axes.add_patch(
                Rectangle(corner, 1, 1, fill=False, ec="black", lw=1.4, clip_on=False),
            )


def plot_density(scored: pd.DataFrame, cross: pd.DataFrame, metric: str) -> Figure:
    """Draw densities of a score, within and across domains (Fu, Figures 2-17).

    A row for each phase of `cross`. Within: all domains that have both sides. Across:
    the pair of domains whose AUC is furthest from 50.
    """
    panels = []
    cells = cross[cross["metric"] == metric]
    for phase, pairs in cells.groupby("phase", sort=False):
        texts = scored[scored["phase"] == phase].dropna(subset=metric)
        panels.append(_within_domains(texts, str(phase)))
        panels += _across_domains(texts, pairs, str(phase))
    if not panels:
        return say_nothing("No cell was measured")
    drawn = pd.concat(panels, ignore_index=True).replace({"member": SIDES})
    # A logarithm needs values above 0.
    logarithmic = metric.startswith(PROBABILITIES) and bool((drawn[metric] > 0).all())
    # seaborn brings a layout of its own.
    with plt.rc_context({"figure.constrained_layout.use": False}):
        grid = sns.displot(
            drawn,
            x=metric,
            hue="member",
            kind="kde",
            log_scale=logarithmic,
            fill=True,
            alpha=0.25,
            lw=1.3,
            common_norm=False,
            palette=COLOURS,
            legend=False,
            height=2.2,
            aspect=1.5,
            col="panel",
            col_wrap=2,
        )
    grid.set_titles("{col_name}", size="small")
    grid.set(xlabel="", ylabel="Density", yticks=[])
    handles = [Line2D([], [], color=colour, label=label) for label, colour in COLOURS.items()]
    figure: Figure = grid.figure
    figure.set_layout_engine("constrained")
    # Once below all panels: the longest label is wider than a panel.
    figure.supxlabel(AXES.get(metric, TITLES[metric]), fontsize="medium")
    figure.legend(handles=handles, loc="outside upper center", ncols=2, fontsize="small")
    return figure


def _within_domains(texts: pd.DataFrame, phase: str) -> pd.DataFrame:
    """Return the texts of domains that have both sides, with their panel."""
    sides = texts.groupby("domain")["member"].transform("nunique")
    return texts[sides == 2].assign(panel=f"{phase}, within domains")


def _across_domains(
    texts: pd.DataFrame,
    pairs: pd.DataFrame,
    phase: str,
) -> list[pd.DataFrame]:
    """Return members of one domain and non-members of another, whose AUC is furthest from 50.

    The list is empty if no pair of domains was measured.
    """
    pairs = pairs.assign(distance=(pairs["auc_percent"] - 50).abs())
    apart = pairs[pairs["seen_domain"] != pairs["unseen_domain"]]
    panels = []
    for pair in apart.nlargest(1, "distance").itertuples():
        domains = texts["member"].map(
            {True: pair.seen_domain, False: pair.unseen_domain},
        )
        name = f"{phase}, {pair.seen_domain} against {pair.unseen_domain}"
        panels.append(texts[texts["domain"] == domains].assign(panel=name))
    return panels
