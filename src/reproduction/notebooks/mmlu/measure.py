"""The 57 subsets of MMLU (Hendrycks et al., 2021), and the passes of notebook 04.

The data registry knows where they come from and how long they are. Table 4 of Oren
lists 56 of them under the same names; professional_law is the one that it lacks.

Oren (section 4.3) exclude the subsets whose order is preferred by a negative control, a
model that cannot know them. Their public script takes a JSON list of examples, or else
the lines of a file. A CSV record whose question holds line breaks then falls apart, and
shuffled lines make less sense than the text that they come from. So subsets are read in
both segmentations, by record and by line.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
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
from reproduction.notebooks.mmlu.settings import Settings
from reproduction.run.experiment import Experiment, named_models
from reproduction.run.grid import ACCESS, Access, Row, grid, load_each

FAMILY = "mmlu/"  # before a subset's name in the registry
SEGMENTATIONS = ("record", "line")
TEMPLATE = "csv-line/1"
COMPRESSOR = "compressor"  # in result files
BASELINE = "zlib baseline"  # for readers
COMPRESSOR_PERMUTATIONS = 25
MODEL_FREE = (
    "subset",
    "segmentation",
    "examples",
    "lines_per_record",
    "spanning",
    "shared_passages",
    "verdict",
    "compressor_log10_p",
)

STORES = Path("stores") / "mmlu"  # in the build directory
CELLS = ("model", "segmentation", "subset", "test", "store", "status")
NOTHING = pd.DataFrame(columns=list(CELLS))  # where nothing is measured

# segmentation -> subset -> its examples
Segmented = Mapping[str, Mapping[str, ExampleSet]]


def subset_names() -> list[str]:
    """Name the subsets, in the order of Table 4; professional_law comes last."""
    return [name.removeprefix(FAMILY) for name in registered(FAMILY)]


def title(subset: str) -> str:
    """Write the name of a subset for running text: "High School US History"."""
    special = {"us": "US", "and": "and"}
    return " ".join(special.get(word, word.capitalize()) for word in subset.split("_"))


def subsets_at_hand(
    max_records: int,
    access: Access = ACCESS,
) -> dict[str, ExampleSet | str]:
    """Open every subset by its name, at most `max_records` of each, or say why not.

    A reason is a status of `reproduction.run.grid`; after one that is out of reach no
    other is asked for.
    """

    def load(name: str) -> ExampleSet:
        return replace(
            access.open_set(FAMILY + name, max_records=max_records),
            name=name,
        )

    return load_each(subset_names(), load, at_hand=lambda name: available(FAMILY + name))


def physical_lines(record: Record) -> list[str]:
    """Write a record as lines of a CSV file, without blank ones and without their ends.

    Fields are quoted where they must be, as in the files in which MMLU is published;
    the choices may be four fields or a list.
    """
    fields: list[object] = []
    for value in record.values():
        if isinstance(value, list | tuple):
            fields += value
        else:
            fields.append(value)
    row = io.StringIO()
    csv.writer(row, lineterminator="\n").writerow(fields)
    return [line for line in row.getvalue().split("\n") if line.strip()]


def by_line(test_set: ExampleSet) -> ExampleSet:
    """Return the test set whose examples are the physical lines of the records.

    It has a name and a revision of its own, and with them its own stores and orderings.
    """
    lines = []
    for record in test_set.records:
        lines += [f"{line}\n" for line in physical_lines(record)]
    return replace(
        test_set,
        name=f"{test_set.name}-by-line",
        examples=tuple(lines),
        template=TEMPLATE,
        revision=sha256_of(test_set.revision, TEMPLATE),
        records=(),
    )


def segmented(sets: Mapping[str, ExampleSet | str]) -> dict[str, dict[str, ExampleSet]]:
    """Return the subsets that could be opened by record, as they are, and by line."""
    opened = {name: subset for name, subset in sets.items() if not isinstance(subset, str)}
    lines = {name: by_line(subset) for name, subset in opened.items()}
    return {"record": opened, "line": lines}


def model_free(sets: Segmented, *, seed: int, shards: int | None = None) -> pd.DataFrame:
    """Test the order of every subset without a model, in both segmentations.

    Parameters
    ----------
    sets
        Sets as `segmented` returns them.
    seed
        Seed of the shuffled orderings.
    shards
        Number of shards of the sharded t-test; None takes as many as leave four records
        in each.

    Returns
    -------
    A row for each subset and segmentation, `MODEL_FREE`. Of the records: lines_per_record (mean),
    spanning (share on more than one line) and shared_passages (share whose longest line stands in
    another record, too). `verdict` is that of `contamination.audit.controls.records.diagnose_order`
    within the shards of the sharded t-test, compressor_log10_p that of the exact test on the scores
    of the zlib baseline in the same shards.
    """
    rows = []
    for subset, records in sets.get("record", {}).items():
        facts = _line_facts(records)
        for segmentation in SEGMENTATIONS:
            examples = sets[segmentation][subset]
            count = len(examples.examples)
            plan = plan_store(TESTS["sharded_t"], count, shards)
            diagnosis = diagnose_order(examples, seed=seed, shards=plan.shards)
            control = zlib_test(
                examples,
                kind="orderings",
                permutations=COMPRESSOR_PERMUTATIONS,
                seed=seed,
                shards=plan.shards,
            )
            row: Row = {
                "subset": subset,
                "segmentation": segmentation,
                "examples": count,
            }
            row |= facts
            row |= {"verdict": diagnosis.verdict, "compressor_log10_p": control.log10_p}
            rows.append(row)
    return pd.DataFrame(rows, columns=list(MODEL_FREE))


def _line_facts(records: ExampleSet) -> Row:
    """Return how the records of a subset lie in lines, as columns of `MODEL_FREE`."""
    lines_of_records = [physical_lines(record) for record in records.records]
    holders = Counter[str]()
    for lines in lines_of_records:
        holders.update(set(lines))
    longest = [max(lines, key=len) for lines in lines_of_records]
    lengths = np.array([len(lines) for lines in lines_of_records])
    return {
        "lines_per_record": float(lengths.mean()),
        "spanning": float((lengths > 1).mean()),
        "shared_passages": float(np.mean([holders[line] > 1 for line in longest])),
    }


@dataclass(frozen=True)
class Cell:
    """A subset in one segmentation, and the test for which a model scores it."""

    test: str
    examples: ExampleSet


def measure(
    experiment: Experiment,
    settings: Settings,
    access: Access = ACCESS,
) -> dict[str, pd.DataFrame]:
    """Score the subsets: models by record, controls also by line.

    Parameters
    ----------
    experiment
        The run.
    settings
        Models and sets.
    access
        Opens models and sets; another one counts what they cost.

    Returns
    -------
    cells
        A row for each model, segmentation, subset and test, `CELLS`: `store` is its
        folder in `STORES`; where there is none, `status` says why.

    Raises
    ------
    InputError
        For a name twice, an unknown test, or no permutation.
    """
    request = Request(
        settings.tests,
        permutations=settings.permutations,
        seed=experiment.profile.seed,
        directory=experiment.build / STORES,
    )
    entries = named_models(experiment, [*settings.models, *settings.controls])
    controls = entries[len(settings.models) :]
    sets = subsets_at_hand(settings.max_records, access)
    opened = segmented(sets)

    def cells_of(entry: ModelEntry) -> Iterator[tuple[Row, Cell | str]]:
        segmentations = SEGMENTATIONS if entry in controls else SEGMENTATIONS[:1]
        for segmentation, name, test in product(
            segmentations,
            sets,
            request.order_tests,
        ):
            row = {
                "segmentation": segmentation,
                "subset": name,
                "test": test,
                "store": "",
            }
            subset = sets[name]
            if isinstance(subset, str):
                yield row, subset
            else:
                yield row, Cell(test=test, examples=opened[segmentation][name])

    def open_model(entry: ModelEntry) -> tuple[Scorer, Row]:
        return access.open_model(entry), {}

    def score_cell(entry: ModelEntry, scorer: Scorer, cell: Cell) -> Row:
        shards = settings.shards if TESTS[cell.test].kind == "orderings" else None
        store = access.score_orders(
            cell.test,
            scorer,
            example_set.start_each(cell.examples, settings.start_each),
            replace(request, name=entry.name, shards=shards),
            # The directory belongs to this run: models trained anew replace their
            # stores.
            keep_revisions=False,
        )
        return {"store": store}

    rows = grid(entries, cells_of, score_cell, open_model=open_model)
    return {"cells": pd.DataFrame(rows, columns=list(CELLS))}
