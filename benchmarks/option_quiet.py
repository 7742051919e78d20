"""Published sets whose order of options is quiet, by controls that need no contaminated model.

    CONTAMINATION_DATA=DIRECTORY .venv/bin/python benchmarks/option_quiet.py without-model
    CONTAMINATION_DATA=DIRECTORY .venv/bin/python benchmarks/option_quiet.py model

Two tables of the 57 subsets of MMLU and of those canary sets that have options and are none of
MMLU's. The first holds what the diagnostics and a compressor say of all items. The second holds the
test itself under a model that has read none of the sets, the clean one of a profile, which was
trained on docstrings: of the first `--records` items, a published arrangement against seven others,
or five others that keep the answer; items that exceed the model's context are left out, and scores
lie in `--stores`, so that what was interrupted goes on. A row is a set under one restriction:

- moves: what may move, moves (`contamination.testsets.variants.FixedOptions`);
- keeps the answer: the right option stays at its letter;
- unlike options: so does it, and items two of whose options share wording (a cosine of ALIKE or
  more) are left out;
- as many at random: so does it, and as many items are left out, whichever they are.

Writes docs/measurements/option_order.csv and option_order_model.csv.
"""

import argparse
import datetime
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from contamination.audit.controls.diagnosis import tf_idf
from contamination.audit.controls.options import diagnose_arrangements, numbers
from contamination.audit.controls.zlib import zlib_option_test
from contamination.device import describe
from contamination.errors import InputError
from contamination.files import replacing
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.scoring.score import score, token_groups
from contamination.statistics import sharded_exact_test
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.option_texts import are_numbers
from contamination.testsets.options import items_of
from contamination.testsets.registry import registered
from contamination.testsets.sources import DATA_VARIABLE, open_test_set
from contamination.testsets.variants import FixedOptions, option_variants, permitted_places

ROOT = Path(__file__).parents[1]
ALIKE = 0.35  # cosine of two options from which an item counts as one whose options are alike
SEED = 0
TODAY = datetime.date.today().isoformat()
KEEPS = {"moves": FixedOptions(), "keeps the answer": FixedOptions(answer=True)}
COMPRESSED = 8  # arrangements of each item that the compressor reads
ARRANGEMENTS = {"moves": 8, "keeps the answer": 6}  # that the model reads, of each item
CANARIES = ("canaries/hellaswag", "canaries/openbookqa", "canaries/piqa")

Row = dict[str, Any]


def unlike(test_set: ExampleSet) -> list[int]:
    """Records no two of whose options are alike, in whatever order they stand."""
    items = items_of(test_set)
    found: list[int] = []
    start = 0
    features = tf_idf(list(chain.from_iterable(item.options for item in items)))
    for number, item in enumerate(items):
        stop = start + len(item.options)
        cosines = (features[start:stop] @ features[start:stop].T).toarray()
        np.fill_diagonal(cosines, 0)
        if cosines.max() < ALIKE:
            found.append(number)
        start = stop
    return found


def chosen(test_set: ExampleSet, records: Sequence[int]) -> ExampleSet:
    """Return the set with these records alone."""
    return replace(
        test_set,
        records=tuple(test_set.records[i] for i in records),
        examples=tuple(test_set.examples[i] for i in records),
    )


def sorted_numbers(test_set: ExampleSet, keep: FixedOptions) -> float:
    """Share of the items that stay as they are for their numbers in which these are sorted."""
    items = items_of(test_set)
    still = [i for i, free in zip(items, permitted_places(items, keep), strict=True) if not free]
    found = [values for i in still if are_numbers(i.options) and (values := numbers(i))]
    return float(np.mean([v in (sorted(v), sorted(v)[::-1]) for v in found])) if found else np.nan


def without_model(test_set: ExampleSet, keep: FixedOptions) -> Row:
    """Return the results of the diagnostics and the compressor for one set."""
    diagnosis = diagnose_arrangements(test_set, seed=SEED, keep=keep)
    table = diagnosis.table.set_index("diagnostic")
    tested = table[table["p"].notna()]
    least = tested["holm_p"].astype(float).idxmin() if len(tested) else ""
    row: Row = {**diagnosis.counts, "verdict": diagnosis.verdict, "least": least}
    row["least_holm_p"] = tested["holm_p"].min() if len(tested) else np.nan
    row |= {f"{name}_p": table["p"][name] for name in table.index}
    row["sorted_numbers"] = sorted_numbers(test_set, keep)
    try:
        found = zlib_option_test(
            option_variants(test_set, permutations=COMPRESSED - 1, seed=SEED, keep=keep)
        )
    except InputError:  # fewer than two items move
        return row
    return row | {"compressor_p": found.p, "compressor_z": found.z}


