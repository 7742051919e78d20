"""Every model on every set, with one correction over all that was asked (Oren, section 4.3).

A pair that cannot be audited keeps its reason, and the others are audited.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from contamination.audit.conclusion import Verdict, conclude, evidence_of
from contamination.audit.request import Request
from contamination.audit.verdict import Audit, audit
from contamination.errors import InputError
from contamination.scoring.contract import Scorer
from contamination.scoring.models import label
from contamination.scoring.status import FAILURES, status_of
from contamination.statistics import adjust
from contamination.testsets.example_set import ExampleSet

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Pair:
    """A model and a set: what was found, or why nothing was (`scoring.status.status_of`).

    `holm_p` are the p-values of its tests, corrected over all pairs, and `verdict` is that on them,
    once `judge_pairs` has judged.
    """

    model: str
    dataset: str
    found: Audit | None = None
    failed: str = ""
    holm_p: tuple[float, ...] = ()
    verdict: Verdict | None = None


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
    """Audit every model on every set, as `contamination.audit.audit` does; a model is opened once.

    Parameters
    ----------
    sets : name -> how the set is opened, once. Sets that would share a store, such as two files of
        one stem, are called by these names.
    request : of all pairs alike; its axis is the order of records.
    """
    if len({label(model) for model in models}) < len(models):
        raise InputError("two models have one name, and would share stores: rename a folder")
    if request.axis != "order":
        raise InputError("many sets are audited by the order of their records: leave out --axis")
    opened = {name: _tried(load) for name, load in sets.items()}
    count = Counter(each.name for each in opened.values() if isinstance(each, ExampleSet))
    for name, each in opened.items():
        if isinstance(each, ExampleSet) and count[each.name] > 1:
            opened[name] = replace(each, name=name)
    for model in models:
        scorer, asked = _tried(partial(open_model, model)), replace(request, name=label(model))
        for name, examples in opened.items():
            missing = [why for why in (scorer, examples) if isinstance(why, str)]
            found = missing[0] if missing else _tried(partial(audit, scorer, examples, asked))
            if isinstance(found, str):
                yield Pair(model, name, failed=found)
            else:
                yield Pair(model, name, found)
        del scorer  # its memory, before the next one is loaded


def judge_pairs(pairs: Sequence[Pair], *, alpha: float) -> list[Pair]:
    """Correct the p-values of all tests of all pairs together by Holm's method, and judge each."""
    found = [pair.found for pair in pairs if pair.found is not None]
    log10_p = [result.log10_p for one in found for result in one.results]
    corrected = iter(adjust(log10_p=log10_p, method="holm").p if log10_p else ())
    judged = []
    for pair in pairs:
        if pair.found is not None:
            p = tuple(float(next(corrected)) for _ in pair.found.results)
            verdict = conclude(evidence_of(pair.found, p, len(log10_p)), alpha=alpha)
            pair = replace(pair, holm_p=p, verdict=verdict)
        judged.append(pair)
    return judged
