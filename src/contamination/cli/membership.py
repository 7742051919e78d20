"""`contamination membership`: how familiar the texts of a file look to a model."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from contamination.cli.options import AsJson, CsvFile, ScoringOptions, add_options
from contamination.cli.printing import json_rows, print_table, save_table, say
from contamination.errors import InputError
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.records import read_text

LABELS = {"1": True, "true": True, "member": True, "0": False, "false": False, "non-member": False}
NOTE = "Larger is more likely a member. Scores carry no guarantee; compare `contamination test`."


@add_options
def membership(
    options: ScoringOptions,
    reference: Annotated[
        str | None, typer.Option(help="A second, smaller model as a yardstick.")
    ] = None,
    reference_per: Annotated[
        Literal["byte", "token"],
        typer.Option(help="Compare the two per byte (any tokenizers) or per token (the same)."),
    ] = "byte",
    neighbours: Annotated[
        int, typer.Option(help="Neighbours of each text to compare with, 1,000 at most; 0 is none.")
    ] = 0,
    change: Annotated[
        Literal["words", "letters", "blanks"],
        typer.Option(help="What neighbours change at random."),
    ] = "words",
    masked_lm: Annotated[
        str | None, typer.Option(help="Fill-mask model that makes the neighbours.")
    ] = None,
    score: Annotated[
        list[str] | None,
        typer.Option(help="One more score by its name, such as frequent_100; may be repeated."),
    ] = None,
    prefix: Annotated[
        Path | None,
        typer.Option(help="Text file that the model has not read, for ReCaLL.", exists=True),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(help="Field that is 1 for members and 0 for others: prints the AUC."),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Seed of the neighbours and of the bootstrap.", min=0, metavar="N")
    ] = 0,
    as_json: AsJson = False,
    csv: CsvFile = None,
) -> None:
    """Score each text of DATASET by how likely MODEL was trained on it.

    A row per text, a column per membership score (loss, Min-K%, zlib ...), of which none proves
    anything by itself. With --label, also how well each of them separates members from the others.
    """
    texts = options.load(options.dataset)
    members = _members(texts, label) if label is not None else None

    from contamination.membership import neighbours as ways
    from contamination.membership.api import DEFAULT_COLUMNS, membership_scores
    from contamination.membership.evaluate import evaluate
    from contamination.randomness import random_stream

    changes = {
        "words": ways.word_neighbours,
        "letters": ways.character_neighbours,
        "blanks": ways.blank_neighbours,
    }
    own = dataclasses.replace(options, revision=None, context=None, endpoint=None, tokenizer=None)
    table = membership_scores(
        options.open(options.model),
        texts.examples,
        reference=own.open(reference) if reference is not None else None,
        reference_per=reference_per,
        neighbours=neighbours,
        perturbation=ways.MaskedLM(masked_lm) if masked_lm is not None else changes[change],
        prefix=read_text(prefix) if prefix is not None else None,
        columns=(*DEFAULT_COLUMNS, *(score or ())),
        seed=seed,
    )
    save_table(table, csv, index=True)
    judged = None
    if members is not None:
        judged = evaluate(table, members, rng=random_stream(seed, "evaluation"))
    if as_json:
        output = {
            "model": options.model,
            "dataset": texts.name,
            "dataset_revision": texts.revision,
            "template": texts.template,
            "texts": json_rows(table.reset_index()),
        }
        if judged is not None:
            output["evaluation"] = json_rows(judged)
        print(json.dumps(output, indent=2))
        return
    title = f"{len(table):,} texts of {texts.name} under {options.model}"
    rows: list[tuple[object, ...]] = []
    columns: tuple[str, ...] = ("score", "5%", "median", "95%", "texts")
    if judged is None:
        for name in table.columns:
            quantiles = (f"{value:.4g}" for value in table[name].quantile([0.05, 0.5, 0.95]))
            rows.append((name, *quantiles, table[name].notna().sum()))
    else:
        columns = ("score", "AUC", "95% interval", "TPR at 5%", "members", "non-members")
        for row in judged.itertuples():
            interval = f"{row.auc_low:.3f} to {row.auc_high:.3f}"
            numbers = (f"{row.auc:.3f}", interval, f"{row.tpr_at_5_fpr:.3f}")
            rows.append((row.score, *numbers, row.members, row.non_members))
    print_table(columns, rows, title=title)
    say(NOTE)
    if csv is not None:
        say(f"scores of each text: {csv}")


def _members(texts: ExampleSet, field: str) -> list[bool]:
    given = [str(record.get(field)).strip().lower() for record in texts.records]
    for number, (value, record) in enumerate(zip(given, texts.records, strict=True)):
        if value not in LABELS:
            raise InputError(
                f"{texts.name}, record {number}: {field!r} is {record.get(field)!r}; give 1 or 0"
            )
    members = [LABELS[value] for value in given]
    if len(set(members)) < 2:
        raise InputError(f"{texts.name}: field {field!r} has one class; give members and others")
    return members
