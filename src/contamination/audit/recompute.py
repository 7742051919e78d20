"""Compute an audit again from its stores: checksums, p-values and verdicts, without a model.

Diagnoses and the zlib baseline are left out: they read the records, which no store
holds.
"""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from contamination.audit.decision import STATUSES, log10_floor
from contamination.audit.other_tests import SIDES_HEADER, count_notes, noted_tests
from contamination.audit.recompute_sides import AXIS, recompute_sides
from contamination.audit.recompute_verdict import NOT_COMPARED, verdict_differences
from contamination.audit.registry import OPTION_TEST, TESTS, Test
from contamination.audit.shard_scores import answers_problem
from contamination.audit.wordings import WORDINGS_TEST, wordings_test
from contamination.errors import InputError, csv_text
from contamination.scoring.store import Store, open_store
from contamination.scoring.store_checks import require_one_model
from contamination.scoring.store_format import Header
from contamination.statistics import TestResult, adjust
from contamination.statistics.results import outcome_row

TOLERANCE = 1e-9  # of what two machines compute from the same numbers, relative
TEXTS = (
    "model",
    "set",
    "axis",
    "test",
    "order",
    "verdict",
    "reason",
    "model revision",
    "set revision",
    "header",
)
NUMBERS = ("statistic", "p", "log10 p", "p (Holm)")
CONTROLS = ("compressor", "blind", "control")  # a number, or nothing
CONTROL_HEADER = "control header"  # of the store of `control`; earlier tables lack it
FOR_VERDICT = ("log10 least", "answers problem")  # of `recompute`, in no table
Row = dict[str, Any]


def columns_of(store: Store, result: TestResult) -> Row:
    """Return the columns of an audit's table that its store alone gives.

    `header` is the SHA-256 of what was scored, `store` that of all that the test has
    read.
    """
    header = store.header
    columns: Row = {
        "model": header.model,
        "set": header.dataset,
        "axis": _axis(header, result),
    }
    for name, value in outcome_row(result).items():
        columns[name.replace("_", " ")] = value
    columns["model revision"] = header.model_revision
    columns["set revision"] = header.dataset_revision
    columns["template"] = header.template
    columns["seed"] = header.seed
    columns["tokens"] = store.tokens_stored(result.permutations)
    columns["header"] = header.key
    columns["store"] = store.checksum(result.permutations)
    return columns


def recompute(directory: Path, audited: Sequence[Row] | None = None) -> list[Row]:
    """Check every byte of a store, and return `columns_of` it and FOR_VERDICT for each test.

    The tests of this store among the `audited` rows of `read_audit`, and among those of
    their controls, are computed. None computes the tests that were noted in a store of
    two sides, and in other stores every test that reads such a store by default; for
    variants that is the test of wordings if one was noted in the store, else the test
    of options. Raises InputError if the store is damaged, lacks what a test reads, or
    was filled by two models of a server.
    """
    if (directory / SIDES_HEADER).exists():
        asked = None if audited is None else set().union(*map(_headers, audited))
        return recompute_sides(directory, asked)
    store = open_store(directory)
    require_one_model(directory, store.served())
    held = store.permutations()
    permutations: dict[str, int] = {}  # of each test
    if audited is None and WORDINGS_TEST in noted_tests(directory):
        return [_with_least(store, wordings_test(store))]
    if audited is None:
        for name, test in TESTS.items():
            if _reads(test, store.header):
                permutations[name] = held
    else:
        for row in audited:
            if store.header.key in _headers(row):
                permutations[row["test"]] = int(row["permutations"])
    most = max(permutations.values(), default=0)
    if store.header.kind == "orderings" and most > held:
        raise InputError(
            f"{directory}: {held} permutations of {most} are whole; score it again",
        )
    rows = []
    for name, count in permutations.items():
        test = TESTS[name]
        scores = test.scores(store, count)
        row = _with_least(store, test.result_from_scores(store, scores))
        rows.append(row | {"answers problem": answers_problem(scores)})
    return rows


def _headers(row: Row) -> tuple[str, ...]:
    """Return the headers of what a row of `read_audit` was tested on: its own, its control's."""
    return row["header"], row.get(CONTROL_HEADER, "")


def _with_least(store: Store, result: TestResult) -> Row:
    """Return `columns_of` a store, and FOR_VERDICT where the answers have no problem."""
    least = log10_floor(result)
    return columns_of(store, result) | {"log10 least": least, "answers problem": ""}


def _axis(header: Header, result: TestResult) -> str:
    """Return what a test permutes: the order of records, options or wordings."""
    match header.kind:  # a kind that is left out fails the type check
        case "orderings" | "successors":
            return "order"
        case "alternatives":
            return WORDINGS_TEST if result.test == WORDINGS_TEST else "options"


def _reads(test: Test, header: Header) -> bool:
    """Return whether a test reads such a store by default."""
    if header.kind == "alternatives":
        return test.name == OPTION_TEST
    if test.kind != header.kind or test.tokens_per_example != header.tokens_per_example:
        return False
    reads_whole_set = test.shard_size is None
    if header.kind == "orderings" and reads_whole_set != (header.shards == 1):
        return False
    needs_tokens = test.tokens_per_example is None and not test.needs_sums_only
    return not (needs_tokens and header.summed)


