"""Published cells beside those of a run: the difference, or why there is none."""

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

import pandas as pd

from contamination.scoring.status import OK
from reproduction.notebooks.papers.cells import Cell, plain
from reproduction.notebooks.papers.measured import NOTEBOOKS, Key, Measured

COLUMNS = (
    *("paper", "table", "model", "row", "column", "ours", "published", "difference"),
    *("unit", "status", "note"),
)


def compare(
    cells: Sequence[Cell],
    measured: Mapping[str, Mapping[Key, Measured]],
    *,
    profile: str,
    notebooks: Collection[str],
) -> pd.DataFrame:
    """Put every published cell beside what was measured: one row each, in their order, `COLUMNS`.

    `ours`, `published` and `difference` (ours minus published) are in `unit`. There is no
    difference where one of the two p-values is a floor: it could not have been smaller. `status` is
    "ok", that of the row that failed, or "not asked: ..." where the profile leaves the cell out.
    `note` says what stands at its floor, and where ours took more or fewer examples, shards or
    permutations than the paper.

    Parameters
    ----------
    cells : of `reproduction.notebooks.papers.cells.published_cells`.
    measured : of `reproduction.notebooks.papers.measured.measured_cells`.
    profile : its name. notebooks : those that it runs.
    """
    rows = []
    for cell in cells:
        ours = _look_up(cell, measured, profile, notebooks)
        floors = [name for name, at in (("ours", ours), ("published", cell)) if at.at_floor]
        known = ours.status == OK and not floors
        row = {
            **{name: getattr(cell, name) for name in COLUMNS if hasattr(cell, name)},
            "ours": ours.value,
            "difference": ours.value - cell.published if known else math.nan,
            "status": ours.status,
            "note": _note(cell, ours, floors) if ours.status == OK else "",
        }
        rows.append(row)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _look_up(
    cell: Cell,
    measured: Mapping[str, Mapping[Key, Measured]],
    profile: str,
    notebooks: Collection[str],
) -> Measured:
    """Return the cell of the run, the failure that it is part of, or that it was not asked for."""
    notebook = NOTEBOOKS[cell.source]
    if notebook not in notebooks:
        return _not_asked(f"profile {profile} does not run notebook {notebook}")
    found, key = measured[cell.source], tuple(map(plain, cell.wanted))
    places = range(len(key))
    for left_out in (set(some) for count in (0, *places) for some in combinations(places, count)):
        wider = found.get(tuple("" if i in left_out else part for i, part in enumerate(key)))
        if wider is not None and not (left_out and wider.status == OK):
            return wider
    alike, shown = list(found), (cell.model, *cell.wanted[1:])
    for place in places:
        alike = [other for other in alike if other[place] == key[place]]
        if not alike:
            return _not_asked(f"profile {profile} leaves out {shown[place]}")
    return _not_asked(f"profile {profile} leaves out {', '.join(shown)}")


def _not_asked(reason: str) -> Measured:
    return Measured(math.nan, f"not asked: {reason}")


def _note(cell: Cell, ours: Measured, floors: Sequence[str]) -> str:
    parts = [f"{' and '.join(floors)} at the floor"] if floors else []
    for name, theirs in cell.settings.items():
        if ours.settings.get(name, theirs) != theirs:
            parts.append(f"{ours.settings[name]:,} {name.replace('_', '-')}, published {theirs:,}")
    return "; ".join([*parts, *([ours.note] if ours.note else [])])
