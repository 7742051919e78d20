"""A4, verbatim memorisation: does a model go on as the text does (Fu, section 4.3.1)?

A text is a pair of a prefix and a suffix. Carlini et al. (2023) call it memorised if greedy
decoding after the prefix gives the suffix word for word; ROUGE-L says how much of the suffix comes
back where not all of it does. Texts are cut between words, so that a model behind a server, whose
tokens nobody sees, is asked the same.
"""

import re
from typing import NamedTuple

from contamination.errors import InputError
from contamination.membership.rouge import rouge_l

WORD = re.compile(r"\S+")


class Halves(NamedTuple):
    """A text cut in two: what a model is shown, and what it should go on with."""

    prefix: str
    suffix: str


def cut_in_half(text: str, most: int) -> Halves:
    """Return the first half of the words of a text, and at most `most` words that follow.

    White space between the two belongs to the suffix. Raises InputError for a text of fewer than
    two words.

    Examples
    --------
    >>> cut_in_half("one two three four", most=1)
    Halves(prefix='one two', suffix=' three')
    """
    words = list(WORD.finditer(text))
    if len(words) < 2:
        raise InputError(f"{text[:40]!r} has fewer than two words, so nothing follows a prefix")
    half = len(words) // 2
    last = min(half + most, len(words)) - 1
    middle = words[half - 1].end()
    return Halves(text[:middle], text[middle : words[last].end()])


def first_words(text: str, count: int) -> str:
    """Return the first words of a text with one blank between them."""
    return " ".join(text.split()[:count])


def is_verbatim(written: str, suffix: str) -> float:
    """Return 1.0 if what was written begins with the words of the suffix, else 0.0.

    Examples
    --------
    >>> is_verbatim(" the red stone lay", " the red  stone")
    1.0
    """
    expected = suffix.split()
    return float(written.split()[: len(expected)] == expected)


def suffix_recall(written: str, suffix: str) -> float:
    """Return the ROUGE-L recall of the suffix: the share of its words that come back, in order.

    As many words count of what was written as the suffix has.
    """
    return rouge_l(first_words(written, len(suffix.split())), suffix).recall
