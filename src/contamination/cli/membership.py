"""`contamination membership`: how familiar the texts of a file look to a model."""

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from contamination.cli.options import DataOptions, ModelOptions, taking
from contamination.errors import InputError
from contamination.files import replacing
from contamination.testsets.example_set import ExampleSet

if TYPE_CHECKING:
    import pandas as pd

LABELS = {"1": True, "true": True, "member": True, "0": False, "false": False, "non-member": False}
NOTE = "Larger is more likely a member. Scores carry no guarantee; compare `contamination test`."


@taking(DataOptions, ModelOptions)
def membership(
    data: DataOptions,
    options: ModelOptions,
    model: Annotated[
        str, typer.Argument(help="Directory, hub id or .gguf file; with --endpoint, its name.")
    ],
    dataset: Annotated[str, typer.Argument(help="Texts: a .jsonl, .csv or .txt file, or a set.")],
    reference: Annotated[
        str | None, typer.Option(help="A second, smaller model as a yardstick.")
    ] = None,
    reference_per: Annotated[
        str, typer.Option(help="Compare the two per byte (any tokenizers) or per token (the same).")
    ] = "byte",
    neighbours: Annotated[
        int, typer.Option(help="Neighbours of each text to compare with; 0 is none.")
    ] = 0,
    masked_lm: Annotated[
        str | None,
        typer.Option(help="Fill-mask model that makes them; default: words are moved at random."),
    ] = None,
    prefix: Annotated[
        Path | None, typer.Option(help="Text file that the model has not seen, for ReCaLL.")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(help="Field that is 1 for members and 0 for others: prints the AUC."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of neighbours and of the bootstrap.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")] = False,
    csv: Annotated[Path | None, typer.Option(help="File for the table of scores.")] = None,
) -> None:
    """Score each text of DATASET by how likely MODEL was trained on it.

    A row per text, a column per membership score (loss, Min-K%, zlib ...), of which none proves
    anything by itself. With --label, tells how well each of them does.
    """
    if reference_per not in ("byte", "token"):
        raise InputError(f"--reference-per is {reference_per!r}: give byte or token")
    texts = data.load(dataset)
    members = _members(texts, label) if label is not None else None
    before = _prefix(prefix) if prefix is not None else None

    import numpy as np

    from contamination.membership.api import membership_scores
    from contamination.membership.evaluate import evaluate
    from contamination.membership.neighbours import MaskedLM, word_neighbours

    own = dataclasses.replace(options, revision=None, context=None, endpoint=None, tokenizer=None)
    table = membership_scores(
        options.open(model),
        texts.examples,
        reference=own.open(reference) if reference is not None else None,
        reference_per="byte" if reference_per == "byte" else "token",
        neighbours=neighbours,
        perturbation=MaskedLM(masked_lm) if masked_lm is not None else word_neighbours,
        prefix=before,
        seed=seed,
    )
    judged = None
    if members is not None:
        judged = evaluate(table, members, rng=np.random.default_rng(seed))
    if csv is not None:
        with replacing(csv) as temporary:
            table.to_csv(temporary, lineterminator="\n", encoding="utf-8")
    if as_json:
        print(_as_json(model, texts, table, judged))
        return
    title = f"{len(table):,} texts of {texts.name} under {model}"
    Console().print(_summary(table, title) if judged is None else _evaluation(judged, title))
    Console().print(NOTE, highlight=False)
    if csv is not None:
        Console().print(f"scores of each text: {csv}", highlight=False)


def _members(texts: ExampleSet, field: str) -> list[bool]:
    found = []
    for number, record in enumerate(texts.records):
        value = str(record.get(field)).strip().lower()
        if value not in LABELS:
            raise InputError(
                f"{texts.name}, record {number}: field {field!r} is {record.get(field)!r}; give 1 "
                "for a member and 0 for any other"
            )
        found.append(LABELS[value])
    if not found or all(found) or not any(found):
        raise InputError(f"{texts.name}: field {field!r} has one class; give members and others")
    return found


def _prefix(path: Path) -> str:
    from contamination.testsets.records import read_text

    if not path.is_file():
        raise InputError(f"{path}: no such file; give a text that the model has not seen")
    return read_text(path)


def _summary(table: "pd.DataFrame", title: str) -> Table:
    shown = Table("score", "5%", "median", "95%", "texts", title=title)
    _align(shown)
    for name in table.columns:
        low, middle, high = table[name].quantile([0.05, 0.5, 0.95])
        count = int(table[name].notna().sum())
        shown.add_row(name, f"{low:.4g}", f"{middle:.4g}", f"{high:.4g}", f"{count:,}")
    return shown


def _evaluation(judged: "pd.DataFrame", title: str) -> Table:
    columns = ("score", "AUC", "95% interval", "TPR at 5%", "members", "others")
    shown = Table(*columns, title=title)
    _align(shown)
    for row in judged.to_dict("records"):
        shown.add_row(
            row["score"],
            f"{row['auc']:.3f}",
            f"{row['auc_low']:.3f} to {row['auc_high']:.3f}",
            f"{row['tpr_at_5_fpr']:.3f}",
            f"{row['members']:,}",
            f"{row['non_members']:,}",
        )
    return shown


def _align(table: Table) -> None:
    for column in table.columns:
        column.no_wrap = True
        column.justify = "left" if column.header == "score" else "right"


def _as_json(
    model: str, texts: ExampleSet, table: "pd.DataFrame", judged: "pd.DataFrame | None"
) -> str:
    # Pandas writes null for what is no number; JSON knows no NaN.
    told = {
        "model": model,
        "dataset": texts.name,
        "dataset_revision": texts.revision,
        "template": texts.template,
        "texts": json.loads(table.reset_index().to_json(orient="records", double_precision=15)),
    }
    if judged is not None:
        told["evaluation"] = json.loads(judged.to_json(orient="records", double_precision=15))
    return json.dumps(told, indent=2)
