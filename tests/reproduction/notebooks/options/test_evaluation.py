"""Tables and figure from made-up stores: every number in its place, controls beside it."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from contamination.audit.battery import OPTION_TEST, TESTS
from contamination.scoring.store import Store
from contamination.scoring.store_format import Header
from contamination.statistics import sharded_exact_test
from reproduction.notebooks.options.evaluation import (
    AXES,
    BOTH,
    CLEAN,
    COLUMNS,
    ORDER,
    PLANTED,
    axis_outcomes,
    options_table,
)
from reproduction.notebooks.options.figures import plot_axes
from reproduction.notebooks.options.planting import PLANTINGS, Cell

ITEMS, WAYS, TOKENS = 12, 4, 3
CELLS = [Cell(planting, count) for planting in PLANTINGS for count in (1, 16)]


def _stores(path, shift: float) -> dict[str, Store]:
    """Stores of a set whose published arrangements gain `shift` nats a token; its order nothing."""
    rng = np.random.default_rng(7)
    facts = {
        "model": "m",
        "model_revision": "r",
        "dataset": "d",
        "dataset_revision": "s",
        "template": "t",
        "seed": 3,
    }
    options = Header(
        **facts, shards=ITEMS, example_tokens=(TOKENS,) * ITEMS * WAYS, kind="alternatives"
    )
    order = Header(
        **facts,
        shards=2,
        example_tokens=(TOKENS,) * ITEMS,
        kind="successors",
        tokens_per_example=32,
    )
    stores = {}
    for name, header in ((OPTION_TEST, options), (ORDER, order)):
        stores[name] = Store(path / f"{name} {shift}", header)
        rows = []
        for unit in header.units(0):
            examples = header.examples(unit)
            values = rng.normal(size=len(examples) * TOKENS).astype(np.float32)
            if name == OPTION_TEST:
                values[:TOKENS] += shift
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


def test_the_table_has_the_columns_of_the_contract_and_controls_of_the_same_set() -> None:
    table = _table()
    assert tuple(table.columns) == COLUMNS
    contract = "dataset planting dup_count test p log10_p control_log10_p examples tokens_scored"
    assert set(contract.split()) <= set(table.columns)
    assert len(table) == len(CELLS) * len(AXES)
    options = table[table["test"] == OPTION_TEST].set_index("dataset")
    assert options["control_log10_p"].tolist() == pytest.approx([-0.01 * (i + 1) for i in range(6)])
    assert options.loc["single-16", ["planting", "dup_count", "examples"]].tolist() == [
        *("single", 16, 50)
    ]
    assert options.loc["single-16", "log10_p"] == -16
    assert options.loc["single-16", "control_p"] == pytest.approx(10**-0.06)


def test_the_figure_has_a_panel_for_each_planting_and_a_line_for_each_axis_and_model() -> None:
    table = _table()
    figure = plot_axes(table)
    panels = figure.axes
    assert [axes.get_title() for axes in panels] == ["Whole", "Shuffled", "Single records"]
    for axes, planting in zip(panels, PLANTINGS, strict=True):
        lines = [line for line in axes.get_lines() if len(line.get_xdata()) == 2][:6]
        for axis, (planted, clean) in zip(
            AXES, zip(lines[::2], lines[1::2], strict=True), strict=True
        ):
            rows = table[(table["planting"] == planting) & (table["test"] == axis)]
            assert planted.get_ydata().tolist() == rows["log10_p"].tolist()
            assert clean.get_ydata().tolist() == rows["control_log10_p"].tolist()
            assert clean.get_linestyle() == ":"
    low, high = panels[0].get_ylim()
    assert low < table["log10_p"].min() and high > 0
    assert [text.get_text() for text in panels[0].get_yticklabels()] == [
        *("0", "−1", "−2", "−3", "−10", "−30", "−100")[:6],
        *(["−100"] if table["log10_p"].min() <= -30 else []),
    ]
    one = plot_axes(table[table["planting"] == "single"])
    assert [axes.get_title() for axes in one.axes] == ["Single records"]
