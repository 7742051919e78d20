"""Compute the comparisons of two sides again from their stores, without a model.

The baselines without a model are left out: they read the records, which no store holds.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from contamination.audit.sides_store import (
    TEST,
    SidesStore,
    judge_sides,
    read_header,
    read_scores,
    stored_tests,
)
from contamination.statistics.held_out import HeldOutResult

AXIS = "held out"


def columns_of_sides(store: SidesStore, result: HeldOutResult) -> dict[str, Any]:
    """Return the columns of an audit's table that the store of a comparison gives.

    `shards` counts the strata, `permutations` the draws; the other columns are those of
    `contamination.audit.recompute.columns_of`.
    """
    header = store.header
    return {
        "model": header.model,
        "set": header.dataset,
        "axis": AXIS,
        "test": TEST,
        "shards": result.strata,
        "permutations": result.resamples,
        "statistic": result.statistic,
        "p": result.p,
        "log10 p": result.log10_p,
        "model revision": header.model_revision,
        "set revision": header.dataset_revision,
        "held-out set": header.held_out,
        "held-out revision": header.held_out_revision,
        "template": header.template,
        "seed": store.test.seed,
        "header": store.key,
        "store": store.checksum,
    }


def recompute_sides(directory: Path, asked: Collection[str] | None = None) -> list[dict[str, Any]]:
    """Check the scores of a store, and return `columns_of_sides` for each test of them.

    Each row has the least log10 p beside its columns, as those of
    `contamination.audit.recompute.recompute`. `asked` are keys of the tests that are
    computed; None computes all that were noted. Raises InputError if something in the
    store is damaged, or the scores are not those that were tested.
    """
    header = read_header(directory)
    table = read_scores(directory, header)
    rows = []
    for store in stored_tests(directory, header, table):
        if asked is None or store.key in asked:
            result = judge_sides(table, header, store.test)
            least = {"log10 least": result.log10_least, "answers problem": ""}
            rows.append(columns_of_sides(store, result) | least)
    return rows
