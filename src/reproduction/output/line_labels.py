"""Labels of lines at their right ends, in place of a key."""

from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.transforms import Transform

GAP = 0.055  # of the height of a panel, between two labels
INK = "0.15"  # of words: several colours of lines are too pale to read on white
MARK = 1.03  # of the width of a panel, where the mark of a label stands
WORDS = 1.06  # and where its words begin


def label_ends(axes: Axes, lines: Iterable[Line2D]) -> None:
    """Write the label of each line beside its right end, so that no two labels overlap.

    A mark in the colour of the line stands before it. The limits and the scale of the
    axes must be final.
    """
    to_panel = axes.transData + axes.transAxes.inverted()
    ends = {line: _end_of(line, to_panel) for line in lines}
    place = -np.inf
    for line in sorted(ends, key=ends.__getitem__):
        place = max(ends[line], place + GAP)
        shape = line.get_marker()
        if shape == "None":
            shape = "s"
        mark = axes.scatter(MARK, place, s=20, marker=shape, transform=axes.transAxes)
        mark.set(color=line.get_color(), clip_on=False)
        axes.text(
            WORDS,
            place,
            str(line.get_label()),
            transform=axes.transAxes,
            va="center",
            color=INK,
            fontsize="small",
        )


def _end_of(line: Line2D, to_panel: Transform) -> float:
    """Return the height of a line's last point, as a share of its panel."""
    last = np.asarray(line.get_xydata())[-1]
    return float(to_panel.transform(last)[1])
