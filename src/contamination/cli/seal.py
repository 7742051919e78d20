"""`contamination seal` and `test --seal`: a set whose order a secret key draws."""

import datetime
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from contamination.audit.registry import DEFAULT_TESTS
from contamination.audit.request import Request
from contamination.cli.audit import run, show_result
from contamination.cli.ending import ExitStatus
from contamination.cli.options import (
    DataOptions,
    ItemOptions,
    TestedOptions,
    add_options,
    option,
    template_of,
)
from contamination.cli.printing import print_table, say
from contamination.errors import InputError

if TYPE_CHECKING:
    from contamination.seal.files import SealFiles


@add_options
def seal(
    items: ItemOptions,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="MY_SET",
            help="The set, in any order: .jsonl, .json, .csv, .parquet or .txt. Without --out, the "
            "directory that was written.",
        ),
    ],
    out: Annotated[Path | None, option("New directory, of `public` and `private`.")] = None,
    template: Annotated[
        str | None,
        option(
            "How an auditor turns a record into text: by name, or with {field}; default: by the "
            "layout of the records. It has to show options and wordings."
        ),
    ] = None,
    axis: Annotated[
        Literal["order", "both"],
        option("Permute the order of records alone, or the options of items as well."),
    ] = "both",
    wordings_of: Annotated[str | None, option("Field that one of its `wordings` fills.")] = None,
    answers: Annotated[
        str | None, option("Field that one of its `answers` fills, all of which are right.")
    ] = None,
    tests: Annotated[list[str] | None, option("Test of the order of records.", "--test")] = None,
    shards: Annotated[int | None, option("Shards of that test.")] = None,
    permutations: Annotated[int, option("Shuffled orderings of each shard.")] = 25,
    arrangements: Annotated[int, option("Compared orders of the options.")] = 24,
    alpha: Annotated[float, option("Level of the test of all parts together.")] = 0.05,
    commit: Annotated[
        bool, option("Commit first: the beacon's signature of a later round ends it.", "--commit")
    ] = False,
    beacon_round: Annotated[
        int | None,
        option("Commit to this round of drand's quicknet; default: in a day.", "--round"),
    ] = None,
    signature: Annotated[str | None, option("Signature of that round: draw at last.")] = None,
    stamp: Annotated[bool, option("Request a time stamp, now or later.", "--stamp")] = False,
    tsa: Annotated[str | None, option("URL of who is to give it.")] = None,
) -> None:
    """Seal MY_SET: draw its order by a secret key, and commit to that.

    Whether a model has read the published set can then be tested without an assumption about its
    order (`contamination test --seal`). With --commit nobody can choose the key, the author
    included. Nothing is written over, and the key is not shown.
    """
    from contamination.seal.beacon import round_at
    from contamination.seal.files import draw_committed, seal_file

    stamp = stamp or tsa is not None
    if (out is None) != (signature is not None or (stamp and file.is_dir())):
        raise InputError(
            "--out names a new directory, for MY_SET; without it, MY_SET is the directory that was "
            "written, with --signature or --stamp: give one or the other"
        )
    if signature is not None:
        _print_sealed(draw_committed(file, signature))
    elif out is not None:
        if commit and beacon_round is None:
            tomorrow = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)
            beacon_round = round_at(tomorrow)
        files = seal_file(
            file,
            out,
            template=template_of(template),
            options=axis == "both",
            declared=items.declared,
            wordings_of=wordings_of,
            answers_of=answers,
            tests=tuple(tests or DEFAULT_TESTS),
            shards=shards,
            permutations=permutations,
            arrangements=arrangements,
            level=alpha,
            beacon_round=beacon_round,
        )
        _print_sealed(files) if beacon_round is None else _print_committed(files, beacon_round)
    if stamp:
        from contamination.seal.stamp import stamp as request_stamp

        asked, token = request_stamp(out or file, tsa)
        done = f"stamped: publish {token} with the seal"
        say(f"have {asked} stamped, now or later (--tsa)" if tsa is None else done, wrap=False)


def _print_committed(files: "SealFiles", beacon_round: int) -> None:
    from contamination.seal.beacon import time_of, url_of

    say(
        f"publish {files.commitment} before {time_of(beacon_round):%Y-%m-%d %H:%M:%S} UTC, where a "
        "date can be proved: it is the one commitment of that name",
        f"after that, take `signature` from {url_of(beacon_round)} and run: contamination seal "
        f"{files.directory} --signature SIGNATURE",
        f"keep {files.key} to yourself, and a second copy elsewhere",
        wrap=False,
    )


