"""Every model on every set, with one correction over all tests (Oren, section 4.3).

A pair that cannot be audited keeps its reason, and the others are audited.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any, TypeVar

from contamination.audit.decision import Verdict, decide
from contamination.audit.finding import Finding
from contamination.audit.power import power_in_words
from contamination.audit.recompute import columns_of
from contamination.audit.request import Request
from contamination.audit.result import Audit
from contamination.audit.run import run_audit
from contamination.errors import InputError
from contamination.scoring.contract import Scorer
from contamination.scoring.models import label
from contamination.scoring.status import FAILURES, status_of
from contamination.statistics import adjust
from contamination.testsets.example_set import ExampleSet

T = TypeVar("T")
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
    "template",
    "seed",
    "tokens",
    "header",
    "store",
)
# The names of a model and a set, and their audit, or why there is none (`status_of`).
Pair = tuple[str, str, Audit | str]


def audit_pairs(
    models: Sequence[str],
    sets: Mapping[str, Callable[[], ExampleSet]],
    request: Request,
    open_model: Callable[[str], Scorer],
) -> Iterator[Pair]:
    """Yield the audit of every model on every set; a model is opened once.

    Parameters
    ----------
    models
        As `open_model` takes them.
    sets
        Name -> how the set is opened, once. Sets that would share a store, such as two
        files of one stem, are called by these names.
    request
        Of all pairs alike; its axis is the order of records.
    open_model
        Returns the scorer of a model.

    Raises
    ------
    InputError
        If two models have one name, or the axis is another one.
    """
    if len({label(model) for model in models}) < len(models):
        raise InputError(
            "two models have one name, and would share stores: rename a folder",
        )
    if request.axis != "order":
        raise InputError(
            "of many sets the order of records is tested: give axis='order'",
            parameter="axis",
        )
    opened = _open_sets(sets)
    for model in models:
        scorer = _tried(open_model, model)
        named = replace(request, name=label(model))
        for name, test_set in opened.items():
            audit: Audit | str
            if isinstance(scorer, str):
                audit = scorer
            elif isinstance(test_set, str):
                audit = test_set
            else:
                audit = _tried(run_audit, scorer, test_set, named)
            yield label(model), name, audit
        del scorer  # its memory, before the next one is loaded


def _open_sets(
    sets: Mapping[str, Callable[[], ExampleSet]],
) -> dict[str, ExampleSet | str]:
    """Return each set, or why it cannot be opened; sets of one name get their keys."""
    opened = {name: _tried(open_set) for name, open_set in sets.items()}
    count = Counter[str]()
    for test_set in opened.values():
        if isinstance(test_set, ExampleSet):
            count[test_set.name] += 1
    for name, test_set in opened.items():
        if isinstance(test_set, ExampleSet) and count[test_set.name] > 1:
            opened[name] = replace(test_set, name=name)
    return opened


def _tried(work: Callable[..., T], *arguments: Any) -> T | str:
    """Return the result of some work, or the status of its failure."""
    try:
        return work(*arguments)
    except FAILURES as error:
        return status_of(error)


def judged_rows(pairs: Sequence[Pair], *, alpha: float) -> list[dict[str, Any]]:
    """Return a row for each test of each pair, or one with the reason why there is none.

    p (Holm) is corrected over all tests of all pairs together, and the verdict rests on
    it. `power` says how likely copies would have been found, by study. `other tests`
    are those of the same model and set by other commands, for which nothing is
    corrected. What does not apply is None; the verdict of a pair that was not audited
    is its status. Each store is read once more, for its checksum.
    """
    corrected = _corrected_p(pairs)
    tests = sum(len(p_values) for p_values in corrected)
    about = {"alpha": alpha, "version": version("contamination")}
    rows: list[dict[str, Any]] = []
    for (model, name, audit), p_values in zip(pairs, corrected, strict=True):
        if isinstance(audit, str):
            row = dict.fromkeys(COLUMNS) | _row_of_failure(model, name, audit)
            rows.append(row | about)
            continue
        verdict = decide(audit.evidence(p_values, tests), alpha=alpha)
        other = "; ".join(test.what for test in audit.other_tests)
        for finding, holm_p in zip(audit.findings, p_values, strict=True):
            row = dict.fromkeys(COLUMNS) | _row_of_test(finding, verdict)
            row["p (Holm)"] = holm_p
            row["precision"] = audit.precision
            row["other tests"] = other
            rows.append(row | about)
    return rows


def _corrected_p(pairs: Sequence[Pair]) -> list[list[float]]:
    """Return the p-values of each pair after Holm's correction over all pairs."""
    log10_p = list[float]()
    counts = []
    for _, _, audit in pairs:
        results = () if isinstance(audit, str) else audit.results
        log10_p += [result.log10_p for result in results]
        counts.append(len(results))
    if not log10_p:
        return [[] for _ in pairs]
    corrected = adjust(log10_p=log10_p, method="holm").p
    of_pairs = []
    start = 0
    for count in counts:
        of_pairs.append([float(p) for p in corrected[start : start + count]])
        start += count
    return of_pairs


def _row_of_failure(model: str, name: str, failure: str) -> dict[str, Any]:
    """Return the columns of a pair that was not audited."""
    status, _, reason = failure.partition(": ")
    return {"model": model, "set": name, "verdict": status, "reason": reason}


def _row_of_test(finding: Finding, verdict: Verdict) -> dict[str, Any]:
    """Return the columns of one test: store, controls, power and verdict."""
    assert finding.store is not None
    row = columns_of(finding.store, finding.result)
    if finding.diagnosis is not None:
        row["order"] = finding.diagnosis.verdict
    if finding.zlib is not None:
        row["compressor"] = finding.zlib.p
    test = finding.result.test
    row["power"] = power_in_words(
        [power for power in verdict.power if power.test == test],
    )
    row["verdict"] = verdict.conclusion
    row["reason"] = verdict.reason
    row["objections"] = "; ".join(verdict.objections)
    return row
