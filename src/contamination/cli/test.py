"""`contamination test`: p-values, and beside them what the order gives away without the model."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from contamination import statistics
from contamination.audit.battery import OPTION_TEST
from contamination.cli.options import AuditOptions, add_options
from contamination.cli.printing import print_table
from contamination.cli.score import exit_if_interrupted, print_cost, print_noise, run_audit
from contamination.cli.sealed import test_sealed
from contamination.errors import InputError

if TYPE_CHECKING:
    from contamination.audit.diagnosis import Diagnosis
    from contamination.audit.outcome import Audit
    from contamination.audit.verdict import Stopped
    from contamination.statistics import TestResult


@add_options
def test(
    options: AuditOptions,
    alpha: Annotated[
        float, typer.Option(help="Level at which the exit status is 1.", min=0, max=1, metavar="P")
    ] = 0.05,
    control: Annotated[
        str | None,
        typer.Option(
            help="A model that cannot have read DATASET, for the same tests: where its p is small, "
            "too, that of MODEL is no evidence.",
            metavar="MODEL",
        ),
    ] = None,
    stop: Annotated[
        bool, typer.Option("--stop", help="Score shard by shard, and stop once --alpha is reached.")
    ] = False,
    seal: Annotated[
        Path | None,
        typer.Option(help="The seal.json of a sealed set: all that its key drew is tested."),
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="The author's key.json, which proves what --seal says.")
    ] = None,
) -> None:
    """Test whether MODEL has seen DATASET in its published order: a p-value.

    Small p: the model prefers the published order, and chance is not a plausible reason. Exit
    status 1 if a test rejects at --alpha (after Holm's correction over the tests asked for; of
    --axis both or --seal, if their combination does).
    """
    if seal is not None or key is not None:
        if stop or control is not None:
            raise InputError(
                "--stop and --control: all that --seal names is tested; leave them out"
            )
        test_sealed(options, seal, key, alpha=alpha)
        return
    if stop:
        if control is not None:
            raise InputError("--control goes with a test of all shards: leave out --stop")
        _test_until_decided(options, alpha)
        return
    audits = run_audit(options, control)
    if audits is None:
        return

    audit, beside = audits
    log10_p = [result.log10_p for result in audit.results]
    adjusted = statistics.adjust(log10_p=log10_p, method="holm").p
    decisive = [float(p) for p in adjusted] if audit.joint is None else [audit.joint.p]
    if options.as_json:
        names = [r.test for r in audit.results] if audit.joint is None else ["joint"]
        rejected = {name: p <= alpha for name, p in zip(names, decisive, strict=True)}
        found = audit.as_dict() | {"alpha": alpha, "rejected": rejected}
        if beside is not None:
            found["control_model"] = beside.as_dict()
        print(json.dumps(found, indent=2))
    else:
        _print_audit(audit, beside, adjusted, alpha)
    if min(decisive) <= alpha:
        raise typer.Exit(1)


def _test_until_decided(options: AuditOptions, alpha: float) -> None:
    """Print the anytime-valid p-value of the shards that it took; exit as `test` does."""
    if options.dry_run:
        raise InputError("--stop has no --dry-run: how much it scores depends on what it finds")
    examples = options.load(options.dataset, items=options.axis != "order")
    request = options.request()

    from contamination.audit.verdict import audit_until
    from contamination.scoring.processes import processes

    with exit_if_interrupted(options.directory):
        stopped = audit_until(options.open(options.model), examples, request, alpha=alpha)
    if processes().is_main_process:
        _print_stopped(stopped, request.order_tests[0], as_json=options.as_json)
        if stopped.result.stopped_at is not None:
            raise typer.Exit(1)


def _print_audit(
    audit: "Audit", beside: "Audit | None", adjusted: Iterable[float], alpha: float
) -> None:
    """Print the p-values, also after Holm's correction, what the order gives away, and the cost."""
    options = any(result.test == OPTION_TEST for result in audit.results)
    print_table(
        ("test", f"shards{' or items' * options}", "permutations", "p", "log10 p", "p (Holm)"),
        (
            (
                result.test,
                f"{result.shards:,} of {audit.plan.examples:,}"
                if result.test == OPTION_TEST
                else result.shards,
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
    if audit.joint is not None:
        console.print(f"both axes together (Fisher): p = {audit.joint.p:.3g}")
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
    if beside is not None:
        _print_control(console, beside, alpha)
    elif options:
        console.print(
            "no model that cannot have read the set was asked (--control): how people write "
            "options\n  can favour their order as well, and a compressor sees little of that"
        )
    print_cost(audit)
    if beside is not None:
        print_cost(beside)


def _print_control(console: Console, beside: "Audit", alpha: float) -> None:
    """Print what the same tests say of a model that cannot have read the set."""
    p = {result.test: result.p for result in beside.results}
    if beside.joint is not None:
        p["together"] = beside.joint.p
    shown = ", ".join(f"{name} p = {value:.3g}" for name, value in p.items())
    console.print(f"the control, {beside.header.model}: {shown}")
    if min(p.values()) <= alpha:
        console.print(
            "  it prefers the published order, too: a small p of the model proves nothing"
        )


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
