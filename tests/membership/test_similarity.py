"""Edit distance, longest common subsequence and ROUGE-L against recursion from the definition."""

from functools import cache

import numpy as np
import pytest

from contamination.membership.similarity import edit_distances, rouge_l, words


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


@pytest.mark.parametrize("seed", range(20))
def test_edit_distances(seed):
    a, *others = random_sequences(seed, 8)
    wanted = [levenshtein(tuple(a), tuple(other)) for other in others]
    assert edit_distances(a, others).tolist() == wanted


def test_edit_distances_to_none():
    assert edit_distances(np.arange(3), []).tolist() == []
    assert edit_distances(np.arange(0), [np.arange(0), np.arange(2)]).tolist() == [0, 2]


@pytest.mark.parametrize("seed", range(20))
def test_longest_common_subsequence(seed):
    a, b = random_sequences(seed, 2)
    found = rouge_l(" ".join(map(str, a)), " ".join(map(str, b)))
    common = subsequence(tuple(a), tuple(b))
    assert found.precision == common / max(1, len(a)) and found.recall == common / max(1, len(b))


def test_rouge_l():
    found = rouge_l("The cat, the MAT!", "the cat sat on the mat")
    assert found.recall == pytest.approx(4 / 6)
    assert found.precision == 1
    assert found.f1 == pytest.approx(0.8)


@pytest.mark.parametrize(("a", "b"), [("", "one"), ("one", ""), ("", ""), ("?!", "?!"), ("a", "b")])
def test_nothing_in_common(a, b):
    found = rouge_l(a, b)
    assert (found.recall, found.precision, found.f1) == (0, 0, 0)


def test_words_of_any_script():
    assert words("Élan-vital, x_1 №5 東京") == ["élan", "vital", "x_1", "5", "東京"]
