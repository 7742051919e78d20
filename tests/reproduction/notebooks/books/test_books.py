"""Books with known truth: no document on two sides, validation apart from audit, and verdicts."""

import numpy as np
import pandas as pd
import pytest

from contamination.membership.books import SCORES
from fakes.data_fixtures import divided_run
from reproduction.notebooks.books.measure import made_books
from reproduction.notebooks.books.tables import (
    AGAIN,
    ELSEWHERE,
    ONCE,
    UNREAD,
    audit_made_books,
    validations,
    verdicts,
)
from reproduction.run.corpus import MEMBERS, NON_MEMBERS


def test_books_are_bundles_of_one_source_and_one_side(tmp_path, monkeypatch) -> None:
    run = divided_run(tmp_path, monkeypatch)
    books = made_books(run, words=50, each=2)
    expected = {(ONCE, s, False): 2 for s in ("alpha", "gamma")}
    for use in (True, False):
        expected |= {(t, s, use): 2 for t in (AGAIN, UNREAD) for s in ("alpha", "gamma")}
        expected |= {(ELSEWHERE, "beta", use): 2}
    assert books.groupby(["truth", "source", "validation"]).size().to_dict() == expected
    assert list(dict.fromkeys(books["truth"])) == [AGAIN, ONCE, UNREAD, ELSEWHERE]
    files = {MEMBERS: {AGAIN, ONCE}, NON_MEMBERS: {UNREAD}}
    for name, truths in files.items():
        text = (run.corpus / name).read_text(encoding="utf-8")
        for book in books.itertuples():
            first = book.text.split()[0]  # a name of its own, such as alpha17
            assert first.startswith(book.source)
            assert (f'"{first} ' in text) == (book.truth in truths)
    firsts = [word for text in books["text"] for word in text.split() if word[-1].isdigit()]
    assert len(firsts) == len(set(firsts))  # no document in two books


LEVELS = {AGAIN: 4.0, ONCE: 2.2, UNREAD: 2.0, ELSEWHERE: -3.0}


@pytest.fixture(scope="module")
def made() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two domains that score alike by themselves: what is elsewhere is less likely as a whole."""
    rng = np.random.default_rng(0)
    books = pd.DataFrame(
        [(f"{t} {i}", "s", t, t != ONCE and i % 2 == 0) for t in LEVELS for i in range(20)],
        columns=["book", "source", "truth", "validation"],
    )
    rows = [
        (book.book, i, *rng.normal(LEVELS[book.truth], 1, len(SCORES)))
        for book in books.itertuples()
        for i in range(12)
    ]
    return books, pd.DataFrame(rows, columns=["book", "snippet", *SCORES])


def test_foreign_validation_books_accuse_the_unread(made) -> None:
    books, scored = made
    table = audit_made_books(books, scored, validations(books, scored))
    assert not table.isna().any(axis=None)
    assert not set(table["book"]) & set(books.loc[books["validation"], "book"])
    assert len(table) == 2 * (~books["validation"]).sum()
    found = verdicts(table, accused=0.5, alpha=0.1).set_index(["validation", "truth"])
    assert found.loc[("same packages", AGAIN), "accused"] == "10/10"
    assert found.loc[("same packages", UNREAD), "accused"] == "0/10"
    assert found.loc[("other packages", AGAIN), "accused"] == "10/10"
    assert int(found.loc[("other packages", UNREAD), "accused"].partition("/")[0]) >= 8
    assert found.loc[("other packages", UNREAD), "rejected"] == "10/10"
    elsewhere = found.loc[("same packages", ELSEWHERE), ["books", "rate", "rejected"]]
    assert elsewhere.tolist() == [10, "0%", "0/10"]
    assert found.loc[("same packages", ONCE), "books"] == 20
    thresholds = table.groupby("validation")["threshold"].first()
    assert thresholds["other packages"] < thresholds["same packages"]
