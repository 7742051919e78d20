"""`contamination test --seal`: what the key of a sealed set drew, tested as stated."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
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
from contamination.cli.flags import flag_of
from contamination.cli.methods import Method
from contamination.cli.report import show_result
from contamination.cli.running import audit_models, open_models, print_dry_run
from contamination.errors import InputError

if TYPE_CHECKING:
    from contamination.audit.generation_plan import GenerationAudit
    from contamination.audit.plan import Work
    from contamination.audit.result import Audit
    from contamination.scoring.generation import Generator, Sampling
    from contamination.seal.files import SealedSet

# What the command itself says of where stores lie, and of which set and model.
NOT_STATED = ("dataset", "directory", "name")
DEFAULT_ALPHA = 0.05


@dataclass(frozen=True)
class SealedByLogProbabilities:
    """The tests that a seal states, on log-probabilities; see `methods.Method`.

    `compared` says whether published records are compared with those that were held
    back.
    """

    choice: ModelChoice
    sealed: "SealedSet"
    compared: bool

    def open_model(self, name: str) -> Any:
        """Return the scorer of a model."""
        return open_scorer(name, self.choice)

    def works(self, model: Any, request: Request) -> "Sequence[Work]":
        """Return what there is to score."""
        from contamination.seal.audit import sealed_work

        work = sealed_work(model, request, self.sealed)
        return [replace(work, dry=True)]

    def audit(self, model: Any, request: Request) -> "Audit":
        """Score what is missing, and test it."""
        from contamination.seal.audit import audit_sealed, sealed_work

        work = sealed_work(model, request, self.sealed)
        return audit_sealed(work, self.sealed, compared=self.compared)


@dataclass(frozen=True)
class SealedByTexts:
    """The tests of a sealed set on text that a model generates; see `methods.Method`.

    `sampling` and `next_record` are for the texts about the order of records.
    """

    choice: ModelChoice
    sealed: "SealedSet"
    sampling: "Sampling"
    next_record: bool

    def open_model(self, name: str) -> "Generator":
        """Return the generator of a model."""
        return open_generator(name, self.choice, asks_letters=self.next_record)

    def works(self, model: Any, request: Request) -> "Sequence[GenerationAudit]":
        """Return what there is to write."""
        from contamination.seal.audit import sealed_generations

        return sealed_generations(
            model,
            request,
            self.sealed,
            sampling=self.sampling,
            next_record=self.next_record,
        )

    def audit(self, model: Any, request: Request) -> "Audit":
        """Have the model write what is missing, and test it."""
        from contamination.seal.audit import audit_sealed_texts

        works = self.works(model, request)
        return audit_sealed_texts(*works, sealed=self.sealed)


def test_sealed(
    model: str,
    request: Request,
    chosen_set: SetChoice,
    chosen_model: ModelChoice,
    *,
    seal: Path | None,
    key: Path | None,
    held_out: Path | None,
    alpha: float,
    text: TextChoice | None,
    output: Sequence[Path],
    as_json: bool,
    dry_run: bool,
) -> ExitStatus:
    """Verify seal, key and set, test as stated, and return the status of the verdict.

    The arguments are those of the command, as typed. Seal and key are both needed.
    Options that the seal states must be left out, the level `alpha` among them. `text`
    says what the model is to write; None tests its log-probabilities.
    """
    if seal is None or key is None:
        raise InputError(
            "--seal and --key go together: the seal.json that was published proves nothing alone",
        )
    _refuse_stated(request, chosen_set, alpha)

    from contamination.seal.files import verify  # which does without torch

    sealed = verify(Path(chosen_set.dataset), seal, key, held_out)

    from contamination.scoring.processes import processes
    from contamination.seal.audit import not_claimed
    from contamination.seal.held_out import plan_sides

    first_process = processes().is_main_process
    if text is not None and not first_process:
        return ExitStatus.DONE  # the first process alone has texts written
    level = sealed.seal.level
    method: Method
    if text is None:
        method = SealedByLogProbabilities(chosen_model, sealed, compared=held_out is not None)
    else:
        sampling = sampling_of(text, request.axis)
        method = SealedByTexts(chosen_model, sealed, sampling, next_record=text.quiz)
    opened = open_models([model], [request], method)
    if dry_run:
        sides = None
        if held_out is not None:
            sides = plan_sides(opened[0].model, sealed, request)
        print_dry_run(opened, method, text, as_json=as_json, sides=sides)
        return ExitStatus.DONE
    audit = audit_models(opened, method)
    if not first_process:
        return ExitStatus.DONE
    limits = not_claimed(sealed, audit)
    return show_result(
        audit,
        level,
        output=output,
        as_json=as_json,
        lines=_lines(sealed, limits),
        stated={
            "seal": sealed.seal.model_dump(mode="json"),
            "guarantee": sealed.seal.guarantee,
            "not_claimed": list(limits),
        },
    )


def _refuse_stated(request: Request, chosen_set: SetChoice, alpha: float) -> None:
    """Raise InputError for options that the seal states."""
    changed = list[str]()
    for choice in (chosen_set, request):
        for field in fields(choice):
            stated = field.name not in NOT_STATED
            if stated and getattr(choice, field.name) != field.default:
                changed.append(field.name)
    if alpha != DEFAULT_ALPHA:
        changed.append("alpha")
    if changed:
        flag = flag_of(changed[0])
        raise InputError(
            f"{flag}: the seal states how the set is tested; leave {flag} out",
        )


def _lines(sealed: "SealedSet", limits: Sequence[str]) -> list[str]:
    """Return what was verified and what is not claimed, for people."""
    lines = [f"verified: {sealed.described}", sealed.seal.guarantee, "not claimed:"]
    for line in limits:
        lines.append(f"  {line}")
    return lines
