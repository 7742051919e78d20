"""ROUGE-L against an independent count, and by hand."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contamination.membership.rouge import longest_common_subsequence, rouge_l

WORDS = st.lists(st.sampled_from("abc"), max_size=7)


def subsequences(words: list[str]) -> set[tuple[str, ...]]:
    """Return every subsequence of a few words."""
    chosen: set[tuple[str, ...]] = set()
    for size in range(len(words) + 1):
        chosen.update(combinations(words, size))
    return chosen


@given(first=WORDS, second=WORDS)
def test_the_longest_subsequence_is_the_longest_of_all_that_are_common(first, second):
    common = subsequences(first) & subsequences(second)
    assert longest_common_subsequence(first, second) == max(map(len, common))


@pytest.mark.parametrize(
    ("candidate", "expected", "common"),
    [
        ("a b c d", "a x c d", 3),
        ("The CAT, sat!", "the cat sat", 3),
        ("c b a", "a b c", 1),
        ("a b", "", 0),
        ("", "", 0),
    ],
)
def test_words_count_in_order_whatever_their_case(candidate, expected, common):
    candidate_words = max(1, len(candidate.split()))
    expected_words = max(1, len(expected.split()))
    score = rouge_l(candidate, expected)
    assert score.precision == common / candidate_words
    assert score.recall == common / expected_words
    if common:
        mean = 2 * score.precision * score.recall / (score.precision + score.recall)
        assert score.f1 == pytest.approx(mean)
    else:
        assert score.f1 == 0
