"""The rate at which a sealed set accuses a model that has not read it, over many keys.

    .venv/bin/python benchmarks/sealed_level.py

Records with options and wordings are sealed by 2,000 keys, and each sealed set is tested as
`contamination test-sealed` does: the order of records by the successor test, the options, the
wordings, and all of them together by Fisher's rule. A stand-in takes the place of the model: its
log-probabilities are a function of the text alone, with preferences that are far larger than its
noise (options in alphabetical order, the answer C, the first wording, numbers that ascend), so that
nothing but the draw of the key protects it. Writes docs/measurements/sealed_level.csv: a row for
each design and part, with rejections at each level and their Clopper-Pearson interval (95%).
"""

import argparse
import hashlib
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint
from tqdm import tqdm

from contamination.audit.registry import TESTS
from contamination.audit.wordings import wordings_test
from contamination.files import replacing
from contamination.seal.audit import combine_parts, wording_variants
from contamination.seal.documents import Seal
from contamination.seal.draws import Statement, Variants, draw
from contamination.seal.files import SealedSet
from contamination.seal.prepare import prepare
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.orderings import shard_bounds
from contamination.testsets.variants import option_variants

ROOT = Path(__file__).parents[1]
KEYS = 2_000
LEVELS = (0.2, 0.05, 0.01)
ARRANGEMENTS = 6
TEMPLATE = "{question}\n{choices:\n}\nAnswer: {answer}\n"
QUESTIONS = ("what?", "which?", "who, or whom?")
STATED = {
    "name": "liked",
    "template": TEMPLATE,
    "wordings_of": "question",
    "tests": ("successor",),
    "arrangements": ARRANGEMENTS,
}


@dataclass(frozen=True)
class Design:
    """A set of records, and whether each key gets other records."""

    name: str
    records: int
    wordings: int
    shards: int
    fresh: bool


DESIGNS = (
    Design(name="small", records=10, wordings=3, shards=1, fresh=False),
    Design(name="two wordings", records=30, wordings=2, shards=3, fresh=False),
    Design(name="new records for each key", records=20, wordings=3, shards=2, fresh=True),
)


def author_records(design: Design, number: int) -> tuple[Variants, ...]:
    """Write the records of an author; another `number` gives other texts."""
    rows = []
    for item in range(design.records):
        options = [f"{letter}{item:02d}-{number}" for letter in "abc"]
        wordings = [f"{item:02d} {question}" for question in QUESTIONS[: design.wordings]]
        record = {"choices": options, "answer": "ABC"[item % 3], "wordings": wordings}
        rows.append((f"record {item + 1}", record))
    return prepare(rows, Statement(**STATED), design.name)


def seal(records: tuple[Variants, ...], key: bytes) -> SealedSet:
    """Draw the published set by a key."""
    drawn = draw(records, key)
    placed = [(f"line {line}", record.record) for line, record in enumerate(drawn, start=1)]
    created = {"commitment": "0" * 64, "signature": None, "sha256": "0" * 64}
    sealed = Seal.model_validate(STATED | created)
    test_set = make_test_set(sealed.name, placed, sealed.template, "liked")
    return SealedSet(sealed, test_set, b"", tuple(drawn))


def noise(*texts: str) -> float:
    """Return a number in [0, 1) that depends on the texts alone."""
    digest = hashlib.sha256("\0".join(texts).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def text_score(text: str) -> float:
    """Prefer options in alphabetical order, the answer C, the first wording, and short texts."""
    question, *options, answer = text.splitlines()
    score = 2 * noise(text) - len(text)
    if options == sorted(options):
        score += 5
    if answer.endswith("C"):
        score += 1
    if "what" in question:
        score += 20
    return score


def successor_score(before: str, text: str) -> float:
    """Prefer the record with the next number."""
    score = noise(before, text)
    if int(text[:2]) == int(before[:2]) + 1:
        score += 5
    return score


class StandInStore:
    """A stand-in for the store of log-probabilities that the tests read."""

    def __init__(
        self, test_set: ExampleSet, texts: tuple[tuple[str, ...], ...] = (), shards: int = 1
    ) -> None:
        self.test_set = test_set
        self.texts = texts
        self.header = SimpleNamespace(
            seed=0,
            dataset_revision=test_set.revision,
            shards=shards,
            bounds=shard_bounds(len(test_set.examples), shards),
            example_tokens=np.array([[len(text) for text in row] for row in texts]).ravel(),
        )

    def resolution(self, tokens: int) -> float:
        """Say that the stand-in tells all scores apart."""
        return 0.0

    def successors(self, shard: int, tokens: int) -> np.ndarray:
        """Score every ordered pair of records of a shard."""
        start, stop = self.header.bounds[shard]
        examples = self.test_set.examples[start:stop]
        scores = np.full((len(examples), len(examples)), np.nan)
        for row, before in enumerate(examples):
            for column, text in enumerate(examples):
                if row != column:
                    scores[row, column] = successor_score(before, text)
        return scores

    def alternatives(self) -> np.ndarray:
        """Score every alternative of every record."""
        return np.array([[text_score(text) for text in row] for row in self.texts])


def p_values_of(sealed: SealedSet, shards: int) -> dict[str, float]:
    """Test each part of a sealed set, and all of them together."""
    free = [record.variants.choices("options") for record in sealed.drawn]
    arranged = option_variants(sealed.test_set, permutations=ARRANGEMENTS - 1, seed=0, keep=free)
    worded = wording_variants(sealed)
    order = TESTS["successor"].result(StandInStore(sealed.test_set, shards=shards), 0)
    options = TESTS["options"].result(
        StandInStore(sealed.test_set, arranged.texts), ARRANGEMENTS - 1
    )
    wordings = wordings_test(StandInStore(sealed.test_set, worded.texts))
    together = combine_parts([order], [options, wordings])
    return {
        "order": order.p,
        "options": options.p,
        "wordings": wordings.p,
        "all together": together.p,
    }


def measure(design: Design, keys: int) -> pd.DataFrame:
    """Seal and test by each key, and count the rejections."""
    records = author_records(design, 0)
    p_values = []
    for number in tqdm(range(keys), desc=design.name, mininterval=10):
        if design.fresh:
            records = author_records(design, number)
        key = hashlib.sha256(f"{design.name}, key {number}".encode()).digest()
        p_values.append(p_values_of(seal(records, key), design.shards))
    table = pd.DataFrame(p_values)
    rows = []
    for part in table.columns:
        for level in LEVELS:
            rejections = int((table[part] <= level).sum())
            low, high = proportion_confint(rejections, keys, method="beta")
            rows.append(
                {
                    "design": design.name,
                    "records": design.records,
                    "wordings": design.wordings,
                    "part": part,
                    "level": level,
                    "keys": keys,
                    "rejections": rejections,
                    "rate": rejections / keys,
                    "low": low,
                    "high": high,
                }
            )
    return pd.DataFrame(rows)


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=KEYS)
    options = parser.parse_args()
    table = pd.concat([measure(design, options.keys) for design in DESIGNS], ignore_index=True)
    print(table.to_string(index=False))
    with replacing(ROOT / "docs" / "measurements" / "sealed_level.csv") as path:
        table.to_csv(path, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
