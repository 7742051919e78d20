"""Rejection rates under H0: with a scorer that drifts, and with a seal whose key was chosen.

    python benchmarks/levels.py     # ten minutes on two cores

Writes docs/measurements/levels.csv and docs/measurements/chosen_keys.csv; `docs/trust.md` and
`docs/how-to/seal-a-benchmark.md` show them.

*Drifts.* Sets of 40 records without any order are scored by a made-up model: the log-probability of
a token depends on it and on the token before. On top of that, every answer is shifted, by the same
amount for each of its tokens:

- steady: by 0.01 nats less with each request;
- jump: by 0.3 nats less from a random request on;
- walk: by a random walk with steps of 0.02 nats;
- cache: by 0.1 nats more where the request before began with the same token.

*Chosen keys.* An author draws K keys, tests an older model with each, and publishes the one with
the largest statistic. Another model, which has not read the set, is tested. Both statistics are
normal with correlation rho under H0, so its level is an integral over the law of a maximum.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import integrate, stats
from tokenizers import Tokenizer, models, pre_tokenizers
from tqdm import tqdm
from transformers import PreTrainedTokenizerFast

from contamination.audit.registry import TESTS
from contamination.randomness import random_stream
from contamination.scoring.plan import StorePlan
from contamination.scoring.score import score
from contamination.testsets.example_set import ExampleSet

WORDS = [f"w{i}" for i in range(40)]
RECORDS, LENGTH, PERMUTATIONS, ALPHA = 40, 6, 19, 0.05
SHARDS = {"orderings": 8, "successors": 4}  # but for the permutation test of the whole set
KEYS, CORRELATIONS = (1, 10, 100, 1000), (0.0, 0.5, 0.8)


class DriftingScorer:
    """A made-up model whose answers shift from request to request."""

    context = 1 << 20
    batch_tokens = 1
    revision = "drifting"

    def __init__(self, drift: str, rng: np.random.Generator) -> None:
        vocabulary = {word: i for i, word in enumerate(["<s>", "\n", *WORDS])}
        tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<s>"))
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        self.tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>")
        self.table = rng.normal(-3, 1, size=(len(vocabulary), len(vocabulary)))
        self.drift, self.rng, self.requests, self.level, self.before = drift, rng, 0, 0.0, -1
        self.jump = int(rng.integers(20, 300))

    def token_logprobs(
        self, sequences: Sequence[np.ndarray], firsts: Sequence[int] | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the answer to each sequence in turn, shifted as a whole."""
        for index, ids in enumerate(sequences):
            self.requests += 1
            values = self.table[np.concatenate([[0], ids[:-1]]), ids] + self._shift(int(ids[0]))
            yield index, values.astype(np.float32)

    def _shift(self, first: int) -> float:
        if self.drift == "steady":
            self.level -= 0.01
        elif self.drift == "jump":
            self.level = -0.3 if self.requests >= self.jump else 0.0
        elif self.drift == "walk":
            self.level += self.rng.normal(0, 0.02)
        elif self.drift == "cache":
            self.level = 0.1 if first == self.before else 0.0
            self.before = first
        return self.level


def p_values(drift: str, number: int) -> dict[str, float]:
    """p of every test of the order of records on one set, each on a store of its own scoring."""
    rng = random_stream(0, "levels", drift, number)
    texts = [" ".join(rng.choice(WORDS, LENGTH)) + " \n" for _ in range(RECORDS)]
    test_set = ExampleSet("words", tuple(texts), "text/1", f"{drift}-{number}")
    found, stores = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for test in TESTS.values():
            if test.kind == "alternatives":
                continue
            shards = 1 if test.shard_size is None else SHARDS[test.kind]
            asked = StorePlan(test.kind, shards, test.tokens_per_example)
            if asked not in stores:
                stores[asked] = score(
                    test_set,
                    DriftingScorer(drift, rng),
                    Path(folder, str(len(stores))),
                    asked,
                    model="drifting",
                    permutations=PERMUTATIONS,
                    seed=number,
                )
            found[test.name] = test.result(stores[asked], PERMUTATIONS).p
    return found


def levels(sets: int) -> pd.DataFrame:
    """Shares of sets whose p is at most 0.05: a row for each test, a column for each drift."""
    table = pd.DataFrame({"test": [t.name for t in TESTS.values() if t.kind != "alternatives"]})
    for drift in ("none", "steady", "jump", "walk", "cache"):
        p = pd.DataFrame([p_values(drift, i) for i in tqdm(range(sets), desc=drift)])
        table[drift] = [round(float(np.mean(p[test] <= ALPHA)), 3) for test in table["test"]]
    return table.assign(sets=sets)


def level_of_chosen(keys: int, correlation: float) -> float:
    """Return the level, at 0.05, of a test with the best of `keys` for a correlated statistic."""
    if correlation == 0:
        return ALPHA

    def rejects(x: float) -> float:
        density = keys * stats.norm.cdf(x) ** (keys - 1) * stats.norm.pdf(x)
        z = (stats.norm.isf(ALPHA) - correlation * x) / np.sqrt(1 - correlation**2)
        return float(density * stats.norm.sf(z))

    return float(integrate.quad(rejects, -8, 8, limit=200)[0])


def main() -> None:
    """Write both tables, and print them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", type=int, default=150)
    parser.add_argument("--results", type=Path, default=Path("docs/measurements"))
    asked = parser.parse_args()
    rows = []
    for rho in CORRELATIONS:
        row = {"correlation": rho}
        for k in KEYS:
            row[f"keys_{k}"] = round(level_of_chosen(k, rho), 3)
        rows.append(row)
    chosen = pd.DataFrame(rows)
    for table, name in ((chosen, "chosen_keys"), (levels(asked.sets), "levels")):
        print(table.to_string(index=False))
        table.to_csv(asked.results / f"{name}.csv", index=False)


if __name__ == "__main__":
    main()
