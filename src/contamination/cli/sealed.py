"""`contamination test --seal`: a sealed set is verified, and all its key has drawn is tested."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from contamination.audit.battery import OPTION_TEST
from contamination.audit.request import Request
from contamination.cli.options import AuditOptions, DataOptions
from contamination.cli.printing import print_table, say
from contamination.cli.score import exit_if_interrupted, print_cost, print_plans
from contamination.cli.seal import describe
from contamination.errors import InputError
from contamination.files import check_directory

if TYPE_CHECKING:
    from contamination.audit.outcome import Audit
    from contamination.seal.audit import SealedTest
    from contamination.seal.files import SealedSet

DEFAULT_LEVEL = 0.05
# What the seal states, and no auditor chooses after the draw.
STATED = [
    field.name
    for field in (*dataclasses.fields(DataOptions), *dataclasses.fields(Request))
    if field.name not in ("directory", "name")
]


def test_sealed(options: AuditOptions, seal: Path | None, key: Path | None, alpha: float) -> None:
    """Verify seal, key and set, and test as stated; exit as `test` does, by all parts together."""
    sealed = _verified(options, seal, key)
    if alpha not in (DEFAULT_LEVEL, sealed.seal.level):
        raise InputError(f"--alpha: the seal states the level {sealed.seal.level:g}; leave it out")
    check_directory(options.directory)

    from contamination.scoring.endpoint import EndpointScorer
    from contamination.scoring.processes import processes
    from contamination.seal.audit import NOT_CLAIMED, SealedTest, guarantee

    scorer = options.open(options.model)
    test = SealedTest(scorer, sealed, options.directory, options.name)
    first_process = processes().is_main_process
    if options.dry_run:
        if first_process:
            print_plans({options.model: test.plan}, options.as_json)
        return
    with exit_if_interrupted(options.directory):
        audit = test.run()
    if isinstance(scorer, EndpointScorer):
        print(scorer.summary(), file=sys.stderr)
    if not first_process:
        return
    assert audit.joint is not None
    rejects = audit.joint.p <= sealed.seal.level
    if options.as_json:
        found = {
            "seal": sealed.seal.model_dump(mode="json"),
            "alpha": sealed.seal.level,
            "rejected": {"joint": rejects},
            "guarantee": guarantee(sealed.seal),
            "not_claimed": [*NOT_CLAIMED, *test.left_out],
        }
        print(json.dumps(audit.as_dict() | found, indent=2))
    else:
        _print(audit, test)
    if rejects:
        raise typer.Exit(1)


def _verified(options: AuditOptions, seal: Path | None, key: Path | None) -> "SealedSet":
    """Verify a sealed set, before torch is imported."""
    if seal is None:
        raise InputError("--key goes with --seal: give the seal.json that was published, too")
    if key is None:
        raise InputError(
            f"--seal {seal} alone proves nothing of the order: give the author's --key as well"
        )
    defaults = {each.name: each.default for each in dataclasses.fields(options)}
    for name in STATED:
        if getattr(options, name) != defaults[name]:
            typed = "--test" if name == "tests" else f"--{name.replace('_', '-')}"
            raise InputError(f"{typed}: the seal states how the set is tested; leave {typed} out")

    from contamination.seal.files import verify

    return verify(Path(options.dataset), seal, key)


def _print(audit: "Audit", test: "SealedTest") -> None:
    """Print the p-value of each part and of all, what they rest on, and what they do not say."""
    from contamination.seal.audit import NOT_CLAIMED, WORDINGS_TEST, guarantee

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
    assert audit.joint is not None
    rows.append(("all together", "", f"{audit.joint.p:.3g}", f"{audit.joint.log10_p:.1f}"))
    print_table(
        ("test", "of", "p", "log10 p"),
        rows,
        title=f"Has {audit.header.model} read {audit.header.dataset} as it was sealed?",
    )
    say(f"verified: {describe(test.sealed)}", guarantee(test.sealed.seal), "not claimed:")
    say(*(f"  {line}" for line in NOT_CLAIMED), *test.left_out)
    print_cost(audit)
