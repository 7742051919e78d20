"""What anyone can recompute of an audit from its stores: checksums and p-values, without a model.

The diagnosis and the compressor are not among it: they read the records, which no store holds.
"""

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from contamination.audit.battery import TESTS, Test, summed
from contamination.errors import InputError
from contamination.scoring.store import Store, open_store
from contamination.scoring.store_format import Header
from contamination.statistics import TestResult, adjust

TOLERANCE = 1e-9  # of what two machines compute from the same numbers, relative
Row = dict[str, Any]


def columns_of(store: Store, result: TestResult | None) -> Row:
    """Return the columns of an audit's table that a store alone gives; None where it has no test.

    `header` is the SHA-256 of what was scored, `store` that of all that the test has read.
    """
    header, permutations = store.header, result.permutations if result else 0
    axis = "options" if header.kind == "alternatives" else "order"
    found: Row = {"model": header.model, "set": header.dataset, "axis": axis}
    for name in ("test", "shards", "permutations", "statistic", "p", "log10 p"):
        found[name] = getattr(result, name.replace(" ", "_"), None)
    return found | {
        "model revision": header.model_revision,
        "set revision": header.dataset_revision,
        "template": header.template,
        "seed": header.seed,
        "tokens": header.tokens_stored(permutations),
        "header": header.key,
        "store": store.checksum(permutations),
    }


def find_stores(folders: Iterable[Path]) -> list[Path]:
    """Return all stores in the folders or below them; InputError for a folder without one."""
    found: list[Path] = []
    for folder in folders:
        inside = sorted(path.parent for path in folder.rglob("store.json"))
        if not inside:
            raise InputError(f"{folder}: no store in it; name what --store of the audit named")
        found += inside
    return list(dict.fromkeys(found))


def recompute(directory: Path, audited: Sequence[Row] | None = None) -> list[Row]:
    """Check every byte of a store, and return `columns_of` it for each test.

    The tests are those that `audited` (of `read_audit`) has of this store, else all that read such
    a store by default: none reads alternatives, since a store does not say of what they are.
    Raises InputError if the store is damaged or lacks what a test reads.
    """
    store = open_store(directory)
    held, header = store.permutations(), store.header
    if audited is None:
        asked = {name: held for name, test in TESTS.items() if _reads(test, header)}
        if not asked:
            return [columns_of(store, None)]
    else:
        rows = [row for row in audited if row["header"] == header.key]
        asked = {row["test"]: int(row["permutations"]) for row in rows}
    if header.kind == "orderings" and (most := max(asked.values(), default=0)) > held:
        raise InputError(f"{directory}: {held} permutations of {most} are whole; score it again")
    return [columns_of(store, TESTS[test].result(store, each)) for test, each in asked.items()]


def _reads(test: Test, header: Header) -> bool:
    orders = header.kind == "orderings"
    return (
        header.kind != "alternatives"
        and (test.kind, test.tokens_per_example) == (header.kind, header.tokens_per_example)
        and not (orders and (test.shard_size is None) != (header.shards == 1))
        and not (orders and header.summed and test.on_tokens.get(test.b) is not summed)
    )


def read_audit(path: Path) -> list[Row]:
    """Read the tests in a table of `contamination audit --csv`, as text; `line` is a row's line.

    Raises InputError for what is no such table.
    """
    rows: list[Row] = []
    with path.open(encoding="utf-8", newline="") as file:
        read = csv.DictReader(file)
        try:
            for row in read:
                if row["p"]:
                    _ = TESTS[row["test"]], int(row["permutations"]), float(row["log10 p"])
                    _ = row["header"], row["model"], row["set"]
                    rows.append(row | {"line": read.line_num})
        except (csv.Error, KeyError, TypeError, ValueError) as error:
            what = f"line {read.line_num} is no row of `contamination audit --csv`"
            raise InputError(f"{path}: {what}; write the table again") from error
    return rows


def differences(audited: Sequence[Row], found: Sequence[Row]) -> list[str]:
    """Return a line for each number of an audit's table that the rows of `recompute` do not give.

    p (Holm) is that of all rows of the table.
    """
    lines = []
    log10_p = [float(row["log10 p"]) for row in audited]
    holm = adjust(log10_p=log10_p, method="holm").p if log10_p else ()
    for row, holm_p in zip(audited, holm, strict=True):
        where = f"line {row['line']}, {row['model']} on {row['set']}"
        same = [each for each in found if all(each[key] == row[key] for key in ("header", "test"))]
        if not same:
            lines.append(f"{where}: no whole store of it among those given; name its --store")
        for each in same:
            for name, value in (each | {"p (Holm)": float(holm_p)}).items():
                if not _same(row.get(name), value):
                    lines.append(f"{where}: {name} is {row.get(name)}, and its store gives {value}")
    return lines


def _same(text: str | None, value: object) -> bool:
    if not isinstance(value, float):
        return text == str(value)
    try:
        return math.isclose(float(text or "nan"), value, rel_tol=TOLERANCE)
    except ValueError:
        return False
