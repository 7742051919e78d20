"""Books with known truth: made of one side each, cut, judged, and found or accused as planted."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.stats import binom, binomtest

from contamination.errors import InputError
from fakes.data_fixtures import divided_run
from reproduction.notebooks.books.measure import cut_snippets, make_books
from reproduction.notebooks.books.settings import (
    AGAIN,
    ELSEWHERE,
    ONCE,
    SCORE,
    SCORES,
    UNREAD,
    Settings,
)
from reproduction.notebooks.books.tables import (
    book_rates,
    draw_books,
    fit_best_threshold,
    validation_aucs,
    validation_snippets,
    verdicts,
)
from reproduction.run.corpus import MEMBERS, NON_MEMBERS


def test_books_are_bundles_of_one_source_and_one_side(tmp_path, monkeypatch) -> None:
    run = divided_run(tmp_path, monkeypatch)
    books = make_books(run, words=50, count=2)
    expected = {(ONCE, source, False): 2 for source in ("alpha", "gamma")}
    for use in (True, False):
        expected |= {(AGAIN, source, use): 2 for source in ("alpha", "gamma")}
        expected |= {(UNREAD, source, use): 2 for source in ("alpha", "gamma")}
        expected[ELSEWHERE, "beta", use] = 2
    assert books.groupby(["truth", "source", "validation"]).size().to_dict() == expected
    for name, truths in {MEMBERS: {AGAIN, ONCE}, NON_MEMBERS: {UNREAD}}.items():
        text = (run.corpus / name).read_text(encoding="utf-8")
        for book in books.itertuples():
            first = book.text.split()[0]  # a name of its own, such as alpha17
            assert first.startswith(book.source)
            assert (f'"{first} ' in text) == (book.truth in truths)
    words = " ".join(books["text"]).split()
    names = [word for word in words if word[-1].isdigit()]
    assert len(names) == len(set(names)), "no document is in two books"
    with pytest.raises(InputError, match="books of 100000 words"):
        make_books(run, words=100_000, count=2)


def test_snippets_are_the_words_of_a_book_in_order() -> None:
    books = pd.DataFrame({"book": ["a", "b"], "text": ["1 2 3 4 5 6 7", "8 9 10 11 12 13"]})
    snippets = cut_snippets(books, words=3)
    assert snippets["text"].tolist() == ["1 2 3", "4 5 6", "8 9 10", "11 12 13"]
    assert snippets["snippet"].tolist() == [0, 1, 0, 1]


def test_a_book_of_one_snippet_is_refused_by_its_name() -> None:
    books = pd.DataFrame({"book": ["long", "short"], "text": ["1 2 3 4 5 6", "1 2 3 4 5"]})
    with pytest.raises(InputError, match=r"^short.* 5 words"):
        cut_snippets(books, words=3)


def test_settings_need_a_neighbour() -> None:
    with pytest.raises(ValidationError, match="neighbours"):
        Settings(words=9, snippets=2, books=1, epochs=1, learning_rate=0.1, neighbours=0)


LABELLED = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=12).filter(
    lambda pairs: len({member for _, member in pairs}) == 2
)


@given(LABELLED)
def test_the_threshold_is_the_largest_of_those_that_are_right_most_often(pairs) -> None:
    scores = np.array([score for score, _ in pairs], dtype=float)
    members = np.array([member for _, member in pairs])
    right = {t: int(((scores >= t) == members).sum()) for t in (*scores, np.inf)}
    best = max(threshold for threshold, count in right.items() if count == max(right.values()))
    assert fit_best_threshold(scores, members) == best


LEVELS = {AGAIN: 3.5, ONCE: 2.2, UNREAD: 2.0, ELSEWHERE: -3.0}


def make_scores(levels: dict[str, float], *, books: int, snippets: int, seed: int = 0):
    """Return books and scored snippets with scores around the level of their truth."""
    rng = np.random.default_rng(seed)
    made = []
    for truth, i in itertools.product(levels, range(books)):
        made.append((f"{truth} {i}", "s", truth, truth != ONCE and i % 2 == 0))
    frame = pd.DataFrame(made, columns=["book", "source", "truth", "validation"])
    scored = frame[["book"]].loc[frame.index.repeat(snippets)].reset_index(drop=True)
    scored["snippet"] = np.tile(np.arange(snippets), len(frame))
    level = scored["book"].map(frame.set_index("book")["truth"]).map(levels)
    for name in SCORES:
        scored[name] = level + rng.normal(size=len(scored))
    return frame, scored


@pytest.fixture(scope="module")
def made() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two domains: what is elsewhere is less likely as a whole."""
    return make_scores(LEVELS, books=20, snippets=12)


