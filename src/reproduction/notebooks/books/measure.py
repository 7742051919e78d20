"""The passes of notebook 10, on books of which it is known who read them.

A "book" is a bundle of docstrings of one package, one after the other. Four kinds are made:

- read again: the clean model read its documents once, and fine-tuning reads them again;
- read once: by the clean model alone;
- unread: of the same packages, left out of the corpus at random;
- unread, elsewhere: of packages of which the corpus holds nothing.

All but those read once are divided into books for validation and books to be audited.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice

import pandas as pd

from contamination.errors import InputError
from contamination.membership.books import SCORES, sample_snippets
from contamination.membership.stored import stored_scores
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.scoring.processes import deal
from reproduction.notebooks.books.tables import AGAIN, ELSEWHERE, ONCE, TRUTHS, UNREAD, VALIDATIONS
from reproduction.run.corpus import Document, members, non_members
from reproduction.run.experiment import Experiment, parts_of
from reproduction.run.fine_tuning import fine_tune
from reproduction.run.texts import other_domains


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
    snippet, and a column for each of `SCORES`).
    """
    seed = experiment.profile.seed
    books = made_books(experiment, words=words * snippets, each=each)
    again = books.loc[books["truth"] == AGAIN, "text"].tolist()
    where = (experiment.model("clean"), again, experiment.build / "books")
    teach = partial(fine_tune, *where, epochs=epochs, learning_rate=learning_rate, seed=seed)
    (model,) = deal("fine-tune", [teach])
    texts = dict(zip(books["book"], books["text"], strict=True))
    rng = random_stream(seed, "snippets of made books")
    sampled = sample_snippets(texts, words=words, most=snippets, rng=rng)
    scorer, asked = TransformersScorer(model), sampled["text"].tolist()
    scores = stored_scores(parts_of(experiment, "books"), scorer, asked, columns=tuple(SCORES))
    scored = pd.concat([sampled[["book", "snippet"]], scores.reset_index(drop=True)], axis=1)
    return {"books": books.drop(columns="text"), "scored": scored}


def made_books(experiment: Experiment, *, words: int, each: int) -> pd.DataFrame:
    """Make the books of every package of a run, of `words` words each.

    There are `each` books of a package, a kind and a use (validation or audit), if there is text
    for as many. A corpus that was taken whole has no unread books of its own. Returns book (a
    name), source (package or file), truth (one of `TRUTHS`), validation (whether a threshold may be
    fitted to it; else it is audited) and text, by truth, source and number. Raises InputError if
    the corpus stage has not finished, and where there is too little text for a single book.
    """
    experiment.require_corpus()
    folder, corpus = experiment.corpus, experiment.profile.corpus
    rows = []

    def add(documents: Iterable[Document], source: str, *truths: str) -> None:
        bundles = _bundles(documents, source, words)
        for truth in truths:
            # Every second book is for validation; of those read once, none is.
            for number, text in enumerate(islice(bundles, each if truth == ONCE else 2 * each)):
                validation = truth != ONCE and number % 2 == 0
                rows.append((f"{source}, {truth} {number + 1}", source, truth, validation, text))

    for source in corpus.packages or corpus.files:
        add(members(folder), source, AGAIN, ONCE)
        add(non_members(folder), source, UNREAD)
    for source, documents in other_domains(experiment):
        if source in corpus.held_out or not corpus.held_out:
            add(documents, source, ELSEWHERE)
    books = pd.DataFrame(rows, columns=["book", "source", "truth", "validation", "text"])
    truths = set(books["truth"])
    if AGAIN not in truths or not truths & set(VALIDATIONS):
        raise InputError(
            f"{folder}: too little text for books of {words} words; lower `words`, name more "
            "packages, or put pile_domains/NAME.jsonl.gz in the data directory"
        )
    return books.sort_values("truth", key=lambda found: found.map(TRUTHS.index), kind="stable")


def _bundles(documents: Iterable[Document], source: str, words: int) -> Iterator[str]:
    """Yield texts of `words` words, blanks made single, each of the next documents of a source."""
    held: list[str] = []
    for name, text in documents:
        if name == source:
            held += text.split()
            if len(held) >= words:
                yield " ".join(held[:words])
                held = []
