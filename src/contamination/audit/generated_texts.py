"""Texts that a model wrote: their words and letters, and how many of them are of use.

The unit of the n-grams is the word, not the token. Servers do not tell how they divide
text into tokens, and with words the same texts give the same p-value wherever they were
written. The tokens of a word also change where a text begins or ends in the middle of
it.
"""

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

# Of the texts must be of use, or a large p says nothing. A record without a text votes
# for no successor, so with a share u of them the test has about the power that it has
# on a set of u times as many records. Below a half it is not the test of this set that
# was asked for.
LEAST_USABLE = 0.5
SAME = 0.9  # share of prompts: a text that they all get does not depend on them
# A run of letters and digits, or one character of scripts that put no space between
# words.
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_ANSWER = re.compile(r"\W*([A-Z])\b")


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case, without punctuation.

    Examples
    --------
    >>> words("Is it 3? No, 4.")
    ['is', 'it', '3', 'no', '4']
    """
    return _WORD.findall(text.lower())


def letter_of(answer: str) -> str | None:
    """Return the capital letter with which an answer begins; None if it has none.

    Examples
    --------
    >>> letter_of("(B) because it is shorter")
    'B'
    """
    match = _ANSWER.match(answer)
    if match is None:
        return None
    return match[1]


@dataclass(frozen=True)
class Usable:
    """Counts of the texts of a model, and of those that are of no use.

    Attributes
    ----------
    texts
        Number of all texts.
    empty
        Number of texts that were refused, filtered, or nothing but space.
    unusable
        Number of the other texts that share no two words in a row with any record but
        the one that they follow (of a record of one word, not that word). In a quiz:
        number of texts without a letter.
    repeated
        Number of the remaining texts with the commonest words, if these are nearly all
        of them; else 0.
    """

    texts: int
    empty: int
    unusable: int
    repeated: int

    def silence(self) -> str:
        """Return why a large p says nothing; "" where LEAST_USABLE are of use."""
        usable = self.texts - self.empty - self.unusable - self.repeated
        if usable >= LEAST_USABLE * self.texts:
            return ""
        return (
            f"only {usable:,} of {self.texts:,} texts are of use ({self.empty:,} "
            f"refused or empty, {self.unusable:,} of no use, {self.repeated:,} the "
            "same), and a large p takes half of them: give more tokens, or ask the "
            "model in another way"
        )


def pieces_of(text: Sequence[str], *, singly: bool = False) -> set[tuple[str, ...]]:
    """Return the pairs of words in a row; of a single word, or `singly`, words too.

    Examples
    --------
    >>> sorted(pieces_of(["an", "old", "elm"]))
    [('an', 'old'), ('old', 'elm')]
    """
    pieces: set[tuple[str, ...]] = set(pairwise(text))
    if singly or len(text) == 1:
        pieces |= {(word,) for word in text}
    return pieces


def texts_about_others(
    records: Sequence[list[str]],
    continuations: Sequence[Sequence[list[str]]],
) -> list[tuple[str, ...]]:
    """Return the texts that share a piece with another record than the one they follow.

    `records` has the words of each record, and `continuations` those of each text that
    follows it.

    Examples
    --------
    >>> records = [["the", "red", "ash"], ["the", "old", "elm"]]
    >>> texts_about_others(records, [[["an", "old", "elm"], ["red", "ash"]], []])
    [('an', 'old', 'elm')]
    """
    pieces_of_records = [pieces_of(record) for record in records]
    holders = Counter(chain.from_iterable(pieces_of_records))
    texts: list[tuple[str, ...]] = []
    for own_pieces, continued in zip(pieces_of_records, continuations, strict=True):
        for text in continued:
            pieces = pieces_of(text, singly=True)
            if any(holders[piece] > (piece in own_pieces) for piece in pieces):
                texts.append(tuple(text))
    return texts


def count_usable(texts: Sequence[str], contents: Sequence[Hashable]) -> Usable:
    """Return how many texts are of use.

    `texts` are all that the model wrote; `contents` are the words or the letter of each
    text that says something.

    Examples
    --------
    >>> count_usable(["B", "", "a tree", "C", "D"], ["B", "C", "D"])
    Usable(texts=5, empty=1, unusable=1, repeated=0)
    """
    empty = sum(1 for text in texts if not text.strip())
    commonest = max(Counter(contents).values(), default=0)
    repeated = commonest if commonest > SAME * len(contents) else 0
    unusable = len(texts) - empty - len(contents)
    return Usable(texts=len(texts), empty=empty, unusable=unusable, repeated=repeated)
