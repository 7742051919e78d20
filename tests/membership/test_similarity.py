"""Edit distance, ROUGE-L and shared n-grams against recursion from the definition, and by hand."""

from functools import cache

import numpy as np
import pytest

from contamination.membership.similarity import edit_distances, ngram_overlap, rouge_l


def levenshtein(a: tuple, b: tuple) -> int:
    @cache
    def of(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        same = of(i - 1, j - 1) + (a[i - 1] != b[j - 1])
        return min(same, of(i - 1, j) + 1, of(i, j - 1) + 1)

    return of(len(a), len(b))


def subsequence(a: tuple, b: tuple) -> int:
    @cache
    def of(i: int, j: int) -> int:
        if not i or not j:
            return 0
        if a[i - 1] == b[j - 1]:
            return of(i - 1, j - 1) + 1
        return max(of(i - 1, j), of(i, j - 1))

    return of(len(a), len(b))


def random_sequences(seed: int, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 4, rng.integers(0, 13)) for _ in range(count)]


@pytest.mark.parametrize("seed", range(8))
def test_edit_distances(seed):
    a, *others = random_sequences(seed, 8)
    wanted = [levenshtein(tuple(a), tuple(other)) for other in others]
    assert edit_distances(a, others).tolist() == wanted


@pytest.mark.parametrize("seed", range(8))
def test_longest_common_subsequence(seed):
    a, b = random_sequences(seed, 2)
    found = rouge_l(" ".join(map(str, a)), " ".join(map(str, b)))
    common = subsequence(tuple(a), tuple(b))
    assert found.precision == common / max(1, len(a)) and found.recall == common / max(1, len(b))


TEXTS = ["The quick, brown fox jumps!", "a b c d e f", "one two", "quick brown FOX"]
TEXTS += ["a b a b z", "sleeps b c, f a b"]  # repeated; and across the ends of documents
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
    found = ngram_overlap(TEXTS, iter(CORPUS), n=n)  # nan where a text is too short
    np.testing.assert_allclose(found, [by_hand(text, n) for text in TEXTS])
