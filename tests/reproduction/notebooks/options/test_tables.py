"""The table from made-up stores: every number in its place, controls beside it."""

import numpy as np
import pytest

from contamination.audit.battery import OPTION_TEST, TESTS
from contamination.scoring.store import Store
from contamination.scoring.store_format import Header
from contamination.statistics import sharded_exact_test
from reproduction.notebooks.options.tables import (
    BOTH,
    ORDER,
    axis_outcomes,
    options_table,
)

ITEMS, WAYS, TOKENS = 12, 4, 3


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


def test_outcomes_are_those_of_the_tests_and_stand_beside_their_controls(tmp_path) -> None:
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
    clean = axis_outcomes(_stores(tmp_path / "clean", 0.0)).assign(dataset="single-16")
    facts = {"dataset": "single-16", "planting": "single", "dup_count": 16, "examples": 50}
    table = options_table(found.reset_index().assign(**facts), clean)
    assert (table[list(facts)] == list(facts.values())).all(axis=None)
    assert table["test"].tolist() == [*stores, BOTH]
    for name in ("p", "log10_p"):
        assert table[name].tolist() == found[name].tolist()
        assert table[f"control_{name}"].tolist() == clean[name].tolist() != table[name].tolist()
