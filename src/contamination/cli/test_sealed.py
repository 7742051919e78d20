"""`contamination test --seal`: all that the key of a sealed set has drawn, tested as stated."""

from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contamination.audit.request import Request
from contamination.cli.choices import (
    ModelChoice,
    SetChoice,
    TextChoice,
    open_generator,
    open_scorer,
    sampling_of,
)
from contamination.cli.ending import ExitStatus
from contamination.cli.report import print_generation_plans, print_plans, show_result
from contamination.cli.running import audit_models, open_models, plan_models
from contamination.errors import InputError

if TYPE_CHECKING:
    from contamination.seal.files import SealedSet

# What the command itself says of where stores lie, and of which set and model.
NOT_STATED = ("dataset", "directory", "name")
DEFAULT_ALPHA = 0.05


def test_sealed(
    model: str,
    request: Request,
    chosen_set: SetChoice,
    chosen_model: ModelChoice,
    *,
    seal: Path | None,
    key: Path | None,
    alpha: float,
    text: TextChoice | None,
    output: Sequence[Path],
    as_json: bool,
    dry_run: bool,
) -> ExitStatus:
    """Verify seal, key and set, and test as stated; return the status of all parts together.

    Parameters
    ----------
    model, request, chosen_set, chosen_model : as typed; how the set is tested has to be
        left out.
    seal, key : both are needed.
    alpha : the level is stated as well, so that another one than the default is refused.
    text : what the model is asked to write; None if its log-probabilities are tested.
    output, as_json, dry_run : as in `contamination.cli.test.test`.
    """
    if seal is None or key is None:
        raise InputError(
            "--seal and --key go together: the seal.json that was published proves nothing alone",
        )
    _refuse_stated(request, chosen_set, alpha)

    from contamination.seal.files import verify  # which does without torch

    sealed = verify(Path(chosen_set.dataset), seal, key)

    from contamination.scoring.processes import processes
    from contamination.seal import audit as sealed_audit

    first_process = processes().is_main_process
    # the first process alone has texts written
    if text is not None and not first_process:
        return ExitStatus.DONE
    level = sealed.seal.level
    works_of: Any = partial(sealed_audit.sealed_works, sealed=sealed)
    audit: Any = partial(sealed_audit.audit_sealed, level=level)
    open_model: Any = partial(open_scorer, choice=chosen_model)
    if text is not None:
        works_of = partial(
            sealed_audit.sealed_generations,
            sealed=sealed,
            sampling=sampling_of(text, request.axis),
            next_record=text.quiz,
        )
        audit = partial(sealed_audit.audit_sealed_texts, level=level)
        open_model = partial(open_generator, choice=chosen_model, asks_letters=text.quiz)
    opened = open_models([model], [request], open_model)
    if dry_run:
        plans = plan_models(opened, works_of)
        if first_process and text is not None:
            print_generation_plans(plans, text, as_json=as_json)
        elif first_process:
            print_plans(plans, as_json=as_json)
        return ExitStatus.DONE
    audited = audit_models(opened, works_of, audit, chosen_model)
    if not first_process:
        return ExitStatus.DONE
    not_claimed = sealed_audit.not_claimed(sealed, audited)
    return show_result(
        audited,
        level,
        output=output,
        as_json=as_json,
        lines=_lines(sealed, not_claimed),
        stated={
            "seal": sealed.seal.model_dump(mode="json"),
            "guarantee": sealed.seal.guarantee,
            "not_claimed": list(not_claimed),
        },
    )


def _refuse_stated(request: Request, chosen_set: SetChoice, alpha: float) -> None:
    """Refuse options that the seal states."""
    changed = list[str]()
    for choice in (chosen_set, request):
        for field in fields(choice):
            stated = field.name not in NOT_STATED
            if stated and getattr(choice, field.name) != field.default:
                changed.append(field.name)
    if alpha != DEFAULT_ALPHA:
        changed.append("alpha")
    if changed:
        flag = changed[0].replace("tests", "test").replace("_", "-")
        raise InputError(
            f"--{flag}: the seal states how the set is tested; leave --{flag} out",
        )


def _lines(sealed: "SealedSet", not_claimed: Sequence[str]) -> list[str]:
    """Return what was verified and what is not claimed, for people."""
    lines = [f"verified: {sealed.described}", sealed.seal.guarantee, "not claimed:"]
    for line in not_claimed:
        lines.append(f"  {line}")
    return lines
