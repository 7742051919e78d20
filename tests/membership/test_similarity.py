"""ROUGE-L and shared n-grams, by hand."""

import numpy as np
import pytest

from contamination.membership.similarity import ngram_overlap, rouge_l


@pytest.mark.parametrize(
    ("found", "expected", "common"),
    [
        ("a b c d", "a x c d", 3),
        ("The CAT, sat!", "the cat sat", 3),
        ("c b a", "a b c", 1),
        ("a b", "", 0),
        ("", "", 0),
    ],
)
def test_rouge_l_counts_words_in_order_whatever_their_case(found, expected, common):
    ours, theirs = len(found.split()), len(expected.split())
    f1 = 2 * common / max(1, ours + theirs)
    assert rouge_l(found, expected) == (common / max(1, theirs), f1)


TEXTS = ["The quick, brown fox jumps!", "a b c d e f", "one two", "quick brown FOX"]
TEXTS += ["a b a b z", "sleeps b c, f a b"]  # repeated; and across the ends of documents
CORPUS = ["It is said: the quick brown fox sleeps.", "b c d\ne x f", "a b"]


@pytest.mark.parametrize(
    ("n", "shares"),
    [
        (1, [4 / 5, 6 / 6, 0, 1, 4 / 5, 6 / 6]),
        (2, [3 / 4, 4 / 5, 0, 1, 2 / 4, 2 / 5]),
        (3, [2 / 3, 2 / 4, np.nan, 1, 0, 0]),
        (4, [1 / 2, 1 / 3, np.nan, np.nan, 0, 0]),
    ],
)
def test_share_of_ngrams_in_a_document_of_the_corpus(n, shares):
    np.testing.assert_allclose(ngram_overlap(TEXTS, iter(CORPUS), n=n), shares)
