"""A scorer whose numbers are known without a network, and which can break down on purpose."""

from collections.abc import Iterator, Sequence

import numpy as np


class Breakdown(Exception):
    """A stand-in for a kill: nothing in the package catches it."""


class MadeUpScorer:
    """Log-probabilities that depend on a token and the one before it.

    `survives` is how many sequences it scores before it breaks down; `scored` counts them.
    `sequences` keeps what it was asked, in order, `calls` how many at a time.
    """

    context = 1 << 20

    def __init__(
        self,
        tokenizer,
        *,
        survives: float = np.inf,
        revision: str = "weights-1",
        batch_tokens: int = 1,
    ) -> None:
        self.tokenizer = tokenizer
        self.revision = revision
        self.batch_tokens = batch_tokens
        self.survives = survives
        self.scored = 0
        self.sequences: list[np.ndarray] = []
        self.calls: list[int] = []

    def token_logprobs(
        self, sequences: Sequence[np.ndarray], firsts: Sequence[int] | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        self.sequences += sequences
        self.calls.append(len(sequences))
        # Longest first, as a real scorer does: callers must not rely on the order.
        for index in sorted(range(len(sequences)), key=lambda i: len(sequences[i]), reverse=True):
            if self.scored >= self.survives:
                raise Breakdown
            self.scored += 1
            values = log_probs_of(sequences[index])
            values[: firsts[index] if firsts is not None else 0] = np.nan
            yield index, values


def log_probs_of(ids: np.ndarray) -> np.ndarray:
    """Return what `MadeUpScorer` gives for a sequence, float32, one per token."""
    before = np.concatenate([[0], ids[:-1]]).astype(np.int64)
    return (-1 - (before * 7919 + ids * 104729) % 1009 / 101).astype(np.float32)
