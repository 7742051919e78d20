"""ROUGE-L: how much of an expected text another one gives back (Lin 2004)."""

import re
from collections.abc import Sequence
from typing import NamedTuple

WORD = re.compile(r"\w+")


class RougeL(NamedTuple):
    """ROUGE-L of two texts; every part is a share in [0, 1]."""

    precision: float  # share of the words of the candidate
    recall: float  # share of the words of the expected text
    f1: float  # their harmonic mean


def rouge_l(candidate: str, expected: str) -> RougeL:
    """Return ROUGE-L of a candidate against an expected text.

    Words are runs of letters, digits and underscores in lower case, without stemming.
    Common words are those of the longest common subsequence. A text without a word
    shares nothing with another.
    """
    candidate_words = WORD.findall(candidate.lower())
    expected_words = WORD.findall(expected.lower())
    common = longest_common_subsequence(candidate_words, expected_words)
    return RougeL(
        precision=common / max(1, len(candidate_words)),
        recall=common / max(1, len(expected_words)),
        f1=2 * common / max(1, len(candidate_words) + len(expected_words)),
    )


def longest_common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence of two sequences of words.

    Time grows with the product of their lengths, memory with the length of `second`.
    """
    # lengths[j]: the longest subsequence of the words of `first` so far and of
    # second[:j].
    lengths = [0] * (len(second) + 1)
    for word in first:
        previous = lengths
        lengths = [0]
        for place, other in enumerate(second):
            if word == other:
                lengths.append(previous[place] + 1)
            else:
                lengths.append(max(previous[place + 1], lengths[place]))
    return lengths[-1]
