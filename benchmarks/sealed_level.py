"""The rate at which a sealed set accuses a model that has not read it, over many keys.

    .venv/bin/python benchmarks/sealed_level.py

Records with options and wordings are sealed by 2,000 keys, and each sealed set is tested as
`contamination test-sealed` does: the order of records by the successor test, the options, the
wordings, and all of them together by Fisher's method. A stand-in takes the place of the model: its
log-probabilities are a function of the text alone, with preferences that are far larger than its
noise (options in alphabetical order, the answer C, the first wording, numbers that ascend), so that
nothing but the draw of the key protects it. Where half of the records are held back, the key draws
which, and the stand-in's scores of both sides are compared as well. Fisher's method on all parts is
counted as well; it is not used there. Writes docs/measurements/sealed_level.csv: a row for each
design and part, with rejections at each level and their Clopper-Pearson interval (95%). --design
measures one design anew, and leaves the rows of the others. --first-key draws further keys, which
get rows of their own: the file was made by

    .venv/bin/python benchmarks/sealed_level.py
    .venv/bin/python benchmarks/sealed_level.py --keys 1000 --design "half held out"
    .venv/bin/python benchmarks/sealed_level.py --keys 1000 --design "half held out, order alone"
    .venv/bin/python benchmarks/sealed_level.py --keys 8000 --first-key 1000 \
        --design "half held out, order alone"
"""

import argparse
import hashlib
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint
from tqdm import tqdm

from contamination.audit.registry import TESTS
from contamination.audit.wordings import wordings_test
from contamination.files import replacing
from contamination.randomness import random_stream
from contamination.seal.audit import combine_parts, wording_variants
from contamination.seal.division import divide
from contamination.seal.documents import Seal
from contamination.seal.draws import Drawn, Statement, Variants, draw
from contamination.seal.files import SealedSet
from contamination.seal.held_out import combine_with_sides
from contamination.seal.prepare import prepare
from contamination.statistics import fisher
from contamination.statistics.held_out import HeldOutResult, held_out_test
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.orderings import shard_bounds
from contamination.testsets.variants import option_variants

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "docs" / "measurements" / "sealed_level.csv"
KEYS = 2_000
RESAMPLES = 999
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
    hold_out: int = 0
    options: bool = True


DESIGNS = (
    Design(name="small", records=10, wordings=3, shards=1, fresh=False),
    Design(name="two wordings", records=30, wordings=2, shards=3, fresh=False),
    Design(name="new records for each key", records=20, wordings=3, shards=2, fresh=True),
    Design(name="half held out", records=40, wordings=3, shards=2, fresh=False, hold_out=20),
    Design(
        name="half held out, order alone",
        records=40,
        wordings=1,
        shards=2,
        fresh=False,
        hold_out=20,
        options=False,
    ),
)


def author_records(design: Design, number: int) -> tuple[Variants, ...]:
    """Write the records of an author; another `number` gives other texts."""
    rows = []
    for item in range(design.records):
        options = [f"{letter}{item:02d}-{number}" for letter in "abc"]
        wordings = [f"{item:02d} {question}" for question in QUESTIONS[: design.wordings]]
        record = {"choices": options, "answer": "ABC"[item % 3]}
        if design.wordings > 1:
            record["wordings"] = wordings
        else:
            record["question"] = wordings[0]
        rows.append((f"record {item + 1}", record))
    return prepare(rows, Statement(**stated_of(design)), design.name)


def stated_of(design: Design) -> dict[str, Any]:
    """Return what the author states."""
    return STATED | {"hold_out": design.hold_out or None, "options": design.options}


def seal(design: Design, records: tuple[Variants, ...], key: bytes) -> SealedSet:
    """Draw the published set, and the records that are held back, by a key."""
    sides = divide(draw(records, key), key, design.hold_out or None)
    created = {"commitment": "0" * 64, "signature": None, "sha256": "0" * 64}
    sealed = Seal.model_validate(stated_of(design) | created)
    test_set = rendered(sealed, sides.published)
    held_out = rendered(sealed, sides.held_out) if sides.held_out else None
    return SealedSet(sealed, test_set, b"", sides.published, held_out=held_out)


