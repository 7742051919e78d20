"""A5, key information: does a model know the word of a gap from its context (Fu, section 4.3.2)?

A passage is a context with a key. The key is ranked among other fills by the likelihood of the
whole passage. With names as keys it is the name cloze of Chang et al. (2023); with a canary among
all others of its format, the exposure of Carlini et al. (2019).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from contamination.errors import InputError

KEY = re.compile(r"\b\w{4,}")
ROUNDING = 1e-6  # relative: log-probabilities this close differ by the engine alone


@dataclass(frozen=True)
class Passage:
    """A passage with a gap: what stands before it, its key, and what stands behind it."""

    before: str
    key: str
    after: str


def hide_key(text: str, words_after: int) -> Passage:
    """Return a text with the longest word of its second half as the key, the first of equals.

    A long word is a rare one, such as a name. `words_after` words behind it are kept. Raises
    InputError for a text whose second half has no word of four letters.

    Examples
    --------
    >>> hide_key("We sat on the stone by the Orinoco at night", words_after=1)
    Passage(before='We sat on the stone by the ', key='Orinoco', after=' at')
    """
    candidates = list(KEY.finditer(text, len(text) // 2))
    if not candidates:
        raise InputError(f"{text[:40]!r}: no word of four letters in its second half to ask for")
    key = max(candidates, key=_length)
    words = re.findall(r"\s*\S+", text[key.end() :])
    return Passage(text[: key.start()], key.group(), "".join(words[:words_after]))


def _length(word: re.Match[str]) -> int:
    return len(word.group())


def other_keys(keys: Sequence[str], number: int, count: int) -> list[str]:
    """Return up to `count` keys of the texts that follow one, in their order, cyclically.

    Those that equal its own are left out. Raises InputError where no other key is left.
    """
    following = [*keys[number + 1 :], *keys[:number]]
    others = [key for key in dict.fromkeys(following) if key != keys[number]]
    if not others:
        raise InputError(f"{keys[number]!r} is the key of every text: give texts of other keys")
    return others[:count]


def key_gain(log_probs: np.ndarray) -> float:
    """Return the log-probability with the key less the mean over the other fills (nats).

    `log_probs` are of the passage with each fill, (fills,), the key first.
    """
    return float(log_probs[0] - log_probs[1:].mean())


def key_rank(log_probs: np.ndarray) -> int:
    """Return the rank of the key among all fills: 1 is the likeliest, and ties count against it."""
    tolerance = ROUNDING * abs(log_probs[0])
    return int((log_probs >= log_probs[0] - tolerance).sum())
