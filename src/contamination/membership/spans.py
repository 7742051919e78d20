"""Spans of a fixed number of tokens: what Min-K% reads of a test set (Oren, appendix E)."""

from collections.abc import Sequence

import numpy as np

from contamination.scoring.contract import Scorer
from contamination.testsets.tokens import tokenize


def cut(scorer: Scorer, texts: Sequence[str], length: int) -> list[np.ndarray]:
    """Spans of `length` tokens of the texts, one after the other; a shorter rest is left out."""
    if not texts:  # a file of which every record is planted
        return []
    stream = np.concatenate(tokenize(scorer.tokenizer, texts))
    return [stream[i : i + length] for i in range(0, len(stream) - length + 1, length)]


def sample(
    spans: Sequence[np.ndarray], count: int, *, rng: np.random.Generator
) -> list[np.ndarray]:
    """Draw `count` of the spans without replacement, in their order; all where there are fewer."""
    chosen = rng.choice(len(spans), size=min(count, len(spans)), replace=False)
    return [spans[i] for i in sorted(chosen.tolist())]
