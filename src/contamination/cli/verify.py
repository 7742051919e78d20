"""`contamination verify`: a seal, or the stores of audits, without a model."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from contamination.audit.other_tests import MOST_TOLD, SIDES_HEADER
from contamination.cli.options import option
from contamination.cli.printing import fail, print_table, say
from contamination.errors import InputError

SHOWN = ("store", "model", "set", "test", "p", "log10 p")


def verify(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="STORES...|SEALED",
            help="Folders that hold stores; or the published file of a seal.",
        ),
    ],
    against: Annotated[
        Path | None,
        option(
            "Table of `audit --csv`; the stores have to give the numbers that it states.",
        ),
    ] = None,
    seal: Annotated[
        Path | None, option("The seal.json that was published with the sealed file.")
    ] = None,
    key: Annotated[
        Path | None,
        option("The key.json of the author of the seal."),
    ] = None,
    held_out: Annotated[
        Path | None,
        option("The author's held_out.jsonl, with the records that the key has held back."),
    ] = None,
    date: Annotated[
        Path | None,
        option("Time stamp of the seal, commitment.tsr."),
    ] = None,
    ca: Annotated[
        Path | None,
        option("The root certificate (PEM) of the time-stamping authority."),
    ] = None,
) -> None:
    """Verify stores, or a sealed set, without a model.

    Example: contamination verify contamination-stores --against audit.csv

    Each stored number is checked against a checksum, and each test computed again. With
    --against, each number of the audit's table is compared, and each verdict is decided again. For
    SEALED, --key must draw the published set and its --seal again, byte by byte, and the time of
    --date must be before the round of the seal. Exit status 0: everything matches. 2: a line for
    each difference.
    """
    of_a_seal = (seal, key, held_out, date, ca)
    if any(path is not None for path in of_a_seal):
        if against is not None or len(paths) > 1:
            raise InputError(
                "a seal is verified by SEALED, --seal and --key: give these alone",
            )
        if seal is None:
            raise InputError("a seal is verified by SEALED, --seal and --key: --seal is missing")
        if key is None:
            raise InputError(
                "a seal is verified by SEALED, --seal and --key: --key is missing; without it, "
                f"compare what `sha256sum {paths[0]}` prints with `sha256` in {seal}"
            )
        verify_sealed(paths[0], seal, key, held_out=held_out, date=date, ca=ca)
    else:
        verify_stores(paths, against)


def verify_sealed(
    published: Path,
    seal: Path,
    key: Path,
    *,
    held_out: Path | None,
    date: Path | None,
    ca: Path | None,
) -> None:
    """Verify without a model that the key draws this set and this seal, byte by byte.

    `held_out` is the file of the records that the key has held back; None leaves it
    unread. `date` and `ca` are the time stamp and the certificate of its authority.
    """
    from contamination.seal.files import verify as verify_files

    if (date is None) != (ca is None):
        raise InputError(
            "--date and --ca go together: give the time stamp and the certificate",
        )
    sealed = verify_files(published, seal, key, held_out)
    checked = f"{published} and {seal}"
    if held_out is not None:
        checked = f"{published}, {seal} and {held_out}"
    lines = [
        f"verified: {checked} are what {key} draws",
        sealed.described,
        sealed.seal.guarantee,
    ]
    if sealed.held_out is not None and held_out is None:
        lines.append("not verified: the file of the records that were held back (--held-out)")
    late = ""
    if date is not None and ca is not None:
        dated, late = _dated(sealed.seal, date, ca)
        lines.append(dated)
    say(*lines, wrap=False)
    if late:
        fail([late])


def _dated(seal: Any, date: Path, ca: Path) -> tuple[str, str]:
    """Return when the commitment of a seal existed, and the problem of one that is too late.

    The problem is "" if the seal has no round, or its round came later.
    """
    from contamination.seal.beacon import time_of
    from contamination.seal.stamp import stamped_at

    time = stamped_at(date, seal.stamped, ca)
    moment = f"{time:%Y-%m-%d %H:%M:%S} UTC"
    line = f"stamped: the commitment existed at {moment}, as {ca} vouches"
    if seal.beacon_round is None:
        return line, ""
    of_round = time_of(seal.beacon_round)
    if time < of_round:
        return f"{line}; that is before the round", ""
    return line, (
        f"{date}: stamped at {moment}, which is not before round {seal.beacon_round} "
        f"({of_round:%Y-%m-%d %H:%M:%S} UTC), so its author may have chosen the key by what that "
        "round draws; give an earlier time stamp"
    )


def verify_stores(paths: Sequence[Path], against: Path | None) -> None:
    """Compute the p-values of stores again, and compare them with an audit's table."""
    directories = _stores_in(paths)

    from contamination.audit.recompute import (
        count_left_out,
        differences,
        not_compared,
        read_audit,
        recompute,
    )

    audited = None if against is None else read_audit(against)
    computed = []
    left_out = dict[Path, int]()  # tests of each store that are in no row
    problems = list[str]()
    for directory in directories:
        try:
            of_store = recompute(directory, audited)
        except InputError as error:
            problems.append(str(error))
            continue
        computed += of_store
        left_out[directory] = count_left_out(directory, of_store)
    if audited is not None:
        problems += [f"{against}, {line}" for line in differences(audited, computed)]
    rows = [_row(result) for result in computed]
    print_table(
        SHOWN,
        rows,
        title="What the stores alone give, uncorrected",
        text=SHOWN[:4],
    )
    fail(problems)
    if against is not None and audited is not None:
        columns = ", ".join(not_compared(audited, computed))
        say(
            f"verified: the stores give every p of {against}, and its verdicts follow",
            f"not compared: the columns {columns}, which need the records or the run",
            *_left_out_in_words(left_out, against),
            wrap=False,
        )


def _left_out_in_words(left_out: Mapping[Path, int], against: Path) -> list[str]:
    """Return a line on the tests of stores that a table leaves out; none without any."""
    total = sum(left_out.values())
    if total == 0:
        return []
    directories = [str(directory) for directory, tests in left_out.items() if tests]
    shown = directories[:MOST_TOLD]
    if len(directories) > len(shown):
        shown.append(f"{len(directories) - len(shown)} more")
    count = "1 test" if total == 1 else f"{total} tests"
    return [
        f"not in {against}: {count} of these stores, over which p (Holm) is not corrected: "
        f"{', '.join(shown)}"
    ]


def _stores_in(paths: Sequence[Path]) -> list[Path]:
    """Return the directories of the stores in folders, each once; raise InputError for none."""
    directories = list[Path]()
    texts = list[Path]()
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such folder; name an audit's --store")
        directories += [header.parent for header in sorted(path.rglob("store.json"))]
        directories += [header.parent for header in sorted(path.rglob(SIDES_HEADER))]
        texts += path.rglob("completions.json")
    if directories:
        return list(dict.fromkeys(directories))
    if texts:
        raise InputError(
            f"{texts[0].parent}: texts that a model wrote, and no log-probabilities: "
            "the `contamination test --access generate` that wrote them reads them "
            "again"
        )
    raise InputError(
        f"{paths[0]}: no store in it; name an audit's --store, or --seal and --key",
    )


def _row(result: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of one test for people."""
    return (
        result["store"][:8],
        f"{result['model']} {result['model revision'][:8]}",
        f"{result['set']} {result['set revision'][:8]}",
        result["test"],
        f"{result['p']:.3g}",
        f"{result['log10 p']:.1f}",
    )
