"""Time of continuations that share their prefix, against a sequence of its own for each.

    .venv/bin/python benchmarks/prefix_reuse.py small        (or: 124M)

Prints, for prefixes of P tokens with n continuations of b tokens each, seconds for a thousand
continuations either way, and the ratio next to that of the tokens that the network reads. The
weights are random: time does not depend on their values.
"""

import argparse
import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from tqdm import tqdm
from transformers import GPT2LMHeadModel

from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.scoring.prefix import continuation_logprobs
from reproduction.run.profile import Architecture
from reproduction.run.tokenizer import train_tokenizer
from reproduction.run.training import gpt2_config

SHAPES = {  # architecture and vocabulary
    "small": (Architecture(n_embd=256, n_layer=4, n_head=4, n_positions=1024), 4096),
    "124M": (Architecture(n_embd=768, n_layer=12, n_head=12, n_positions=1024), 50257),
}
PREFIXES = (20, 60, 200, 800)
CONTINUATIONS = (3, 9, 19, 49)
FIRST_TOKENS = (8, 16, 32)


class Unshared:
    """A scorer of which nothing is known but what every scorer offers."""

    def __init__(self, scorer: TransformersScorer) -> None:
        self.context, self.batch_tokens = scorer.context, scorer.batch_tokens
        self.token_logprobs = scorer.token_logprobs


def make_scorer(shape: str, directory: str) -> TransformersScorer:
    """Save a random model with a tokenizer, and load it."""
    architecture, vocabulary = SHAPES[shape]
    torch.manual_seed(0)
    GPT2LMHeadModel(gpt2_config(architecture, vocabulary, 0)).save_pretrained(directory)
    train_tokenizer([Path(__file__).read_text(encoding="utf-8")], 300).save_pretrained(directory)
    return TransformersScorer(directory)


def seconds(scorer: TransformersScorer | Unshared, groups: list) -> tuple[float, np.ndarray]:
    """Time of one run, and its numbers."""
    begin = perf_counter()
    found = dict(continuation_logprobs(scorer, groups))
    return perf_counter() - begin, np.array([found[i] for i in range(len(groups))])


def measure(scorer: TransformersScorer, p: int, n: int, b: int, rounds: int) -> tuple[float, ...]:
    """Seconds for a thousand continuations: plain, shared; the best of the rounds, in turn."""
    rng = random_stream(0, "made-up tokens")
    count = max(1, 2 * scorer.batch_tokens // (n * (p + b)))

    def ids(length: int) -> np.ndarray:
        return rng.integers(0, scorer.config.vocab_size, length, dtype=np.int32)

    groups = [(ids(p), [ids(b) for _ in range(n)]) for _ in range(count)]
    list(continuation_logprobs(scorer, groups))  # the comparison with plain scoring comes first
    best = [np.inf, np.inf]
    for _ in range(rounds):
        times, values = zip(*(seconds(s, groups) for s in (Unshared(scorer), scorer)), strict=True)
        best = [min(pair) for pair in zip(best, times, strict=True)]
        assert np.abs(values[0] - values[1]).mean() < 0.05
    return tuple(1000 * time / (n * count) for time in best)


def chosen(text: str) -> Sequence[int]:
    """Read numbers separated by commas."""
    return [int(number) for number in text.split(",")]


def main() -> None:
    """Measure every combination and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("--prefixes", type=chosen, default=PREFIXES)
    parser.add_argument("--continuations", type=chosen, default=CONTINUATIONS)
    parser.add_argument("--first-tokens", type=chosen, default=FIRST_TOKENS)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"{'P':>4} {'n':>3} {'b':>3} {'plain':>8} {'shared':>8} {'ratio':>6} {'tokens':>7}")
    with tempfile.TemporaryDirectory() as directory:
        scorer = make_scorer(options.shape, directory)
        cases = itertools.product(options.prefixes, options.continuations, options.first_tokens)
        for p, n, b in tqdm(list(cases), leave=False):
            plain, shared = measure(scorer, p, n, b, options.rounds)
            tokens = n * (p + b) / (1 + p + n * (b - 1))
            ratio = plain / shared
            tqdm.write(
                f"{p:4d} {n:3d} {b:3d} {plain:8.3f} {shared:8.3f} {ratio:6.2f} {tokens:7.2f}"
            )


if __name__ == "__main__":
    main()
