"""Every model on every set (Oren, section 4.3); `rows` corrects over all tests.

A pair that cannot be audited keeps its reason, and the others are audited.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from contamination.audit.comparison import Comparison
from contamination.audit.controls.of_set import SetControls
from contamination.audit.held_out import BlindBaselines, SidesRequest, compare
from contamination.audit.recompute_sides import AXIS
from contamination.audit.request import Request
from contamination.audit.result import Audit
from contamination.audit.run import run_audit, with_control
from contamination.errors import InputError
from contamination.scoring.contract import Scorer
from contamination.scoring.models import label, label_control
from contamination.scoring.status import FAILURES, status_of
from contamination.testsets.example_set import ExampleSet

T = TypeVar("T")
SAME_WEIGHTS = "failed: the control has the weights of the model; name another one"


class Pair(NamedTuple):
    """A model on a set: what was found, or why there is nothing (`status_of`).

    `name` is that of the set, or what it was called by where it cannot be opened.
    `found` is an audit of the order, a comparison of the sides (whose `axis` is "held
    out"), or the reason in words.
    """

    model: str
    name: str
    found: Audit | Comparison | str
    axis: str = "order"


@dataclass(frozen=True)
class _Sets:
    """The sets of an audit, opened, and what is asked about each of them."""

    published: dict[str, ExampleSet | str]  # or why a set cannot be opened
    held_out: dict[str, ExampleSet | str]  # of some of these sets, likewise
    controls: dict[str, SetControls]  # of each published set that was opened
    baselines: dict[str, BlindBaselines]  # where both sides were opened
    request: Request  # of the tests of order
    sides: SidesRequest  # of the comparisons with held-out records


def audit_pairs(
    models: Sequence[str],
    sets: Mapping[str, Callable[[], ExampleSet]],
    request: Request,
    open_model: Callable[[str], Scorer],
    *,
    held_out: Mapping[str, Callable[[], ExampleSet]] | None = None,
    sides: SidesRequest = SidesRequest(),  # noqa: B008 - frozen
    control: str | None = None,
) -> Iterator[Pair]:
    """Yield the audit of every model on every set; a model is opened once.

    A set with held-out records has two pairs: the audit of its order, and the
    comparison of its sides.

    Parameters
    ----------
    models
        Models, named as `open_model` takes them.
    sets
        Name -> function that opens the set; it is called once. Sets that would share a
        store, such as two files of one stem, are called by these names.
    request
        The request of all pairs; its axis is the order of records.
    open_model
        Function that returns the scorer of a model.
    held_out
        Name of a set -> function that opens the records that a draw held back.
    sides
        How the sides are compared; directory and name are those of `request`.
    control
        A model that cannot have read any set. It takes all tests first.

    Raises
    ------
    InputError
        If two models have one name, the control is one of the models, the axis is
        another one, or records are held out of no set of the audit.
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
    for name in held_out or {}:
        if name not in sets:
            raise InputError(
                f"records are held out of {name}, which is no set of this audit: name it "
                "as the set is named",
                parameter="held_out",
            )
    opened = _open_all(sets, held_out or {}, request, sides)
    controls = {}
    if control is not None:
        # the whole path, where a model has the same name
        control_name = max((label_control(control, model) for model in models), key=len)
        for pair in _pairs_of(control, control_name, opened, open_model, is_control=True):
            controls[pair.name, pair.axis] = pair.found
    for model in models:
        for pair in _pairs_of(model, label(model), opened, open_model):
            of_control = controls.get((pair.name, pair.axis))
            yield pair._replace(found=_with_control(pair.found, of_control))


def _open_all(
    sets: Mapping[str, Callable[[], ExampleSet]],
    held_out: Mapping[str, Callable[[], ExampleSet]],
    request: Request,
    sides: SidesRequest,
) -> _Sets:
    """Open all sets, with what is computed once for all models."""
    published = _open_sets(sets)
    others = _open_sets(held_out)
    controls_of = {}
    baselines_of = {}
    for name, test_set in published.items():
        if not isinstance(test_set, ExampleSet):
            continue
        controls_of[name] = SetControls(test_set, request)
        kept_back = others.get(name)
        if isinstance(kept_back, ExampleSet):
            baselines_of[name] = BlindBaselines(test_set, kept_back, sides)
    return _Sets(
        published=published,
        held_out=others,
        controls=controls_of,
        baselines=baselines_of,
        request=request,
        sides=sides,
    )


def _pairs_of(
    model: str,
    model_name: str,
    sets: _Sets,
    open_model: Callable[[str], Scorer],
    *,
    is_control: bool = False,
) -> Iterator[Pair]:
    """Yield the pairs of one model, which is opened once."""
    scorer = _tried(partial(open_model, model))
    request = replace(sets.request, name=model_name)
    sides = replace(sets.sides, name=model_name, directory=Path(request.directory))
    for name, published in sets.published.items():
        shown = published.name if isinstance(published, ExampleSet) else name
        found: Audit | Comparison | str
        if isinstance(scorer, str):
            found = scorer
        elif isinstance(published, str):
            found = published
        else:
            controls = sets.controls[name]
            audit = partial(run_audit, scorer, published, request, controls=controls)
            found = _tried(partial(audit, timed=False))  # the table shows no forecast
        yield Pair(model_name, shown, found)
        if name not in sets.held_out:
            continue
        others = sets.held_out[name]
        if isinstance(scorer, str):
            found = scorer
        elif isinstance(published, str):
            found = published
        elif isinstance(others, str):
            found = others
        else:
            blind = sets.baselines[name]
            comparison = partial(compare, scorer, blind.suspect, blind.held_out, sides)
            found = _tried(partial(comparison, baselines=blind, is_control=is_control))
        yield Pair(model_name, shown, found, AXIS)


def _with_control(
    found: Audit | Comparison | str, control: Audit | Comparison | str | None
) -> Audit | Comparison | str:
    """Return what was found with what the control gave; a control that failed is told."""
    if isinstance(found, str) or control is None:
        return found
    if isinstance(control, str):
        status, _, reason = control.partition(": ")
        return f"{status}: the control: {reason}"
    if isinstance(found, Audit) and isinstance(control, Audit):
        if found.header.model_revision == control.header.model_revision:
            return SAME_WEIGHTS
        return with_control(found, control)
    assert isinstance(found, Comparison) and isinstance(control, Comparison)
    if found.store.header.model_revision == control.store.header.model_revision:
        return SAME_WEIGHTS
    return replace(found, control=control)


def _open_sets(
    sets: Mapping[str, Callable[[], ExampleSet]],
) -> dict[str, ExampleSet | str]:
    """Return each set, or why it cannot be opened; sets of one name get their keys.

    A set that cannot be opened is called by its key.
    """
    opened = {name: _tried(open_set) for name, open_set in sets.items()}
    count = Counter[str]()
    for name, test_set in opened.items():
        count[test_set.name if isinstance(test_set, ExampleSet) else name] += 1
    for name, test_set in opened.items():
        if isinstance(test_set, ExampleSet) and count[test_set.name] > 1:
            opened[name] = replace(test_set, name=name)
    return opened


def _tried(work: Callable[[], T]) -> T | str:
    """Return the result of some work, or the status of its failure."""
    try:
        return work()
    except FAILURES as error:
        return status_of(error)
