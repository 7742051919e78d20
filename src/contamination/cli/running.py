"""The models of a command, one after the other: opened, planned or audited, and released."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from contamination.audit.request import CHOICES, Request
from contamination.cli.choices import (
    ModelChoice,
    SetChoice,
    TextChoice,
    open_set,
    open_set_of_items,
    sampling_of,
)
from contamination.errors import InputError

if TYPE_CHECKING:
    from contamination.audit.generation_plan import GenerationAudit
    from contamination.audit.plan import ScoringPlan, Work
    from contamination.audit.result import Audit
    from contamination.testsets.example_set import ExampleSet
    from contamination.testsets.variants import VariantSet

Works = Callable[[Any, Request], "Sequence[Work | GenerationAudit]"]


@dataclass(frozen=True)
class Opened:
    """A model that was opened: its name as typed, its request, and its scorer or generator."""

    name: str
    request: Request
    model: Any


def open_set_with_variants(
    choice: SetChoice, request: Request, *, arrangements: int
) -> tuple["ExampleSet", "VariantSet | None"]:
    """Return the set and the arrangements of its options; None where only records are tested.

    Bad input is reported here, before torch is imported.
    """
    declared = (choice.answer, choice.options, choice.other)
    if request.axis == "order":
        if any(declared):
            raise InputError("--answer, --options and --other need --axis options")
        return open_set(choice), None
    examples = open_set_of_items(choice)
    template = None if choice.typed_template is None else examples.template
    asked = replace(request, arrangements=arrangements)
    return examples, asked.option_variants(examples, template=template)


def open_models(
    names: Sequence[str], requests: Sequence[Request], open_model: Callable[[str], Any]
) -> list[Opened]:
    """Open the model and its control; refuse a control that has the weights of the model."""
    opened = list[Opened]()
    for name, request in zip(names, requests, strict=True):
        model = open_model(name)
        if any(model.revision == before.model.revision for before in opened):
            raise InputError(
                f"--control {name} has the weights of MODEL: name another model",
            )
        opened.append(Opened(name, request, model))
    return opened


def plan_models(opened: list[Opened], works_of: Works) -> "dict[str, ScoringPlan]":
    """Return the plan of each work, by the model and, of several works, by the axis as well."""
    plans = dict[str, "ScoringPlan"]()
    while opened:
        one = opened.pop(0)
        works = works_of(one.model, one.request)
        for work in works:
            name = one.name
            if len(works) > 1:
                name += f" ({work.request.axis})"
            plans[name] = work.plan
    return plans


def audit_models(
    opened: list[Opened],
    works_of: Works,
    audit: "Callable[..., Audit]",
    model: ModelChoice,
) -> "Audit":
    """Audit the works of the model, then those of its control, which comes with the audit.

    `opened` is emptied: the weights of one model are released before the next are
    loaded.
    """
    audits = list["Audit"]()
    while opened:
        one = opened.pop(0)
        audits.append(audit(*works_of(one.model, one.request)))
        if model.endpoint is not None:
            print(one.model.client.summary(), file=sys.stderr)
        del one
    if len(audits) == 1:
        return audits[0]
    from contamination.audit.run import with_control

    return with_control(audits[0], audits[1])


def scoring_works(
    examples: "ExampleSet", variants: "VariantSet | None", *, timed: bool = True
) -> Works:
    """Return the function that makes the work of scoring a set under a model."""
    return partial(_scoring_work, examples=examples, variants=variants, timed=timed)


def _scoring_work(
    scorer: Any,
    request: Request,
    *,
    examples: "ExampleSet",
    variants: "VariantSet | None",
    timed: bool,
) -> "list[Work]":
    from contamination.audit.plan import Work

    planned = None if variants is None else [variants]
    return [Work(scorer, examples, request, variants=planned, timed=timed)]


def audit_work(work: "Work", *, stop_at: float | None = None) -> "Audit":
    """Audit a work of scoring, shard by shard if a level to stop at is given."""
    from contamination.audit.run import run_audit

    return run_audit(
        work.scorer,
        work.test_set,
        work.request,
        variants=work.variants,
        stop_at=stop_at,
    )


def generation_works(
    examples: "ExampleSet",
    variants: "VariantSet | None",
    text: TextChoice,
    request: Request,
) -> Works:
    """Return the function that makes the work of having a model write about a set."""
    return partial(
        _generation_work,
        examples=examples,
        variants=variants,
        sampling=sampling_of(text, request.axis),
        quiz=text.quiz,
    )


def _generation_work(
    generator: Any,
    request: Request,
    *,
    examples: "ExampleSet",
    variants: "VariantSet | None",
    sampling: Any,
    quiz: bool,
) -> "list[GenerationAudit]":
    from contamination.audit.generation_plan import GenerationAudit

    arrange = None
    if variants is not None:  # as they were checked, from the secret of the quiz
        four = replace(request, arrangements=CHOICES)
        arrange = partial(four.option_variants, examples, template=variants.template)
    work = GenerationAudit(
        generator,
        examples,
        request,
        sampling=sampling,
        next_record=quiz,
        arrange=arrange,
    )
    return [work]
