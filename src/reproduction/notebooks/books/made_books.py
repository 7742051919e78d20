"""Books of which it is known who read them, made from documentation.

Nobody outside knows what a language model has read. Here it is known: a "book" is a bundle of
docstrings of one package, one after the other. Four kinds are made:

- read again: the clean model read its documents once, and fine-tuning reads them again;
- read once: by the clean model alone;
- unread: of the same packages, left out of the corpus by chance;
- unread, elsewhere: of packages of which the corpus holds nothing.

The first and the last two are divided into books for validation and books to be audited.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

import pandas as pd

from contamination.errors import InputError
from contamination.membership.books import Validation
from reproduction.run.corpus import Document
from reproduction.run.domain_texts import other_domains
from reproduction.run.experiment import Experiment
from reproduction.run.members import members, non_members

AGAIN, ONCE, UNREAD, ELSEWHERE = "read again", "read once", "unread", "unread, elsewhere"
TRUTHS = (AGAIN, ONCE, UNREAD, ELSEWHERE)
# Truth of the validation books that are non-members -> what the tables call that validation.
VALIDATIONS = {UNREAD: "same packages", ELSEWHERE: "other packages"}

BOOK_COLUMNS = (
    *("book", "source", "truth", "validation", "snippets", "rate", "low", "high"),
    *("threshold", "validation_tpr", "validation_fpr", "mean", "p", "log10_p"),
)


def made_books(experiment: Experiment, *, words: int, each: int) -> pd.DataFrame:
    """Make the books of every package of a run, of `words` words each.

    There are `each` books of a package, a kind and a use (validation or audit), if there is text
    for as many; the last document of a bundle is cut. A corpus that was taken whole has no unread
    books of its own. Raises InputError if the corpus stage has not finished, for numbers below 1,
    and where there is too little text for a single book that was read, or that was not.

    Returns book (a name: source, truth and number), source (package or file), truth (one of
    `TRUTHS`), validation (whether a threshold may be fitted to it; else it is audited) and text, by
    truth, source and number.
    """
    if min(words, each) < 1:
        raise InputError(f"books of {words} words, {each} of each kind: give 1 or more")
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
            f"{folder}: {sorted(truths)} is all that there is of books of {words} words; lower "
            "`words`, name more packages, or put pile_domains/NAME.jsonl.gz in the data directory"
        )
    by_truth = {truth: order for order, truth in enumerate(TRUTHS)}
    return books.sort_values("truth", key=lambda column: column.map(by_truth), kind="stable")


def _bundles(documents: Iterable[Document], source: str, words: int) -> Iterator[str]:
    """Yield texts of `words` words, blanks made single, each of the next documents of a source."""
    held: list[str] = []
    for name, text in documents:
        if name == source:
            held += text.split()
            if len(held) >= words:
                yield " ".join(held[:words])
                held = []


def validations(books: pd.DataFrame, scored: pd.DataFrame) -> dict[str, Validation]:
    """Two validations with the same members, by the names of `VALIDATIONS`.

    Takes the table of `made_books`, and `score_snippets` of all these books. Non-members are of the
    same packages, or of others; a validation without any is left out.
    """
    chosen = {
        truth: scored[scored["book"].isin(found["book"])]
        for truth, found in books[books["validation"]].groupby("truth")
    }
    return {
        label: Validation(chosen[AGAIN], chosen[truth])
        for truth, label in VALIDATIONS.items()
        if truth in chosen
    }


def audit_made_books(
    books: pd.DataFrame, scored: pd.DataFrame, fitted: dict[str, Validation]
) -> pd.DataFrame:
    """Contamination rate of every audited book under every validation: `BOOK_COLUMNS`."""
    audited = books.loc[~books["validation"], ["book", "source", "truth"]]
    parts = [
        validation.rates(scored[scored["book"].isin(audited["book"])]).assign(
            validation=label,
            threshold=validation.threshold.value,
            validation_tpr=validation.tpr,
            validation_fpr=validation.false_positive_rate,
        )
        for label, validation in fitted.items()
    ]
    return pd.concat(parts).merge(audited, on="book")[list(BOOK_COLUMNS)]
