import numpy as np
import pytest

from contamination.errors import InputError
from contamination.membership.similarity import ngram_overlap

TEXTS = ["The quick, brown fox jumps!", "a b c d e f", "one two", "quick brown FOX"]
CORPUS = ["It is said: the quick brown fox sleeps.", "b c d\ne x f", "a b"]


def by_hand(text: str, n: int) -> float:
    """Share of n-grams that are somewhere in a document, as strings with spaces around."""
    clean = [" ".join(w.strip(".,:!") for w in t.lower().split()) for t in (text, *CORPUS)]
    words = clean[0].split()
    grams = [" ".join(words[i : i + n]) for i in range(len(words) - n + 1)]
    hits = [any(f" {gram} " in f" {document} " for document in clean[1:]) for gram in grams]
    return float(np.mean(hits)) if hits else np.nan


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_share_of_ngrams(n):
    found = ngram_overlap(TEXTS, iter(CORPUS), n=n)
    np.testing.assert_allclose(found, [by_hand(text, n) for text in TEXTS])


def test_a_text_that_is_too_short_has_none():
    assert np.isnan(ngram_overlap(["one two"], CORPUS, n=3)).all()


def test_repeated_ngrams_count_as_often_as_they_stand():
    assert ngram_overlap(["a b a b z"], ["a b"], n=2).tolist() == [0.5]


def test_ngrams_do_not_span_documents():
    assert ngram_overlap(["a b"], ["x a", "b x"], n=2).tolist() == [0]


def test_no_words_are_no_ngram():
    with pytest.raises(InputError, match="n-grams of 0 words"):
        ngram_overlap(TEXTS, CORPUS, n=0)
