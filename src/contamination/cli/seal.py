"""`contamination seal`: a set whose order a secret key draws."""

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from contamination.audit.registry import DEFAULT_TESTS
from contamination.cli import options as o
from contamination.cli.choices import SealChoice, declared_of, template_of
from contamination.cli.options import option
from contamination.cli.printing import print_table, say
from contamination.cli.unused import refuse_unused_of_seal
from contamination.errors import InputError

if TYPE_CHECKING:
    from contamination.seal.files import SealedSet, SealFiles


def seal(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="MY_SET",
            help="The set, in any order: .jsonl, .json, .csv, .parquet or .txt. Without --out, the "
            "directory that an earlier `seal` wrote, to go on with it.",
        ),
    ],
    out: Annotated[
        Path | None, option("New directory for the folders `public` and `private`.")
    ] = None,
    template: Annotated[
        str | None,
        option(
            "How an auditor turns a record into text: by name, or with {field}; "
            "default: by the layout of the records. It has to show options and "
            "wordings."
        ),
    ] = None,
    axis: Annotated[
        Literal["order", "both"],
        option("Permute the order of records alone, or the options of items as well."),
    ] = "both",
    wordings_of: Annotated[
        str | None, option("Field that is filled by one of the `wordings` of the record.")
    ] = None,
    answers: Annotated[
        str | None,
        option("Field that is filled by one of the `answers` of the record; all must be right."),
    ] = None,
    tests: Annotated[
        list[str] | None,
        option("Test of the order of records; default: successor.", "--test", show_default=False),
    ] = None,
    shards: Annotated[int | None, option("Shards of that test; default: as in `test`.")] = None,
    permutations: Annotated[int, option("Shuffled orderings of each shard.")] = 25,
    arrangements: Annotated[int, option("Compared orders of the options.")] = 24,
    alpha: Annotated[
        float,
        option("Level of the test of all parts together.", min=o.LEAST_ALPHA, max=o.MOST_ALPHA),
    ] = 0.05,
    hold_out: Annotated[
        int | None,
        option(
            "Number of records that are held back, and not published; the key draws which.",
            metavar="N",
        ),
    ] = None,
    scores: Annotated[
        list[str] | None,
        option(
            "Membership score by which published records are compared with these; may be "
            "repeated. Default: min_k_20, loss, zlib and min_k_pp_20.",
            "--score",
            show_default=False,
        ),
    ] = None,
    commit: Annotated[
        bool,
        option(
            "Commit to the set now; a later round of the beacon drand then draws the order.",
            "--commit",
        ),
    ] = False,
    beacon_round: Annotated[
        int | None,
        option(
            "Number of that round of drand's quicknet; default: the round in a day.",
            "--round",
        ),
    ] = None,
    signature: Annotated[
        str | None,
        option("Signature of that round, once it is published; with it, the order is drawn."),
    ] = None,
    stamp: Annotated[bool, option("Request a time stamp, now or later.", "--stamp")] = False,
    tsa: Annotated[str | None, option("URL of the time-stamping authority.")] = None,
    answer: o.Answer = None,
    options: o.OptionFields = None,
    other: o.Other = None,
) -> None:
    """Seal MY_SET: a secret key draws its order.

    Example: contamination seal my_set.jsonl --out sealed

    Whether a model has read the published set can then be tested without an assumption
    about its order (`contamination test --seal`). With --commit nobody can choose the
    key, the author included. Existing files are never overwritten, and the key is not
    shown.
    """
    stamp = stamp or tsa is not None
    if (out is None) != (signature is not None or (stamp and file.is_dir())):
        raise InputError(
            "--out names a new directory, for MY_SET; without it, MY_SET is the "
            "directory that was written, with --signature or --stamp: give one or the "
            "other"
        )
    choice = SealChoice(
        template=template_of(template),
        axis=axis,
        wordings_of=wordings_of,
        answers=answers,
        tests=tests,
        shards=shards,
        permutations=permutations,
        arrangements=arrangements,
        alpha=alpha,
        hold_out=hold_out,
        scores=scores,
        commit=commit,
        beacon_round=beacon_round,
        answer=answer,
        options=options,
        other=other,
    )
    refuse_unused_of_seal(choice, stated_before=out is None)
    if signature is not None:
        from contamination.seal.files import draw_committed

        _print_sealed(draw_committed(file, signature))
    elif out is not None:
        _seal(file, out, choice)
    if stamp:
        from contamination.seal.stamp import stamp as request_stamp

        query, token = request_stamp(out or file, tsa)
        if tsa is None:
            say(f"have {query} stamped, now or later (--tsa)", wrap=False)
        else:
            say(f"stamped: publish {token} with the seal", wrap=False)


