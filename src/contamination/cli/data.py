"""`contamination data`: what is registered, where it is, and whether it is whole."""

from pathlib import Path
from typing import Annotated

import typer

from contamination.cli.help import Command, Group
from contamination.cli.options import option
from contamination.cli.printing import fail, print_table
from contamination.errors import InputError
from contamination.testsets.registry import Entry, registered
from contamination.testsets.sources import (
    cache_path,
    entry_of,
    fetch,
    locate,
)
from contamination.testsets.verified import expected_checksum, read_verified

data = typer.Typer(cls=Group, no_args_is_help=True, help="The registry of public test sets.")

Names = Annotated[
    list[str] | None,
    typer.Argument(
        help="Registered names, or families such as mmlu/.",
        show_default=False,
    ),
]
Mirror = Annotated[
    Path | None,
    option("Directory of a local mirror; default: that of CONTAMINATION_DATA."),
]


@data.command("list", cls=Command)
def list_sets(names: Names = None, mirror: Mirror = None) -> None:
    """List registered sets, their licences, and where they are.

    Example: contamination data list mmlu/

    The file data/registry.yaml says more about each of them.
    """
    rows = (
        (entry.name, entry.records, entry.licence, _place(entry, locate(entry, mirror)))
        for entry in map(entry_of, _expanded(names))
    )
    print_table(("name", "records", "licence", "where"), rows, text=("licence", "where"))


@data.command("fetch", cls=Command)
def fetch_sets(
    names: Annotated[list[str], typer.Argument(help="Registered names, families or hub ids.")],
    again: Annotated[bool, option("Fetch sets again that are in the cache.", "--again")] = False,
) -> None:
    """Fetch sets from their public sources, and verify them.

    Example: contamination data fetch gsm8k mmlu/anatomy
    """
    for entry in map(entry_of, _expanded(names)):
        print(f"{entry.name}: {fetch(entry, again=again)}", flush=True)


@data.command("check", cls=Command)
def check_sets(names: Names = None, mirror: Mirror = None) -> None:
    """Compare the sets on this machine with the registry.

    Example: contamination data check gsm8k

    Compared are the records and checksums of NAMES; without NAMES, of all sets that are here.

    Exit status 2 if one is not what the registry says, or one of NAMES is not here.
    """
    rows: list[tuple[object, ...]] = []
    problems = []
    for entry in map(entry_of, _expanded(names)):
        try:
            here = locate(entry, mirror)
            if here is not None:
                records = len(read_verified(entry, here))
                known = expected_checksum(entry, here) is not None
                verdict = "checksum agrees" if known else "counted; no checksum is known"
                rows.append((entry.name, records, _place(entry, here), verdict))
            elif names:
                problems.append(
                    f"{entry.name}: not here; `contamination data fetch {entry.name}`",
                )
        except InputError as error:
            rows.append((entry.name, "", "", "wrong"))
            problems.append(str(error))
    if rows:
        print_table(
            ("name", "records", "where", "verdict"),
            rows,
            text=("where", "verdict"),
        )
    elif not problems:
        problems.append(
            "no set is here: `contamination data fetch NAME`, or give --mirror",
        )
    fail(problems)


def _place(entry: Entry, here: Path | None) -> str:
    if here is None:
        return "network"
    return "cache" if here == cache_path(entry) else "mirror"


def _expanded(names: list[str] | None) -> list[str]:
    """Return names of sets: a family stands for its members, nothing for all sets."""
    expanded = list[str]()
    for name in names or [""]:
        is_family = name.endswith("/") or not name
        members = registered(name) if is_family else ()
        expanded.extend(members or [name])
    return list(dict.fromkeys(expanded))
