"""Snippets keep the words of a book, and thresholds come from the validation books alone."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contamination.errors import InputError
from contamination.membership import api
from contamination.membership.books import SCORES, Validation, audit_books, sample_snippets
from contamination.membership.evaluate import auc


@pytest.mark.parametrize(("count", "words"), [(7, 3), (9, 3), (5, 1)])
def test_snippets_are_the_words_in_order_without_the_rest(count: int, words: int) -> None:
    text = "  " + "".join(f"w{i}{'  ' if i % 2 else chr(10)}" for i in range(count))
    found = sample_snippets({"a": text}, words=words, rng=np.random.default_rng(0))["text"]
    assert len(found) == count // words and all(one in text for one in found)
    assert [w for one in found for w in one.split()] == text.split()[: count // words * words]


def test_samples_are_drawn_without_replacement_and_in_order() -> None:
    books = {"long": " ".join(map(str, range(40))), "short": "a b c d"}

    def drawn(seed: int, most: int = 5) -> pd.DataFrame:
        return sample_snippets(books, words=2, most=most, rng=np.random.default_rng(seed))

    assert drawn(0)["book"].tolist() == ["long"] * 5 + ["short"] * 2
    chosen = [drawn(seed)["snippet"][:5].tolist() for seed in range(40)]
    assert all(numbers == sorted(set(numbers)) for numbers in chosen)
    assert {number for numbers in chosen for number in numbers} == set(range(20))
    every = drawn(0, most=20)
    assert every["snippet"].tolist() == [*range(20), 0, 1]
    assert every["text"][3] == "6 7"


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


def by_hand(**books: list[float]) -> pd.DataFrame:
    flat = dict.fromkeys(SCORES, 0.0)
    rows = [
        {**flat, "book": book, "snippet": i, "min_k_20": value}
        for book, values in books.items()
        for i, value in enumerate(values)
    ]
    return pd.DataFrame(rows)


def test_rates_and_ranks_by_hand() -> None:
    unread = by_hand(u1=[0, 2], u2=[1, 3], u3=[2, 4])  # means of 1, 2 and 3
    validation = Validation(by_hand(r=[9, 9]), unread)
    assert validation.threshold.value == 9
    table = validation.rates(by_hand(y=[9, 8, 10, 9], x=[9, -5], z=[0, 0, 1]))
    assert table[["book", "snippets", "mean"]].to_numpy().tolist() == [
        *(["y", 4, 9.0], ["x", 2, 2.0], ["z", 3, 1 / 3])
    ]
    assert table["rate"].tolist() == [3 / 4, 1 / 2, 0]
    for row, hits in zip(table.itertuples(), (3, 1, 0), strict=True):
        exact = stats.binomtest(hits, row.snippets).proportion_ci()
        assert (row.low, row.high) == pytest.approx(tuple(exact))
    assert table["p"].tolist() == [1 / 4, 3 / 4, 1]  # a tie counts against the book
    np.testing.assert_allclose(table["log10_p"], np.log10(table["p"]))


def test_p_of_unread_books_is_valid_whatever_the_threshold() -> None:
    rng = np.random.default_rng(0)
    means = rng.normal(0, 1, (150, 10))
    found = []
    for number, row in enumerate(means):
        table = scored({f"b{i}": mean for i, mean in enumerate(row)}, 3, seed=number)
        first = table["book"] == "b0"
        found += Validation(books("r", 1, 3.0), table[~first]).rates(table[first])["p"].tolist()
    ranks = np.round(10 * np.array(found)).astype(int)
    assert stats.chisquare(np.bincount(ranks)[1:]).pvalue > 0.01


def test_aucs_are_over_snippets_and_intervals_over_books(validation: Validation) -> None:
    table = validation.aucs(rng=np.random.default_rng(0), resamples=200).set_index("score")
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
    def known(model, texts, columns):
        assert model == "a model"
        knows = [any(t in text for text in library["members"].values()) for t in texts]
        return pd.DataFrame({name: np.array(knows, dtype=float) for name in columns})

    monkeypatch.setattr(api, "membership_scores", known)
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