def _print_sealed(files: "SealFiles") -> None:
    """Verify what was written, and print what to do with it and how much it can find."""
    from contamination.seal.audit import EFFECTS, POWER, records_needed
    from contamination.seal.files import verify

    sealed = verify(files.published, files.seal, files.key)
    seal = sealed.seal
    say(
        f"sealed: {sealed.described}; template {seal.template!r}",
        f"publish {files.published} and {files.seal}, where a date can be proved",
        f"keep {files.key} to yourself, and a second copy elsewhere: nothing can be tested "
        "without it",
        seal.guarantee,
        wrap=False,
    )
    wordings = max(len(one.variants.given("wordings")) for one in sealed.drawn)
    found = {"options": seal.arrangements if seal.options else 0, "wordings": wordings}
    variants = {kind: count for kind, count in found.items() if count}
    if variants:
        needed = [
            (sd, *(records_needed(sd, count, level=seal.level) for count in variants.values()))
            for sd in EFFECTS
        ]
        columns = (f"{kind}: {count} variants" for kind, count in variants.items())
        title = f"Records that find a model with power {POWER:.0%} at {seal.level:g}"
        print_table(("effect, sd", *columns), needed, title=title)


def verify_sealed(
    published: Path, seal: Path, key: Path, date: Path | None, ca: Path | None
) -> None:
    """Verify a sealed set without a model: the key draws this set and this seal, byte by byte."""
    from contamination.seal.beacon import time_of
    from contamination.seal.files import verify as verify_files
    from contamination.seal.stamp import stamped_at

    if (date is None) != (ca is None):
        raise InputError("--date and --ca go together: give the time stamp and the certificate")
    found = verify_files(published, seal, key)
    told = [f"verified: {published} and {seal} are what {key} draws"]
    told += [found.described, found.seal.guarantee]
    if date is not None and ca is not None:
        time, ahead = stamped_at(date, found.seal.stamped, ca), found.seal.beacon_round
        line = f"stamped: the commitment existed at {time:%Y-%m-%d %H:%M:%S} UTC, as {ca} vouches"
        if ahead is not None:
            line += f"; that is {'before' if time < time_of(ahead) else 'NOT before'} the round"
        told.append(line)
    say(*told, wrap=False)


# --- contamination test --seal --------------------------------------------------------------------


def test_sealed(
    options: TestedOptions, seal: Path | None, key: Path | None, alpha: float
) -> ExitStatus:
    """Verify seal, key and set, and test as stated; return the status of all parts together."""
    if seal is None or key is None:
        raise InputError(
            "--seal and --key go together: the seal.json that was published proves nothing alone"
        )
    stated = [each for kind in (DataOptions, ItemOptions, Request) for each in fields(kind)]
    changed = [each.name for each in stated if getattr(options, each.name) != each.default]
    given = [name for name in changed if name not in ("directory", "name")]
    if given or alpha != 0.05:
        typed = [*given, "alpha"][0].replace("tests", "test").replace("_", "-")
        raise InputError(f"--{typed}: the seal states how the set is tested; leave --{typed} out")

    from contamination.seal.files import verify  # which does without torch

    sealed = verify(Path(options.dataset), seal, key)

    from contamination.seal import audit as tests

    works: Any = partial(tests.sealed_works, sealed=sealed)
    audited: Any = tests.audit_sealed
    if options.access == "generate":
        works = partial(tests.sealed_writings, sealed=sealed, **options.written)
        audited = tests.audit_sealed_texts
    level = sealed.seal.level
    audit = run([options], works, partial(audited, level=level))
    if audit is None:
        return ExitStatus.DONE
    left_out = tests.not_claimed(sealed, audit)
    lines = [f"verified: {sealed.described}", sealed.seal.guarantee, "not claimed:"]
    lines += [f"  {line}" for line in left_out]
    return show_result(
        audit,
        level,
        options,
        *lines,
        seal=sealed.seal.model_dump(mode="json"),
        guarantee=sealed.seal.guarantee,
        not_claimed=[*left_out],
    )
