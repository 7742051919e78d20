"""Draw docs/detection_size.svg: how many copies are found, by size of the model.

    python benchmarks/detection_size.py

Reads what was measured (`frontier.csv`, `power.csv` and `planted.csv` of docs/measurements) and
published (`data/published`), and trains nothing. Writes docs/measurements/detection_size.csv.
"""

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from contamination.audit.registry import TESTS
from contamination.files import replacing
from reproduction.output.figures import panel_row, use_style

ROOT = Path(__file__).parents[1]
MEASUREMENTS = ROOT / "docs" / "measurements"
PUBLISHED = ROOT / "data" / "published"

LEVEL = 0.05  # of each set alone, not corrected
HALF = 0.5  # share of sets from which on a number of copies counts as found
COLUMNS = ("model", "test", "copies", "sets", "rejected", "source")
HALF_MILLION = "0.5M, from scratch"
FOUR_MILLION = "4.3M, from scratch"
PRETRAINED = "135M, pretrained"
PAPER = "1.4B, as published"
MODELS = (HALF_MILLION, FOUR_MILLION, PRETRAINED, PAPER)
MILLIONS = (0.5, 4.3, 135.0, 1400.0)  # of parameters
SHOWN = ("sharded_t", "successor")
WIDTHS = {64: HALF_MILLION, 256: FOUR_MILLION}  # of `frontier.csv`
FRONTIER_RUN = "2026-11-23, Zen 5, bfloat16"  # its sets are those of the other run
COUNTS = (1, 2, 4, 8, 16, 32, 64, 100)


def table() -> pd.DataFrame:
    """Return how many sets of each source a test finds, by model and number of copies."""
    parts = [from_frontier(), from_study(), from_planted(), from_paper()]
    rows = pd.concat(parts, ignore_index=True)
    sizes = dict(zip(MODELS, MILLIONS, strict=True))
    return rows.assign(million_parameters=rows["model"].map(sizes))


def from_frontier() -> pd.DataFrame:
    """Return what the default finds in the sets of the study `frontier`, both seeds together."""
    table = pd.read_csv(MEASUREMENTS / "frontier.csv")
    is_default = table["candidate"] == "plain, b = 32, k = 10"
    table = table[is_default & (table["run"] == FRONTIER_RUN) & table["width"].isin(WIDTHS)]
    table = table.assign(
        model=table["width"].map(WIDTHS),
        rejected=table["sets"] * table["rejected_05"],
        test="successor",
        copies=table["dup_count"],
        source="frontier.csv",
    )
    return _summed(table)


def from_study() -> pd.DataFrame:
    """Return what both tests find in the sets of `study-2`."""
    table = pd.read_csv(MEASUREMENTS / "power.csv")
    table = table[(table["sets"] == "study-2, confirming") & (table["fraction"] == 1.0)]
    is_t = (table["test"] == "sharded_t") & (table["permutations"] == 50)
    is_default = (table["test"] == "successor_32") & (table["shards"] == 10)
    table = table[is_t | is_default]
    table = table.assign(
        model=FOUR_MILLION,
        test=table["test"].replace("successor_32", "successor"),
        copies=table["dup_count"],
        rejected=table["datasets"] * table["power_0.05"],
        sets=table["datasets"],
        source="power.csv",
    )
    return _summed(table)


def from_planted() -> pd.DataFrame:
    """Return what both tests find in the sets that a pretrained model read whole."""
    table = pd.read_csv(MEASUREMENTS / "planted.csv")
    table = table[(table["model"] == "contaminated") & (table["planting"] == "whole")]
    is_default = table["test"] == "successor"
    is_t = (table["test"] == "sharded_t") & (table["shards"] == 10)
    table = table[is_default | is_t]
    table = table.assign(
        model=PRETRAINED,
        copies=table["dup_count"],
        sets=1,
        rejected=(table["p"] <= LEVEL).astype(int),
        source="planted.csv",
    )
    return _summed(table)


def from_paper() -> pd.DataFrame:
    """Return what the paper's t-test finds in its Table 1."""
    table = pd.read_csv(PUBLISHED / "oren2024_table1_canaries.csv")
    table = table.assign(
        model=PAPER,
        test="sharded_t",
        copies=table["dup_count"],
        sets=1,
        rejected=(table["sharded_p"] <= LEVEL).astype(int),
        source="oren2024_table1_canaries.csv",
    )
    return _summed(table)


def _summed(table: pd.DataFrame) -> pd.DataFrame:
    """Add up the sets of a model, test and number of copies."""
    keys = ["model", "test", "copies", "source"]
    sums = table.groupby(keys, sort=False)[["sets", "rejected"]].sum().reset_index()
    sums = sums.astype({"sets": int})
    return sums.assign(rejected=sums["rejected"].round().astype(int))[list(COLUMNS)]


def draw(rows: pd.DataFrame, threshold: float) -> Figure:
    """Draw a panel for each test: copies by model, filled where half of the sets are found."""
    figure, panels = panel_row([TESTS[test].label for test in SHOWN], (9.0, 4.2))
    for axes, test in zip(panels, SHOWN, strict=True):
        _draw_test(axes, rows[rows["test"] == test], test)
    place = MODELS.index(PAPER)
    panels[0].plot([place - 0.3, place + 0.3], [threshold] * 2, color="0.4", linestyle=":")
    panels[0].annotate("threshold in\ntheir text", (place, threshold), (place, 2.2), ha="center")
    panels[0].set_ylabel("Copies read")
    return figure


def _draw_test(axes: Axes, rows: pd.DataFrame, test: str) -> None:
    """Draw the points of one test, each with the sets found and tested."""
    colour = TESTS[test].colour
    for row in rows.itertuples():
        place = MODELS.index(row.model)
        shift = -0.18 if row.source == "frontier.csv" and row.model == FOUR_MILLION else 0.0
        is_found = row.rejected >= HALF * row.sets
        face = colour if is_found else "white"
        axes.plot(place + shift, row.copies, "o", color=colour, markerfacecolor=face)
        label = f"{row.rejected}/{row.sets}"
        offset = (-6, 0) if shift else (6, 0)
        side = "right" if shift else "left"
        axes.annotate(
            label,
            (place + shift, row.copies),
            offset,
            textcoords="offset points",
            ha=side,
            va="center",
            fontsize=7,
        )
    axes.set_yscale("log", base=2)
    axes.set_yticks(COUNTS, [str(count) for count in COUNTS])
    axes.minorticks_off()
    axes.set_ylim(0.7, 140)
    axes.set_xticks(range(len(MODELS)), [model.replace(", ", "\n") for model in MODELS])
    axes.set_xlim(-0.6, len(MODELS) - 0.4)


def main() -> None:
    """Write the table and the figure."""
    rows = table()
    with replacing(MEASUREMENTS / "detection_size.csv") as path:
        rows.to_csv(path, index=False, lineterminator="\n")
    text = pd.read_csv(PUBLISHED / "oren2024_text.csv").set_index("key")["value"]
    use_style()
    figure = draw(rows, float(text["detection_threshold_copies"]))
    with replacing(ROOT / "docs" / "detection_size.svg") as path:
        figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
