"""`contamination score`, and the audit that `contamination test` runs: plan, score, report cost."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from contamination.cli.options import AuditOptions, add_options
from contamination.cli.printing import print_table

if TYPE_CHECKING:
    from contamination.audit.verdict import Audit, ScoringPlan


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


def run_audit(options: AuditOptions) -> "Audit | None":
    """Score what is missing and test; None after a dry run, and in every process but the first."""
    # Before torch is imported: bad input is reported at once.
    examples = options.load(options.dataset)
    request = options.request()

    from contamination.audit.verdict import audit, plan_audit
    from contamination.scoring.endpoint import EndpointScorer
    from contamination.scoring.processes import processes

    scorer = options.open(options.model)
    plan = plan_audit(scorer, examples, request)
    first_process = processes().is_main_process
    if options.dry_run:
        if first_process:
            _print_plan(plan, options.as_json)
        return None
    with exit_if_interrupted(options.directory):
        done = audit(scorer, examples, request, plan=plan)
    if isinstance(scorer, EndpointScorer):
        print(scorer.summary(), file=sys.stderr)
    return done if first_process else None


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
    """Print what was scored, how fast, and where the log-probabilities are."""
    where = ", ".join(str(path) for path in audit.stores)
    if audit.tokens_scored == 0:
        line = f"everything was stored already: {where}"
    else:
        predicted = audit.plan.seconds
        about = f" (predicted {_duration(predicted)})" if predicted is not None else ""
        line = (
            f"{audit.tokens_scored:,} tokens in {_duration(audit.seconds)}{about}, "
            f"{audit.tokens_scored / audit.seconds:,.0f} tokens/s; log-probabilities in {where}"
        )
    Console().print(line, highlight=False)
    print_noise(audit.noise)


def print_noise(noise: float | None) -> None:
    """Print by how much an endpoint's answers to one prompt differed, if it was asked."""
    if noise is not None:
        Console().print(
            f"answers to one prompt differed by up to {noise:.2g} nats a token", highlight=False
        )


def _print_plan(plan: "ScoringPlan", as_json: bool) -> None:
    """Print how much there is to score."""
    if as_json:
        print(json.dumps(asdict(plan), indent=2))
        return
    rows: dict[str, object] = {
        "examples": plan.examples,
        "shards": ", ".join(dict.fromkeys(str(store.shards) for store in plan.stores)),
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
    print_table(("", ""), rows.items(), title="What there is to score")


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
