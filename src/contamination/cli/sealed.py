"""`contamination test --seal`: a set is verified, and all that its key has drawn is tested."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from contamination.audit.battery import OPTION_TEST
from contamination.cli.options import AuditOptions
from contamination.cli.printing import print_table
from contamination.cli.score import exit_if_interrupted, print_cost, print_plans
from contamination.errors import InputError

if TYPE_CHECKING:
    from contamination.audit.sealed import SealedAudit
    from contamination.testsets.sealed import SealedSet


def test_sealed(
    options: AuditOptions, seal: Path | None, key: Path | None, *, alpha: float
) -> None:
    """Verify seal, key and set, and test; exit as `test` does, by the p-value of all parts."""
    sealed = _verified(options, seal, key)
    options.check()

    from contamination.audit.sealed import audit_sealed, plan_sealed
    from contamination.scoring.endpoint import EndpointScorer
    from contamination.scoring.processes import processes

    scorer = options.open(options.model)
    plan = plan_sealed(scorer, sealed, options)
    first_process = processes().is_main_process
    if options.dry_run:
        if first_process:
            print_plans({options.model: plan.total}, options.as_json)
        return
    with exit_if_interrupted(options.directory):
        audit = audit_sealed(scorer, sealed, options, plan=plan)
    if isinstance(scorer, EndpointScorer):
        print(scorer.summary(), file=sys.stderr)
    if not first_process:
        return
    rejects = audit.combined.p <= alpha
    if options.as_json:
        print(json.dumps(audit.as_dict() | {"alpha": alpha, "rejected": rejects}, indent=2))
    else:
        _print(audit, sealed)
    if rejects:
        raise typer.Exit(1)


def _verified(options: AuditOptions, seal: Path | None, key: Path | None) -> "SealedSet":
    """Verify a sealed set, before torch is imported."""
    if seal is None:
        raise InputError("--key goes with --seal: give the seal.json that was published, too")
    if key is None:
        raise InputError(
            f"--seal {seal} alone proves nothing of the order: give the author's --key as well, "
            "or leave out --seal and take the order as it was published"
        )
    for name in ("template", "field", "max_records", "mirror", "split", "data_revision"):
        if getattr(options, name) is not None:
            told = f"--{name.replace('_', '-')}"
            raise InputError(f"{told}: the seal says what a sealed set is; leave {told} out")
    if options.axis != "order" or options.keep_answer:
        raise InputError(
            "--axis and --keep-answer: all that the key drew is tested; leave them out"
        )

    from contamination.testsets.sealed import verify

    return verify(Path(options.dataset), seal, key)


def _print(audit: "SealedAudit", sealed: "SealedSet") -> None:
    """Print the p-value of each part and of all, what they rest on, and what they do not say."""
    from contamination.audit.sealed import GUARANTEE, NOT_CLAIMED, WORDINGS_TEST

    kinds = {OPTION_TEST: "items", WORDINGS_TEST: "records"}
    rows = [
        (
            result.test,
            f"{result.shards} {kinds.get(result.test, 'shards')}",
            f"{result.p:.3g}",
            f"{result.log10_p:.1f}",
        )
        for result in audit.results
    ]
    rows.append(("all together", "", f"{audit.combined.p:.3g}", f"{audit.combined.log10_p:.1f}"))
    print_table(
        ("test", "of", "p", "log10 p"),
        rows,
        title=f"Has {audit.header.model} read {audit.header.dataset} as it was sealed?",
    )
    console = Console(highlight=False)
    console.print(
        f"verified: {sealed.seal.records:,} records, sealed {sealed.seal.date}, commitment "
        f"{sealed.seal.commitment[:16]}...; the key draws this arrangement"
    )
    console.print(GUARANTEE)
    console.print("not claimed:")
    for line in NOT_CLAIMED:
        console.print(f"  {line}")
    for line in audit.left_out:
        console.print(line)
    print_cost(audit)