def rendered(sealed: Seal, drawn: tuple[Drawn, ...]) -> ExampleSet:
    """Return the examples of drawn records."""
    placed = [(f"line {line}", record.record) for line, record in enumerate(drawn, start=1)]
    return make_test_set(sealed.name, placed, sealed.template, "liked")


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

    def shards_in_turn(self) -> AbstractContextManager[None]:
        """Keep nothing: there is no file to read in parts."""
        return nullcontext()

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

    def variants(self) -> np.ndarray:
        """Score every variant of every record."""
        return np.array([[text_score(text) for text in row] for row in self.texts])


def p_values_of(sealed: SealedSet, shards: int) -> dict[str, float]:
    """Test each part of a sealed set, and all of them together."""
    results = {"order": TESTS["successor"].result(StandInStore(sealed.test_set, shards=shards), 0)}
    if sealed.seal.options:
        free = [record.variants.choices("options") for record in sealed.drawn]
        arranged = option_variants(
            sealed.test_set, permutations=ARRANGEMENTS - 1, seed=0, keep=free
        )
        store = StandInStore(sealed.test_set, arranged.texts)
        results["options"] = TESTS["options"].result(store, ARRANGEMENTS - 1)
    if sealed.listed("wordings"):
        worded = wording_variants(sealed)
        results["wordings"] = wordings_test(StandInStore(sealed.test_set, worded.texts))
    order, *others = results.values()
    together = combine_parts([order], others)
    p_values = {name: result.p for name, result in results.items()}
    if sealed.held_out is None:
        return p_values | {"all together": together.p}
    sides = sides_of(sealed)
    every = [*results.values(), sides]
    return p_values | {
        "held out": sides.p,
        "all together": combine_with_sides(together, sides).p,
        "all by Fisher's rule (not used)": fisher([result.log10_p for result in every]).p,
    }


def sides_of(sealed: SealedSet) -> HeldOutResult:
    """Compare the stand-in's scores of published records with those of held-out ones."""
    texts = [*sealed.test_set.examples, *sealed.held_out.examples]
    published = np.arange(len(texts)) < len(sealed.test_set.examples)
    scores = [
        [text_score(text) for text in texts],
        [noise("another score", text) for text in texts],
    ]
    rng = random_stream(0, "benchmark of sealed sets", sealed.test_set.revision)
    return held_out_test(scores, published, resamples=RESAMPLES, rng=rng)


def measure(design: Design, keys: int, first_key: int) -> pd.DataFrame:
    """Seal and test by `keys` keys from the first one on, and count the rejections."""
    records = author_records(design, 0)
    p_values = []
    for number in tqdm(range(first_key, first_key + keys), desc=design.name, mininterval=10):
        if design.fresh:
            records = author_records(design, number)
        key = hashlib.sha256(f"{design.name}, key {number}".encode()).digest()
        p_values.append(p_values_of(seal(design, records, key), design.shards))
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
                    "hold_out": design.hold_out,
                    "part": part,
                    "level": level,
                    "first_key": first_key,
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
    parser.add_argument("--first-key", type=int, default=0)
    parser.add_argument("--design", action="append", choices=[design.name for design in DESIGNS])
    options = parser.parse_args()
    wanted = options.design or [design.name for design in DESIGNS]
    tables = []
    if options.design:
        before = pd.read_csv(TABLE)
        renewed = before["design"].isin(wanted) & (before["first_key"] == options.first_key)
        tables.append(before[~renewed])
    for design in DESIGNS:
        if design.name in wanted:
            tables.append(measure(design, options.keys, options.first_key))
    table = pd.concat(tables, ignore_index=True)
    print(table.to_string(index=False))
    with replacing(TABLE) as path:
        table.to_csv(path, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