def by_model(
    test_set: ExampleSet, keep: str, scorer: TransformersScorer, stores: Path
) -> tuple[list[int], np.ndarray] | None:
    """Records that move and that the model can read, and scores (n, N) of their arrangements."""
    arrangements = ARRANGEMENTS[keep]
    try:
        alternatives = option_variants(
            test_set, permutations=arrangements - 1, seed=SEED, keep=KEEPS[keep]
        )
    except InputError:  # fewer than two items move
        return None
    groups = token_groups(scorer.tokenizer, alternatives)
    fits = [g for g in groups if max(map(len, g.rests)) < scorer.context]
    if len(fits) < 2:
        return None
    if len(fits) < len(groups):
        texts = tuple(alternatives.texts[group.record] for group in fits)
        alternatives = replace(alternatives, texts=texts)
    store = score(
        alternatives,
        scorer,
        stores / test_set.name / str(arrangements),
        model="clean",
        seed=SEED,
        replace=True,
    )
    return [group.record for group in fits], store.variants()


def restrictions(test_set: ExampleSet, keep: str) -> dict[str, Sequence[int]]:
    """Name the restrictions of the kind `keep`, and the records that each of them takes."""
    if keep == "moves":
        return {keep: range(len(test_set.records))}
    every = range(len(test_set.records))
    apart = unlike(test_set)
    rng = random_stream(SEED, "as many at random", test_set.name)
    drawn = sorted(rng.choice(every, size=len(apart), replace=False).tolist())
    return {keep: every, "unlike options": apart, "as many at random": drawn}


def diagnosed(name: str, keep: str) -> Iterator[Row]:
    """One row for each restriction, without a model."""
    test_set = open_test_set(name)
    for restriction, records in restrictions(test_set, keep).items():
        row = {"set": name, "restriction": restriction, "all_items": len(test_set.records)}
        if records:
            row |= without_model(chosen(test_set, records), KEEPS[keep])
        yield row


def scored(
    name: str, keep: str, scorer: TransformersScorer, stores: Path, most: int
) -> Iterator[Row]:
    """One row for each restriction, under the model."""
    test_set = open_test_set(name)
    first = chosen(test_set, range(min(len(test_set.records), most)))
    moved, scores = by_model(first, keep, scorer, stores) or ([], np.zeros((0, 2)))
    for restriction, records in restrictions(test_set, keep).items():
        used = [i for i, record in enumerate(moved) if record in set(records)]
        row = {"set": name, "restriction": restriction, "items": len(used)}
        if used:
            found = sharded_exact_test(scores[used], weights="equal")
            row |= {"z": found.z, "p": found.p, "log10_p": found.log10_p}
        yield row


def write(rows: Sequence[Row], path: Path, device: str) -> None:
    """Write the table as far as it is."""
    table = pd.DataFrame(rows).assign(device=device, date=TODAY)
    with replacing(path) as file:
        table.to_csv(file, index=False, float_format="%.4g", lineterminator="\n")


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("without-model", "model"))
    parser.add_argument("--model", type=Path, default=ROOT / "build" / "laptop" / "models/clean")
    parser.add_argument("--records", type=int, default=250, help="of each set, for the model")
    parser.add_argument("--stores", type=Path, default=ROOT / "build" / "option_quiet")
    parser.add_argument("--measurements", type=Path, default=ROOT / "docs" / "measurements")
    options = parser.parse_args()
    if DATA_VARIABLE not in os.environ:
        parser.error(f"{DATA_VARIABLE} names no directory with mmlu/; data/README.md says how")
    scorer = TransformersScorer(options.model) if options.what == "model" else None
    device = describe(scorer.device if scorer else torch.device("cpu"))
    table = "option_order_model.csv" if scorer else "option_order.csv"
    rows: list[Row] = []
    for keep, name in tqdm([*product(KEEPS, (*CANARIES, *registered("mmlu/")))]):
        if scorer:
            rows += scored(name, keep, scorer, options.stores, options.records)
        else:
            rows += diagnosed(name, keep)
        write(rows, options.measurements / table, device)


if __name__ == "__main__":
    main()
