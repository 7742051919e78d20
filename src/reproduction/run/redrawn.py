"""Canonical orders drawn anew: how often a test rejects where H0 holds by construction.

A control that costs no scoring (`contamination.audit.redrawn`). Draws are independent given the
scores, also over sets, so the interval of the binomial law holds for their sum (a sum of unequal
chances varies less).
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint

from contamination.audit.battery import Test
from contamination.audit.redrawn import redrawn_p_values
from contamination.scoring.store import Store
from contamination.tables import format_estimate

COUNTS = ("redrawn_orders", "redrawn_rejections", "redrawn_as_small")


def redrawn_counts(
    test: Test, store: Store, scores: np.ndarray, published: float, *, orders: int, alpha: float
) -> dict[str, float]:
    """Draw so many canonical `orders` of a set anew, and count those that the test rejects.

    `redrawn_rejections` have p at most `alpha`, `redrawn_as_small` one at most the `published`, the
    p-value of the published order; `redrawn_orders` and `redrawn_alpha` say of how many, and at
    which level. `scores` and errors as in `contamination.audit.redrawn.redrawn_p_values`.
    """
    p = redrawn_p_values(test, store, scores, draws=orders)
    return {
        "redrawn_orders": orders,
        "redrawn_alpha": alpha,
        "redrawn_rejections": int((p <= alpha).sum()),
        "redrawn_as_small": int((p <= published).sum()),
    }


def pooled_redrawn(table: pd.DataFrame) -> pd.DataFrame:
    """Count the redrawn orders of all sets that a test rejects: a row for each model and test."""
    keys = ["model", "test", "redrawn_alpha"]
    grouped = table.dropna(subset="redrawn_orders").groupby(keys, sort=False)
    pooled = grouped[["redrawn_orders", "redrawn_rejections"]].sum().assign(sets=grouped.size())
    return with_rates(pooled.reset_index())


def with_rates(table: pd.DataFrame) -> pd.DataFrame:
    """Add the share of redrawn orders that are rejected, and its Clopper-Pearson interval (95%)."""
    hits, orders = (table[f"redrawn_{name}"].astype(float) for name in ("rejections", "orders"))
    low, high = proportion_confint(hits, orders, method="beta")
    return table.assign(redrawn_rate=hits / orders, redrawn_low=low, redrawn_high=high)


def format_redrawn(row: Mapping[str, float]) -> str:
    """Percent of the redrawn orders that are rejected, with its interval: "4.9 (4.6 to 5.3)"."""
    numbers = (100 * row[f"redrawn_{name}"] for name in ("rate", "low", "high"))
    return format_estimate(*numbers, digits=1)
