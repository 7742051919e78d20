"""How alike texts are by their words: ROUGE-L, and n-grams shared with a corpus."""

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq

WORD = re.compile(r"\w+")


def rouge_l(found: str, expected: str) -> tuple[float, float]:
    """Recall and F1 of ROUGE-L (Lin 2004), the longest common subsequence of words, in [0, 1].

    Words are runs of letters, digits and underscores in lower case, without stemming. A text
    without a word has nothing in common with any other.
    """
    ours, theirs = words(found), words(expected)
    common = LCSseq.similarity(ours, theirs)
    return common / max(1, len(theirs)), 2 * common / max(1, len(ours) + len(theirs))


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case."""
    return WORD.findall(text.lower())


def ngram_overlap(
    texts: Sequence[str], corpus: Iterable[str], *, n: int = 13
) -> NDArray[np.float64]:
    """Share of the n-grams of each text that occur in a document of the corpus, (len(texts),).

    Larger is more likely a member. No model and no assumption is needed where the training data can
    be read (Brown et al. 2020, appendix C, with 13 words; Dodge et al. 2021). The corpus is read
    once and never kept. Words are compared in lower case, without punctuation; a text of fewer than
    n words gets NaN.
    """
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
