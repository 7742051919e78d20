"""The tests of Oren's Table 1, and the settings of Figure 3, on what `measure` has stored."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from contamination.audit.battery import TESTS
from contamination.randomness import random_stream
from contamination.scoring.models import ModelEntry
from contamination.scoring.status import FAILURES, OK, status_of
from contamination.scoring.store import open_store
from contamination.statistics import (
    TestResult,
    adjust,
    fewer_permutations,
    sharded_exact_test,
    sharded_t_test,
)
from contamination.tables import outcome_row
from reproduction.notebooks.checkpoints.cells import (
    ABLATION,
    SHARDED,
    TABLE,
    checkpoints,
    title,
)
from reproduction.output.published import PRINTED, load_published

Floats = NDArray[np.float64]

COLUMNS = (
    *("model", "dataset", "title", "examples", "dup_count", "test", "shards", "permutations"),
    *("statistic", "log10_p", "p", "holm_p", "published_p", "tokens_scored", "status"),
)
COUNTS = ("examples", "dup_count", "shards", "permutations", "tokens_scored")
MEANS = ("test", "mean_log10_p", "status")
SHARDED_TESTS: dict[str, Callable[[Floats], TestResult]] = {
    "sharded_t": sharded_t_test,
    "sharded_exact": sharded_exact_test,
}


def judge_stores(
    measured: dict[str, pd.DataFrame],
    models: Sequence[str],
    controls: Sequence[str],
    *,
    directory: Path,
    published: Path | str,
) -> pd.DataFrame:
    """Run every test of Table 1 on its store: a row for each model, set and test, `COLUMNS`.

    `dup_count` is how often the model has read the set in its order, 0 of a control; `holm_p` is
    Holm's correction over the sets of one model and test; `published_p` is what the paper prints
    for that test and model; `tokens_scored` is what the model had to read for the test. A cell that
    could not be scored or tested has no p-value, and its `status` says why.

    Parameters
    ----------
    measured : of `reproduction.notebooks.checkpoints.measure`.
    models, controls : as there. directory : where the stores lie.
    published : directory of the papers' tables.
    """
    known = {one.entry.name: one for one in checkpoints(models, controls)}
    examples = measured["sets"].set_index("dataset")["examples"]
    cells = measured["cells"]
    rows: list[dict[str, Any]] = []
    for cell in cells[cells["purpose"] == TABLE].to_dict("records"):
        model, dataset = known[cell["model"]], cell["dataset"]
        row = {
            "model": cell["model"],
            "dataset": dataset,
            "title": title(dataset),
            "examples": examples[dataset],
            "dup_count": model.dup_count(dataset),
            "test": cell["test"],
            "published_p": _published(model.entry, dataset, cell["test"], published),
            "status": cell["status"],
        }
        if row["status"] == OK:
            try:
                row |= _result(directory / cell["store"], cell["test"], cell["permutations"])
            except FAILURES as error:
                row["status"] = status_of(error)
        rows.append(row)
    table = pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(COUNTS, "Int64"))
    done = table[table["status"] == OK]
    for _, group in done.groupby(["model", "test"]):
        log10_p = group["log10_p"].to_numpy(dtype=float)
        table.loc[group.index, "holm_p"] = adjust(log10_p=log10_p, method="holm").p
    return table


def _result(store: Path, test: str, permutations: int) -> dict[str, Any]:
    found = open_store(store)
    result = TESTS[test].result(found, permutations)
    return outcome_row(result) | {"tokens_scored": found.header.tokens_of(permutations)}


def _published(entry: ModelEntry, dataset: str, test: str, published: Path | str) -> float:
    """P-value that Table 1 prints: it has one column for each test of one model."""
    column = {name: column for column, name in PRINTED.items()}.get(test)
    if column is None or entry.published not in PRINTED:
        return math.nan
    table = load_published(published, "oren2024_table1_canaries").set_index("dataset")
    name = title(dataset)
    return float(table.loc[name, column]) if name in table.index else math.nan


def by_shards(cells: pd.DataFrame, *, directory: Path) -> pd.DataFrame:
    """Both tests on shards in each number of shards (Figure 3a).

    A row for each model, dataset, shards and test: mean_log10_p, or NaN where `status` says why.
    """
    rows: list[dict[str, Any]] = []
    for cell in cells[cells["purpose"] == ABLATION].to_dict("records"):
        facts = {name: cell[name] for name in ("model", "dataset", "shards")}
        stored = _log_probs(cell, directory)
        rows += [facts | row for row in _means(stored, lambda log_probs: [log_probs])]
    return pd.DataFrame(rows, columns=["model", "dataset", "shards", *MEANS])


def by_permutations(
    cells: pd.DataFrame,
    datasets: Sequence[str],
    permutations: Sequence[int],
    *,
    directory: Path,
    replicates: int,
    seed: int,
) -> pd.DataFrame:
    """Both tests on shards with fewer permutations than were scored for Table 1 (Figure 3b).

    A row for each model but the controls, dataset, permutations and test: mean_log10_p over
    `replicates` random subsets of the stored orderings, or NaN where `status` says why.
    """
    ablated = set(cells.loc[cells["purpose"] == ABLATION, "model"])
    chosen = cells[(cells["purpose"] == TABLE) & (cells["test"] == SHARDED)]
    chosen = chosen[chosen["dataset"].isin(list(datasets)) & chosen["model"].isin(ablated)]
    rows: list[dict[str, Any]] = []
    for cell in chosen.to_dict("records"):
        stored = _log_probs(cell, directory)
        for count in permutations:
            rng = random_stream(seed, "fewer permutations", cell["model"], cell["dataset"], count)
            draw = partial(fewer_permutations, permutations=count, replicates=replicates, rng=rng)
            facts = {"model": cell["model"], "dataset": cell["dataset"], "permutations": count}
            rows += [facts | row for row in _means(stored, draw)]
    return pd.DataFrame(rows, columns=["model", "dataset", "permutations", *MEANS])


def _log_probs(cell: dict[str, Any], directory: Path) -> Floats | str:
    """Read what a store holds, or say why there is nothing."""
    if cell["status"] != OK:
        return str(cell["status"])
    try:
        return open_store(directory / cell["store"]).log_probs(cell["permutations"])
    except FAILURES as error:
        return status_of(error)


def _means(
    stored: Floats | str, subsets: Callable[[Floats], Iterable[Floats]]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each test on shards: its mean log10 p over subsets of what is stored."""
    for name, test in SHARDED_TESTS.items():
        row = {"test": name, "mean_log10_p": math.nan, "status": OK}
        try:
            if isinstance(stored, str):
                row["status"] = stored
            else:
                found = [test(subset).log10_p for subset in subsets(stored)]
                row["mean_log10_p"] = float(np.mean(found))
        except FAILURES as error:
            row["status"] = status_of(error)
        yield row
