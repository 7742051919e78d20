"""Orders that mean something are told from contamination by the diagnostics, not by the model."""

from types import SimpleNamespace

import pytest

from contamination.testsets.example_set import ExampleSet
from reproduction.notebooks.beyond.failures import AS_PUBLISHED, LONG, ORDERS, failure_table
from reproduction.notebooks.beyond.measure import score_orders

COLOURS = ("red", "green", "blue", "white")


@pytest.fixture
def experiment(make_model, tmp_path):
    model = make_model(64)  # the successor test needs a context of 32 and more
    examples = tuple(
        f"the {COLOURS[(7 * i) % 4]} {'stone ' * (1 + (5 * i) % 9)}number {(13 * i) % 40}.\n"
        for i in range(40)
    )
    return SimpleNamespace(
        test_set=lambda name: ExampleSet(name, examples, "text/1", "made up"),
        model=lambda name: model,
        profile=SimpleNamespace(seed=3),
        build=tmp_path,
    )


def failures_of(experiment, *, orders=tuple(ORDERS)):
    return failure_table(experiment, score_orders(experiment, "clean", "colours", orders))


def test_every_order_is_tested_and_the_meaningful_ones_are_flagged(experiment):
    table = failures_of(experiment).set_index("order")
    assert list(table.index) == list(ORDERS)
    assert {"log10_p_successor", "log10_p_sharded_exact"} <= set(table)
    assert (table[["log10_p_successor", "log10_p_sharded_exact"]] <= 0).all(axis=None)
    for order in ("sorted by text", "sorted by length", "numbered"):
        assert table.loc[order, "verdict"] == "order carries information", order
    assert table.loc["near-duplicates in pairs", "examples"] == 40
    # The compressor sees what this model, which has learned nothing, does not.
    assert table.loc["near-duplicates in pairs", "log10_p_compressor"] < -5
    assert table.loc[AS_PUBLISHED, "log10_p_compressor"] > -2
    assert set(table["model"]) == {"clean"}
    assert set(table["dataset"]) == {"colours"}


def test_long_examples_exceed_the_context_and_are_null_to_a_clean_model(experiment):
    table = failures_of(experiment, orders=[AS_PUBLISHED, LONG])
    table = table.set_index("order")
    assert table["longer"].to_dict() == {AS_PUBLISHED: 0.0, LONG: 1.0}
    assert table["examples"].to_dict() == {AS_PUBLISHED: 40, LONG: 4}
    assert table.loc[LONG, "log10_p_successor"] > -2
    assert table.loc[LONG, "log10_p_sharded_exact"] > -2


def test_another_model_has_stores_of_its_own(experiment, make_model):
    def p():
        table = failures_of(experiment, orders=[LONG])
        return table["log10_p_sharded_exact"].item()

    first = p()
    assert p() == first
    retrained = make_model(48)
    experiment.model = lambda name: retrained
    assert p() != first


def test_records_are_joined_in_their_order():
    texts = [f"{i} " for i in range(25)]
    assert ORDERS[LONG](texts) == ["0 1 2 3 4 5 6 7 8 9 ", "10 11 12 13 14 15 16 17 18 19 "]


def test_near_duplicates_follow_their_records():
    arranged = ORDERS["near-duplicates in pairs"](["the a\n", "the b\n", "the c\n", "the d\n"])
    assert arranged == ["the a\n", "a a\n", "the b\n", "a b\n"]
