"""`contamination wikimia`: a benchmark of texts from before and after a date."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from contamination.cli import options as o
from contamination.cli.ending import ExitStatus
from contamination.cli.help import Command, Group
from contamination.cli.options import option
from contamination.cli.printing import print_table, say

DAY = {"formats": ["%Y-%m-%d"], "metavar": "DATE"}

wikimia = typer.Typer(
    cls=Group, no_args_is_help=True, help="Benchmarks of texts from before and after a date."
)


@wikimia.callback()
def group() -> None:
    """Benchmarks of texts from before and after a date."""


@wikimia.command("build", cls=Command)
def build(
    pages: Annotated[
        Path,
        typer.Argument(
            help="A .jsonl, .json, .csv or .parquet file with title, text and date; a MediaWiki "
            "export (.xml); or a folder of text files with a pages.csv (file, title, date). Except "
            "for an export, pages may have a paraphrase."
        ),
    ],
    cutoff: Annotated[
        datetime,
        option("Pages created on that day or later are non-members, as in 2023-01-31.", **DAY),
    ],
    more_lengths: Annotated[
        list[int] | None,
        typer.Argument(hidden=True, metavar="LENGTH"),  # so that `--lengths 32 64` needs no quotes
    ] = None,
    members_before: Annotated[
        datetime | None,
        option("Pages created before that day are members; default: the cutoff.", **DAY),
    ] = None,
    lengths: Annotated[
        list[int] | None,
        option("Words of a text, one or more numbers; default: 32 64 128 256."),
    ] = None,
    out: Annotated[Path, option("New directory for the benchmark.")] = Path("wikimia"),
    seed: o.Seed = 0,
) -> Any:
    """Cut dated PAGES to texts with membership labels, and judge them without a model.

    Example: contamination wikimia build pages.jsonl --cutoff 2023-01-01 --lengths 32 64 128 256

    Newer pages differ from older ones in topics and words as well. So three baselines
    that never ask a model are printed for every length. Exit status 3 if the words of a
    text alone tell both sides apart: a score on such a benchmark shows no membership.
    """
    from contamination.membership.dated import LENGTHS, Rules, build_dated_set, split_name

    rules = Rules(
        cutoff=cutoff.date(),
        members_before=None if members_before is None else members_before.date(),
        lengths=(*(lengths or ()), *(more_lengths or ())) or LENGTHS,
        seed=seed,
    )
    made = build_dated_set(pages, out, rules)
    _print_baselines(made.blind, f"{made.pages:,} pages; AUC without a model (95% interval)")
    for length in rules.lengths:
        if split_name(length) not in set(made.blind["split"]):
            say(f"no split of {length} words: one side has too few pages of that length")
    for reason, count in made.left_out.items():
        say(f"{count:,} left out: {reason}")
    say(f"{out}: the splits, blind.csv and provenance.json", wrap=False)
    if made.solved:
        say(
            f"The words of a text alone tell both sides apart in {len(made.solved)} splits: an AUC "
            "of a model's scores there shows different texts, not membership. Take pages of the "
            "same kind on both sides before you publish this benchmark."
        )
        return ExitStatus.NOT_SAID
    say(
        "The words of a text alone do not tell both sides apart. Report these baselines with every "
        "AUC, and score the texts with a model that has read neither side as well."
    )
    return ExitStatus.DONE


def _print_baselines(blind: Any, title: str) -> None:
    """Print a row for each split: its size, and the AUC of each baseline."""
    from contamination.membership.blind import BASELINES

    rows = []
    for split, judged in blind.groupby("split", sort=False):
        cells = {}
        for row in judged.itertuples():
            cells[row.baseline] = f"{row.auc:.2f} ({row.auc_low:.2f}–{row.auc_high:.2f})"
        members = int(judged["members"].iloc[0])
        shown = split.removeprefix("WikiMIA_length").replace("_", ", ")
        rows.append((shown, members, *(cells[name] for name in BASELINES)))
    columns = ("words", "a side", *(name.lower() for name in BASELINES.values()))
    print_table(columns, rows, title=title)
