"""What anyone can recompute of an audit from its stores: checksums and p-values, without a model.

The diagnosis and the compressor are not among it: they read the records, which no store holds.
"""

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contamination.audit.registry import OPTION_TEST, TESTS, Test
from contamination.errors import InputError, csv_text
from contamination.scoring.store import Store, open_store
from contamination.scoring.store_format import Header, require_one_model
from contamination.statistics import TestResult, adjust
from contamination.tables import outcome_row

TOLERANCE = 1e-9  # of what two machines compute from the same numbers, relative
NUMBERS = ("statistic", "p", "log10 p", "p (Holm)")
Row = dict[str, Any]


def columns_of(store: Store, result: TestResult) -> Row:
    """Return the columns of an audit's table that its store alone gives.

    `header` is the SHA-256 of what was scored, `store` that of all that the test has read.
    """
    header = store.header
    outcome = outcome_row(result)
    return {
        "model": header.model,
        "set": header.dataset,
        "axis": "options" if header.kind == "alternatives" else "order",
        **{name.replace("_", " "): value for name, value in outcome.items()},
        "model revision": header.model_revision,
        "set revision": header.dataset_revision,
        "template": header.template,
        "seed": header.seed,
        "tokens": store.tokens_stored(result.permutations),
        "header": header.key,
        "store": store.checksum(result.permutations),
    }


def recompute(directory: Path, audited: Sequence[Row] | None = None) -> list[Row]:
    """Check every byte of a store, and return `columns_of` it for each test.

    The tests are those that `audited` (of `read_audit`) has of this store, else all that read such
    a store by default; of alternatives that is the test of options, though a sealed set may have
    wordings. Raises InputError if the store is damaged, lacks what a test reads, or was filled by
    two models of a server.
    """
    store = open_store(directory)
    require_one_model(directory, store.served())
    held = store.permutations()
    header = store.header
    if audited is None:
        asked = {name: held for name, test in TESTS.items() if _reads(test, header)}
    else:
        rows = (row for row in audited if row["header"] == header.key)
        asked = {row["test"]: int(row["permutations"]) for row in rows}
    if header.kind == "orderings" and (most := max(asked.values(), default=0)) > held:
        raise InputError(f"{directory}: {held} permutations of {most} are whole; score it again")
    return [columns_of(store, TESTS[test].result(store, each)) for test, each in asked.items()]


def _reads(test: Test, header: Header) -> bool:
    needs = (test.kind, test.tokens_per_example)
    if header.kind == "alternatives":
        return test.name == OPTION_TEST
    if needs != (header.kind, header.tokens_per_example):
        return False
    right = header.kind == "successors" or (test.shard_size is None) == (header.shards == 1)
    return right and (test.tokens_per_example is not None or test.sums or not header.summed)


def read_audit(path: Path) -> list[Row]:
    """Read the tests in the table of an audit: `NUMBERS`, the `line`, and text.

    Raises InputError for what is no such table, or has no p-value.
    """
    rows: list[Row] = []
    with path.open(encoding="utf-8", newline="") as file:
        read = csv.DictReader(file)
        try:
            for row in read:
                if row["p"]:
                    _ = TESTS[row["test"]], int(row["permutations"]), row["header"], row["model"]
                    numbers = {name: float(row[name]) for name in NUMBERS}
                    rows.append(row | numbers | {"line": read.line_num})
        except (csv.Error, KeyError, TypeError, ValueError) as error:
            what = f"line {read.line_num} is no row of an audit's table"
            raise InputError(f"{path}: {what}; write the table again") from error
    if not rows:
        raise InputError(
            f"{path}: it has no p-value to verify; give the table that an audit has written"
        )
    return rows


def differences(audited: Sequence[Row], found: Sequence[Row]) -> list[str]:
    """Return a line for each number of an audit's table that the rows of `recompute` do not give.

    p (Holm) is that of all rows of the table, of which there is at least one.
    """
    lines = list[str]()
    holm = adjust(log10_p=[row["log10 p"] for row in audited], method="holm").p
    for row, holm_p in zip(audited, holm, strict=True):
        where = f"line {row['line']}, {row['model']} on {row.get('set')}"
        same = [
            each
            for each in found
            if each["header"] == row["header"] and each["test"] == row["test"]
        ]
        if not same:
            lines.append(f"{where}: no whole store of it among those given; name its directory")
        for each in same:
            for name, value in (each | {"p (Holm)": holm_p}).items():
                told = row.get(name, "")
                near = name in NUMBERS and math.isclose(told, value, rel_tol=TOLERANCE)
                if not near and told != csv_text(str(value)):
                    lines.append(f"{where}: {name} is {told}, and its store gives {value}")
    return lines
