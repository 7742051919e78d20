"""What `contamination test` refuses before anything is read, in the order of the checks."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from contamination.audit.request import Request
from contamination.cli.choices import (
    ModelChoice,
    SetChoice,
    TextChoice,
    check_outputs,
)
from contamination.cli.flags import flag_of
from contamination.cli.unused import (
    refuse_swapped,
    refuse_unused,
    refuse_unused_fields,
    refuse_unused_mirror,
    refuse_unused_of_dry_run,
)
from contamination.errors import InputError
from contamination.files import check_directory


@dataclass(frozen=True)
class TestMode:
    """How a set is tested."""

    sealed: bool  # a key has drawn the set
    held_out: bool  # the set is compared with records that the key has held back
    control: bool  # there is a control model
    stop: bool  # scoring stops early
    dry_run: bool  # nothing is scored
    writes: bool  # the model gives text alone


def check_options(
    model: str,
    chosen_set: SetChoice,
    chosen_model: ModelChoice,
    text: TextChoice,
    request: Request,
    mode: TestMode,
    *,
    output: Sequence[Path],
) -> None:
    """Raise InputError for options that do nothing, contradict each other or cannot be met."""
    refuse_swapped(model, chosen_set.dataset)
    check_directory(Path(request.directory))
    check_outputs(output)
    _check_access(text, chosen_model, request, writes=mode.writes)
    if not mode.sealed:  # a seal states all of this, and its test refuses each by name
        refuse_unused(request, writes=mode.writes)
        refuse_unused_fields(chosen_set, request)
        refuse_unused_mirror(chosen_set.mirror, [chosen_set.dataset])
    refuse_unused_of_dry_run(text, output, dry_run=mode.dry_run)
    _check_held_out(mode)
    _check_combination(mode)
    if mode.stop:
        request.require_stopping_test()


def _check_access(
    text: TextChoice,
    model: ModelChoice,
    request: Request,
    *,
    writes: bool,
) -> None:
    """Raise InputError for options that do not go with what the model gives."""
    default = TextChoice()
    for name in ("quiz", "samples", "tokens", "temperature", "price_in", "price_out"):
        if not writes and getattr(text, name) != getattr(default, name):
            raise InputError(f"{flag_of(name)} goes with --access generate: give both")
    if text.quiz and request.axis != "order":
        raise InputError("--quiz asks for the order of records: leave out --axis")
    if writes and model.endpoint and (model.tokenizer or model.context):
        raise InputError(
            "--tokenizer and --context are for log-probabilities: with --access "
            "generate the endpoint is sent text; leave them out"
        )


def _check_held_out(mode: TestMode) -> None:
    """Raise InputError for held-out records that no test compares."""
    if mode.held_out and not mode.sealed:
        raise InputError(
            "--held-out goes with --seal and --key; without a seal, `contamination compare` "
            "takes the two files"
        )
    if mode.held_out and mode.writes:
        raise InputError(
            "--held-out needs log-probabilities of records: leave it out with --access generate",
        )


def _check_combination(mode: TestMode) -> None:
    """Raise InputError for ways of testing that exclude each other."""
    if mode.sealed and (mode.stop or mode.control):
        raise InputError(
            "--stop and --control: all that --seal names is tested; leave them",
        )
    if mode.stop and (mode.control or mode.dry_run or mode.writes):
        others = "--control, --dry-run and --access generate"
        raise InputError(f"--stop scores as many shards as it takes: leave out {others}")
