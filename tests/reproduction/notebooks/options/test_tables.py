"""Tables and figure from made-up stores: every number in its place, controls beside it."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from contamination.audit.battery import OPTION_TEST, TESTS
from contamination.scoring.store import Store
from contamination.scoring.store_format import Header
from contamination.statistics import sharded_exact_test
from reproduction.notebooks.options.tables import (
    AXES,
    BOTH,
    CLEAN,
    ORDER,
    PLANTED,
    Cell,
    axis_outcomes,
    options_table,
)
from reproduction.run.injection import PLANTINGS

ITEMS, WAYS, TOKENS = 12, 4, 3
CELLS = [Cell(planting, count) for planting in PLANTINGS for count in (1, 16)]


def _stores(path, shift: float) -> dict[str, Store]:
    """Stores of a set whose published arrangements gain `shift` nats a token; its order nothing."""
    rng, stores = np.random.default_rng(7), {}
    named = ("m", "r", "d", "s", "t", 3)
    for name, header in {
        OPTION_TEST: Header(*named, ITEMS, (TOKENS,) * ITEMS * WAYS, "alternatives"),
        ORDER: Header(*named, 2, (TOKENS,) * ITEMS, "successors", 32),
    }.items():
        stores[name], rows = Store(path / name, header), []
        for unit in header.units(0):
            examples = header.examples(unit)
            values = rng.normal(size=len(examples) * TOKENS).astype(np.float32)
            values[:TOKENS] += shift * (name == OPTION_TEST)
            rows.append((unit, examples, values))
        stores[name].append(rows)
    return stores


def test_outcomes_are_those_of_the_tests_and_fisher_combines_them(tmp_path) -> None:
    stores = _stores(tmp_path, 2.0)
    found = axis_outcomes(stores).set_index("test")
    assert list(found.index) == [*stores, BOTH]
    exact = sharded_exact_test(stores[OPTION_TEST].alternatives(), weights="equal")
    assert found.loc[OPTION_TEST, "log10_p"] == exact.log10_p < -3
    assert found.loc[ORDER, "p"] == TESTS[ORDER].result(stores[ORDER], 0).p > 0.01
    product_of_p = found.loc[ORDER, "p"] * found.loc[OPTION_TEST, "p"]
    # Two p-values: P(product <= q) = q (1 - log q).
    assert found.loc[BOTH, "p"] == pytest.approx(product_of_p * (1 - np.log(product_of_p)))
    assert found.loc[OPTION_TEST, "tokens_scored"] == ITEMS * WAYS * TOKENS
    assert found.loc[ORDER, "tokens_scored"] == ITEMS * 6 * TOKENS
    assert found.loc[BOTH, "tokens_scored"] == ITEMS * (WAYS + 6) * TOKENS


def _table() -> pd.DataFrame:
    """Evidence grows with the copies: on the axis of options, and where whole on that of order."""
    outcomes = {}
    for (number, cell), model in product(enumerate(CELLS), (PLANTED, CLEAN)):
        planted = model == PLANTED
        by_axis = {
            ORDER: -0.5 * cell.dup_count if planted and cell.planting == "whole" else -0.1,
            OPTION_TEST: -1.0 * cell.dup_count if planted else -0.01 * (number + 1),
            BOTH: -2.0 * cell.dup_count if planted else -0.2,
        }
        rows = [(axis, 10**log10_p, log10_p, 100) for axis, log10_p in by_axis.items()]
        outcomes[model, cell.name] = pd.DataFrame(
            rows, columns=["test", "p", "log10_p", "tokens_scored"]
        )
    return options_table(CELLS, 50, outcomes)


def test_the_table_has_controls_of_the_same_set_and_is_laid_out() -> None:
    table = _table()
    assert len(table) == len(CELLS) * len(AXES)
    options = table[table["test"] == OPTION_TEST].set_index("dataset")
    assert options["control_log10_p"].tolist() == pytest.approx([-0.01 * (i + 1) for i in range(6)])
    facts = options.loc["single-16", ["planting", "dup_count", "examples", "log10_p"]]
    assert facts.tolist() == ["single", 16, 50, -16]
    assert options.loc["single-16", "control_p"] == pytest.approx(10**-0.06)
