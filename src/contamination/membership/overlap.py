"""Instance similarity: the share of a text's n-grams that stand in a corpus which is known.

No model and no assumption is needed where the training data can be read (Brown et al. 2020,
appendix C, with 13 words; Dodge et al. 2021). The corpus is read once and never kept: memory grows
with the texts alone.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from contamination.errors import InputError
from contamination.membership.similarity import words


def ngram_overlap(
    texts: Sequence[str], corpus: Iterable[str], *, n: int = 13
) -> NDArray[np.float64]:
    """Share of the n-grams of each text that occur in a document of the corpus, (len(texts),).

    Larger is more likely a member. Words are compared in lower case, without punctuation; a text of
    fewer than n words has no n-gram and gets NaN.

    Raises
    ------
    InputError
        n below 1.
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
