"""The figure of Oren's Table 5: what heuristics detect, above what the provable tests reject."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from contamination.audit.registry import TESTS
from reproduction.output.figures import score_style


def plot_min_k(
    table: pd.DataFrame,
    canaries: pd.DataFrame,
    labels: Mapping[str, str],
    *,
    tests: tuple[str, ...],
    fpr: float,
    alpha: float,
) -> Figure:
    """Draw the share of spans detected against the duplication count, and the tests' verdicts.

    Above, a point for every set and score, a line through the means, a dashed line at `fpr`, which
    is what a threshold without power detects. Below, how many of the sets each test rejects at
    `alpha` after Holm's correction. The clean model stands at 0. `canaries` is notebook 01's.
    """
    shares, verdicts = (
        rows.assign(dup_count=rows["dup_count"] * (rows["model"] != "clean"))
        for rows in (table, canaries)
    )
    counts = sorted(shares["dup_count"].unique())
    place = {count: index for index, count in enumerate(counts)}
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(6.4, 4.6), sharex=True, height_ratios=[4.5, 0.5 * len(tests)]
    )
    for index, (score, label) in enumerate(labels.items()):
        rows = shares[shares["score"] == score]
        x = rows["dup_count"].map(place) + 0.13 * (index - (len(labels) - 1) / 2)
        style = score_style(score)
        above.plot(x, 100 * rows["share_detected"], ls="", ms=4.5, alpha=0.6, **style)
        mean = (100 * rows.groupby("dup_count")["share_detected"].mean()).reindex(counts)
        above.plot(range(len(counts)), mean, ls="", label=label, **style)
        above.plot(range(len(counts))[1:], mean.iloc[1:], color=style["color"], lw=1.2)
    name = f"{100 * fpr:g}%, as tuned"
    above.axhline(100 * fpr, color="0.35", lw=0.9, ls="--", label=name)
    above.set(ylabel="Spans detected (%)", ylim=(-4, 104))
    figure.legend(loc="outside upper center", ncols=len(labels) + 1, fontsize="small")
    for line, test in enumerate(tests):
        own = verdicts[verdicts["test"] == test]
        rejected = (own["holm_p"] <= alpha).groupby(own["dup_count"]).agg(["sum", "size"])
        colour = TESTS[test].colour
        for count, (hits, sets) in rejected.iterrows():
            at = (place[count], line)
            below.scatter(*at, s=330, color=colour, alpha=0.75 * hits / sets, lw=0)
            below.annotate(f"{hits}/{sets}", at, ha="center", va="center", fontsize="small")
    below.set_yticks(range(len(tests)), [TESTS[test].label for test in tests])
    below.set_xticks(range(len(counts)), [str(c) if c else "0 (clean)" for c in counts])
    below.set(xlim=(-0.5, len(counts) - 0.5), ylim=(len(tests) - 0.4, -0.6))
    below.set(xlabel="Duplication count", ylabel="Sets rejected")
    below.grid(visible=False)
    return figure
