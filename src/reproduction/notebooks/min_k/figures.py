"""The figure of Oren's Table 5: what heuristics detect, and what tests reject."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from contamination.audit.registry import TESTS
from reproduction.output.figures import score_style

HELD_OUT = ("Held-out twins", "#DDCC77")  # label and colour


def plot_min_k(
    table: pd.DataFrame,
    canaries: pd.DataFrame,
    labels: Mapping[str, str],
    *,
    held_out: pd.DataFrame,
    tests: tuple[str, ...],
    fpr: float,
    alpha: float,
) -> Figure:
    """Draw the share of detected spans by duplication count, and the tests' verdicts.

    Above, a point for every set and score, a line through the means, a dashed line at
    `fpr`, which is what a threshold without power detects. Below, how many of the sets
    each test rejects at `alpha` after Holm's correction, and in the last line the test
    of held-out twins. The clean model stands at 0. `canaries` is notebook 01's.

    Parameters
    ----------
    table
        Rates of detection by set and score.
    canaries
        The table of notebook 01.
    labels
        Score -> its name in the legend.
    held_out
        The table of sets and their held-out twins; only sets of `canaries` are drawn.
    tests
        Names of the tests whose verdicts are drawn below.
    fpr
        False positive rate of the thresholds.
    alpha
        Level of the tests.
    """
    shares = _clean_at_0(table)
    verdicts = _clean_at_0(canaries)
    twins = _clean_at_0(held_out[held_out["dataset"].isin(canaries["dataset"])])
    lines = []
    for test in tests:
        own = verdicts[verdicts["test"] == test]
        lines.append((TESTS[test].label, TESTS[test].colour, own))
    if len(twins):
        lines.append((*HELD_OUT, twins))
    counts = sorted(shares["dup_count"].unique())
    place = {count: index for index, count in enumerate(counts)}
    names = [str(count) if count else "0 (clean)" for count in counts]
    figure, (above, below) = plt.subplots(
        2,
        1,
        figsize=(6.4, 4.6),
        sharex=True,
        height_ratios=[4.5, 0.5 * len(lines)],
    )
    _draw_shares(above, shares, place, labels)
    tuned = f"{100 * fpr:g}%, as tuned"
    above.axhline(100 * fpr, color="0.35", lw=0.9, ls="--", label=tuned)
    above.set(ylabel="Spans detected (%)", ylim=(-4, 104))
    figure.legend(loc="outside upper center", ncols=len(labels) + 1, fontsize="small")
    for line, (_, colour, own) in enumerate(lines):
        rejected = (own["holm_p"] <= alpha).groupby(own["dup_count"]).agg(["sum", "size"])
        _draw_rejections(below, line, rejected, place, colour=colour)
    below.set_yticks(range(len(lines)), [label for label, _, _ in lines])
    below.set_xticks(range(len(counts)), names)
    below.set(xlim=(-0.5, len(counts) - 0.5), ylim=(len(lines) - 0.4, -0.6))
    below.set(xlabel="Copies read", ylabel="Sets rejected")
    below.grid(visible=False)
    return figure


def _clean_at_0(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with duplication count 0 for the clean model."""
    return rows.assign(dup_count=rows["dup_count"].where(rows["model"] != "clean", 0))


def _draw_shares(
    axes: Axes,
    shares: pd.DataFrame,
    place: Mapping[int, int],
    labels: Mapping[str, str],
) -> None:
    """Draw a point for every set and score, and a line through the means."""
    places = list(place.values())
    for index, (score, label) in enumerate(labels.items()):
        rows = shares[shares["score"] == score]
        percent = 100 * rows["share_detected"]
        aside = 0.13 * (index - (len(labels) - 1) / 2)
        style = score_style(score)
        axes.plot(
            rows["dup_count"].map(place) + aside,
            percent,
            ls="",
            ms=4.5,
            alpha=0.6,
            **style,
        )
        means = percent.groupby(rows["dup_count"]).mean().reindex(list(place))
        axes.plot(places, means, ls="", label=label, **style)
        axes.plot(places[1:], means.iloc[1:], color=style["color"], lw=1.2)


def _draw_rejections(
    axes: Axes,
    line: int,
    rejected: pd.DataFrame,
    place: Mapping[int, int],
    *,
    colour: str,
) -> None:
    """Draw on a test's line how many sets of each duplication count it rejects: "2/3"."""
    for count, (hits, sets) in rejected.iterrows():
        at = (place[count], line)
        axes.scatter(*at, s=330, color=colour, alpha=0.75 * hits / sets, lw=0)
        axes.annotate(f"{hits}/{sets}", at, ha="center", va="center", fontsize="small")
