"""`contamination seal`: a benchmark whose order a secret key draws, before it is published."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from contamination.cli.options import template_of


class Permuted(StrEnum):
    """What a key permutes."""

    order = "order"
    both = "both"


def seal(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="MY_SET", help="The set, in any order: .jsonl, .json, .csv, .parquet or .txt."
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="New directory: `public` is to be published, `private` kept.")
    ],
    template: Annotated[
        str | None,
        typer.Option(
            help="How an auditor turns a record into text: by name, or with {field}; default: the "
            "field `text`. Items with options need one that shows them."
        ),
    ] = None,
    axis: Annotated[
        Permuted,
        typer.Option(help="Permute the order of records alone, or the options of items as well."),
    ] = Permuted.both,
    wordings_of: Annotated[
        str | None,
        typer.Option(help="Field that one of the author's `wordings` of a record fills."),
    ] = None,
    date: Annotated[
        str | None, typer.Option(help="Date in the seal, YYYY-MM-DD; default: today (UTC).")
    ] = None,
) -> None:
    """Seal MY_SET: draw its order by a secret key, and commit to that.

    Whether a model has read the published set can then be tested without an assumption about its
    order (`contamination test --seal`). Nothing is written over, and the key is not shown.
    """
    from contamination.testsets.sealing import seal_file

    sealed, files = seal_file(
        file,
        out,
        template=template_of(template),
        options=axis == Permuted.both,
        wordings_of=wordings_of,
        date=date,
    )
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"sealed {sealed.records:,} records: {', '.join(sealed.permuted)}")
    console.print(f"commitment: {sealed.commitment}")
    console.print(f"publish {files.published} and {files.seal}, where a date can be proved")
    console.print(
        f"keep {files.key} to yourself, and a second copy elsewhere: it is never shown, and "
        "nothing can be tested without it"
    )
