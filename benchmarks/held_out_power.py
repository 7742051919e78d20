"""The statistic of the test of held-out records, chosen and confirmed, and its power by copies.

    .venv/bin/python benchmarks/held_out_power.py build/laptop

Each set has 80 records of one kind, which the clean model of a run of `laptop` has not read. A
seeded draw publishes 40 of them and holds 40 back. The clean model is trained further on text in
which the published halves are planted 1, 2, 4 or 8 times: whole, shuffled in each copy, or cut into
single records. Then `contamination compare` asks whether the model scores the published half higher
than the other. The clean model itself is the second model. At 4 copies, the successor test of the
order of records is given the same published halves, under the trained model.

The protocol, committed before anything was run. `CANDIDATES` are compared on the first seed by
their log10 p over all sets with 1, 2 or 4 copies (at 8 copies p may be the least possible one). The
rank sum is the statistic of the test unless another candidate is lower there by two standard errors
of the paired difference over sets, and lower by two standard errors again on the second seed, on
which nothing is chosen. Of two such candidates, the lower one on the first seed is taken. Power is
the share of sets with p below 0.01 by that statistic, and the second seed gives the numbers.

Writes docs/measurements/held_out_power.csv, a row for each set, model and test, and the means over
sets in held_out_power_means.csv. What was computed is kept in build/laptop/held_out_power.
"""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.audit.controls.sides import compare_sides
from contamination.audit.held_out import SidesRequest, compare
from contamination.audit.registry import TESTS
from contamination.errors import InputError
from contamination.files import replacing
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import StorePlan
from contamination.scoring.score import score
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.records import Record, read_records
from reproduction.run.canaries import KINDS, LEFT
from reproduction.run.experiment import Experiment
from reproduction.run.further import PlantedSet, train_further
from reproduction.run.injection import PLANTINGS, Planting

PROFILE = Path(__file__).parents[1] / "profiles" / "laptop.yaml"
MEASUREMENTS = Path(__file__).parents[1] / "docs" / "measurements"
SEEDS = {"choosing": 20261129, "confirming": 20261130}
SETS = {1: 4, 2: 4, 4: 10, 8: 2}  # copies -> sets of each planting
SET_KINDS = ("signature", "question", "parameter", "medium")  # in turn
CHOSEN_ON = (1, 2, 4)  # copies
SIDE = 40  # records published, and as many held out
BACKGROUND = 100_000  # tokens of the corpus, which the clean model has read before
RATE = 1e-3  # as in notebook 09
BATCH = 4
CANDIDATES = ("rank", "mean", "tail")  # the first is the default
ORDER_COPIES = 4  # of the sets that the test of the order of records is given
SHARD = 10  # records, in that test
LEVEL = 0.01


@dataclass(frozen=True)
class DividedSet:
    """A set in two halves, and how the published half is planted."""

    planting: Planting
    dup_count: int
    kind: str
    published: ExampleSet
    held_out: ExampleSet

    @property
    def name(self) -> str:
        """Return the name of the set."""
        return self.published.name


# --- sets -----------------------------------------------------------------------------------------


def planted_sets(corpus: Path, *, seed: int) -> list[DividedSet]:
    """Deal records out to sets, whose kinds take turns."""
    rng = random_stream(seed, "held-out power, records")
    left = {kind: shuffled_records(corpus, kind, rng=rng) for kind in SET_KINDS}
    sets = []
    for dup_count, number in SETS.items():
        for planting in PLANTINGS:
            for index in range(number):
                kind = SET_KINDS[len(sets) % len(SET_KINDS)]
                records = left[kind][: 2 * SIDE]
                del left[kind][: 2 * SIDE]
                if len(records) < 2 * SIDE:
                    raise InputError(f"{corpus}: too few records of kind {kind} are left over")
                name = f"{planting}-{dup_count}-{index}"
                published, held_out = halves(name, kind, records, rng=rng)
                sets.append(
                    DividedSet(
                        planting=planting,
                        dup_count=dup_count,
                        kind=kind,
                        published=published,
                        held_out=held_out,
                    )
                )
    return sets


def shuffled_records(corpus: Path, kind: str, *, rng: np.random.Generator) -> list[Record]:
    """Return the records of a kind that no set of the run holds, in random order."""
    records = read_records(corpus / LEFT / f"{kind}.jsonl")
    return [records[place] for place in rng.permutation(len(records))]


def halves(
    name: str, kind: str, records: list[Record], *, rng: np.random.Generator
) -> tuple[ExampleSet, ExampleSet]:
    """Draw which half of the records is published, and in which order."""
    mixed = rng.permutation(len(records))
    template = KINDS[kind].template
    published = make_test_set(name, [records[i] for i in mixed[:SIDE]], template, name)
    held_out = make_test_set(name, [records[i] for i in mixed[SIDE:]], template, name)
    return published, held_out


# --- training -------------------------------------------------------------------------------------


def train(build: Path, work: Path, sets: list[DividedSet], *, seed: int) -> Path:
    """Let the clean model read the published halves in text that it has read before."""
    planted_sets = [
        PlantedSet(test_set=one.published, planting=one.planting, dup_count=one.dup_count)
        for one in sets
    ]
    model, tokens, copies = train_further(
        Experiment(PROFILE, build),
        planted_sets,
        work / "planted",
        background_tokens=BACKGROUND,
        rng=random_stream(seed, "held-out power, planting"),
        learning_rate=RATE,
        batch_size=BATCH,
        seed=seed,
    )
    planted = sum(copy.stop - copy.start for copy in copies)
    print(f"read {tokens:,} tokens, {planted:,} of them planted", flush=True)
    return model


