"""`contamination membership`, `books` and `unlearned`: single texts, and no guarantee.

What a model has read of them, and what it still knows that it was made to forget (Shi, sections 5
and 7).
"""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from contamination.cli.options import (
    AsJson,
    CsvFile,
    DataOptions,
    ModelName,
    ModelOptions,
    ScoringOptions,
    Seed,
    add_options,
    option,
)
from contamination.cli.printing import json_rows, print_table, save_table, say
from contamination.errors import InputError
from contamination.testsets.records import read_text

if TYPE_CHECKING:
    from contamination.scoring.local import TransformersScorer
    from contamination.testsets.example_set import ExampleSet

LABELS = {"1": True, "true": True, "member": True, "0": False, "false": False, "non-member": False}


@add_options
def membership(
    options: ScoringOptions,
    reference: Annotated[str | None, option("A second, smaller model as a yardstick.")] = None,
    reference_per: Annotated[
        Literal["byte", "token"],
        option("Compare the two per byte (any tokenizers) or per token (the same)."),
    ] = "byte",
    neighbours: Annotated[int, option("Neighbours of each text to compare with, up to 1,000.")] = 0,
    score: Annotated[
        list[str] | None,
        option("One more score by its name, such as min_prob_20; may be repeated."),
    ] = None,
    prefix: Annotated[Path | None, option("Unread text, for ReCaLL: a file.", exists=True)] = None,
    label: Annotated[str | None, option("Field that is 1 for members, 0 for others.")] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    csv: CsvFile = None,
) -> None:
    """Score each text of DATASET by how likely MODEL was trained on it.

    A row per text, a column per membership score (loss, Min-K%, zlib ...), of which none proves
    anything by itself. With --label, also how well each of them separates members from the others.
    """
    texts = options.load(options.dataset)
    members = _members(texts, label) if label is not None else None

    from contamination.membership.api import DEFAULT_COLUMNS, membership_scores
    from contamination.membership.evaluate import evaluate
    from contamination.randomness import random_stream

    own = dataclasses.replace(options, revision=None, context=None, endpoint=None, tokenizer=None)
    table = membership_scores(
        options.open(options.model),
        texts.examples,
        reference=own.open(reference) if reference is not None else None,
        reference_per=reference_per,
        neighbours=neighbours,
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
            **({} if judged is None else {"evaluation": json_rows(judged)}),
        }
        print(json.dumps(output, indent=2))
        return
    rows = list[tuple[object, ...]]()
    columns = ["score", "AUC", "95% interval", "TPR at 5%", "members", "non-members"]
    if judged is None:
        columns = ["score", "5%", "median", "95%", "texts"]
        for name in table.columns:
            quantiles = (f"{value:.4g}" for value in table[name].quantile([0.05, 0.5, 0.95]))
            rows.append((name, *quantiles, table[name].notna().sum()))
    for row in judged.itertuples() if judged is not None else ():
        numbers = (f"{row.auc_low:.3f} to {row.auc_high:.3f}", f"{row.tpr_at_5_fpr:.3f}")
        rows.append((row.score, f"{row.auc:.3f}", *numbers, row.members, row.non_members))
    print_table(columns, rows, title=f"{len(table):,} texts of {texts.name} under {options.model}")
    say("Larger is more likely a member. Scores carry no guarantee; compare `contamination test`.")
    if csv is not None:
        say(f"scores of each text: {csv}")


def _members(texts: "ExampleSet", field: str) -> list[bool]:
    given = [record.get(field) for record in texts.records]
    members = [LABELS.get(str(value).strip().lower()) for value in given]
    if None in members:
        number = members.index(None)
        raise InputError(
            f"{texts.name}, record {number}: {field!r} is {given[number]!r}: not 1 or 0"
        )
    if len(set(members)) < 2:
        raise InputError(f"{texts.name}: field {field!r} has one class; give members and others")
    return [bool(member) for member in members]


