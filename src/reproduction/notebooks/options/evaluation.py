"""Both axes on every planted set: the order of its records, the order of its items' options.

The last row of each set combines them by `contamination.audit.option_axis.joint`.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from contamination.audit.battery import OPTION_TEST, TESTS
from contamination.scoring.store import Store
from contamination.statistics import TestResult
from reproduction.notebooks.options.planting import Cell

ORDER, BOTH = "successor", "both"
AXES = (ORDER, OPTION_TEST, BOTH)
PLANTED, CLEAN = "planted", "clean"
COLUMNS = (
    *("dataset", "planting", "dup_count", "examples", "test", "p", "log10_p"),
    *("control_p", "control_log10_p", "tokens_scored"),
)


def axis_outcomes(stores: Mapping[str, Store]) -> pd.DataFrame:
    """Test one set under one model by its stores, of `ORDER` and of `OPTION_TEST`: a row for each.

    Columns test (`AXES`), p, log10_p and tokens_scored, what the model reads for it.
    """
    from contamination.audit.option_axis import joint  # figures are drawn without torch

    results: dict[str, TestResult] = {}
    tokens = {}
    for name, store in stores.items():
        results[name] = TESTS[name].result(store, 0)
        tokens[name] = store.header.tokens_of(0)
    both = joint(*results.values())
    rows = [(name, results[name].p, results[name].log10_p, tokens[name]) for name in results]
    rows.append((BOTH, both.p, both.log10_p, sum(tokens.values())))
    return pd.DataFrame(rows, columns=["test", "p", "log10_p", "tokens_scored"])


def options_table(
    cells: Sequence[Cell], examples: int, outcomes: Mapping[tuple[str, str], pd.DataFrame]
) -> pd.DataFrame:
    """Put the outcomes of the planted model beside those of the clean one, its control.

    `outcomes` has a table of `axis_outcomes` for each model (`PLANTED`, `CLEAN`) and name of a set.
    Returns a row for each set and axis, with `COLUMNS`.
    """
    tables = []
    for cell in cells:
        planted, clean = (
            outcomes[model, cell.name].set_index("test") for model in (PLANTED, CLEAN)
        )
        table = planted.join(clean[["p", "log10_p"]].add_prefix("control_")).reset_index()
        facts = {
            "dataset": cell.name,
            "planting": cell.planting,
            "dup_count": cell.dup_count,
            "examples": examples,
        }
        tables.append(table.assign(**facts))
    return pd.concat(tables, ignore_index=True)[list(COLUMNS)]
