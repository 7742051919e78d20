"""`contamination score`, and the audit that `contamination test` runs: plan, score, report cost."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from contamination.cli.options import AuditOptions, add_options
from contamination.cli.printing import print_table, say
from contamination.files import check_directory
from contamination.scoring.models import label_control

if TYPE_CHECKING:
    from contamination.audit.outcome import Audit, ScoringPlan
    from contamination.audit.request import Request


@add_options
def score(options: AuditOptions) -> None:
    """Score DATASET under MODEL into the stores that the tests need, without testing."""
    audit = run_audit(options)
    if audit is None:
        return
    if options.as_json:
        described = audit.as_dict()
        del described["results"]
        print(json.dumps(described, indent=2))
    else:
        print_cost(audit)


def run_audit(
    options: AuditOptions, control: str | None = None, *, stop: float | None = None
) -> "Audit | None":
    """Score what is missing and test, also under a control model if one is named.

    With `stop`, shard by shard until the evidence rejects at that level. None after a dry run, and
    in every process but the first.
    """
    # Before torch is imported: bad input is reported at once.
    beside = None if control is None else label_control(control, options.model)
    check_directory(options.directory)
    if stop is not None:
        _ = options.stopping_test
    examples = options.load(options.dataset, items=options.axis != "order")
    alternatives = None
    if options.axis != "order":
        own = examples.template if options.template or options.field else None
        alternatives = options.alternatives(examples, template=own)

    from contamination.audit.verdict import audit, audit_until, plan_audit
    from contamination.scoring.processes import processes

    requests: dict[str, Request] = {options.model: options}
    if control is not None:
        requests[control] = replace(options, model=control, name=beside)
    found: list[Audit] = []
    plans: dict[str, ScoringPlan] = {}
    with exit_if_interrupted(options.directory):
        for model, request in requests.items():
            scorer = options.open(model)
            if options.dry_run:
                plans[model] = plan_audit(scorer, examples, request, alternatives=alternatives)
            elif stop is not None:
                found.append(audit_until(scorer, examples, request, alpha=stop))
            else:
                found.append(audit(scorer, examples, request, alternatives=alternatives))
            if options.endpoint is not None and not options.dry_run:
                print(scorer.summary(), file=sys.stderr)  # type: ignore[attr-defined]
    if not processes().is_main_process:
        return None
    if options.dry_run:
        print_plans(plans, options.as_json)
        return None
    return replace(found[0], beside=found[1] if control is not None else None)


@contextmanager
def exit_if_interrupted(store: Path) -> Iterator[None]:
    """Exit with status 130 where the user interrupts, and say that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        print(
            f"\ninterrupted; {store} keeps what is finished; run the same command again to go on",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None


def print_cost(audit: "Audit") -> None:
    """Print what was scored, how fast and where, and how much answers of an endpoint differed."""
    where = ", ".join(str(path) for path in audit.stores)
    if audit.tokens_scored == 0:
        say(f"everything was stored already: {where}")
    else:
        predicted = audit.plan.seconds
        about = f" (predicted {_duration(predicted)})" if predicted is not None else ""
        say(
            f"{audit.tokens_scored:,} tokens in {_duration(audit.seconds)}{about}, "
            f"{audit.tokens_scored / audit.seconds:,.0f} tokens/s; log-probabilities in {where}"
        )
    if audit.noise is not None:
        say(f"answers to one prompt differed by up to {audit.noise:.2g} nats a token")


def print_plans(plans: "Mapping[str, ScoringPlan]", as_json: bool) -> None:
    """Print how much there is to score, under the model and under a control."""
    model, *control = plans.values()
    if as_json:
        beside = {"control_model": asdict(control[0])} if control else {}
        print(json.dumps(asdict(model) | beside, indent=2))
        return
    for name, plan in plans.items():
        title = "What there is to score" + (f" under {name}" if control else "")
        print_table(("", ""), _rows(plan).items(), title=title)


def _rows(plan: "ScoringPlan") -> dict[str, object]:
    """What a plan says, for people."""
    rows: dict[str, object] = {
        "examples": plan.examples,
        "shards": ", ".join(
            dict.fromkeys(
                f"{store.shards} items" if store.kind == "alternatives" else str(store.shards)
                for store in plan.stores
            )
        ),
        "permutations": plan.permutations,
        "sequences": plan.work.sequences,
        "forward passes or requests": plan.work.windows,
        "tokens scored": plan.work.scored,
        "tokens read": plan.work.read,
        "tokens stored already": plan.work.scored - plan.missing,
    }
    if plan.flops is not None:
        rows["FLOPs"] = f"{plan.flops:.2g}"
    if plan.seconds is not None:
        rows["time, about"] = _duration(plan.seconds)
    return rows


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
