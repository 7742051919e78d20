"""`contamination unlearned`: what a model that was made to forget still knows (Shi, section 7)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, cast

import typer

from contamination.cli.options import CsvFile, DataOptions, ModelOptions, add_options
from contamination.cli.printing import print_table, save_table, say
from contamination.errors import InputError

if TYPE_CHECKING:
    from contamination.scoring.local import TransformersScorer


@dataclass(frozen=True)
class Options(ModelOptions, DataOptions):
    """How the models and the texts are opened."""


@add_options
def unlearned(
    options: Options,
    original: Annotated[str, typer.Argument(help="The model before: directory or hub id.")],
    unlearned: Annotated[str, typer.Argument(help="The model that was made to forget.")],
    texts: Annotated[str, typer.Argument(help="Chunks of what it was to forget: a file or a set.")],
    control: Annotated[
        str | None, typer.Option(help="A model that never read the texts, as a yardstick.")
    ] = None,
    marker: Annotated[
        str | None,
        typer.Option(help='What stands before the answer in each chunk, such as "Answer:".'),
    ] = None,
    k: Annotated[float, typer.Option("--k", help="Per cent of Min-K% Prob.")] = 20,
    window: Annotated[
        float, typer.Option(help="A chunk is suspicious where the ratio is nearer to 1 than this.")
    ] = 1.15,
    csv: CsvFile = None,
) -> None:
    """Find chunks of TEXTS that UNLEARNED scores like ORIGINAL, and what it reproduces of them.

    A chunk is suspicious where Min-K% Prob of the two models differs by less than the window. Each
    model completes the second half of a chunk and, with --marker, answers its question.
    """
    if options.endpoint is not None:
        raise InputError("an unlearned model has to run here, since it writes; drop --endpoint")
    chunks = options.load(texts)

    from contamination.membership.unlearning import (
        audit_unlearning,
        mean_recalls,
        probe_model,
        recall_layout,
        split_question,
    )

    shown = None if marker is None else marker.replace("\\n", "\n")
    questions = [[split_question(text, shown)] for text in chunks.examples] if shown else []
    names = {"original": original, "unlearned": unlearned, "control": control}
    models = {name: options.open(model) for name, model in names.items() if model is not None}
    probed = {
        # Without an endpoint every scorer is of a model that runs here.
        name: probe_model(cast("TransformersScorer", scorer), chunks.examples, questions, k=k)
        for name, scorer in models.items()
    }
    table = audit_unlearning(probed, window=window)
    save_table(table, csv)
    count = int(table["suspicious"].sum())
    title = f"{count} of {len(table)} chunks of {chunks.name} are suspicious"
    means = recall_layout(mean_recalls(table), "Suspicious", "Others")
    print_table(tuple(means), means.itertuples(index=False), title=title, text=means.columns[:2])
    if control is None:
        say("Texts may be easy to guess: compare with a --control that never read them.")
    if csv is not None:
        say(f"table of chunks: {csv}")
