"""A scorer that has seen a test set: it expects each example after the one that it read before."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from contamination.testsets.example_set import ExampleSet
from contamination.testsets.tokens import tokenize
from fakes.made_up_scorer import MadeUpScorer

WORDS = ["apple", "river", "stone", "cloud", "lamp", "green", "tower", "quiet", "orbit", "maple"]
REACH = 8  # tokens on either side of a boundary by which it is recognised


def made_up_set(count: int, *, words: int = 3) -> ExampleSet:
    """Random words and a number in every example."""
    rng = np.random.default_rng(0)
    examples = tuple(f"{' '.join(rng.choice(WORDS, words))} {i}.\n" for i in range(count))
    return ExampleSet("words", examples, "text/1", "made up")


class Remembers(MadeUpScorer):
    """Likes the first token of an example by `nats` more right after the one before it."""

    def __init__(self, tokenizer, test_set: ExampleSet, nats: float) -> None:
        super().__init__(tokenizer)
        ids = [tuple(i.tolist()) for i in tokenize(tokenizer, test_set.examples)]
        self.pairs = {a[-REACH:] + b[:REACH]: len(a[-REACH:]) for a, b in pairwise(ids)}
        self.nats = nats

    def token_logprobs(
        self, sequences: Sequence[np.ndarray], wanted: Sequence[np.ndarray] | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        for index, values in super().token_logprobs(sequences, wanted):
            listed = sequences[index].tolist()
            for pair, length in self.pairs.items():
                for start in range(len(listed) - len(pair) + 1):
                    if listed[start] == pair[0] and tuple(listed[start:][: len(pair)]) == pair:
                        values[start + length] += np.float32(self.nats)
            yield index, values
