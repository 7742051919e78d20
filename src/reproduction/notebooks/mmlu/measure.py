"""The 57 subsets of MMLU (Hendrycks et al., ICLR 2021), and the passes of notebook 04 over them.

The data registry knows where they come from and how long they are. Table 4 of Oren lists 56 of them
under the same names; professional_law is the one that it lacks.

Oren (section 4.3) exclude the subsets whose order is preferred by a negative control, a model that
cannot know them. Their public script takes a JSON list of examples, or else the lines of a file. A
CSV record whose question holds line breaks then falls apart, and shuffled lines make less sense
than the text that they come from. So subsets are read in both segmentations, by record and by line.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.audit.controls.records import Record, diagnose_order
from contamination.audit.controls.zlib import zlib_test
from contamination.audit.registry import TESTS
from contamination.audit.request import Request
from contamination.files import sha256_of
from contamination.scoring.contract import Scorer
from contamination.scoring.models import ModelEntry
from contamination.scoring.plan import plan_store
from contamination.testsets import example_set
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.registry import registered
from contamination.testsets.sources import available
from reproduction.run.experiment import Experiment, named_models
from reproduction.run.grid import ACCESS, Access, Row, grid, load_each

FAMILY = "mmlu/"  # before a subset's name in the registry
SEGMENTATIONS = ("record", "line")
TEMPLATE = "csv-line/1"
COMPRESSOR = "compressor"
COMPRESSOR_PERMUTATIONS = 25
MODEL_FREE = (
    *("subset", "segmentation", "examples", "lines_per_record", "spanning", "shared_passages"),
    *("verdict", "compressor_log10_p"),
)

STORES = Path("stores") / "mmlu"  # in the build directory
CELLS = ("model", "segmentation", "subset", "test", "store", "status")
NOTHING = pd.DataFrame(columns=list(CELLS))  # where nothing is measured

Segmented = Mapping[str, Mapping[str, ExampleSet]]  # segmentation -> subset -> its examples


def subset_names() -> list[str]:
    """Name the subsets, in the order of Table 4; professional_law comes last."""
    return [name.removeprefix(FAMILY) for name in registered(FAMILY)]


def title(subset: str) -> str:
    """Write the name of a subset for running text: "High School US History"."""
    special = {"us": "US", "and": "and"}
    return " ".join(special.get(word, word.capitalize()) for word in subset.split("_"))


def subsets_at_hand(max_records: int, access: Access = ACCESS) -> dict[str, ExampleSet | str]:
    """Open every subset by its name, at most `max_records` records of each, or say why not.

    A reason is a status of `reproduction.run.grid`; after one that is out of reach no other is
    asked for.
    """

    def load(name: str) -> ExampleSet:
        return replace(access.open_set(FAMILY + name, max_records=max_records), name=name)

    return load_each(subset_names(), load, at_hand=lambda name: available(FAMILY + name))


def physical_lines(record: Record) -> list[str]:
    """Write a record as lines of a CSV file, without blank ones and without their ends.

    Fields are quoted where they must be, as in the files in which MMLU is published; the choices
    may be four fields or a list.
    """
    row, fields = io.StringIO(), list[object]()
    for value in record.values():
        fields += value if isinstance(value, list | tuple) else [value]
    csv.writer(row, lineterminator="\n").writerow(fields)
    return [line for line in row.getvalue().split("\n") if line.strip()]


def by_line(test_set: ExampleSet) -> ExampleSet:
    """Return the test set whose examples are the physical lines of the records, header left out.

    It has a name and a revision of its own, and with them its own stores and orderings.
    """
    return replace(
        test_set,
        name=f"{test_set.name}-by-line",
        examples=tuple(f"{line}\n" for one in test_set.records for line in physical_lines(one)),
        template=TEMPLATE,
        revision=sha256_of(test_set.revision, TEMPLATE),
        records=(),
    )


def segmented(sets: Mapping[str, ExampleSet | str]) -> dict[str, dict[str, ExampleSet]]:
    """Return the subsets that could be opened by record, as they are, and by line."""
    opened = {name: one for name, one in sets.items() if not isinstance(one, str)}
    return {"record": opened, "line": {name: by_line(one) for name, one in opened.items()}}


def model_free(sets: Segmented, *, seed: int, shards: int | None = None) -> pd.DataFrame:
    """Measure what the order of the examples gives away without a model, in both segmentations.

    Of the records: lines_per_record (mean), spanning (share on more than one line) and
    shared_passages (share whose longest line stands in another record, too). `verdict` is that of
    `contamination.audit.controls.records.diagnose_order` within the shards of the sharded t-test,
    compressor_log10_p that of the exact test on a compressor's scores in the same shards.
    """
    rows = []
    for subset, records in sets.get("record", {}).items():
        lines = [physical_lines(record) for record in records.records]
        holders = Counter(line for single in lines for line in set(single))
        shared = float(np.mean([holders[max(single, key=len)] > 1 for single in lines]))
        lengths = np.array([len(single) for single in lines])
        facts = float(lengths.mean()), float((lengths > 1).mean()), shared
        for segmentation in SEGMENTATIONS:
            one = sets[segmentation][subset]
            count = len(one.examples)
            cut = {"shards": plan_store(TESTS["sharded_t"], count, shards).shards, "seed": seed}
            verdict = diagnose_order(one, **cut).verdict
            log10_p = zlib_test(
                one, kind="orderings", permutations=COMPRESSOR_PERMUTATIONS, **cut
            ).log10_p
            rows.append((subset, segmentation, count, *facts, verdict, log10_p))
    return pd.DataFrame(rows, columns=list(MODEL_FREE))


def measure(
    experiment: Experiment,
    *,
    models: Sequence[str],
    controls: Sequence[str],
    tests: Sequence[str],
    permutations: int,
    max_records: int,
    shards: int | None,
    start_each: bool,
    access: Access = ACCESS,
) -> dict[str, pd.DataFrame]:
    """Score the subsets: models by record, controls also by line.

    `controls` are models that cannot have read MMLU; shards are those of whole orderings.
    `start_each` reads subsets as `contamination.testsets.example_set.start_each`. The table `cells`
    has a row for each model, segmentation, subset and test, `CELLS`: `store` is its folder in
    `STORES`; where there is none, `status` says why. Raises InputError for a name twice, an unknown
    test, or no permutation.
    """
    seed, directory = experiment.profile.seed, experiment.build / STORES
    request = Request(tests, permutations=permutations, seed=seed, directory=directory)
    entries = named_models(experiment, [*models, *controls])
    silent = {entry.name for entry in entries[len(models) :]}
    sets = subsets_at_hand(max_records, access)
    opened = segmented(sets)

    def asked(entry: ModelEntry) -> Iterator[tuple[Row, tuple[str, ExampleSet] | str]]:
        kinds = SEGMENTATIONS if entry.name in silent else SEGMENTATIONS[:1]
        for kind, (subset, one), test in product(kinds, sets.items(), request.order_tests):
            row = {"segmentation": kind, "subset": subset, "test": test, "store": ""}
            yield row, one if isinstance(one, str) else (test, opened[kind][subset])

    def cell(entry: ModelEntry, scorer: Scorer, wanted: tuple[str, ExampleSet]) -> Row:
        # The directory belongs to this run: models trained anew replace their stores.
        count = shards if TESTS[wanted[0]].kind == "orderings" else None
        own = replace(request, name=entry.name, shards=count)
        test, begun = wanted[0], example_set.start_each(wanted[1], start_each)
        return {"store": access.score_orders(test, scorer, begun, own, keep_revisions=False)}

    rows = grid(entries, asked, cell, open_model=lambda entry: (access.open_model(entry), {}))
    return {"cells": pd.DataFrame(rows, columns=list(CELLS))}
