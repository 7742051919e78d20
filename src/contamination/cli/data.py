"""`contamination data`: what is registered, where it is, and whether it is whole."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from contamination.errors import InputError
from contamination.testsets.cache import expected_checksum, fetch, find, verified
from contamination.testsets.registry import Entry, Hub, lookup, registered
from contamination.testsets.sources import entry_of

app = typer.Typer(no_args_is_help=True, help="The registry of public test sets.")

Names = Annotated[
    list[str] | None,
    typer.Argument(help="Registered names, or families such as mmlu/.", show_default=False),
]
Mirror = Annotated[
    Path | None,
    typer.Option(help="Directory of a local mirror; default: that of CONTAMINATION_DATA."),
]


@app.command("list")
def list_sets(names: Names = None, mirror: Mirror = None) -> None:
    """List registered sets: records, licence, and where they are."""
    table = Table("name", "split", "records", "licence", "where", "source")
    table.columns[0].no_wrap = True
    table.columns[2].justify = "right"
    for entry in map(lookup, _expanded(names)):
        found = find(entry, mirror)
        table.add_row(
            entry.name,
            entry.split,
            f"{entry.records:,}",
            entry.licence,
            found.place if found else "network",
            f"hub {entry.source.id}" if isinstance(entry.source, Hub) else "URL",
        )
    Console().print(table, highlight=False)


@app.command("fetch")
def fetch_sets(
    names: Annotated[
        list[str], typer.Argument(help="Registered names, families such as mmlu/, or hub ids.")
    ],
    again: Annotated[
        bool, typer.Option("--again", help="Also what is in the cache: has it changed upstream?")
    ] = False,
) -> None:
    """Fetch sets from their public sources into the cache, and verify them."""
    for entry in map(entry_of, _expanded(names)):
        print(f"{entry.name}: {fetch(entry, again=again)}", flush=True)


@app.command("check")
def check_sets(names: Names = None, mirror: Mirror = None) -> None:
    """Compare records and checksums of NAMES, or of all sets that are on this machine.

    Exit status 2 if one is not what the registry says, or one of NAMES is not here.
    """
    table = Table("name", "records", "where", "verdict")
    table.columns[0].no_wrap = True
    table.columns[1].justify = "right"
    problems = []
    for entry in map(lookup, _expanded(names)):
        try:
            row = _checked(entry, mirror)
        except InputError as error:
            row = ("", "", "wrong")
            problems.append(str(error))
        if row is None and names:
            problems.append(f"{entry.name}: not here; `contamination data fetch {entry.name}`")
        if row is not None:
            table.add_row(entry.name, *row)
    if table.row_count:
        Console().print(table, highlight=False)
    elif not problems:
        problems.append("no set is here: `contamination data fetch NAME`, or give --mirror")
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    if problems:
        raise typer.Exit(2)


def _checked(entry: Entry, mirror: Path | None) -> tuple[str, str, str] | None:
    """Columns of a set that is whole; None if it is not here."""
    found = find(entry, mirror)
    if found is None:
        return None
    records = verified(entry, found)
    sure = expected_checksum(entry, found.path) is not None
    verdict = "checksum agrees" if sure else "counted; no checksum is known"
    return f"{len(records):,}", found.place, verdict


def _expanded(names: list[str] | None) -> list[str]:
    """Names of sets, with families in the place of their prefixes."""
    found = [
        name
        for asked in names or [""]
        for name in (registered(asked) if asked.endswith("/") or not asked else ()) or [asked]
    ]
    return list(dict.fromkeys(found))
