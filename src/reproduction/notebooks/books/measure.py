"""The passes of notebook 10, on books of which it is known who has read them.

A "book" is a bundle of docstrings of one package, one after the other. There are four
kinds:

- read again: the clean model read its documents once, and fine-tuning reads them again;
- read once: by the clean model alone;
- unread: of the same packages, left out of the corpus at random;
- unread, elsewhere: of packages of which the corpus holds nothing.

Books read once are audited. Of the other kinds every second book is for validation.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice

import pandas as pd

from contamination.errors import InputError
from contamination.membership.api import cut_spans
from contamination.membership.stored import stored_scores
from contamination.scoring.local import TransformersScorer
from contamination.scoring.processes import distribute
from reproduction.notebooks.books.settings import (
    AGAIN,
    ELSEWHERE,
    ONCE,
    SCORES,
    TRUTHS,
    UNREAD,
    Settings,
)
from reproduction.run.corpus import Document, members, non_members
from reproduction.run.experiment import Experiment, parts_of
from reproduction.run.fine_tuning import fine_tune
from reproduction.run.texts import other_domains

SPAN = 128  # tokens that fine-tuning reads at once, or the context if that is less
BOOK = ["book", "source", "truth", "validation", "text"]


def measure(experiment: Experiment, settings: Settings) -> dict[str, pd.DataFrame]:
    """Make the books, train on those to be read again, and score the snippets of all.

    Returns
    -------
    books : book, source, truth, validation, as of `make_books`.
    scored : book, snippet, and a column for each of `SCORES`, larger for members.
    """
    books = make_books(
        experiment,
        words=settings.words * settings.snippets,
        count=settings.books,
    )
    snippets = cut_snippets(books, words=settings.words)
    clean = experiment.model("clean")
    to_read = books.loc[books["truth"] == AGAIN, "text"].tolist()
    span = min(SPAN, experiment.profile.model.n_positions)
    task = partial(
        fine_tune,
        clean,
        cut_spans(TransformersScorer(clean), to_read, span),
        experiment.build / "books",
        learning_rate=settings.learning_rate,
        seed=experiment.profile.seed,
        epochs=settings.epochs,
    )
    (model,) = distribute("fine-tune", [task])
    scores = stored_scores(
        parts_of(experiment, "books"),
        TransformersScorer(model),
        snippets["text"].tolist(),
        columns=[name for name in SCORES if name != "neighbour"],
        neighbours=settings.neighbours,
        seed=experiment.profile.seed,
    )
    keys = snippets[["book", "snippet"]]
    scored = pd.concat([keys, scores.reset_index(drop=True)], axis=1)
    return {"books": books.drop(columns="text"), "scored": scored}


def make_books(experiment: Experiment, *, words: int, count: int) -> pd.DataFrame:
    """Make the books of every package of a run, as far as there is text for them.

    A corpus that was taken whole has no unread books of its own.

    Parameters
    ----------
    experiment
        The run, whose corpus is read.
    words
        Number of words of a book.
    count
        Books of a package and kind, for validation and for the audit each.

    Returns
    -------
    books
        book (a name), source (package or file), truth (one of `TRUTHS`), validation
        (whether a threshold may be fitted to it; else it is audited) and text, by
        truth.

    Raises
    ------
    InputError
        If the corpus stage has not finished, or no book can be made that was read
        again, or none that was not read.
    """
    experiment.require_corpus()
    corpus = experiment.profile.corpus
    rows = []
    for source in corpus.packages or corpus.files:
        read = _bundles(members(experiment.corpus), source, words)
        rows += _books_of(read, source, AGAIN, 2 * count)
        rows += _books_of(read, source, ONCE, count)
        unread = _bundles(non_members(experiment.corpus), source, words)
        rows += _books_of(unread, source, UNREAD, 2 * count)
    for source, documents in other_domains(experiment):
        if source in corpus.held_out or not corpus.held_out:
            elsewhere = _bundles(documents, source, words)
            rows += _books_of(elsewhere, source, ELSEWHERE, 2 * count)
    books = pd.DataFrame(rows, columns=BOOK)
    truths = set(books["truth"])
    if AGAIN not in truths or truths.isdisjoint([UNREAD, ELSEWHERE]):
        raise InputError(
            f"{experiment.corpus}: too little text for books of {words} words; lower "
            "`words`, name more packages, or put pile_domains/NAME.jsonl.gz in the "
            "data directory",
        )
    return books.sort_values("truth", key=lambda names: names.map(TRUTHS.index), kind="stable")


def _bundles(documents: Iterable[Document], source: str, words: int) -> Iterator[str]:
    """Yield texts of this number of words, each of the next documents of a source."""
    held: list[str] = []
    for name, text in documents:
        if name != source:
            continue
        held += text.split()
        if len(held) >= words:
            yield " ".join(held[:words])
            held = []


def _books_of(
    texts: Iterator[str],
    source: str,
    truth: str,
    count: int,
) -> list[tuple[str, str, str, bool, str]]:
    """Return the next books of a source, at most `count`, as rows of `BOOK`."""
    rows = []
    for number, text in enumerate(islice(texts, count), start=1):
        for_validation = truth != ONCE and number % 2 == 1
        rows.append((f"{source}, {truth} {number}", source, truth, for_validation, text))
    return rows


def cut_snippets(books: pd.DataFrame, *, words: int) -> pd.DataFrame:
    """Cut every book into snippets, without the rest: book, snippet (number) and text.

    Raises InputError for a book of fewer than two snippets: a share of one says
    nothing.
    """
    rows = []
    for name, text in zip(books["book"], books["text"], strict=True):
        all_words = text.split()
        count = len(all_words) // words
        if count < 2:
            raise InputError(
                f"{name}: its {len(all_words)} words are {count} snippet(s) of {words}, "
                "and a rate needs two or more; give a longer book, or shorter snippets",
            )
        for number in range(count):
            snippet = all_words[number * words : (number + 1) * words]
            rows.append((name, number, " ".join(snippet)))
    return pd.DataFrame(rows, columns=["book", "snippet", "text"])
