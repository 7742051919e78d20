"""`contamination data`: what is registered, where it is, and whether it is whole."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from contamination.cli.printing import print_table
from contamination.errors import InputError
from contamination.testsets.registry import Entry, Hub, lookup, registered
from contamination.testsets.sources import (
    cache_path,
    entry_of,
    expected_checksum,
    fetch,
    locate,
    read_verified,
)

WIDE = 140  # characters that all columns of `list` take

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
    """List registered sets: records, licence, and where they are.

    With 140 columns or more also their split and public source, as in data/registry.yaml.
    """
    rows = [
        (
            entry.name,
            entry.split,
            entry.records,
            entry.licence,
            _place(entry, locate(entry, mirror)),
            f"hub {entry.source.id}" if isinstance(entry.source, Hub) else "URL",
        )
        for entry in map(lookup, _expanded(names))
    ]
    columns = ("name", "split", "records", "licence", "where", "source")
    # A narrow terminal shows what a choice needs; the registry has the rest.
    chosen = columns if Console().width >= WIDE else ("name", "records", "licence", "where")
    cells = ([row[columns.index(column)] for column in chosen] for row in rows)
    print_table(chosen, cells, text=("split", "licence", "where", "source"))


@app.command("fetch")
def fetch_sets(
    names: Annotated[
        list[str], typer.Argument(help="Registered names, families such as mmlu/, or hub ids.")
    ],
    again: Annotated[
        bool, typer.Option("--again", help="Fetch what is in the cache, too, and compare.")
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
    rows: list[tuple[object, ...]] = []
    problems = []
    for entry in map(lookup, _expanded(names)):
        try:
            here = locate(entry, mirror)
            if here is not None:
                records = len(read_verified(entry, here))
                known = expected_checksum(entry, here) is not None
                verdict = "checksum agrees" if known else "counted; no checksum is known"
                rows.append((entry.name, records, _place(entry, here), verdict))
            elif names:
                problems.append(f"{entry.name}: not here; `contamination data fetch {entry.name}`")
        except InputError as error:
            rows.append((entry.name, "", "", "wrong"))
            problems.append(str(error))
    if rows:
        print_table(("name", "records", "where", "verdict"), rows, text=("where", "verdict"))
    elif not problems:
        problems.append("no set is here: `contamination data fetch NAME`, or give --mirror")
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    if problems:
        raise typer.Exit(2)


def _place(entry: Entry, here: Path | None) -> str:
    if here is None:
        return "network"
    return "cache" if here == cache_path(entry) else "mirror"


def _expanded(names: list[str] | None) -> list[str]:
    """Names of sets, with families in the place of their prefixes."""
    expanded = [
        name
        for asked in names or [""]
        for name in (registered(asked) if asked.endswith("/") or not asked else ()) or [asked]
    ]
    return list(dict.fromkeys(expanded))
