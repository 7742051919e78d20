"""Scorers that have read a test set: one expects examples in their order, one knows its text."""

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
        self, sequences: Sequence[np.ndarray], firsts: Sequence[int] | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        for index, values in super().token_logprobs(sequences, firsts):
            listed = sequences[index].tolist()
            for pair, length in self.pairs.items():
                for start in range(len(listed) - len(pair) + 1):
                    if listed[start] == pair[0] and tuple(listed[start:][: len(pair)]) == pair:
                        values[start + length] += np.float32(self.nats)
            yield index, values


class RemembersText(MadeUpScorer):
    """Likes a token by 12 nats more where it has read it: after the same five tokens."""

    RUN, GAIN = 6, 12.0

    def __init__(self, tokenizer, *sets: ExampleSet, **settings) -> None:
        super().__init__(tokenizer, **settings)
        self.known: set[bytes] = set()
        for test_set in sets:
            read = np.concatenate(tokenize(tokenizer, test_set.examples))
            self.known |= {read[i : i + self.RUN].tobytes() for i in range(len(read))}

    def token_logprobs(
        self, sequences: Sequence[np.ndarray], firsts: Sequence[int] | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        for index, values in super().token_logprobs(sequences, firsts):
            ids = sequences[index].astype(np.int32)
            runs = [ids[max(0, i + 1 - self.RUN) : i + 1].tobytes() for i in range(len(ids))]
            known = np.array([run in self.known for run in runs])
            yield index, values + np.float32(self.GAIN) * known


class RemembersLines(RemembersText):
    """Looks further back: between two lines stand some ten tokens that all of them share."""

    RUN = 16