def read_audit(path: Path) -> list[Row]:
    """Read the tests in the table of an audit: `NUMBERS`, the `line`, and text.

    Raises InputError for what is no such table, has no p-value, or a verdict without one.
    """
    rows: list[Row] = []
    unfounded = list[int]()
    # a spreadsheet may have put a byte order mark before the first column
    with path.open(encoding="utf-8-sig", newline="") as file:
        table = csv.DictReader(file)
        try:
            _require_columns(table.fieldnames or ())
            for row in table:
                if None in row or None in row.values():
                    raise ValueError("more or fewer cells than columns")
                if row["p"]:
                    rows.append(_audited(row) | {"line": table.line_num})
                elif row["verdict"] in STATUSES:
                    unfounded.append(table.line_num)
        except (csv.Error, ValueError) as error:
            raise InputError(
                f"{path}: line {table.line_num} is no row of an audit's table ({error}); "
                "write the table again"
            ) from error
    if unfounded:
        raise InputError(
            f"{path}: line {unfounded[0]} has a verdict and no p-value; write the table again"
        )
    if not rows:
        raise InputError(
            f"{path}: it has no p-value to verify; give the table that an audit has written",
        )
    return rows


def _require_columns(columns: Sequence[str]) -> None:
    """Raise ValueError for a table that lacks a column by which it is verified."""
    for name in (*TEXTS, *NUMBERS, "permutations", "alpha", *CONTROLS):
        if name not in columns:
            raise ValueError(f"no column {name!r}")


def _audited(row: Mapping[str, str]) -> Row:
    """Return a row with its numbers; raise ValueError for an unknown test or no number."""
    if row["axis"] != AXIS and row["test"] not in TESTS:
        raise ValueError(f"unknown test {row['test']!r}")
    if not row["permutations"].isdecimal():
        raise ValueError(f"{row['permutations']!r} is no number of permutations")
    numbers: dict[str, float | None] = {}
    for name in (*NUMBERS, "alpha"):
        numbers[name] = float(row[name])
    for name in CONTROLS:
        numbers[name] = float(row[name]) if row[name] else None
    return {**row, **numbers}


def differences(audited: Sequence[Row], computed: Sequence[Row]) -> list[str]:
    """Return a line for each number and verdict of an audit's table that its stores do not give.

    `audited` are rows of `read_audit`, at least one, over all of which p (Holm) is
    corrected; `computed` are rows of `recompute`.
    """
    lines = list[str]()
    log10_p = [row["log10 p"] for row in audited]
    holm = adjust(log10_p=log10_p, method="holm").p
    of_rows = list[Row | None]()
    for row, holm_p in zip(audited, holm, strict=True):
        where = f"line {row['line']}, {row['model']} on {row.get('set')}"
        stored = [again for again in computed if _is_same_test(again, row)]
        if not stored:
            lines.append(
                f"{where}: no whole store of it among those given; name its directory",
            )
        of_rows.append(stored[0] if stored else None)
        for again in stored:
            expected = again | {"p (Holm)": holm_p}
            for name, value in expected.items():
                if name not in FOR_VERDICT and not _agrees(name, row.get(name, ""), value):
                    lines.append(
                        f"{where}: {name} is {row.get(name, '')}, and its store gives {value}",
                    )
        for again in _of_control(row, computed):
            if not _is_its_control(row, again):
                lines.append(
                    f"{where}: control is {row['control']}, and the store of its header gives "
                    f"{again['p']} for {again['model']} on {again['set']}",
                )
    return lines + verdict_differences(audited, of_rows, holm.tolist())


def not_compared(audited: Sequence[Row], computed: Sequence[Row]) -> list[str]:
    """Return what `differences` does not compare: `control` is, if its stores are given."""
    columns = list(NOT_COMPARED)
    for row in audited:
        if row["control"] is not None and not _of_control(row, computed):
            return ["control", *columns]
    return columns


def count_left_out(directory: Path, computed: Sequence[Row]) -> int:
    """Return how many tests have read a store beside those of a table.

    `computed` are rows of `recompute` for this store and the table. A store without any
    note counts as one test, if no row of it is computed.
    """
    made = max(count_notes(directory), 1)
    return max(0, made - len(computed))


def _is_same_test(row: Row, other: Row) -> bool:
    """Return whether two rows are of the same test on the same scored text."""
    return bool(row["header"] == other["header"] and row["test"] == other["test"])


def _of_control(row: Row, computed: Sequence[Row]) -> list[Row]:
    """Return the row of `recompute` that is of the control of a row; none without its store."""
    of_control = row | {"header": row.get(CONTROL_HEADER)}
    return [again for again in computed if _is_same_test(again, of_control)]


def _is_its_control(row: Row, again: Row) -> bool:
    """Return whether a store gives the control of a row: another model, on the same set."""
    if row["control"] is None or again["set revision"] != row["set revision"]:
        return False
    is_other = again["model revision"] != row["model revision"]
    return is_other and _agrees("p", row["control"], again["p"])


def _agrees(name: str, written: Any, computed: Any) -> bool:
    """Return whether a cell is what its store gives; numbers within TOLERANCE."""
    if name in NUMBERS and math.isclose(written, computed, rel_tol=TOLERANCE):
        return True
    return bool(written == csv_text(str(computed)))
