"""`contamination test`: p-values, and beside them what the order gives away without a model."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from contamination import statistics
from contamination.cli.options import AuditOptions, add_options
from contamination.cli.printing import print_table
from contamination.cli.score import exit_if_interrupted, print_cost, print_noise, run_audit
from contamination.errors import InputError

if TYPE_CHECKING:
    from contamination.audit.diagnostics import Diagnosis
    from contamination.audit.verdict import Audit, Stopped
    from contamination.statistics import TestResult


@add_options
def test(
    options: AuditOptions,
    alpha: Annotated[
        float, typer.Option(help="Level at which the exit status is 1.", min=0, max=1, metavar="P")
    ] = 0.05,
    stop: Annotated[
        bool, typer.Option("--stop", help="Score shard by shard, and stop once --alpha is reached.")
    ] = False,
) -> None:
    """Test whether MODEL has seen DATASET in its published order: a p-value.

    Small p: the model prefers the published order, and chance is not a plausible reason. Exit
    status 1 if a test rejects at --alpha (after Holm's correction over the tests asked for).
    """
    if stop:
        _test_until_decided(options, alpha)
        return
    audit = run_audit(options)
    if audit is None:
        return

    log10_p = [result.log10_p for result in audit.results]
    adjusted = statistics.adjust(log10_p=log10_p, method="holm").p
    if options.as_json:
        names = [result.test for result in audit.results]
        rejected = dict(zip(names, (bool(p <= alpha) for p in adjusted), strict=True))
        print(json.dumps(audit.as_dict() | {"alpha": alpha, "rejected": rejected}, indent=2))
    else:
        _print_audit(audit, adjusted, alpha)
    if min(adjusted) <= alpha:
        raise typer.Exit(1)


def _test_until_decided(options: AuditOptions, alpha: float) -> None:
    """Print the anytime-valid p-value of the shards that it took; exit as `test` does."""
    if options.dry_run:
        raise InputError("--stop has no --dry-run: how much it scores depends on what it finds")
    examples = options.load(options.dataset)
    request = options.request()

    from contamination.audit.verdict import audit_until
    from contamination.scoring.processes import processes

    with exit_if_interrupted(options.directory):
        stopped = audit_until(options.open(options.model), examples, request, alpha=alpha)
    if processes().is_main_process:
        _print_stopped(stopped, request.tests[0], as_json=options.as_json)
        if stopped.result.stopped_at is not None:
            raise typer.Exit(1)


def _print_audit(audit: "Audit", adjusted: Iterable[float], alpha: float) -> None:
    """Print the p-values, also after Holm's correction, what the order gives away, and the cost."""
    print_table(
        ("test", "shards", "permutations", "p", "log10 p", "p (Holm)"),
        (
            (
                result.test,
                result.shards,
                str(result.permutations),
                f"{result.p:.3g}",
                f"{result.log10_p:.1f}",
                f"{holm_p:.3g}",
            )
            for result, holm_p in zip(audit.results, adjusted, strict=True)
        ),
        title=f"Has {audit.header.model} seen {audit.header.dataset} in this order?",
    )
    console = Console(highlight=False)
    for result in audit.results:
        if best := getattr(result, "best", None):
            console.print(f"{result.test}: the smallest p was that of {best}")
    diagnoses: dict[Diagnosis, list[str]] = {}
    controls: dict[TestResult, list[str]] = {}
    found = zip(audit.results, audit.diagnosis, audit.control, strict=True)
    for result, diagnosis, control in found:
        diagnoses.setdefault(diagnosis, []).append(result.test)
        controls.setdefault(control, []).append(result.test)
    _print_order(console, diagnoses, controls, alpha)
    print_cost(audit)


def _print_order(
    console: Console,
    diagnoses: "Mapping[Diagnosis, Sequence[str]]",
    controls: "Mapping[TestResult, Sequence[str]]",
    alpha: float,
) -> None:
    """Print what the order of the records gives away without a model, with the tests it is for."""
    for diagnosis, tests in diagnoses.items():
        which = f" ({', '.join(tests)})" if len(diagnoses) > 1 else ""
        console.print(f"{diagnosis.what}{which}: {diagnosis.verdict}")
        for reason in diagnosis.reasons:
            console.print(f"  {reason}")
    for control, tests in controls.items():
        which = f" ({', '.join(tests)})" if len(controls) > 1 else ""
        console.print(f"a compressor, which has seen nothing{which}: p = {control.p:.3g}")
        if control.p <= alpha:
            console.print(
                "  the order carries information by itself: a small p of the model is no evidence"
            )


def _print_stopped(stopped: "Stopped", test: str, *, as_json: bool) -> None:
    """Print the anytime-valid p-value, and after how many shards it was reached."""
    result, diagnosis, control = stopped.result, stopped.diagnosis, stopped.control
    if as_json:
        output = {
            "test": test,
            "p": result.p,
            "log10_p": result.log10_p,
            "alpha": result.alpha,
            "shards": result.shards,
            "stopped_at": result.stopped_at,
            "diagnosis": diagnosis.as_dict(),
            "control": {"p": control.p, "log10_p": control.log10_p},
            "noise": stopped.noise,
        }
        print(json.dumps(output, indent=2))
        return
    ended = "stopped" if result.stopped_at is not None else "not enough evidence"
    console = Console(highlight=False)
    console.print(
        f"{test} test, anytime-valid p = {result.p:.3g}: {ended} after {result.shards} shards"
    )
    _print_order(console, {diagnosis: [test]}, {control: [test]}, result.alpha)
    print_noise(stopped.noise)
