"""Decide the verdicts of an audit's table again, by the rule that wrote them.

p-values, their least values and equal answers are those that the stores give. The
columns of controls and of the order are taken from the table: they read the records,
which no store holds.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from contamination.audit.decision import STATUSES, Verdict, decide
from contamination.audit.objections import ZLIB_BASELINE, Evidence
from contamination.audit.recompute_sides import AXIS

# Of a table, in order: what no store gives, what no row does, and what its author has chosen.
NOT_COMPARED = (
    "order",
    "compressor",
    "blind",
    "reason (but for its p-values)",
    "objections",
    "power",
    "alpha",
    "version",
    "precision",
    "other tests",
)
DECIDED = ("order", AXIS)  # axes whose verdict rests on the p (Holm) of each test
# How most reasons begin. Earlier tables do not say that p is corrected.
MEASURED = re.compile(r"p(?: \(Holm\))? = (?P<measured>\S+ \([^)]*\))")
DECLARED = "the author states that the order was drawn at random"
POSITIVE = 1  # exit status of "proven" and "evidence"
Row = Mapping[str, Any]


def verdict_differences(
    audited: Sequence[Row],
    stored: Sequence[Row | None],
    holm_p: Sequence[float],
) -> list[str]:
    """Return a line for each verdict that does not follow from its row and its store.

    For each row of `audited` (`contamination.audit.recompute.read_audit`), `stored` has
    that of `contamination.audit.recompute.recompute`, None where no store gives one and
    its verdict is left out, and `holm_p` has p, corrected over all rows.
    """
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, row in enumerate(audited):
        pair = (row["model"], row["model revision"], row["set"], row["set revision"])
        groups.setdefault((*pair, row["axis"]), []).append(number)
    lines = []
    for numbers in groups.values():
        rows = [audited[number] for number in numbers]
        from_stores = [stored[number] for number in numbers]
        whole = [again for again in from_stores if again is not None]
        if rows[0]["axis"] not in DECIDED or len(whole) < len(rows):
            continue
        p_values = [holm_p[number] for number in numbers]
        lines += _differences_of_pair(rows, whole, p_values, corrected_for=len(audited))
    return lines


def _differences_of_pair(
    rows: Sequence[Row],
    stored: Sequence[Row],
    p_values: Sequence[float],
    corrected_for: int,
) -> list[str]:
    """Return the differences of the rows that share one verdict."""
    lines = []
    for row in rows:
        possible = []
        for declared in (False, True):
            evidence = []
            for of_test, again, p in zip(rows, stored, p_values, strict=True):
                evidence.append(_evidence(of_test, again, p, corrected_for, declared))
            possible.append(decide(evidence, alpha=row["alpha"]))
        undeclared, if_declared = possible
        problem = _problem(row, undeclared)
        if problem and _may_be_declared(row) and not _problem(row, if_declared):
            continue
        if problem:
            lines.append(f"line {row['line']}, {row['model']} on {row['set']}: {problem}")
    return lines


def _may_be_declared(row: Row) -> bool:
    """Return whether an order may have been stated to be drawn: a positive reason says it."""
    return STATUSES.get(row["verdict"]) != POSITIVE or DECLARED in row["reason"]


def _evidence(row: Row, stored: Row, p: float, corrected_for: int, declared: bool) -> Evidence:
    """Return the evidence of one row, by what its store gives and its corrected p.

    `declared` says whether the author may have stated that the order was drawn; no
    column does.
    """
    of_sides = row["axis"] == AXIS
    controls = {}
    if row["compressor"] is not None and not declared:
        controls[ZLIB_BASELINE] = row["compressor"]
    if row["control"] is not None:
        controls["the control"] = row["control"]
    return Evidence(
        test=row["test"],
        p=p,
        floor=min(1.0, corrected_for * 10 ** stored["log10 least"]),
        order="quiet" if of_sides or declared else row["order"],
        controls=controls,
        corrected_for=corrected_for,
        drawn=declared and not of_sides,
        declared=declared and not of_sides,
        answers_problem=stored["answers problem"],
        of_sides=of_sides,
        blind_p=1.0 if row["blind"] is None else row["blind"],
    )


def _problem(row: Row, decided: Verdict) -> str:
    """Return what a written verdict says that does not follow, "" for one that follows."""
    if row["verdict"] != decided.conclusion:
        return (
            f"verdict is {row['verdict']}, and its p-values and controls at alpha "
            f"{row['alpha']:g} give {decided.conclusion}"
        )
    expected = MEASURED.match(decided.reason)
    if expected is None:
        return ""
    written = MEASURED.match(row["reason"])
    if written is None or written["measured"] != expected["measured"]:
        return f"reason is {row['reason'][:60]!a}, and its p-values give {expected[0]}"
    return ""
