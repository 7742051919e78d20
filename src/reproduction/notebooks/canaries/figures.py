"""The figure of the canary sets: evidence against duplication count (Oren, Figure 2)."""

import pandas as pd
from matplotlib.figure import Figure

from contamination.audit.battery import TESTS
from reproduction.output.evidence import plot_power

FEW = 7  # the largest duplication count of Oren's Figure 2


def plot_duplication_power(rows: pd.DataFrame) -> Figure:
    """Draw the mean log10 p of the sets of each duplication count, by test, over single sets.

    `rows` have columns dup_count, test and log10_p. On the left the counts up to 7, as in Oren's
    Figure 2, on the right all of them.
    """
    few = rows[rows["dup_count"] <= FEW]
    panels = {f"Up to {FEW} copies": few, "All duplication counts": rows}
    return plot_power(panels, TESTS.values())
