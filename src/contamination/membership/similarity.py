"""How alike texts are: edit distance, ROUGE-L, n-grams shared with a corpus.

Edit distance and longest common subsequence come from rapidfuzz: bit-parallel C++ that many depend
on, and exact for any sequence.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq, Levenshtein

from contamination.errors import InputError

WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class RougeL:
    """ROUGE-L of a text against the one that was expected (Lin 2004), all in [0, 1]."""

    recall: float
    precision: float

    @property
    def f1(self) -> float:
        """Harmonic mean of recall and precision; 0 if both are."""
        total = self.recall + self.precision
        return 2 * self.recall * self.precision / total if total else 0.0


def rouge_l(found: str, expected: str) -> RougeL:
    """Longest common subsequence of words, by the words expected and by those found.

    Words are runs of letters, digits and underscores in lower case, without stemming. A text
    without a word has nothing in common with any other.
    """
    ours, theirs = words(found), words(expected)
    common = LCSseq.similarity(ours, theirs)
    return RougeL(common / max(1, len(theirs)), common / max(1, len(ours)))


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case."""
    return WORD.findall(text.lower())


def edit_distances(
    a: NDArray[np.integer], others: Sequence[NDArray[np.integer]]
) -> NDArray[np.int64]:
    """Levenshtein distance of (n,) to each of k sequences, (k,): insert, delete, substitute."""
    ours = a.tolist()
    return np.array([Levenshtein.distance(ours, one.tolist()) for one in others], dtype=np.int64)


def ngram_overlap(
    texts: Sequence[str], corpus: Iterable[str], *, n: int = 13
) -> NDArray[np.float64]:
    """Share of the n-grams of each text that occur in a document of the corpus, (len(texts),).

    Larger is more likely a member. No model and no assumption is needed where the training data can
    be read (Brown et al. 2020, appendix C, with 13 words; Dodge et al. 2021). The corpus is read
    once and never kept: memory grows with the texts alone. Words are compared in lower case,
    without punctuation; a text of fewer than n words has no n-gram and gets NaN. Raises InputError
    for n below 1.
    """
    if n < 1:
        raise InputError(f"n-grams of {n} words: give n of 1 or more")
    wanted = [list(_ngrams(text, n)) for text in texts]
    missing = {gram for grams in wanted for gram in grams}
    for document in corpus:
        missing.difference_update(_ngrams(document, n))
    return np.array(
        [np.mean([gram not in missing for gram in grams]) if grams else np.nan for grams in wanted]
    )


def _ngrams(text: str, n: int) -> Iterator[tuple[str, ...]]:
    sequence = words(text)
    return zip(*(sequence[i:] for i in range(n)), strict=False)
