"""`contamination wikimia`: a set like WikiMIA from dated pages of one's own."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from contamination.cli.printing import print_table, say

app = typer.Typer(no_args_is_help=True, help="Benchmarks of texts before and after a date.")


@app.command()
def build(
    pages: Annotated[
        Path,
        typer.Argument(
            help="A .jsonl, .csv or .parquet file with title, text and date (and changed, "
            "paraphrase); or a folder of text files with a pages.csv: file, title, date."
        ),
    ],
    out: Annotated[Path, typer.Argument(help="Directory for the splits and provenance.json.")],
    members_before: Annotated[
        datetime,
        typer.Option(
            formats=["%Y-%m-%d"], metavar="DATE", help="Pages created before that day are members."
        ),
    ],
    non_members_from: Annotated[
        datetime,
        typer.Option(
            formats=["%Y-%m-%d"],
            metavar="DATE",
            help="Pages created on that day or later, as in 2023-01-31, are non-members.",
        ),
    ],
    length: Annotated[
        list[int] | None, typer.Option(help="Words of a text; default: 32, 64, 128 and 256.")
    ] = None,
    balanced: Annotated[
        bool, typer.Option(help="Draw as many pages of one class as the other has.")
    ] = True,
    drop_changed: Annotated[
        bool,
        typer.Option("--drop-changed", help="Leave out members changed since --members-before."),
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the draw.", min=0, metavar="N")] = 0,
) -> None:
    """Cut dated PAGES to texts with membership labels, a file for each length, in OUT.

    Score one with `contamination membership MODEL OUT/WikiMIA_length32.jsonl --field input
    --label label`.
    """
    from contamination.membership.dated_pages import LENGTHS, Rules, build_wikimia

    rules = Rules(
        members_before=members_before.date(),
        non_members_from=non_members_from.date(),
        lengths=tuple(length) if length else LENGTHS,
        balanced=balanced,
        drop_changed=drop_changed,
        seed=seed,
    )
    made = build_wikimia(pages, out, rules)
    print_table(
        ("split", "members", "non-members"),
        (
            (name, counts["members"], counts["non_members"])
            for name, counts in made["splits"].items()
        ),
        title=f"{made['found']:,} pages",
    )
    for why, count in made["dropped"].items():
        say(f"left out, {why}: {count:,}", wrap=False)
    say(f"{out}: the splits that have both classes, and provenance.json", wrap=False)
