"""Null calibration: redrawn canonical orders, for which H0 holds by construction.

A control that costs no scoring (`contamination.audit.null_calibration`). Draws are
independent given the scores, also over sets, so the interval of the binomial law holds
for their sum (a sum of unequal chances varies less).
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint

from contamination.audit.null_calibration import null_calibration_p_values
from contamination.audit.registry import Test
from contamination.scoring.store import Store
from contamination.tables import format_estimate

COUNTS = ("redrawn_orders", "redrawn_rejections", "redrawn_as_small")


def null_calibration_counts(
    test: Test,
    store: Store,
    scores: np.ndarray,
    published: float,
    *,
    orders: int,
    alpha: float,
) -> dict[str, float]:
    """Draw canonical orders of a set anew, and count those that the test rejects.

    Parameters
    ----------
    test
        The test whose level is calibrated.
    store
        The scored store of the set.
    scores
        Scores of the test, (shards, orderings), as `null_calibration_p_values` takes
        them.
    published
        p-value of the published order.
    orders
        Number of canonical orders to draw.
    alpha
        Level of the test.

    Returns
    -------
    counts
        `redrawn_rejections` have p at most `alpha`, `redrawn_as_small` p at most
        `published`; `redrawn_orders` and `redrawn_alpha` repeat the arguments.
    """
    p_values = null_calibration_p_values(test, store, scores, draws=orders)
    return {
        "redrawn_orders": orders,
        "redrawn_alpha": alpha,
        "redrawn_rejections": int((p_values <= alpha).sum()),
        "redrawn_as_small": int((p_values <= published).sum()),
    }


def pooled_null_calibration(table: pd.DataFrame) -> pd.DataFrame:
    """Count the redrawn orders of all sets that a test rejects, by model and test."""
    keys = ["model", "test", "redrawn_alpha"]
    grouped = table.dropna(subset="redrawn_orders").groupby(keys, sort=False)
    pooled = grouped[["redrawn_orders", "redrawn_rejections"]].sum().assign(sets=grouped.size())
    return with_rates(pooled.reset_index())


def with_rates(table: pd.DataFrame) -> pd.DataFrame:
    """Add the share of redrawn orders that are rejected, and its 95% interval."""
    rejections = table["redrawn_rejections"].astype(float)
    orders = table["redrawn_orders"].astype(float)
    low, high = proportion_confint(rejections, orders, method="beta")
    return table.assign(
        redrawn_rate=rejections / orders,
        redrawn_low=low,
        redrawn_high=high,
    )


def format_null_rejections(row: Mapping[str, float]) -> str:
    """Return the percent of redrawn orders rejected: "4.9 (4.6 to 5.3)"."""
    rate = 100 * row["redrawn_rate"]
    low = 100 * row["redrawn_low"]
    high = 100 * row["redrawn_high"]
    return format_estimate(rate, low, high, digits=1)
