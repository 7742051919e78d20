"""How often each text has each run of characters: what `tf_idf` weighs.

The counts are those of scikit-learn's `CountVectorizer(analyzer="char_wb")`, which
takes run after run in Python. Here each distinct word is cut up once, all of them
together, and the runs of a text are those of its words.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

SIZE = 4  # characters of a run
BITS = 21  # of a character of Unicode


def count_grams(texts: Sequence[str]) -> csr_matrix:
    """Return how often each text has each run of four characters within a word.

    A word stands between two blanks, which belong to it; a word of one character is a
    run of three. Capitals count as small letters.

    Parameters
    ----------
    texts
        (n,), of which one at least is not blank.

    Returns
    -------
    (n, v) float64: columns in the order in which the runs appear.

    Examples
    --------
    >>> count_grams(["Aha, aha", "a"]).toarray()
    array([[1., 1., 1., 1., 1., 0.],
           [0., 0., 0., 0., 0., 1.]])
    """
    number_of: dict[str, int] = {}
    numbers: list[int] = []
    ends = [0]
    for text in texts:
        for word in text.lower().split():
            numbers.append(number_of.setdefault(word, len(number_of)))
        ends.append(len(numbers))
    ones = np.ones(len(numbers))
    words_of_texts = csr_matrix((ones, numbers, ends), shape=(len(texts), len(number_of)))
    counts = words_of_texts @ _grams_of_words(list(number_of))
    counts.sort_indices()
    return counts


def _grams_of_words(words: Sequence[str]) -> csr_matrix:
    """Return how often each word has each run, (w, v), in the order of appearance."""
    lengths = np.array([len(word) for word in words]) + 2
    first = np.cumsum(lengths) - lengths
    runs = np.maximum(lengths - SIZE + 1, 1)
    ends = np.cumsum(runs)
    within = np.arange(ends[-1]) - np.repeat(ends - runs, runs)
    place = np.repeat(first, runs) + within
    too_short = np.repeat(lengths < SIZE, runs)
    characters = _characters(words)
    last = np.where(too_short, 0, characters[place + 3])
    numbers = _numbered(
        characters[place] << BITS | characters[place + 1],
        characters[place + 2] << BITS | last,
    )
    shape = (len(words), numbers.max() + 1)
    ones = np.ones(len(numbers))
    return csr_matrix((ones, numbers, np.append(0, ends)), shape=shape)


def _characters(words: Sequence[str]) -> NDArray[np.int64]:
    """Return the code points of all words, each between two blanks, and one more."""
    padded = " " + "  ".join(words) + "  "
    # JSON may hold halves of characters
    encoded = padded.encode("utf-32-le", errors="surrogatepass")
    return np.frombuffer(encoded, dtype="<u4").astype(np.int64)


def _numbered(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.intp]:
    """Number the distinct pairs from 0, in the order in which they appear."""
    numbers, _ = pd.factorize(first)
    others, _ = pd.factorize(second)
    together, _ = pd.factorize(numbers * (others.max() + 1) + others)
    return np.asarray(together)
