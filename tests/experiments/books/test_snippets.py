"""Snippets are the words of a book, in order, without the rest; samples and scores keep them."""

import numpy as np
import pandas as pd
import pytest

from contamination.errors import InputError
from contamination.experiments.books.snippets import (
    SCORES,
    read_books,
    require_distinct,
    sample_snippets,
    score_snippets,
    snippets,
)
from contamination.membership.api import membership_scores


@pytest.mark.parametrize(("count", "words"), [(0, 3), (2, 3), (3, 3), (7, 3), (9, 3), (5, 1)])
def test_snippets_are_the_words_in_order_without_the_rest(count: int, words: int) -> None:
    text = "  " + "".join(f"w{i}{'  ' if i % 2 else chr(10)}" for i in range(count))
    found = snippets(text, words)
    assert len(found) == count // words
    assert [w for one in found for w in one.split()] == text.split()[: count // words * words]
    assert {len(one.split()) for one in found} <= {words}


def test_blanks_inside_a_snippet_stay() -> None:
    assert snippets("\n a\n\nb  c\td ", 3) == ["a\n\nb  c"]


def test_the_snippet_of_the_paper_has_512_words() -> None:
    assert [len(one.split()) for one in snippets("word " * 1100)] == [512, 512]


def test_samples_are_drawn_without_replacement_and_in_order() -> None:
    books = {"long": " ".join(map(str, range(40))), "short": "a b c d"}
    sampled = sample_snippets(books, words=2, most=5, rng=np.random.default_rng(0))
    assert sampled["book"].tolist() == ["long"] * 5 + ["short"] * 2
    numbers = sampled.loc[sampled["book"] == "long", "snippet"].tolist()
    assert numbers == sorted(set(numbers))
    for row in sampled.itertuples():
        assert row.text == snippets(books[row.book], 2)[row.snippet]
    drawn = [
        sample_snippets(books, words=2, most=5, rng=np.random.default_rng(seed))["snippet"][:5]
        for seed in range(40)
    ]
    assert {number for one in drawn for number in one} == set(range(20))
    assert drawn[0].tolist() == numbers
    every = sample_snippets(books, words=2, most=20, rng=np.random.default_rng(0))
    assert every["snippet"].tolist() == [*range(20), 0, 1]


def test_a_book_shorter_than_a_snippet_is_told() -> None:
    with pytest.raises(InputError, match=r"tiny\.txt: 2 words, and a snippet has 3"):
        sample_snippets({"tiny.txt": "a b"}, words=3, rng=np.random.default_rng(0))


@pytest.mark.parametrize("wrong", [{"words": 0}, {"most": 0}])
def test_numbers_that_cannot_be(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match="give 1 or more"):
        sample_snippets({"a": "a b c"}, rng=np.random.default_rng(0), **wrong)


def test_books_are_read_by_name(tmp_path) -> None:
    (tmp_path / "b.txt").write_text("second", encoding="utf-8")
    (tmp_path / "a.MD").write_bytes(b"\xef\xbb\xbffirst\r\nline")
    (tmp_path / "c.pdf").write_bytes(b"\xff")
    (tmp_path / "d.txt").mkdir()
    assert list(read_books(tmp_path).items()) == [("a.MD", "first\nline"), ("b.txt", "second")]


def test_folders_that_hold_no_book(tmp_path) -> None:
    (tmp_path / "c.pdf").write_bytes(b"")
    with pytest.raises(InputError, match=r"no book; put a \.txt or \.md file"):
        read_books(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        read_books(tmp_path / "none")
    (tmp_path / "a.txt").write_bytes(b"fine\n\xff")
    with pytest.raises(InputError, match=r"a\.txt, line 2: .* not UTF-8"):
        read_books(tmp_path)


def test_the_same_book_twice_is_told_with_both_places() -> None:
    require_distinct({"one": {"a": "x y"}, "two": {"a": "x z"}})
    with pytest.raises(InputError) as caught:
        require_distinct({"one": {"a": "X  y\n"}, "two": {"b": "x y"}})
    assert str(caught.value).startswith("b in two is the same book as a in one: ")
    with pytest.raises(InputError, match="b in one is the same book as a in one"):
        require_distinct({"one": {"a": "x y", "b": "x y"}})


def test_scores_are_those_of_the_membership_table(model_directory, prose) -> None:
    books = {"x": " ".join(prose[:2]), "y": prose[2]}
    sampled = sample_snippets(books, words=8, most=2, rng=np.random.default_rng(0))
    scored = score_snippets(model_directory, sampled)
    assert scored.columns.tolist() == ["book", "snippet", *SCORES]
    pd.testing.assert_frame_equal(scored[["book", "snippet"]], sampled[["book", "snippet"]])
    reference = membership_scores(model_directory, sampled["text"].tolist())
    assert scored[list(SCORES)].to_numpy() == pytest.approx(reference[list(SCORES)].to_numpy())
