"""Options that would do nothing are refused, before anything is read."""

from collections.abc import Iterable
from typing import Any

from contamination.audit.registry import OPTION_TEST, TESTS
from contamination.audit.request import Request
from contamination.cli.choices import SetChoice
from contamination.errors import InputError


def refuse_unused(request: Request, *, writes: bool = False) -> None:
    """Raise InputError for an option of the tests that none of the asked tests uses.

    Parameters
    ----------
    request
        What is tested.
    writes
        Whether the model gives text alone.
    """
    typed = changed(request, ("permutations", "shards", "arrangements"))
    tests = [TESTS[name] for name in request.order_tests]
    names = ", ".join(request.order_tests) or f"the test {OPTION_TEST!r}"
    if writes:
        if "permutations" in typed or "arrangements" in typed:
            raise InputError(
                f"--{typed[0]} goes with log-probabilities: leave it out with --access generate"
            )
        return
    if "permutations" in typed and all(test.kind == "successors" for test in tests):
        reader = "sharded_exact"
        raise InputError(
            f"--permutations does nothing here, since {names} reads no whole shuffled orderings: "
            f"leave it out, or ask for a test that does (--test {reader})"
        )
    if "shards" in typed and tests and all(test.shard_size is None for test in tests):
        raise InputError(
            f"--shards does nothing here, since {names} reads the set as one: leave it out"
        )
    if "arrangements" in typed and request.axis == "order":
        raise InputError("--arrangements goes with --axis options or both: give both options")


def refuse_unused_fields(chosen_set: SetChoice, request: Request) -> None:
    """Raise InputError for fields of options where only the order of records is tested."""
    typed = changed(chosen_set, ("answer", "options", "other"))
    if typed and request.axis == "order":
        raise InputError(f"--{typed[0]} goes with --axis options or both: give both options")


def changed(choice: Any, names: Iterable[str]) -> list[str]:
    """Return those of the fields of a dataclass that do not have their default."""
    defaults = type(choice).__dataclass_fields__
    return [name for name in names if getattr(choice, name) != defaults[name].default]
