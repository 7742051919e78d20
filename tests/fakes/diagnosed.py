"""The table of a diagnosis, read for its tests."""

import pandas as pd

from contamination.audit.controls.diagnosis import Diagnosis


def rejected(found: Diagnosis, alpha: float = 0.01) -> set[str]:
    """Return the diagnostics that reject after Holm's correction."""
    return set(found.table["diagnostic"][found.table["holm_p"] <= alpha])


def row(found: Diagnosis, diagnostic: str) -> pd.Series:
    """Return the line of one diagnostic."""
    return found.table.set_index("diagnostic").loc[diagnostic]
