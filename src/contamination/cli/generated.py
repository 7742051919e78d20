"""`contamination test --access generate`: the test of what a model writes, and its price."""

import dataclasses
import json
import sys
from typing import TYPE_CHECKING, Any

from contamination.audit.request import Request
from contamination.cli.options import TestedOptions
from contamination.cli.printing import print_table
from contamination.errors import InputError

if TYPE_CHECKING:
    from contamination.audit.generated import Writing
    from contamination.audit.verdict import Audit
    from contamination.scoring.generation import Generator
    from contamination.seal.files import SealedSet


def check_access(options: TestedOptions, *, stop: bool) -> None:
    """Refuse options that do not go with the access."""
    if options.access == "generate":
        if stop:
            raise InputError("--access generate takes the whole set: leave out --stop")
        if options.quiz and options.axis != "order":
            raise InputError("--quiz asks for the order of records: leave out --axis")
        if options.endpoint and (options.tokenizer or options.context):
            raise InputError(
                "--tokenizer and --context are for log-probabilities: with --access generate the "
                "endpoint is sent text; leave them out"
            )
        return
    for field in ("quiz", "samples", "tokens", "temperature", "price_in", "price_out"):
        if getattr(options, field) != getattr(TestedOptions, field):
            raise InputError(f"--{field.replace('_', '-')} goes with --access generate: give both")


def run_written(options: TestedOptions, control: str | None, *, alpha: float) -> "Audit | None":
    """Have the model write what is missing and test it, also under a control if one is named.

    None after a dry run, and in every process but the first, which does the work.
    """
    requests, examples, template = options.prepare(control)

    from contamination.audit.generated import Writing, audit_written
    from contamination.scoring.generation import Sampling
    from contamination.scoring.processes import processes

    if not processes().is_main_process:
        return None
    sampling = Sampling(options.samples, options.tokens, options.temperature)
    works = [Writing(_open(r), examples, r, sampling, template, r.quiz) for r in requests]
    if len({work.generator.revision for work in works}) < len(works):
        raise InputError(f"--control {control} has the weights of MODEL: name another model")
    if options.dry_run:
        _print_costs({work.generator.name: work for work in works}, options)
        return None
    audits = [audit_written(work, alpha=alpha) for work in works]
    if options.endpoint is not None:
        for work in works:
            print(work.generator.client.summary(), file=sys.stderr)  # type: ignore[attr-defined]
    return dataclasses.replace(audits[0], beside=audits[1] if control is not None else None)


def run_sealed(options: TestedOptions, sealed: "SealedSet") -> "Audit | None":
    """Have the model write about a sealed set what is missing, and test it; as `run_written`."""
    from contamination.scoring.generation import Sampling
    from contamination.scoring.processes import processes
    from contamination.seal.audit import audit_sealed_texts, sealed_writings

    if not processes().is_main_process:
        return None
    request = Request(directory=options.directory, name=options.name)
    sampling = Sampling(options.samples, options.tokens, options.temperature)
    asked = {"sampling": sampling, "next_record": options.quiz}
    works = sealed_writings(_open(options), sealed, request, **asked)
    if options.dry_run:
        _print_costs({f"{options.model} ({work.request.axis})": work for work in works}, options)
        return None
    audit = audit_sealed_texts(works, sealed.seal.level)
    if options.endpoint is not None:
        print(works[0].generator.client.summary(), file=sys.stderr)  # type: ignore[attr-defined]
    return audit


def _open(options: TestedOptions) -> "Generator":
    from contamination.scoring import generation
    from contamination.scoring.local import TransformersScorer

    if options.endpoint is None:
        scorer = options.open(options.model)
        assert isinstance(scorer, TransformersScorer)
        return generation.LocalGenerator(scorer, options.model)
    names = ("concurrency", "max_requests", "timeout", "api_key_env")
    limits = {name: getattr(options, name) for name in names}
    return generation.EndpointGenerator(
        options.endpoint,
        options.model,
        instruction="" if options.quiz or options.axis == "options" else generation.CONTINUE,
        **limits,
    )


def _print_costs(works: "dict[str, Writing]", options: TestedOptions) -> None:
    """Print requests, tokens and money of what is not stored yet."""
    costs: dict[str, dict[str, Any]] = {}
    for name, plan in ((name, work.plan) for name, work in works.items()):
        left = plan.missing / plan.work.scored
        read = round(plan.work.read * left)
        costs[name] = {
            "requests": round(plan.work.windows * left),
            "requests, of one text each": round(plan.work.sequences * left),
            "tokens in, about": read,
            "tokens out, at most": plan.missing,
        }
        if options.price_in is not None or options.price_out is not None:
            price = read * (options.price_in or 0) + plan.missing * (options.price_out or 0)
            costs[name]["price, about"] = float(f"{price / 1e6:.4g}")
    if options.as_json:
        print(json.dumps(costs, indent=2))
        return
    for name, rows in costs.items():
        print_table(("", ""), rows.items(), title=f"What {name} is to write")
