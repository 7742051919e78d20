"""Snippets keep the words of a book, and thresholds come from the validation books alone."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contamination.errors import InputError
from contamination.membership import books as audit
from contamination.membership.books import (
    SCORES,
    Validation,
    audit_books,
    cut_snippets,
    sample_snippets,
)
from contamination.membership.evaluate import auc


@pytest.mark.parametrize(("count", "words"), [(0, 3), (2, 3), (3, 3), (7, 3), (9, 3), (5, 1)])
def test_snippets_are_the_words_in_order_without_the_rest(count: int, words: int) -> None:
    text = "  " + "".join(f"w{i}{'  ' if i % 2 else chr(10)}" for i in range(count))
    found = cut_snippets(text, words)
    assert len(found) == count // words
    assert [w for one in found for w in one.split()] == text.split()[: count // words * words]
    assert {len(one.split()) for one in found} <= {words}


def test_samples_are_drawn_without_replacement_and_in_order() -> None:
    books = {"long": " ".join(map(str, range(40))), "short": "a b c d"}
    sampled = sample_snippets(books, words=2, most=5, rng=np.random.default_rng(0))
    assert sampled["book"].tolist() == ["long"] * 5 + ["short"] * 2
    numbers = sampled.loc[sampled["book"] == "long", "snippet"].tolist()
    assert numbers == sorted(set(numbers))
    for row in sampled.itertuples():
        assert row.text == cut_snippets(books[row.book], 2)[row.snippet]
    drawn = [
        sample_snippets(books, words=2, most=5, rng=np.random.default_rng(seed))["snippet"][:5]
        for seed in range(40)
    ]
    assert {number for one in drawn for number in one} == set(range(20))
    assert drawn[0].tolist() == numbers
    every = sample_snippets(books, words=2, most=20, rng=np.random.default_rng(0))
    assert every["snippet"].tolist() == [*range(20), 0, 1]


def scored(means: dict[str, float], size: int = 20, *, seed: int = 0) -> pd.DataFrame:
    """Normal scores around the mean of each book; `loss` knows nothing."""
    rng = np.random.default_rng(seed)
    rows = [
        (book, i, *rng.normal(mean, 1, 1), *rng.normal(0, 1, 1), *rng.normal(mean, 1, 2))
        for book, mean in means.items()
        for i in range(size)
    ]
    return pd.DataFrame(rows, columns=["book", "snippet", *SCORES])


def books(name: str, count: int, mean: float, **options: int) -> pd.DataFrame:
    return scored({f"{name}{i}": mean for i in range(count)}, **options)


@pytest.fixture(scope="module")
def validation() -> Validation:
    return Validation(books("r", 8, 2.0, seed=1), books("u", 9, 0.0, seed=2))


def test_planted_books_get_their_rates(validation: Validation) -> None:
    table = validation.rates(scored({"read": 2.0, "unread": 0.0, "few": 2.0}, 200, seed=3))
    assert table["book"].tolist() == ["read", "unread", "few"]
    table = table.set_index("book")
    value = validation.threshold.value
    for book, mean in (("read", 2.0), ("unread", 0.0)):
        expected = stats.norm.sf(value - mean)
        assert table.loc[book, "rate"] == pytest.approx(expected, abs=0.1)
        assert table.loc[book, "low"] < expected < table.loc[book, "high"]
        hits = round(200 * table.loc[book, "rate"])
        exact = stats.binomtest(hits, 200).proportion_ci()
        assert (table.loc[book, "low"], table.loc[book, "high"]) == pytest.approx(tuple(exact))
    assert table.loc["read", "p"] == pytest.approx(1 / 10)
    assert table.loc["read", "log10_p"] == pytest.approx(-1)
    assert table.loc["unread", "p"] > 0.1


def test_p_ranks_the_mean_among_the_unread_validation_books() -> None:
    flat = dict.fromkeys(SCORES, 0.0)
    rows = [
        {**flat, "book": f"u{mean}", "snippet": i, "min_k_20": mean + (-1) ** i}
        for mean in (1, 2, 3)
        for i in range(2)
    ]
    unread = pd.DataFrame(rows)
    read = unread.assign(min_k_20=9.0)
    audited = unread.assign(book="x", min_k_20=2.0)
    (row,) = Validation(read, unread).rates(audited).itertuples()
    assert row.mean == 2.0
    assert row.p == (1 + 2) / 4  # the tied one counts against the book


def test_p_of_unread_books_is_valid_whatever_the_threshold() -> None:
    """The rank of one of ten exchangeable books is uniform."""
    rng = np.random.default_rng(0)
    means = rng.normal(0, 1, (300, 10))
    found = []
    for number, row in enumerate(means):
        table = scored({f"b{i}": mean for i, mean in enumerate(row)}, 3, seed=number)
        first = table["book"] == "b0"
        found += Validation(books("r", 1, 3.0), table[~first]).rates(table[first])["p"].tolist()
    ranks = np.round(10 * np.array(found)).astype(int)
    assert stats.chisquare(np.bincount(ranks)[1:]).pvalue > 0.01


def test_aucs_are_over_snippets_and_intervals_over_books(validation: Validation) -> None:
    table = validation.aucs(rng=np.random.default_rng(0), resamples=200).set_index("score")
    assert table.index.tolist() == list(SCORES)
    assert (table["member_books"] == 8).all() and (table["non_member_books"] == 9).all()
    assert (table["members"] == 160).all() and (table["non_members"] == 180).all()
    both = pd.concat([validation.members, validation.non_members])
    for score in SCORES:
        wanted = auc(both[score], [1] * 160 + [0] * 180)
        assert table.loc[score, "auc"] == pytest.approx(wanted)
        assert table.loc[score, "auc_low"] < wanted < table.loc[score, "auc_high"]
    assert table.loc["min_k_20", "auc"] > 0.85
    assert table.loc["loss", "auc_low"] < 0.5 < table.loc["loss", "auc_high"]


@pytest.fixture(scope="module")
def library(prose) -> dict[str, dict[str, str]]:
    texts = [" ".join(prose[i : i + 3]) for i in range(0, 24, 3)]
    return {
        "books": {"a": texts[0], "b": texts[1]},
        "members": {f"r{i}": text for i, text in enumerate(texts[2:5])},
        "non_members": {f"u{i}": text for i, text in enumerate(texts[5:])},
    }


def audited(model, library, **options):
    settings = {"rng": np.random.default_rng(0), "words": 12, "most": 4} | options
    return audit_books(lambda: model, **library, **settings)


def test_every_part_is_scored_as_what_it_is(library, monkeypatch) -> None:
    """A made-up model that knows the members, by their text."""

    def known(model, sampled):
        assert model == "a model"
        knows = [any(t in text for text in library["members"].values()) for t in sampled["text"]]
        made = {name: np.array(knows, dtype=float) for name in SCORES}
        return sampled[["book", "snippet"]].assign(**made)

    monkeypatch.setattr(audit, "score_snippets", known)
    rates, validation = audited("a model", library)
    assert set(validation.members["book"]) == {"r0", "r1", "r2"}
    assert set(validation.non_members["book"]) == {"u0", "u1", "u2"}
    assert (validation.threshold.value, validation.tpr, validation.false_positive_rate) == (1, 1, 0)
    assert rates["book"].tolist() == ["a", "b"]
    assert rates["rate"].tolist() == [0, 0]
    changed = library | {"books": {"m": library["members"]["r0"] + " more"}}
    assert audited("a model", changed)[0]["rate"].tolist() == [1]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"books": {"z": "x Y"}, "members": {"r": "X  y\n"}}, "r of the members .* z of the audit"),
        ({"books": {"tiny.txt": "a b"}, "words": 3}, r"tiny\.txt: 2 words"),
        ({"words": 0}, "0 words"),
    ],
)
def test_bad_input_is_named_before_a_model_is_opened(library, change, named) -> None:
    with pytest.raises(InputError, match=named):
        audit_books(pytest.fail, **(library | {"rng": np.random.default_rng(0)} | change))
