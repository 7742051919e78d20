"""The models of a command: opened, then planned or audited, and released."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from contamination.audit.request import Request
from contamination.cli.choices import (
    ModelChoice,
    SetChoice,
    TextChoice,
    open_scorer,
    open_set,
    open_set_of_items,
)
from contamination.cli.methods import Method
from contamination.cli.report import PlannedWork, print_generation_plans, print_plans
from contamination.errors import InputError

if TYPE_CHECKING:
    from contamination.audit.result import Audit
    from contamination.audit.sides_plan import SidesPlan
    from contamination.scoring.contract import Scorer
    from contamination.testsets.example_set import ExampleSet
    from contamination.testsets.variants import VariantSet


@dataclass(frozen=True)
class OpenedModel:
    """A model that was opened, with its name as typed and the request of its tests."""

    name: str
    request: Request
    model: Any


def open_set_with_variants(
    choice: SetChoice, request: Request, *, arrangements: int
) -> tuple["ExampleSet", "VariantSet | None"]:
    """Return the set, and the arrangements of its options if they are tested.

    `arrangements` of each item are made, the published one included. Bad input is
    reported here, before torch is imported: a set that cannot be opened, and too few
    items with options that may move.
    """
    if request.axis == "order":
        return open_set(choice), None
    examples = open_set_of_items(choice)
    template = None if choice.typed_template is None else examples.template
    arranged = replace(request, arrangements=arrangements)
    return examples, arranged.option_variants(examples, template=template)


def open_models(
    names: Sequence[str],
    requests: Sequence[Request],
    method: Method,
) -> list[OpenedModel]:
    """Open the model and, after it, its control, each with a request of its own.

    Raises InputError if a model cannot be opened, or a control has the weights of the
    model.
    """
    opened = list[OpenedModel]()
    for name, request in zip(names, requests, strict=True):
        model = method.open_model(name)
        for before in opened:
            require_other_weights(name, model.revision, before.model.revision)
        opened.append(OpenedModel(name, request, model))
    return opened


def open_control(control: str, choice: ModelChoice, model: "Scorer") -> "Scorer":
    """Return the scorer of a control, opened as `choice` says of the model and its control.

    Raises InputError if it has the weights of the model.
    """
    scorer = open_scorer(control, choice.of_model(control))
    require_other_weights(control, scorer.revision, model.revision)
    return scorer


def require_other_weights(control: str, revision: str, of_model: str) -> None:
    """Raise InputError for a control that has the weights of the model, by both revisions."""
    if revision == of_model:
        raise InputError(f"--control {control} has the weights of MODEL: name another model")


def print_dry_run(
    opened: list[OpenedModel],
    method: Method,
    text: TextChoice | None,
    *,
    as_json: bool,
    sides: "SidesPlan | None" = None,
) -> None:
    """Print how much there is to score or, by the options in `text`, to write, by model.

    `sides` is the plan of a comparison of two sides, if there is one.
    """
    from contamination.scoring.processes import processes

    planned = plan_models(opened, method)
    if not processes().is_main_process:
        return
    if text is None:
        print_plans(planned, sides=sides, as_json=as_json)
    else:
        print_generation_plans(planned, text, as_json=as_json)


def plan_models(opened: list[OpenedModel], method: Method) -> dict[str, PlannedWork]:
    """Return the plan of each work, by the model and, of several works, by the axis.

    `opened` is emptied: the weights of one model are released before the next is planned.
    """
    planned = dict[str, PlannedWork]()
    while opened:
        first = opened.pop(0)
        works = method.works(first.model, first.request)
        for work in works:
            name = first.name
            if len(works) > 1:
                name += f" ({work.request.axis})"
            planned[name] = PlannedWork(work.plan, work.request)
    return planned


def audit_models(opened: list[OpenedModel], method: Method) -> "Audit":
    """Return the audit of the model, with that of its control.

    `opened` is emptied: the weights of one model are released before the next are
    loaded.
    """
    audits = list["Audit"]()
    while opened:
        first = opened.pop(0)
        audits.append(method.audit(first.model, first.request))
        print_requests(first, method)
        del first
    if len(audits) == 1:
        return audits[0]
    from contamination.audit.run import with_control

    return with_control(audits[0], audits[1])


def print_requests(opened: OpenedModel, method: Method) -> None:
    """Print what an endpoint was asked; nothing of a model that runs here."""
    if method.choice.of_model(opened.name).endpoint is not None:
        print(opened.model.client.summary(), file=sys.stderr)