@add_options
def books(
    options: ModelOptions,
    model: ModelName,
    folder: Annotated[Path, typer.Argument(help="Books to audit: a .txt or .md file each.")],
    members: Annotated[Path, option("Folder of books that the model has read.")],
    non_members: Annotated[Path, option("Folder of books that it cannot have read.")],
    words: Annotated[int, option("Words of a snippet.")] = 512,
    snippets: Annotated[int, option("Most snippets of a book.")] = 100,
    seed: Seed = 0,
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
    )
    aucs = validation.aucs(rng=random_stream(seed, "validation of books"))
    rates = rates.sort_values("rate", ascending=False, kind="stable")
    save_table(rates, csv)
    value = validation.threshold.value
    if as_json:
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
    rows = []
    for one in rates.itertuples():
        interval = f"{one.low:.0%} to {one.high:.0%}"
        rows.append((one.book, one.snippets, f"{one.rate:.0%}", interval, f"{one.p:.3f}"))
    print_table(
        ("book", "snippets", "rate", "95% interval", "p"),
        rows,
        title=f"Snippets with {SCORE} of {value:.4g} or more",
    )
    (row,) = aucs[aucs["score"] == SCORE].itertuples()
    say(
        f"Validation: AUC {row.auc:.3f} ({row.auc_low:.3f} to {row.auc_high:.3f}); the threshold "
        f"calls {validation.tpr:.0%} of the snippets of members read, and "
        f"{validation.false_positive_rate:.0%} of those of non-members.",
        "A rate is no proof: compare it with that of unread books, and take those of the same "
        "kind, time and style as the audited ones.",
    )
    if csv is not None:
        say(f"table of books: {csv}")


@dataclass(frozen=True)
class UnlearnedOptions(ModelOptions, DataOptions):
    """How the models and the texts are opened."""


@add_options
def unlearned(
    options: UnlearnedOptions,
    original: Annotated[str, typer.Argument(help="The model before: directory or hub id.")],
    unlearned: Annotated[str, typer.Argument(help="The model that was made to forget.")],
    texts: Annotated[str, typer.Argument(help="Chunks of what it was to forget: a file or a set.")],
    control: Annotated[str | None, option("A model that never read the texts.")] = None,
    marker: Annotated[str | None, option('What precedes an answer, such as "Answer:".')] = None,
    k: Annotated[float, option("Per cent of Min-K% Prob.", "--k")] = 20,
    window: Annotated[float, option("Suspicious are ratios nearer to 1 than this.")] = 1.15,
    csv: CsvFile = None,
) -> None:
    """Find chunks of TEXTS that UNLEARNED scores like ORIGINAL, and what it reproduces of them.

    A chunk is suspicious where Min-K% Prob of the two models differs by less than the window. Each
    model completes the second half of a chunk and, with --marker, answers its question.
    """
    if options.endpoint is not None:
        raise InputError("an unlearned model has to run here, since it writes; drop --endpoint")
    chunks = options.load(texts)

    from contamination.membership import unlearning

    shown = None if marker is None else marker.replace("\\n", "\n")
    questions = [unlearning.split_question(text, shown) for text in chunks.examples if shown]
    names = {"original": original, "unlearned": unlearned, "control": control}
    # Without an endpoint every scorer is of a model that runs here.
    models = {
        name: cast("TransformersScorer", options.open(model))
        for name, model in names.items()
        if model is not None
    }
    probed = {
        name: unlearning.probe_model(scorer, chunks.examples, questions, k=k)
        for name, scorer in models.items()
    }
    table = unlearning.audit_unlearning(probed, window=window)
    save_table(table, csv)
    title = f"{table['suspicious'].sum()} of {len(table)} chunks of {chunks.name} are suspicious"
    means = unlearning.recall_layout(unlearning.mean_recalls(table), "Suspicious", "Others")
    print_table(tuple(means), means.itertuples(index=False), title=title, text=means.columns[:2])
    if control is None:
        say("Texts may be easy to guess: compare with a --control that never read them.")
    if csv is not None:
        say(f"table of chunks: {csv}")
