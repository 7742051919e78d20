"""The table of an audit: a row for each test, with one correction over all of them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from contamination.audit.comparison import Comparison
from contamination.audit.decision import STATUSES, Verdict, decide
from contamination.audit.finding import Finding
from contamination.audit.many import Pair
from contamination.audit.other_tests import other_tests
from contamination.audit.power import power_in_words
from contamination.audit.recompute import columns_of
from contamination.audit.recompute_sides import AXIS, columns_of_sides
from contamination.audit.result import Audit
from contamination.statistics import adjust

# Of the table, in order; up to log10 p and from the revisions on they are of its store
# alone.
COLUMNS: tuple[str, ...] = (
    "model",
    "set",
    "axis",
    "test",
    "shards",
    "permutations",
    "statistic",
    "p",
    "log10 p",
    "p (Holm)",
    "order",
    "compressor",
    "blind",
    "control",
    "verdict",
    "reason",
    "objections",
    "power",
    "alpha",
    "version",
    "precision",
    "other tests",
    "model revision",
    "set revision",
    "held-out set",
    "held-out revision",
    "template",
    "seed",
    "tokens",
    "header",
    "control header",
    "store",
)


def judged_rows(pairs: Sequence[Pair], *, alpha: float) -> list[dict[str, Any]]:
    """Return a row for each test of each pair, or one with the reason why there is none.

    p (Holm) is corrected over all tests of all pairs together, and the verdict rests on
    it: one for the order of a set, and one for its sides. `power` says how likely
    copies would have been found, by study. `blind` is p of baselines that tell the
    sides apart without a model, and `control` that of the control model, from the store
    of the `control header`. `other tests` are those of the same model and set by other
    commands, for which nothing is corrected. What does not apply is None; the verdict
    of a pair that was not audited is its status. Each store is read once more, for its checksum.
    """
    corrected = _corrected_p(pairs)
    tests = sum(len(p_values) for p_values in corrected)
    others = _other_tests(pairs)
    about = {"alpha": alpha, "version": version("contamination")}
    rows: list[dict[str, Any]] = []
    for pair, p_values in zip(pairs, corrected, strict=True):
        found = pair.found
        if isinstance(found, str):
            rows.append(dict.fromkeys(COLUMNS) | _row_of_failure(pair, found) | about)
            continue
        if isinstance(found, Comparison):
            evidence = [found.evidence(p_values[0], tests)]
            measured = [_row_of_sides(found)]
        else:
            evidence = found.evidence(p_values, tests)
            measured = _rows_of_order(found)
        verdict = decide(evidence, alpha=alpha)
        for of_test, holm_p in zip(measured, p_values, strict=True):
            row = dict.fromkeys(COLUMNS) | of_test | _columns_of_verdict(verdict, of_test["test"])
            row["p (Holm)"] = holm_p
            row["precision"] = found.precision
            row["other tests"] = others[pair.model, pair.name]
            rows.append(row | about)
    return rows


def count_verdicts(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return how many pairs have each verdict, and how many could not be audited.

    Examples
    --------
    >>> of_set = {"model": "a model", "axis": "order"}
    >>> rows = [of_set | {"set": "a", "verdict": "evidence"}]
    >>> rows += 2 * [of_set | {"set": "b", "verdict": "proven"}]  # a set with two tests
    >>> count_verdicts(rows)
    'proven: 1; evidence: 1'
    """
    verdict_of_pair = {(row["model"], row["set"], row["axis"]): row["verdict"] for row in rows}
    counts = Counter(verdict_of_pair.values())
    ordered = [verdict for verdict in STATUSES if counts[verdict]]
    ordered += [verdict for verdict in counts if verdict not in STATUSES]
    return "; ".join(f"{verdict}: {counts[verdict]}" for verdict in ordered)


def _corrected_p(pairs: Sequence[Pair]) -> list[list[float]]:
    """Return the p-values of each pair after Holm's correction over all pairs."""
    log10_p = list[float]()
    counts = []
    for pair in pairs:
        of_pair = _log10_p(pair.found)
        log10_p += of_pair
        counts.append(len(of_pair))
    if not log10_p:
        return [[] for _ in pairs]
    corrected = adjust(log10_p=log10_p, method="holm").p
    of_pairs = []
    start = 0
    for count in counts:
        of_pairs.append([float(p) for p in corrected[start : start + count]])
        start += count
    return of_pairs


def _log10_p(found: Audit | Comparison | str) -> list[float]:
    """Return log10 p of each test that was made."""
    if isinstance(found, str):
        return []
    if isinstance(found, Comparison):
        return [found.result.log10_p]
    return [result.log10_p for result in found.results]


def _other_tests(pairs: Sequence[Pair]) -> dict[tuple[str, str], str]:
    """Return the tests of a model and a set that are of no pair of this audit."""
    stores: dict[tuple[str, str], list[Path]] = {}
    own: dict[tuple[str, str], list[Path]] = {}
    for pair in pairs:
        key = (pair.model, pair.name)
        if isinstance(pair.found, Comparison):
            stores.setdefault(key, []).append(pair.found.store.directory)
            own.setdefault(key, []).append(pair.found.store.note)
        elif isinstance(pair.found, Audit):
            stores.setdefault(key, []).extend(pair.found.stores)
            own.setdefault(key, []).extend(pair.found.test_notes)
    told = {}
    for key, directories in stores.items():
        others = other_tests(directories, own[key])
        told[key] = "; ".join(test.what for test in others)
    return told


def _row_of_failure(pair: Pair, failure: str) -> dict[str, Any]:
    """Return the columns of a pair that was not audited."""
    status, _, reason = failure.partition(": ")
    row = {"model": pair.model, "set": pair.name, "verdict": status, "reason": reason}
    if pair.axis == AXIS:
        row["axis"] = AXIS
    return row


def _rows_of_order(audit: Audit) -> list[dict[str, Any]]:
    """Return the columns of each test of an order: its store and its controls."""
    rows = []
    for number, finding in enumerate(audit.findings):
        row = _row_of_test(finding)
        if audit.control is not None:
            row |= _columns_of_control(audit.control.findings[number])
        rows.append(row)
    return rows


def _columns_of_control(finding: Finding) -> dict[str, Any]:
    """Return the columns of the same test under the control."""
    assert finding.store is not None
    return {"control": finding.result.p, "control header": finding.store.header.key}


def _row_of_test(finding: Finding) -> dict[str, Any]:
    """Return the columns of one test: its store, and controls without a model."""
    assert finding.store is not None
    row = columns_of(finding.store, finding.result)
    if finding.diagnosis is not None:
        row["order"] = finding.diagnosis.verdict
    if finding.zlib is not None:
        row["compressor"] = finding.zlib.p
    return row


def _row_of_sides(comparison: Comparison) -> dict[str, Any]:
    """Return the columns of a comparison: its store and its controls."""
    row = columns_of_sides(comparison.store, comparison.result)
    if comparison.blind is not None:
        row["blind"] = comparison.blind.p
    if comparison.control is not None:
        row["control"] = comparison.control.result.p
        row["control header"] = comparison.control.store.key
    return row


def _columns_of_verdict(verdict: Verdict, test: str) -> dict[str, Any]:
    """Return what a verdict says of one of its tests."""
    power = [power for power in verdict.power if power.test == test]
    return {
        "power": power_in_words(power),
        "verdict": verdict.conclusion,
        "reason": verdict.reason,
        "objections": "; ".join(verdict.objections),
    }