def test_read_books_are_found_and_foreign_validation_books_accuse_the_unread(made) -> None:
    books, scored = made
    rates = book_rates(books, scored, validation_snippets(books, scored))
    assert not rates.isna().any(axis=None)
    assert set(rates["book"]) == set(books.loc[~books["validation"], "book"])
    found = verdicts(rates, accused=0.5, alpha=0.1)
    found = found.set_index(["Unread validation books", "Truth"])
    accused, rejected = found["Rate above 50%"], found["p up to 0.1"]
    assert int(accused["same packages", AGAIN].partition("/")[0]) >= 8
    assert accused["same packages", UNREAD] == "0/10"
    assert accused["other packages", AGAIN] == "10/10"
    assert int(accused["other packages", UNREAD].partition("/")[0]) >= 8
    assert rejected["other packages", UNREAD] == "10/10"
    assert rejected["same packages", ELSEWHERE] == "0/10"


def test_rates_and_ranks_by_counting(made) -> None:
    books, scored = made
    validations = validation_snippets(books, scored)
    rates = book_rates(books, scored, validations).set_index(["validation", "book"])
    for validation, snippets in validations.items():
        unread = snippets[~snippets["member"]]
        means = [group[SCORE].mean() for _, group in unread.groupby("book")]
        row = rates.loc[validation, f"{ONCE} 3"]
        scores = scored.loc[scored["book"] == f"{ONCE} 3", SCORE]
        reached = int(sum(score >= row["threshold"] for score in scores))
        interval = binomtest(reached, 12).proportion_ci(0.95)
        assert row[["rate", "low", "high"]].tolist() == pytest.approx([reached / 12, *interval])
        larger = sum(mean >= scores.mean() for mean in means)
        assert row["p"] == (1 + larger) / 11
        false = (unread[SCORE] >= row["threshold"]).mean()
        assert row["validation_fpr"] == pytest.approx(false)


def test_an_auc_counts_pairs_and_its_interval_draws_whole_books(made) -> None:
    books, scored = made
    validations = validation_snippets(books, scored)
    aucs = validation_aucs(validations, seed=0, resamples=200).set_index(["validation", "score"])
    for validation, snippets in validations.items():
        read = snippets.loc[snippets["member"], SCORE].to_numpy()
        unread = snippets.loc[~snippets["member"], SCORE].to_numpy()
        row = aucs.loc[validation, SCORE]
        assert row["auc"] == pytest.approx((read[:, None] > unread).mean())
        assert row["auc_low"] <= row["auc"] <= row["auc_high"]
        assert aucs["auc_low"].lt(aucs["auc_high"]).any()
        assert row[["member_books", "members"]].tolist() == [10, 120]
    snippets = validations["same packages"]
    drawn = draw_books(snippets, rng=np.random.default_rng(0), resamples=50)
    by_book = pd.DataFrame(drawn.T).groupby(snippets["book"].to_numpy())
    assert (by_book.nunique() == 1).all(axis=None), "the snippets of a book come together"
    assert (drawn.sum(axis=1) == len(snippets)).all()
    assert len(np.unique(drawn, axis=0)) > 40


def test_an_unread_book_is_rarely_rejected() -> None:
    runs, alpha = 100, 0.1
    rejected = 0
    for seed in range(runs):
        books, scored = make_scores({AGAIN: 1.0, UNREAD: 0.0}, books=20, snippets=3, seed=seed)
        # One audited book each, so that the runs are independent.
        books = books[books["validation"] | (books["book"] == f"{UNREAD} 1")]
        rates = book_rates(books, scored, validation_snippets(books, scored))
        rejected += int(rates["p"].item() <= alpha)
    assert rejected <= binom.isf(1e-4, runs, alpha)
    assert rejected > 0
