"""The table from made-up stores: every number in its place, controls beside it."""

import numpy as np
import pytest

from contamination.audit.registry import OPTION_TEST, TESTS
from contamination.scoring.store import Store, create_store
from contamination.scoring.store_format import Header
from contamination.statistics import sharded_exact_test
from reproduction.notebooks.options.tables import AXES, BOTH, ORDER, axis_outcomes

ITEMS, WAYS, TOKENS = 12, 4, 3


def _stores(path, shift: float) -> dict[str, Store]:
    """Stores of a set whose published arrangements gain `shift` nats a token; its order nothing."""
    rng = np.random.default_rng(7)
    stores = {}
    named = ("m", "r", "d", "s", "t", 3)
    for name, header in {
        OPTION_TEST: Header(*named, ITEMS, (TOKENS,) * ITEMS * WAYS, "alternatives"),
        ORDER: Header(*named, 2, (TOKENS,) * ITEMS, "successors", 32),
    }.items():
        stores[name] = create_store(path / name, header)
        rows = []
        for unit in stores[name].places():
            examples = stores[name].examples(unit)
            values = rng.normal(size=len(examples) * TOKENS).astype(np.float32)
            values[:TOKENS] += shift * (name == OPTION_TEST)
            rows.append((unit, examples, values))
        stores[name].append(rows)
    return stores


def test_outcomes_are_those_of_the_tests_and_stand_beside_their_controls(tmp_path) -> None:
    stores = _stores(tmp_path, 2.0)
    clean = _stores(tmp_path / "clean", 0.0)
    table = axis_outcomes(stores, clean)
    assert table["test"].tolist() == list(AXES)
    found = table.set_index("test")
    for begin, each in (("", stores), ("control_", clean)):
        exact = sharded_exact_test(each[OPTION_TEST].variants(), weights="equal")
        assert found.loc[OPTION_TEST, f"{begin}log10_p"] == exact.log10_p
        assert found.loc[ORDER, f"{begin}p"] == TESTS[ORDER].result(each[ORDER], 0).p > 0.01
        product_of_p = found.loc[ORDER, f"{begin}p"] * found.loc[OPTION_TEST, f"{begin}p"]
        # Two p-values: P(product <= q) = q (1 - log q).
        both = product_of_p * (1 - np.log(product_of_p))
        assert found.loc[BOTH, f"{begin}p"] == pytest.approx(both, rel=1e-9, abs=0)
        assert found.loc[BOTH, f"{begin}log10_p"] == pytest.approx(np.log10(both))
    assert found.loc[OPTION_TEST, "log10_p"] < -3 < found.loc[OPTION_TEST, "control_log10_p"]
    assert found.loc[OPTION_TEST, "tokens_scored"] == ITEMS * WAYS * TOKENS
    assert found.loc[ORDER, "tokens_scored"] == ITEMS * 6 * TOKENS
    assert found.loc[BOTH, "tokens_scored"] == ITEMS * (WAYS + 6) * TOKENS
