"""What notebook 00 computes of shipped stores, and looks up of MMLU."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from contamination.audit.battery import TESTS
from contamination.audit.redrawn import gain_by_position
from contamination.statistics import adjust
from contamination.tables import Layout, format_p, lay_out, outcome_row
from reproduction.notebooks.start.shipped import Shipped
from reproduction.output.published import AUDITED, CONTROLS
from reproduction.run.experiment import MODELS

SHOWN = ("permutation", "sharded_t", "sharded_exact", "successor")
SHUFFLED = {"record": "whole questions", "line": "lines of the file"}


def whole_orderings(shipped: Shipped, dataset: str) -> dict[str, np.ndarray]:
    """Log-probabilities (nats) of the whole set in each ordering, (m+1,) by model."""
    test = TESTS["permutation"]
    return {model: test.scores(*shipped.store_for(model, dataset, test))[0] for model in MODELS}


def token_gains(shipped: Shipped, dataset: str) -> dict[str, np.ndarray]:
    """Gain (nats) of the canonical order by place in the example, (tokens,) by model."""
    test = TESTS["sharded_exact"]
    return {model: gain_by_position(*shipped.store_for(model, dataset, test)) for model in MODELS}


def p_values(shipped: Shipped) -> pd.DataFrame:
    """Test every set under both models: a row for each model, set and test of `SHOWN`.

    `dup_count` is how often the contaminated model met the set; `holm_p` is Holm's correction over
    the sets of one model and test.
    """
    rows = []
    sets = shipped.sets[["dataset", "examples", "dup_count"]].to_dict("records")
    for model, facts, name in product(MODELS, sets, SHOWN):
        store, permutations = shipped.store_for(model, facts["dataset"], TESTS[name])
        result = TESTS[name].result(store, permutations)
        rows.append({"model": model} | facts | outcome_row(result))
    table = pd.DataFrame(rows)
    table["holm_p"] = table.groupby(["model", "test"])["log10_p"].transform(
        lambda log10_p: adjust(log10_p=log10_p, method="holm").p
    )
    return table


def p_layout(rows: pd.DataFrame) -> Layout:
    """Lay out rows of `p_values`: a line for each set and model, a column for each test.

    Sets of most copies come first. Copies are those that the model has read: of the clean one none.
    """
    rows = rows.sort_values(["dup_count", "dataset"], ascending=False, kind="stable")
    return lay_out(
        rows.assign(dup_count=rows["dup_count"].where(rows["model"] != "clean", 0)),
        {"dataset": "Set", "model": "Model", "dup_count": "Copies read"},
        lambda row: {TESTS[row["test"]].label: format_p(row["p"], row["log10_p"])},
    )


def rejections_layout(rows: pd.DataFrame, alpha: float) -> Layout:
    """Lay out how many sets each test rejects at `alpha`, as they are and after Holm's correction.

    `rows` come from `p_values`.
    """
    labels = rows["test"].map({name: test.label for name, test in TESTS.items()})
    counts = rows.assign(
        test=labels, sets=1, rejected=rows["p"] <= alpha, after_holm=rows["holm_p"] <= alpha
    ).groupby(["model", "test"], sort=False)[["sets", "rejected", "after_holm"]]
    return lay_out(
        counts.sum().reset_index(),
        {"model": "Model", "test": "Test"},
        lambda row: {
            "Sets": str(row["sets"]),
            f"p ≤ {alpha:g}": str(row["rejected"]),
            "After Holm": str(row["after_holm"]),
        },
    )


def published_layout(table4: pd.DataFrame, subsets: Sequence[str]) -> Layout:
    """Lay out published p-values: a line for each model, a column for each of the subsets of MMLU.

    `table4` is Table 4 of Oren. The controls come last. Raises KeyError for a subset that it lacks.
    """
    names = AUDITED | {column: f"{name} (control)" for column, name in CONTROLS.items()}
    rows = table4.set_index("subset").loc[list(subsets)].rename(columns=names).reset_index()
    return lay_out(
        rows.melt("subset", list(names.values()), var_name="model", value_name="p"),
        {"model": "Model"},
        lambda row: {row["subset"]: format_p(row["p"])},
    )


def measured_layout(lines: pd.DataFrame, subsets: Sequence[str]) -> Layout:
    """Lay out what was measured here: a line for each witness and for what it saw shuffled.

    `lines` are rows of docs/measurements/mmlu_lines.csv; a column is one of the subsets. Raises
    KeyError for a subset that they lack.
    """
    rows = lines.set_index("subset").loc[list(subsets)].reset_index()
    rows = rows.sort_values("test", kind="stable")
    free = rows.drop_duplicates(["subset", "segmentation"])
    silent = 10 ** free["compressor_log10_p"]
    tests = rows["test"].map(lambda name: TESTS[name].label.lower())
    pieces = (
        free.assign(witness="statistics of the records", said=free["verdict"]),
        free.assign(witness="a compressor: p", said=silent.map(format_p)),
        rows.assign(witness="our clean model, " + tests + ": p", said=rows["p"].map(format_p)),
    )
    found = pd.concat(pieces)
    return lay_out(
        found.assign(shuffled=found["segmentation"].map(SHUFFLED)),
        {"witness": "Witness", "shuffled": "What was shuffled"},
        lambda row: {row["subset"]: row["said"]},
        columns_first=subsets,
    )
