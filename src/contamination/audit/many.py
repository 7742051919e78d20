"""Every model on every set, with one correction over all that was asked (Oren, section 4.3).

A pair that cannot be audited keeps its reason, and the others are audited.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
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
# Of the table, in order; up to log10 p and from the revisions on they are of its store alone.
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
# The names of a model and a set, and what was found, or why nothing was (`status_of`).
Pair = tuple[str, str, Audit | str]


def _tried(work: Callable[[], T]) -> T | str:
    """Return what came of it, or why nothing did."""
    try:
        return work()
    except FAILURES as error:
        return status_of(error)


def audit_pairs(
    models: Sequence[str],
    sets: Mapping[str, Callable[[], ExampleSet]],
    request: Request,
    open_model: Callable[[str], Scorer],
) -> Iterator[Pair]:
    """Audit every model on every set, as `run_audit` does; a model is opened once.

    Parameters
    ----------
    sets : name -> how the set is opened, once. Sets that would share a store, such as two files of
        one stem, are called by these names.
    request : of all pairs alike; its axis is the order of records.
    """
    if len({label(model) for model in models}) < len(models):
        raise InputError("two models have one name, and would share stores: rename a folder")
    if request.axis != "order":
        raise InputError("of many sets the order of records is tested: give axis='order'")
    opened = {name: _tried(load) for name, load in sets.items()}
    count = Counter(each.name for each in opened.values() if isinstance(each, ExampleSet))
    for name, each in opened.items():
        if isinstance(each, ExampleSet) and count[each.name] > 1:
            opened[name] = replace(each, name=name)
    for model in models:
        scorer = _tried(partial(open_model, model))
        asked = replace(request, name=label(model))
        for name, examples in opened.items():
            missing = [why for why in (scorer, examples) if isinstance(why, str)]
            found = missing[0] if missing else _tried(partial(run_audit, scorer, examples, asked))
            yield label(model), name, found
        del scorer  # its memory, before the next one is loaded


def judged_rows(pairs: Sequence[Pair], *, alpha: float) -> list[dict[str, Any]]:
    """Return a row for each test of each pair, or one with the reason why there is none.

    p (Holm) is corrected over all tests of all pairs together, and the verdict rests on it. `power`
    says how likely copies would have been found, by study. `other tests` are those of the same
    model and set by other commands, for which nothing is corrected. What does not apply is None;
    the verdict of a pair that was not audited is its status. Each store is read once more, for its
    checksum.
    """
    audits = [found for _, _, found in pairs if isinstance(found, Audit)]
    log10_p = list[float]()
    for one in audits:
        log10_p += [result.log10_p for result in one.results]
    corrected = iter(adjust(log10_p=log10_p, method="holm").p if log10_p else ())
    about = {"alpha": alpha, "version": version("contamination")}
    rows: list[dict[str, Any]] = []
    for model, name, found in pairs:
        if isinstance(found, str):
            status, _, reason = found.partition(": ")
            failed = {"model": model, "set": name, "verdict": status, "reason": reason}
            rows.append(dict.fromkeys(COLUMNS) | failed | about)
            continue
        p_values = [float(next(corrected)) for _ in found.results]
        verdict = decide(found.evidence(p_values, len(log10_p)), alpha=alpha)
        judged = {
            "verdict": verdict.conclusion,
            "reason": verdict.reason,
            "objections": "; ".join(verdict.objections),
        }
        for finding, holm_p in zip(found.findings, p_values, strict=True):
            row = dict.fromkeys(COLUMNS) | _row_of(finding, verdict)
            row["p (Holm)"] = holm_p
            row["precision"] = found.precision
            row["other tests"] = "; ".join(other.what for other in found.other_tests)
            rows.append(row | judged | about)
    return rows


def _row_of(finding: Finding, verdict: Verdict) -> dict[str, Any]:
    """Return what a row has of one test: its store, its controls, and its power."""
    assert finding.store is not None
    row = columns_of(finding.store, finding.result)
    if finding.diagnosis is not None:
        row["order"] = finding.diagnosis.verdict
    if finding.zlib is not None:
        row["compressor"] = finding.zlib.p
    test = finding.result.test
    row["power"] = power_in_words([power for power in verdict.power if power.test == test])
    return row
