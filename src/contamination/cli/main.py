"""The command line: audit a model on a test set, and the stages of the Makefile.

Exit status: 0 done; 1 done, and a test rejects at the level asked for; 2 bad input, told in one
line on standard error; 130 interrupted.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contamination.audit.battery import DEFAULT_TESTS, help_text
from contamination.cli import data, stage, wikimia
from contamination.cli.books import books
from contamination.cli.membership import membership
from contamination.cli.options import AuditOptions, DataOptions, ModelOptions, taking
from contamination.cli.printing import (
    print_audit,
    print_cost,
    print_plan,
    print_power_plan,
    print_stopped,
)
from contamination.cli.unlearned import unlearned
from contamination.errors import InputError

if TYPE_CHECKING:
    from contamination.audit.verdict import Audit

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.add_typer(data.app, name="data")
app.add_typer(wikimia.app, name="wikimia")
app.add_typer(stage.app, name="stage")

Model = Annotated[
    str, typer.Argument(help="Directory, hub id or .gguf file; with --endpoint, its name there.")
]
Dataset = Annotated[
    str,
    typer.Argument(
        help="Test set in its own order: a registered name (`contamination data list`), a .jsonl, "
        ".json, .csv, .parquet or .txt file, a directory, or ORG/NAME[:CONFIG] of the hub."
    ),
]
Tests = Annotated[
    list[str] | None,
    typer.Option("--test", help=f"{help_text()} May be repeated."),
]


@app.command()
@taking(AuditOptions, DataOptions, ModelOptions)
def test(
    how: AuditOptions,
    data: DataOptions,
    options: ModelOptions,
    model: Model,
    dataset: Dataset,
    tests: Tests = None,
    alpha: Annotated[float, typer.Option(help="Level at which the exit status is 1.")] = 0.05,
    stop: Annotated[
        bool,
        typer.Option("--stop", help="Score shard by shard, and stop once --alpha is reached."),
    ] = False,
) -> None:
    """Test whether MODEL has seen DATASET in its published order: a p-value.

    Small p: the model prefers the published order, and chance is not a plausible reason. Exit
    status 1 if a test rejects at --alpha (after Holm's correction over the tests asked for).
    """
    if stop:
        _test_until(how, data, options, model, dataset, tests, alpha)
        return
    found = _run(how, data, options, model, dataset, tests)
    if found is None:
        return

    from contamination.statistics import adjust

    adjusted = adjust(log10_p=[r.log10_p for r in found.results], method="holm").p
    if how.as_json:
        names = [result.test for result in found.results]
        rejected = dict(zip(names, (bool(p <= alpha) for p in adjusted), strict=True))
        print(json.dumps(found.as_dict() | {"alpha": alpha, "rejected": rejected}, indent=2))
    else:
        print_audit(found, adjusted, alpha)
    if min(adjusted) <= alpha:
        raise typer.Exit(1)


@app.command()
@taking(AuditOptions, DataOptions, ModelOptions)
def score(
    how: AuditOptions,
    data: DataOptions,
    options: ModelOptions,
    model: Model,
    dataset: Dataset,
    tests: Tests = None,
) -> None:
    """Score DATASET under MODEL into the stores that the tests need, without testing."""
    found = _run(how, data, options, model, dataset, tests)
    if found is None:
        return
    if how.as_json:
        described = found.as_dict()
        del described["results"]
        print(json.dumps(described, indent=2))
    else:
        print_cost(found)


@app.command()
@taking(DataOptions, ModelOptions)
def plan(
    data: DataOptions,
    options: ModelOptions,
    model: Model,
    dataset: Dataset,
    test: Annotated[str, typer.Option(help="Test to plan for.")] = DEFAULT_TESTS[0],
    pilot: Annotated[int, typer.Option(help="Shards to score for the pilot.")] = 5,
    alpha: Annotated[float, typer.Option(help="Level of the planned test.")] = 0.05,
    power: Annotated[float, typer.Option(help="Wanted chance of p <= alpha.")] = 0.8,
    seed: Annotated[int, typer.Option(help="Of the shuffled orderings.")] = 0,
    store: Annotated[Path, typer.Option(help="Where log-probabilities are kept.")] = Path(
        "contamination-stores"
    ),
) -> None:
    """Score a pilot of a few shards, and tell how many a wanted power takes."""
    examples = data.load(dataset)

    from contamination.audit.pilot import plan_from_pilot
    from contamination.scoring.models import label

    found = plan_from_pilot(
        options.open(model),
        examples,
        test=test,
        shards=pilot,
        alpha=alpha,
        power=power,
        seed=seed,
        directory=store,
        name=label(model),
    )
    print_power_plan(found, test)


app.command()(membership)
app.command()(books)
app.command()(unlearned)


def _test_until(
    how: AuditOptions,
    data: DataOptions,
    options: ModelOptions,
    model: str,
    dataset: str,
    asked: list[str] | None,
    alpha: float,
) -> None:
    """Print the anytime-valid p-value of the shards that it took; exit as `test` does."""
    if how.dry_run:
        raise InputError("--stop has no --dry-run: how much it scores depends on what it finds")
    examples = data.load(dataset)
    request = how.request(model, asked)

    from contamination.audit.sequential import audit_until
    from contamination.scoring.processes import processes

    with _resumable(how.store):
        found = audit_until(options.open(model), examples, request, alpha=alpha)
    if processes().is_main_process:
        print_stopped(found, request.tests[0], as_json=how.as_json)
        if found.result.stopped_at is not None:
            raise typer.Exit(1)


def _run(
    how: AuditOptions,
    data: DataOptions,
    options: ModelOptions,
    model: str,
    dataset: str,
    asked: list[str] | None,
) -> "Audit | None":
    """Plan and audit; return the audit in process 0, or None after a dry run and elsewhere."""
    examples = data.load(dataset)  # before torch is imported: bad input is told at once
    request = how.request(model, asked)

    from contamination.audit.plan import plan_audit
    from contamination.audit.verdict import audit
    from contamination.scoring.endpoint import EndpointScorer
    from contamination.scoring.processes import processes

    scorer = options.open(model)
    plan = plan_audit(scorer, examples, request)
    if how.dry_run:
        if processes().is_main_process:
            print_plan(plan, how.as_json)
        return None
    with _resumable(how.store):
        found = audit(scorer, examples, request, plan=plan)
    if isinstance(scorer, EndpointScorer):
        print(scorer.summary(), file=sys.stderr)
    return found if processes().is_main_process else None


@contextmanager
def _resumable(store: Path) -> Iterator[None]:
    """Tell someone who interrupts that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        print(
            f"\ninterrupted; {store} keeps what is finished; run the same command again to go on",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None


def main() -> None:
    """Run the command line; an `InputError` is the user's to mend and gets no traceback."""
    try:
        app()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from error
