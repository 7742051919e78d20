"""`contamination test`: p-values, and beside them what the order gives away without the model."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contamination.audit.battery import OPTION_TEST
from contamination.cli.options import AuditOptions, add_options
from contamination.cli.printing import print_table, say
from contamination.cli.score import print_cost, run_audit
from contamination.errors import InputError

if TYPE_CHECKING:
    from contamination.audit.diagnosis import Diagnosis
    from contamination.audit.outcome import Audit
    from contamination.statistics import TestResult

CANNOT_SAY = 3  # exit status: published options alone would reject, and no silent control stands by


@add_options
def test(
    options: AuditOptions,
    alpha: Annotated[
        float, typer.Option(help="Level at which the exit status is 1.", min=0, max=1, metavar="P")
    ] = 0.05,
    control: Annotated[
        str | None,
        typer.Option(
            help="A model that cannot have read DATASET and takes the same tests: if its p is "
            "small, too, that of MODEL is no evidence.",
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
    --axis both or --seal, if their combination does), 3 if published options alone would reject,
    which nobody can judge without a --control that does not.
    """
    if seal is not None or key is not None:
        if stop or control is not None:
            raise InputError(
                "--stop and --control: all that --seal names is tested; leave them out"
            )
        from contamination.cli.sealed import test_sealed

        test_sealed(options, seal, key, alpha)
        return
    if stop and control is not None:
        raise InputError("--control goes with a test of all shards: leave out --stop")
    if stop and options.dry_run:
        raise InputError("--stop has no --dry-run: how much it scores depends on what it finds")
    audit = run_audit(options, control, stop=alpha if stop else None)
    if audit is None:
        return
    rejected = audit.rejected(alpha)
    if options.as_json:
        print(json.dumps(audit.as_dict() | {"alpha": alpha, "rejected": rejected}, indent=2))
    else:
        _print_audit(audit, alpha)
    if any(rejected.values()):
        raise typer.Exit(1)
    if None in rejected.values():
        raise typer.Exit(CANNOT_SAY)


def _print_audit(audit: "Audit", alpha: float) -> None:
    """Print the p-values, also after Holm's correction, what the order gives away, and the cost."""
    result = audit.results[0]
    if hasattr(result, "stopped_at"):
        ended = "not enough evidence" if result.stopped_at is None else "stopped"
        shown = f"{result.test} test, anytime-valid p = {result.p:.3g}"
        say(f"{shown}: {ended} after {result.shards} shards")
    else:
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
                for result, holm_p in zip(audit.results, audit.holm_p, strict=True)
            ),
            title=f"Has {audit.header.model} seen {audit.header.dataset} in this order?",
        )
    if audit.joint is not None:
        say(f"both axes together (Fisher): p = {audit.joint.p:.3g}")
    for result in audit.results:
        if best := getattr(result, "best", None):
            say(f"{result.test}: the smallest p was that of {best}")
    _print_order(audit, alpha)
    if audit.beside is not None:
        p = {result.test: result.p for result in audit.beside.results}
        if audit.beside.joint is not None:
            p["together"] = audit.beside.joint.p
        each_p = ", ".join(f"{name} p = {value:.3g}" for name, value in p.items())
        say(f"the control, {audit.beside.header.model}: {each_p}")
        if min(p.values()) <= alpha:
            say("  it prefers the published order, too: a small p of the model proves nothing")
    if None in audit.rejected(alpha).values():
        say(
            "options: cannot say without a control model of like competence (--control) that does "
            "not prefer their order",
            "  people write options in an order that readers of English expect; a compressor sees "
            "little of it",
        )
    for each in (audit, audit.beside):
        if each is not None:
            print_cost(each)


def _print_order(audit: "Audit", alpha: float) -> None:
    """Print what the order of the records gives away without a model, with the tests it is for."""
    diagnoses: dict[Diagnosis, list[str]] = {}
    controls: dict[TestResult, list[str]] = {}
    found = zip(audit.results, audit.diagnosis, audit.control, strict=True)
    for result, diagnosis, control in found:
        diagnoses.setdefault(diagnosis, []).append(result.test)
        controls.setdefault(control, []).append(result.test)
    for diagnosis, tests in diagnoses.items():
        which = f" ({', '.join(tests)})" if len(diagnoses) > 1 else ""
        say(f"{diagnosis.what}{which}: {diagnosis.verdict}")
        say(*(f"  {reason}" for reason in diagnosis.reasons))
    for control, tests in controls.items():
        which = f" ({', '.join(tests)})" if len(controls) > 1 else ""
        say(f"a compressor, which has seen nothing{which}: p = {control.p:.3g}")
        if control.p <= alpha:
            say("  the order carries information by itself: a small p of the model is no evidence")
