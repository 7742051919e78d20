"""Orders that mean something are told from contamination by the diagnostics, not by the model."""

from types import SimpleNamespace

import pytest

from contamination.failures import ORDERS, failure_table
from contamination.test_set import TestSet

COLOURS = ("red", "green", "blue", "white")


@pytest.fixture
def experiment(make_model, tmp_path):
    model = make_model(64)  # the successor test needs a context of 32 and more
    examples = tuple(
        f"the {COLOURS[(7 * i) % 4]} {'stone ' * (1 + (5 * i) % 9)}number {(13 * i) % 40}.\n"
        for i in range(40)
    )
    return SimpleNamespace(
        test_set=lambda name: TestSet(name, examples, "text/1", "made up"),
        model=lambda name: model,
        profile=SimpleNamespace(seed=3),
        build=tmp_path,
    )


def test_every_order_is_tested_and_the_meaningful_ones_are_flagged(experiment):
    table = failure_table(experiment, "clean", "colours").set_index("order")
    assert list(table.index) == list(ORDERS)
    assert {"log10_p_successor", "log10_p_exact"} <= set(table)
    assert (table[["log10_p_successor", "log10_p_exact"]] <= 0).all(axis=None)
    for order in ("sorted by text", "sorted by length", "numbered"):
        assert table.loc[order, "verdict"] == "order carries information", order
    assert table.loc["near-duplicates in pairs", "examples"] == 40


def test_near_duplicates_follow_their_records():
    arranged = ORDERS["near-duplicates in pairs"](["the a\n", "the b\n", "the c\n", "the d\n"])
    assert arranged == ["the a\n", "a a\n", "the b\n", "a b\n"]