def _seal(file: Path, out: Path, choice: SealChoice) -> None:
    """Seal a file as was typed, or commit to it, and print what to do next."""
    from contamination.seal.beacon import round_at
    from contamination.seal.files import seal_file

    beacon_round = choice.beacon_round
    if choice.commit and beacon_round is None:
        tomorrow = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)
        beacon_round = round_at(tomorrow)
    files = seal_file(
        file,
        out,
        template=choice.template,
        options=choice.axis == "both",
        declared=declared_of(choice.answer, choice.options, choice.other),
        wordings_of=choice.wordings_of,
        answers_of=choice.answers,
        tests=tuple(choice.tests or DEFAULT_TESTS),
        shards=choice.shards,
        permutations=choice.permutations,
        arrangements=choice.arrangements,
        level=choice.alpha,
        hold_out=choice.hold_out,
        scores=None if choice.scores is None else tuple(choice.scores),
        beacon_round=beacon_round,
    )
    if beacon_round is None:
        _print_sealed(files)
    else:
        _print_committed(files, beacon_round)


def _print_committed(files: "SealFiles", beacon_round: int) -> None:
    from contamination.seal.beacon import time_of, url_of

    say(
        f"publish {files.commitment} before {time_of(beacon_round):%Y-%m-%d %H:%M:%S} "
        "UTC, where a date can be proved: it is the one commitment of that name",
        f"after that, take `signature` from {url_of(beacon_round)} and run: "
        f"contamination seal {files.directory} --signature SIGNATURE",
        f"keep {files.key} to yourself, and a second copy elsewhere",
        wrap=False,
    )


def _print_sealed(files: "SealFiles") -> None:
    """Verify what was written, and print what to do with it and how much it can find."""
    from contamination.seal.files import verify

    sealed = verify(files.published, files.seal, files.key)
    seal = sealed.seal
    say(
        f"sealed: {sealed.described}; template {seal.template!r}",
        f"publish {files.published} and {files.seal}, where a date can be proved",
        f"keep {files.key} to yourself, and a second copy elsewhere: nothing can be "
        "tested without it",
        wrap=False,
    )
    if seal.hold_out is not None:
        _print_held_out(sealed, files)
    say(seal.guarantee, wrap=False)
    _print_power(sealed)


def _print_held_out(sealed: "SealedSet", files: "SealFiles") -> None:
    """Print where the records are that were held back, and the least p that they can give."""
    from contamination.seal.division import PARTS, least_p
    from contamination.seal.files import verify

    verify(files.published, files.seal, files.key, files.held_out)
    back = sealed.seal.hold_out or 0
    least = least_p(len(sealed.drawn) + back, back)
    say(
        f"keep {files.held_out} with the key: the {back:,} records that were held back; "
        "nobody who trains a model may read them",
        f"their comparison with the published ones has no p below {least:.2g}, and "
        f"{PARTS * least:.2g} together with the other draws",
        wrap=False,
    )


def _print_power(sealed: "SealedSet") -> None:
    """Print how many records find a model, by how much it prefers what it has read."""
    from contamination.seal.audit import EFFECTS, POWER, records_needed

    seal = sealed.seal
    wordings = max(len(record.variants.choices("wordings")) for record in sealed.drawn)
    counts = {"options": seal.arrangements if seal.options else 0, "wordings": wordings}
    variants = {kind: count for kind, count in counts.items() if count}
    if not variants:
        return
    rows = []
    for sd in EFFECTS:
        row: list[float] = [sd]
        for count in variants.values():
            row.append(records_needed(sd, count, level=seal.level))
        rows.append(row)
    columns = [f"{kind}: {count} variants" for kind, count in variants.items()]
    title = f"Records that find a model with power {POWER:.0%} at {seal.level:g}"
    print_table(("effect, sd", *columns), rows, title=title)
