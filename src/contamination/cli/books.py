"""`contamination books`: which of a folder of books a model has read (Shi, section 5)."""

import json
from pathlib import Path
from typing import Annotated

import typer

from contamination.cli.options import AsJson, CsvFile, ModelName, ModelOptions, add_options
from contamination.cli.printing import json_rows, print_table, save_table, say
from contamination.errors import InputError

NOTE = (
    "A rate is no proof: compare it with that of unread books, and take those of the same kind, "
    "time and style as the audited ones."
)


@add_options
def books(
    options: ModelOptions,
    model: ModelName,
    folder: Annotated[Path, typer.Argument(help="Books to audit: a .txt or .md file each.")],
    members: Annotated[Path, typer.Option(help="Folder of books that the model has read.")],
    non_members: Annotated[Path, typer.Option(help="Folder of books that it cannot have read.")],
    words: Annotated[int, typer.Option(help="Words of a snippet.")] = 512,
    snippets: Annotated[int, typer.Option(help="Most snippets of a book.")] = 100,
    fpr: Annotated[
        float | None,
        typer.Option(
            help="Highest false-positive rate; default: the threshold with the best accuracy."
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Seed of the snippets and the bootstrap.", min=0, metavar="N")
    ] = 0,
    as_json: AsJson = False,
    csv: CsvFile = None,
) -> None:
    """Estimate for each book in FOLDER which share of its snippets MODEL has read.

    The threshold of Min-20% Prob comes from two folders of validation books.
    """
    if len({folder, members, non_members}) < 3:
        raise InputError("FOLDER, --members and --non-members are not three folders; name others")

    from contamination.membership.books import SCORE, audit_books, read_books
    from contamination.randomness import random_stream

    rates, validation = audit_books(
        lambda: options.open(model),
        *map(read_books, (folder, members, non_members)),
        rng=random_stream(seed, "snippets"),
        words=words,
        most=snippets,
        fpr=fpr,
    )
    aucs = validation.aucs(rng=random_stream(seed, "validation of books"))
    rates = rates.sort_values("rate", ascending=False, kind="stable")
    save_table(rates, csv)
    if as_json:
        value = validation.threshold.value
        found = {
            "model": model,
            # Where no threshold is worth anything it is infinite, and JSON knows no infinity.
            "threshold": value if value < float("inf") else None,
            "validation_tpr": validation.tpr,
            "validation_fpr": validation.false_positive_rate,
            "validation": json_rows(aucs),
            "books": json_rows(rates),
        }
        print(json.dumps(found, indent=2))
        return
    print_table(
        ("book", "snippets", "rate", "95% interval", "p"),
        (
            (
                row.book,
                row.snippets,
                f"{row.rate:.0%}",
                f"{row.low:.0%} to {row.high:.0%}",
                f"{row.p:.3f}",
            )
            for row in rates.itertuples()
        ),
        title=f"Snippets with {SCORE} of {validation.threshold.value:.4g} or more",
    )
    (row,) = aucs[aucs["score"] == SCORE].itertuples()
    say(
        f"Validation: AUC {row.auc:.3f} ({row.auc_low:.3f} to {row.auc_high:.3f}); the threshold "
        f"calls {validation.tpr:.0%} of the snippets of members read, and "
        f"{validation.false_positive_rate:.0%} of those of non-members."
    )
    say(NOTE)
    if csv is not None:
        say(f"table of books: {csv}")
