"""The passes of notebook 10: the clean model reads some books again, then every snippet is scored.

One process fine-tunes; all of them score.
"""

import pandas as pd

from contamination.membership.books import SCORES, sample_snippets
from contamination.membership.stored import stored_scores
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.scoring.processes import deal
from reproduction.notebooks.books.made_books import AGAIN, made_books
from reproduction.run.experiment import Experiment
from reproduction.run.fine_tuning import fine_tune_on_texts
from reproduction.run.measured import parts_of


def measure(
    experiment: Experiment,
    *,
    words: int,
    snippets: int,
    each: int,
    epochs: int,
    learning_rate: float,
) -> dict[str, pd.DataFrame]:
    """Make the books, train on those to be read again, and score so many snippets of each.

    Tables: `books` (book, source, truth, validation, as of `made_books`) and `scored` (book,
    snippet, and a column per score, as of `score_snippets`).
    """
    seed = experiment.profile.seed
    books = made_books(experiment, words=words * snippets, each=each)

    def read_again() -> str:
        again = books.loc[books["truth"] == AGAIN, "text"].tolist()
        directory = fine_tune_on_texts(
            experiment.model("clean"),
            again,
            experiment.build / "books",
            epochs=epochs,
            learning_rate=learning_rate,
            seed=seed,
        )
        return str(directory)

    (model,) = deal("fine-tune", [read_again])
    sampled = sample_snippets(
        dict(zip(books["book"], books["text"], strict=True)),
        words=words,
        most=snippets,
        rng=random_stream(seed, "snippets of made books"),
    )
    scores = stored_scores(
        parts_of(experiment, "books"),
        TransformersScorer(model),
        sampled["text"].tolist(),
        columns=tuple(SCORES),
    )
    scored = pd.concat([sampled[["book", "snippet"]], scores.reset_index(drop=True)], axis=1)
    return {"books": books.drop(columns="text"), "scored": scored}
