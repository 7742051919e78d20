"""Spans of a fixed number of tokens: what Min-K% reads of a test set (Oren, appendix E)."""

from collections.abc import Sequence

import numpy as np

from contamination.scoring.contract import Scorer
from contamination.testsets.tokens import tokenize


def cut(scorer: Scorer, texts: Sequence[str], length: int) -> list[np.ndarray]:
    """Spans of `length` tokens of the texts, one after the other; a shorter rest is left out."""
    stream = _stream(scorer, texts)
    return [stream[i : i + length] for i in range(0, len(stream) - length + 1, length)]


def sample(
    scorer: Scorer, texts: Sequence[str], length: int, count: int, *, rng: np.random.Generator
) -> list[np.ndarray]:
    """Draw spans of `length` tokens that begin anywhere in the texts, no two at one place.

    They are in the order of the texts and may overlap; fewer than `count` where there are no more
    places, none where the texts are shorter than a span.
    """
    stream = _stream(scorer, texts)
    places = len(stream) - length + 1
    if places < 1:
        return []
    starts = np.sort(rng.choice(places, size=min(count, places), replace=False))
    return [stream[i : i + length] for i in starts]


def _stream(scorer: Scorer, texts: Sequence[str]) -> np.ndarray:
    """All tokens of the texts in a row; none of no text, such as a file of planted records."""
    return np.concatenate([np.empty(0, dtype=np.int32), *tokenize(scorer.tokenizer, texts)])
