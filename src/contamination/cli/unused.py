"""Options that would do nothing, and swapped names, are refused before anything is read."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from contamination.audit.registry import OPTION_TEST, TESTS
from contamination.audit.request import Request
from contamination.cli.choices import SealChoice, SetChoice, TextChoice
from contamination.cli.flags import flag_of
from contamination.errors import InputError
from contamination.testsets.records import FORMATS

OF_ITEMS = ("arrangements", "answer", "options", "other")


def refuse_unused(request: Request, *, writes: bool = False) -> None:
    """Raise InputError for an option of the tests that none of the asked tests uses.

    `writes` says whether the model gives text alone.
    """
    typed = typed_options(request, ("tests", "permutations", "shards", "arrangements"))
    if writes and typed:
        flag = flag_of(typed[0])
        raise InputError(f"{flag} goes with log-probabilities: leave it out with --access generate")
    _refuse_unused_in_tests(typed, request.order_tests)
    if "arrangements" in typed and request.axis == "order":
        raise InputError("--arrangements goes with --axis options or both: give both options")


def refuse_unused_fields(chosen_set: SetChoice, request: Request) -> None:
    """Raise InputError for fields of options where only the order of records is tested."""
    typed = typed_options(chosen_set, ("answer", "options", "other"))
    if typed and request.axis == "order":
        raise InputError(f"--{typed[0]} goes with --axis options or both: give both options")


def refuse_unused_mirror(mirror: Path | None, sets: Iterable[str]) -> None:
    """Raise InputError for a mirror in which none of the sets is looked for."""
    if mirror is None:
        return

    from contamination.testsets.sources import is_mirrored

    if not any(is_mirrored(name) for name in sets):
        raise InputError(
            "--mirror goes with registered sets and those of the hub: leave it out",
        )


def refuse_unused_of_dry_run(text: TextChoice, output: Sequence[Path], *, dry_run: bool) -> None:
    """Raise InputError for prices of a run, which shows none, and for files of a plan."""
    prices = typed_options(text, ("price_in", "price_out"))
    if prices and not dry_run:
        flag = flag_of(prices[0])
        raise InputError(f"{flag} goes with --dry-run: give both, or leave it out")
    if output and dry_run:
        raise InputError("--output is for a result, and --dry-run gives none: leave it out")


def refuse_unused_of_seal(choice: SealChoice, *, stated_before: bool) -> None:
    """Raise InputError for an option of a seal that changes nothing of it.

    `stated_before` says whether an earlier command has taken all statements, and this
    one goes on with them.
    """
    if stated_before:
        typed = typed_options(choice, SealChoice.__dataclass_fields__)
        if typed:
            raise InputError(
                f"{flag_of(typed[0])} is stated when a set is sealed or committed to, with "
                "--out: leave it out now"
            )
        return
    request = choice.request
    _refuse_unused_in_tests(typed_options(request, ("permutations", "shards")), request.order_tests)
    of_items = typed_options(choice, OF_ITEMS)
    if of_items and choice.axis == "order":
        flag = flag_of(of_items[0])
        raise InputError(f"{flag} goes with --axis both: leave it out with --axis order")


def refuse_unused_of_membership(
    *,
    seed: int,
    draws: bool,
    every_score: bool,
    as_json: bool,
) -> None:
    """Raise InputError for an option of `contamination membership` that changes nothing.

    `draws` says whether anything is drawn: neighbours, resamples of an evaluation, or a
    score.
    """
    if seed and not draws:
        raise InputError(
            "--seed does nothing here, since nothing is drawn: leave it out, or give "
            "--neighbours, --label, or a --score that draws"
        )
    if every_score and as_json:
        raise InputError("--all does nothing with --json, which has all scores: leave it out")


def refuse_swapped(model: str, dataset: str) -> None:
    """Raise InputError if set and model stand in each other's place."""
    advice = f"name MODEL first, then DATASET: {dataset} {model}"
    if Path(model).suffix in FORMATS and Path(model).is_file():
        raise InputError(f"{model} is a test set; {advice}")
    if Path(dataset).suffix == ".gguf" or (Path(dataset) / "config.json").is_file():
        raise InputError(f"{dataset} is a model; {advice}")


def typed_options(choice: Any, names: Iterable[str]) -> list[str]:
    """Return those of the fields of a dataclass that do not have their default."""
    defaults = type(choice).__dataclass_fields__
    return [name for name in names if getattr(choice, name) != defaults[name].default]


def _refuse_unused_in_tests(typed: Sequence[str], tests: Sequence[str]) -> None:
    """Raise InputError for permutations or shards that were typed, and that no test has."""
    needs = [TESTS[name] for name in tests]
    names = ", ".join(tests) or f"the test {OPTION_TEST!r}"
    if "permutations" in typed and all(test.kind == "successors" for test in needs):
        reader = "sharded_exact"
        raise InputError(
            f"--permutations does nothing here, since {names} reads no whole shuffled orderings: "
            f"leave it out, or ask for a test that does (--test {reader})"
        )
    if "shards" in typed and needs and all(test.shard_size is None for test in needs):
        raise InputError(
            f"--shards does nothing here, since {names} reads the set as one: leave it out"
        )
