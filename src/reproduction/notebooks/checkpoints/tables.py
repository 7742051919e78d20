"""Oren's Tables 1 and 5 and Figure 3 of the released checkpoints: tested, judged, laid out.

Table 5 is Min-K% as appendix E has it: one hundred spans of each set, k = 20, and a threshold for
5% false positives on a validation set of five planted sets and five that the checkpoint has not
read. Which these were the paper does not say; `validation_members` are the planted sets that Table
5 leaves out.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from contamination.audit.battery import TESTS
from contamination.errors import InputError
from contamination.membership.evaluate import Threshold
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
from contamination.tables import Layout, format_estimate, format_p, lay_out, outcome_row
from reproduction.notebooks.checkpoints.measure import (
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
RATES = (
    *("model", "dataset", "title", "examples", "dup_count", "spans", "threshold", "detected"),
    *("rate_percent", "rate_low", "rate_high", "published_percent", "status"),
)
RATE_COUNTS = ("examples", "dup_count", "spans", "detected")
KEYS = {
    "model": "Model",
    "title": "Set",
    "examples": "Examples",
    "dup_count": "Duplication count",
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


def detection_rates(
    measured: dict[str, pd.DataFrame],
    models: Sequence[str],
    controls: Sequence[str],
    *,
    sets: Sequence[str],
    members: Sequence[str],
    non_members: Sequence[str],
    fpr: float,
    published: str,
) -> pd.DataFrame:
    """Measure which share of the spans of every set Min-K% calls members: `RATES`.

    A row for each model and set. The threshold is that of the model, tuned on the spans of
    `members` and `non_members` that were scored; rates are percentages with Clopper-Pearson
    intervals (95%, as if spans were independent), `published_percent` is the paper's. A set without
    a rate has a `status` that says why.

    Parameters
    ----------
    measured, models, controls : as in `judge_stores`.
    sets : of Table 5. members, non_members : that tune the threshold.
    fpr : share of the spans of `non_members` that may be called members.
    published : directory of the papers' tables.

    Raises InputError for a rate that cannot be.
    """
    if not 0 < fpr < 1:
        raise InputError(f"fpr is {fpr}: give a rate between 0 and 1, such as 0.05")
    examples = measured["sets"].set_index("dataset")["examples"]
    printed = load_published(published, "oren2024_table5_mink").set_index("dataset")
    rows: list[dict[str, Any]] = []
    for model in checkpoints(models, controls):
        own = measured["spans"][measured["spans"]["model"] == model.entry.name]
        threshold = _tuned(own, members, non_members, fpr)
        for dataset in sets:
            name, spans = title(dataset), own[own["dataset"] == dataset]
            row: dict[str, Any] = {
                "model": model.entry.name,
                "dataset": dataset,
                "title": name,
                "examples": examples[dataset],
                "dup_count": model.dup_count(dataset),
                "status": spans["status"].iloc[0],
            }
            if model.entry.published in PRINTED and name in printed.index:
                row["published_percent"] = float(printed.loc[name, "mink_detected_percent"])
            if row["status"] != OK:
                pass  # it has a reason of its own
            elif isinstance(threshold, str):
                row["status"] = threshold
            else:
                found = threshold.detect(spans["score"])
                rates = (100 * share for share in (found.share, found.low, found.high))
                row |= dict(zip(("rate_percent", "rate_low", "rate_high"), rates, strict=True))
                row |= {"spans": len(spans), "detected": found.hits, "threshold": threshold.value}
            rows.append(row)
    return pd.DataFrame(rows, columns=list(RATES)).astype(dict.fromkeys(RATE_COUNTS, "Int64"))


def _tuned(
    spans: pd.DataFrame, members: Sequence[str], non_members: Sequence[str], fpr: float
) -> Threshold | str:
    """Tune the threshold of a model, or say why there is none."""
    scored = spans[spans["status"] == OK]
    sides = [scored.loc[scored["dataset"].isin(list(n)), "score"] for n in (members, non_members)]
    if not all(map(len, sides)):
        missing = "planted" if not len(sides[0]) else "not planted"
        return status_of(
            InputError(f"no span of a validation set that was {missing}, so there is no threshold")
        )
    truth = np.repeat([True, False], [len(side) for side in sides])
    return Threshold.at_fpr(np.concatenate(sides), truth, fpr=fpr)


def checkpoint_layout(rows: pd.DataFrame, alpha: float) -> Layout:
    """Lay out Table 1: a row for each model and set, a column for each test.

    `rows` come from `judge_stores`. A p-value is
    bold where Holm's correction over the sets leaves at most `alpha`; where there is none, its
    column says "failed" or "not run here". Beside it stands the paper's value where there is one.
    """
    printed = set(rows.loc[rows["published_p"].notna(), "test"])

    def cells(row: dict[Any, Any]) -> dict[str, str]:
        label, ours = TESTS[row["test"]].label, row["status"].partition(":")[0]
        if ours == OK:
            ours = format_p(row["p"], row["log10_p"], bold=row["holm_p"] <= alpha)
        paper = {f"{label}, paper": format_p(row["published_p"])} if row["test"] in printed else {}
        return {label: ours} | paper

    return lay_out(rows, KEYS, cells)


def min_k_layout(rates: pd.DataFrame, k: float) -> Layout:
    """Lay out Table 5: percent of the spans of each set that Min-K% detects, under each model.

    `rates` come from `detection_rates`.
    """

    def cells(row: dict[Any, Any]) -> dict[str, str]:
        ours = row["status"].partition(":")[0]
        if ours == OK:
            numbers = (row[f"rate_{name}"] for name in ("percent", "low", "high"))
            ours = format_estimate(*numbers, digits=0)
        paper = format_estimate(row["published_percent"], digits=0, interval=False)
        return {f"Min-{k:g}%": ours, "Paper": paper}

    return lay_out(rates, KEYS | {"spans": "Spans"}, cells)