# --- outcomes -------------------------------------------------------------------------------------


def outcomes(one: DividedSet, scorer: TransformersScorer, model: str, work: Path) -> list[dict]:
    """Return a row for each candidate, and for the order of records where it is asked."""
    fixed: dict[str, Any] = {
        "planting": one.planting,
        "dup_count": one.dup_count,
        "set": one.name,
        "kind": one.kind,
        "model": model,
    }
    rows = []
    for statistic in CANDIDATES:
        request = SidesRequest(
            statistic=statistic,
            directory=work / "scores",
            drawn=True,  # the baselines do not depend on the statistic: see `blind`
        )
        found = compare(scorer, one.published, one.held_out, request)
        row = {
            "test": statistic,
            "log10_p": found.result.log10_p,
            "best": found.result.best,
            "auc_min_k_20": found.aucs["min_k_20"],
            "read_at_least": found.read_bound,
        }
        rows.append(fixed | row)
    if model == "planted" and one.dup_count == ORDER_COPIES:
        rows.append(fixed | {"test": "order", "log10_p": order_log10_p(one, scorer, model, work)})
    return rows


def order_log10_p(one: DividedSet, scorer: TransformersScorer, model: str, work: Path) -> float:
    """Return log10 p of the successor test on the published half."""
    test = TESTS["successor"]
    store = score(
        one.published,
        scorer,
        work / "stores" / model / one.name,
        StorePlan("successors", SIDE // SHARD, test.tokens_per_example),
        model=model,
        seed=0,
    )
    return test.result(store, 0).log10_p


def shared_records(one: DividedSet) -> set[str]:
    """Return the texts that are in both halves: `contamination compare` refuses them."""
    return set(one.published.examples) & set(one.held_out.examples)


def blind_p(one: DividedSet) -> float:
    """Return p of the baselines that never ask a model."""
    texts = [*one.published.examples, *one.held_out.examples]
    published = np.arange(len(texts)) < SIDE
    return compare_sides(texts, published, np.zeros(len(texts), dtype=np.intp), seed=0).p


def study(build: Path, role: str, model: str) -> pd.DataFrame:
    """Score the sets of one seed by one model; return a row for each set and test."""
    work = build / "held_out_power" / role
    sets = planted_sets(build / "corpus", seed=SEEDS[role])
    started = time.process_time()
    path = build / "models" / "clean"
    if model == "planted":
        path = train(build, work, sets, seed=SEEDS[role])
        print(f"{role}: trained in {time.process_time() - started:.0f} s of processor time")
    scorer = TransformersScorer(path)
    rows = []
    for one in sets:
        if shared_records(one):
            print(f"{role}: {one.name} has the same record in both halves, and is left out")
            continue
        blind = blind_p(one)
        for row in outcomes(one, scorer, model, work):
            rows.append({"design": role} | row | {"blind_p": blind})
    print(f"{role}, {model}: {time.process_time() - started:.0f} s of processor time", flush=True)
    return pd.DataFrame(rows)


# --- what came of it ------------------------------------------------------------------------------


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Return the mean log10 p over sets with its standard error, and the share below `LEVEL`."""
    keys = ["design", "model", "planting", "dup_count", "test"]
    groups = table.groupby(keys, sort=False)
    found = groups["log10_p"].agg(
        sets="count",
        mean_log10_p="mean",
        se_log10_p="sem",
        found_at_1_percent=lambda p: int((p < np.log10(LEVEL)).sum()),
    )
    found["auc_min_k_20"] = groups["auc_min_k_20"].mean()
    found["read_at_least"] = groups["read_at_least"].mean()
    return found.reset_index().round(4)


def differences(table: pd.DataFrame) -> pd.DataFrame:
    """Return how much lower than the default each other candidate is, on both seeds."""
    used = table[(table["model"] == "planted") & table["dup_count"].isin(CHOSEN_ON)]
    wide = used.pivot(index=["design", "set"], columns="test", values="log10_p")
    rows = []
    for role in SEEDS:
        for candidate in CANDIDATES[1:]:
            less = wide.loc[role, candidate] - wide.loc[role, CANDIDATES[0]]
            rows.append(
                {
                    "design": role,
                    "test": candidate,
                    "sets": len(less),
                    "difference": less.mean(),
                    "se": less.sem(),
                    "lower": bool(less.mean() < -2 * less.sem()),
                }
            )
    return pd.DataFrame(rows).round(4)


def write(table: pd.DataFrame, path: Path) -> None:
    """Write a table of measurements."""
    with replacing(path) as temporary:
        table.to_csv(temporary, index=False, lineterminator="\n")


def main() -> None:
    """Run both seeds, or read what is there; write and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("build", type=Path, help="directory of a finished run of laptop")
    parser.add_argument("--out", type=Path, default=MEASUREMENTS)
    chosen = parser.parse_args()
    tables = []
    for model in ("planted", "clean"):
        for role in SEEDS:
            path = chosen.build / "held_out_power" / f"{role}-{model}.parquet"
            if not path.is_file():
                table = study(chosen.build, role, model)
                with replacing(path) as temporary:
                    table.to_parquet(temporary)
            tables.append(pd.read_parquet(path))
    table = pd.concat(tables).round(4)
    summary = means(table)
    write(table, chosen.out / "held_out_power.csv")
    write(summary, chosen.out / "held_out_power_means.csv")
    print(summary.to_string(index=False))
    print(differences(table).to_string(index=False))


if __name__ == "__main__":
    main()
