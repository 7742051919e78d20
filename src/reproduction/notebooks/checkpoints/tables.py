"""Oren's Tables 1 and 5 and Figure 3 of the released checkpoints: tested, judged, laid out.

Table 5 is Min-K% as appendix E has it: one hundred spans of each set, k = 20, and a threshold for
5% false positives on five planted sets and five that the checkpoint has not read. Which these were
the paper does not say; `validation_members` are the planted sets that Table 5 leaves out.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from contamination.audit.battery import TESTS
from contamination.errors import InputError
from contamination.membership.evaluate import Threshold
from contamination.randomness import random_stream
from contamination.scoring.models import ModelEntry
from contamination.scoring.status import OK
from contamination.scoring.store import open_store
from contamination.statistics import (
    TestResult,
    adjust,
    fewer_permutations,
    sharded_exact_test,
    sharded_t_test,
)
from contamination.tables import Layout, format_estimate, format_p, lay_out, outcome_row
from reproduction.notebooks.checkpoints import measure
from reproduction.output.published import PRINTED, load_published
from reproduction.run.grid import Row, attempt, p_or_status

Floats = NDArray[np.float64]

COLUMNS = (
    *("model", "dataset", "title", "segmentation", "examples", "dup_count"),
    *("test", "shards", "permutations"),
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
NAMED = {"model": "Model", "title": "Set"}
COUNTED = {"examples": "Examples", "dup_count": "Duplication count"}


def judge_stores(
    measured: dict[str, pd.DataFrame],
    models: Sequence[ModelEntry],
    *,
    directory: Path,
    published: Path | str,
) -> pd.DataFrame:
    """Run every test of Table 1 on its store: a row for each model, set and test, `COLUMNS`.

    `segmentation` is what an example is, a line of the file or a record. `dup_count` is how often
    the model has read the set in its order, 0 of a control; `holm_p` is Holm's correction over the
    sets of one model and test, by line or by record; `tokens_scored` is what the model had to read
    for the test. A cell that could not be scored or tested has no p-value, and its `status` says
    why. Stores lie in `directory`, the papers' tables in `published`.
    """
    known = {entry.name: entry for entry in models}
    printed = load_published(published, "oren2024_table1_canaries").set_index("dataset")
    columns = {test: column for column, test in PRINTED.items()}
    rows = []
    cells = measured["cells"]
    for cell in cells[cells["purpose"] == measure.TABLE].to_dict("records"):
        entry, test = known[cell["model"]], cell["test"]
        row = _facts(entry, cell["dataset"], measured["sets"], cell["segmentation"])
        row |= {"test": test, "status": cell["status"]}
        # Table 1 has one column for each test of one model.
        if entry.published in PRINTED and test in columns and row["title"] in printed.index:
            row["published_p"] = float(printed.loc[row["title"], columns[test]])
        store = directory / cell["store"]
        rows.append(attempt(row, partial(_result, store, test, cell["permutations"])))
    table = pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(COUNTS, "Int64"))
    for _, group in table[table["status"] == OK].groupby(["model", "test", "segmentation"]):
        log10_p = group["log10_p"].to_numpy(dtype=float)
        table.loc[group.index, "holm_p"] = adjust(log10_p=log10_p, method="holm").p
    return table


def _facts(entry: ModelEntry, dataset: str, sets: pd.DataFrame, kind: str = measure.LINE) -> Row:
    examples = sets.set_index(["dataset", "segmentation"])["examples"]
    return {
        "model": entry.name,
        "dataset": dataset,
        "segmentation": kind,
        "title": measure.title(dataset),
        "examples": examples[dataset, kind],
        "dup_count": 0 if entry.role == measure.CONTROL else entry.dup_count(dataset),
    }


def _result(directory: Path, test: str, permutations: int) -> Row:
    store = open_store(directory)
    result = TESTS[test].result(store, permutations)
    return outcome_row(result) | {"tokens_scored": store.header.tokens_of(permutations)}


def by_shards(cells: pd.DataFrame, *, directory: Path) -> pd.DataFrame:
    """Both tests on shards in each number of shards (Figure 3a).

    A row for each model, dataset, shards and test: mean_log10_p, or NaN where `status` says why.
    """
    rows: list[Row] = []
    for cell in cells[cells["purpose"] == measure.ABLATION].to_dict("records"):
        rows += _means(cell, {"shards": cell["shards"]}, directory, lambda scored: [scored])
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
    ablated = set(cells.loc[cells["purpose"] == measure.ABLATION, "model"])
    lines = (cells["purpose"] == measure.TABLE) & (cells["segmentation"] == measure.LINE)
    chosen = cells[lines & (cells["test"] == measure.SHARDED)]
    chosen = chosen[chosen["dataset"].isin(list(datasets)) & chosen["model"].isin(ablated)]
    rows: list[Row] = []
    for cell in chosen.to_dict("records"):
        for count in permutations:
            rng = random_stream(seed, "fewer permutations", cell["model"], cell["dataset"], count)
            draw = partial(fewer_permutations, permutations=count, replicates=replicates, rng=rng)
            rows += _means(cell, {"permutations": count}, directory, draw)
    return pd.DataFrame(rows, columns=["model", "dataset", "permutations", *MEANS])


def _means(
    cell: Row, setting: Row, directory: Path, subsets: Callable[[Floats], Iterable[Floats]]
) -> Iterator[Row]:
    """Yield a row for each test on shards: its mean log10 p over subsets of what is stored."""

    def read() -> Row:
        return {"stored": open_store(directory / cell["store"]).log_probs(cell["permutations"])}

    def mean(test: Callable[[Floats], TestResult]) -> Row:
        return {"mean_log10_p": float(np.mean([test(s).log10_p for s in subsets(row["stored"])]))}

    row = attempt({name: cell[name] for name in ("model", "dataset", "status")} | setting, read)
    for name, test in SHARDED_TESTS.items():
        yield attempt(row | {"test": name}, partial(mean, test))


def detection_rates(
    measured: dict[str, pd.DataFrame],
    models: Sequence[ModelEntry],
    *,
    sets: Sequence[str],
    members: Sequence[str],
    non_members: Sequence[str],
    fpr: float,
    published: Path | str,
) -> pd.DataFrame:
    """Measure which share of the spans of every set Min-K% calls members: `RATES`.

    A row for each model and set. The threshold is that of the model, tuned on the spans of
    `members` and `non_members` that were scored, of which at most a share `fpr` of the latter may
    be called members; rates are percentages with Clopper-Pearson intervals (95%, as if spans were
    independent). A set without a rate has a `status` that says why. Raises InputError for an `fpr`
    that cannot be.
    """
    if not 0 < fpr < 1:
        raise InputError(f"fpr is {fpr}: give a rate between 0 and 1, such as 0.05")
    printed = load_published(published, "oren2024_table5_mink").set_index("dataset")
    rows = []
    for entry in models:
        own = measured["spans"][measured["spans"]["model"] == entry.name]
        scored = own[own["status"] == OK].set_index("dataset")["score"]
        rate = partial(
            _rate,
            members=scored[scored.index.isin(list(members))],
            others=scored[scored.index.isin(list(non_members))],
            fpr=fpr,
        )
        for dataset in sets:
            spans = own[own["dataset"] == dataset]
            row = _facts(entry, dataset, measured["sets"]) | {"status": spans["status"].iloc[0]}
            if entry.published in PRINTED and row["title"] in printed.index:
                row["published_percent"] = float(printed.loc[row["title"], "mink_detected_percent"])
            rows.append(attempt(row, partial(rate, spans["score"])))
    return pd.DataFrame(rows, columns=list(RATES)).astype(dict.fromkeys(RATE_COUNTS, "Int64"))


def _rate(spans: pd.Series, members: pd.Series, others: pd.Series, fpr: float) -> Row:
    for side, what in ((members, "planted"), (others, "not planted")):
        if side.empty:
            raise InputError(
                f"no span of a validation set that was {what}, so there is no threshold"
            )
    truth = np.repeat([True, False], [len(members), len(others)])
    threshold = Threshold.at_fpr(np.concatenate([members, others]), truth, fpr=fpr)
    found = threshold.detect(spans)
    return {
        "spans": len(spans),
        "threshold": threshold.value,
        "detected": found.hits,
        "rate_percent": 100 * found.share,
        "rate_low": 100 * found.low,
        "rate_high": 100 * found.high,
    }


def checkpoint_layout(rows: pd.DataFrame, alpha: float) -> Layout:
    """Lay out Table 1: a row for each model, set and segmentation, a column for each test.

    A p-value is bold where Holm's correction over the sets leaves at most `alpha`. Beside it stands
    the paper's value where there is one.
    """
    printed = set(rows.loc[rows["published_p"].notna(), "test"])

    def cells(row: Row) -> dict[str, str]:
        label = TESTS[row["test"]].label
        paper = {f"{label}, paper": format_p(row["published_p"])} if row["test"] in printed else {}
        return {label: p_or_status(row, bold=row["holm_p"] <= alpha)} | paper

    return lay_out(rows, NAMED | {"segmentation": "By"} | COUNTED, cells)


def min_k_layout(rates: pd.DataFrame, k: float) -> Layout:
    """Lay out Table 5: percent of the spans of each set that Min-K% detects, under each model."""

    def cells(row: Row) -> dict[str, str]:
        ours = row["status"].partition(":")[0]
        if ours == OK:
            numbers = (row[f"rate_{name}"] for name in ("percent", "low", "high"))
            ours = format_estimate(*numbers, digits=0)
        paper = format_estimate(row["published_percent"], digits=0, interval=False)
        return {f"Min-{k:g}%": ours, "Paper": paper}

    return lay_out(rates, NAMED | COUNTED | {"spans": "Spans"}, cells)
