"""`contamination seal` and `contamination verify`: a benchmark whose order a secret key draws."""

import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contamination.cli.options import AnswerFields, OptionsFields, OtherFields, template_of
from contamination.cli.printing import print_table, say
from contamination.errors import InputError
from contamination.testsets.example_set import Declared

if TYPE_CHECKING:
    from contamination.seal.files import SealedSet, SealFiles


class Permuted(StrEnum):
    """What a key permutes."""

    order = "order"
    both = "both"


SealPath = Annotated[Path, typer.Option(help="The seal.json that was published with the set.")]
KeyPath = Annotated[Path, typer.Option(help="The author's key.json.")]


def seal(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="MY_SET",
            help="The set, in any order: .jsonl, .json, .csv, .parquet or .txt. With --signature, "
            "the directory that --commit wrote.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="New directory: `public` is to be published, `private` kept."),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(
            help="How an auditor turns a record into text: by name, or with {field}; default: the "
            "field `text`. It has to show options and wordings."
        ),
    ] = None,
    axis: Annotated[
        Permuted,
        typer.Option(help="Permute the order of records alone, or the options of items as well."),
    ] = Permuted.both,
    answer: AnswerFields = None,
    options: OptionsFields = None,
    other: OtherFields = None,
    wordings_of: Annotated[
        str | None,
        typer.Option(help="Field that one of the author's `wordings` of a record fills."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the benchmark; default: that of the file.")
    ] = None,
    date: Annotated[
        datetime.datetime | None,
        typer.Option(help="Date in the seal; default: today (UTC).", formats=["%Y-%m-%d"]),
    ] = None,
    tests: Annotated[
        list[str] | None, typer.Option("--test", help="Test of the order of records.")
    ] = None,
    shards: Annotated[int | None, typer.Option(help="Shards of that test.")] = None,
    permutations: Annotated[int, typer.Option(help="Shuffled orderings of each shard.")] = 25,
    arrangements: Annotated[int, typer.Option(help="Compared orders of the options.")] = 24,
    alpha: Annotated[float, typer.Option(help="Level of the test of all parts together.")] = 0.05,
    commit: Annotated[
        bool,
        typer.Option(
            "--commit", help="Commit first: the beacon's signature of a later round ends it."
        ),
    ] = False,
    beacon_round: Annotated[
        int | None,
        typer.Option("--round", help="Round of drand's quicknet; default: the first in a day."),
    ] = None,
    signature: Annotated[
        str | None, typer.Option(help="Signature of that round: draw what was committed to.")
    ] = None,
) -> None:
    """Seal MY_SET: draw its order by a secret key, and commit to that.

    Whether a model has read the published set can then be tested without an assumption about its
    order (`contamination test --seal`). With --commit nobody can choose the key, the author
    included. Nothing is written over, and the key is not shown.
    """
    from contamination.seal.beacon import round_at, time_of, url_of
    from contamination.seal.files import draw_committed, seal_file

    if signature is not None:
        if out is not None or commit:
            raise InputError("--signature ends what --commit began: give its directory alone")
        _print_sealed(*draw_committed(file, signature))
        return
    if out is None:
        raise InputError("--out is missing: name a new directory")
    if beacon_round is not None and not commit:
        raise InputError("--round goes with --commit: give both")
    if commit and beacon_round is None:
        beacon_round = round_at(datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1))
    declared = Declared(tuple(answer or ()), tuple(options or ()), tuple(other or ()))
    given = {
        "name": name,
        "date": date and date.date(),
        "template": template_of(template),
        "wordings_of": wordings_of,
        "tests": tuple(tests) if tests else None,
        "shards": shards,
        "beacon_round": beacon_round,
    }
    sealed, files = seal_file(
        file,
        out,
        options=axis == Permuted.both,
        declared=declared,
        permutations=permutations,
        arrangements=arrangements,
        level=alpha,
        **{field: value for field, value in given.items() if value is not None},
    )
    if sealed is not None:
        _print_sealed(sealed, files)
        return
    time = f"{time_of(beacon_round or 0):%Y-%m-%d %H:%M:%S} UTC"
    say(
        f"publish {files.commitment} before {time}, where a date can be proved: it is the one "
        f"commitment of that name",
        f"after that, take `signature` from {url_of(beacon_round or 0)} and run: contamination "
        f"seal {files.directory} --signature SIGNATURE",
        f"keep {files.key} to yourself, and a second copy elsewhere",
        wrap=False,
    )


def verify(
    published: Annotated[Path, typer.Argument(metavar="SEALED", help="The published file.")],
    seal: SealPath,
    key: KeyPath,
) -> None:
    """Verify SEALED without a model: the key draws this set and this seal, byte by byte."""
    from contamination.seal.audit import guarantee
    from contamination.seal.files import verify as verify_files

    found = verify_files(published, seal, key)
    say(
        f"verified: {published} and {seal} are what {key} draws",
        describe(found),
        guarantee(found.seal),
        wrap=False,
    )


def describe(sealed: "SealedSet") -> str:
    """Say what was verified, in one line."""
    drawn = [f"the order of {len(sealed.drawn):,} records"]
    if sealed.moving:
        drawn.append(f"the options of {sealed.moving:,} items")
    if sealed.worded:
        drawn.append(f"the wording of {sealed.worded:,} records")
    return (
        f"the key drew {', '.join(drawn)}; dated {sealed.seal.date} by their author, commitment "
        f"{sealed.seal.commitment}"
    )


def _print_sealed(sealed: "SealedSet", files: "SealFiles") -> None:
    from contamination.seal.audit import guarantee
    from contamination.seal.power import POWER, power_table

    seal = sealed.seal
    say(
        f"sealed: {describe(sealed)}",
        f"publish {files.published} and {files.seal}, where a date can be proved",
        f"keep {files.key} to yourself, and a second copy elsewhere: nothing can be tested "
        "without it",
        guarantee(seal),
        wrap=False,
    )
    variants = {"options": seal.arrangements} if seal.options else {}
    if sealed.worded:
        variants["wordings"] = max(len(one.wordings) for one in sealed.variants)
    if variants:
        print_table(
            ("effect, sd", *(f"{what}: {count} variants" for what, count in variants.items())),
            power_table([*variants.values()], level=seal.level),
            title=f"Records that find a model with power {POWER:.0%} at {seal.level:g}",
        )
