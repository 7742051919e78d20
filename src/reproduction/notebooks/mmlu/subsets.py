"""The 57 subsets of MMLU (Hendrycks et al., ICLR 2021), by record and by physical line.

The data registry knows where they come from and how long they are. Table 4 of Oren lists 56 of them
under the same names; professional_law is the one that it lacks.

Oren (section 4.3) exclude the subsets whose order is preferred by a model that cannot know them.
Their public script takes a JSON list of examples, or else the lines of a file. A CSV record whose
question holds line breaks then falls apart, and shuffled lines make less sense than the text that
they come from.
"""

import csv
import io
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from contamination.audit.battery import TESTS
from contamination.audit.compressor import compressor_test
from contamination.audit.diagnostics import Record, diagnose_order
from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.scoring.plan import plan_store
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.registry import registered
from contamination.testsets.sources import available
from reproduction.run.grid import ACCESS, Access, load_each

FAMILY = "mmlu/"  # before a subset's name in the registry
NOT_WANTED = (
    "not run here: this profile measures nothing on MMLU; use PROFILE=benchmarks, or set "
    "notebooks.04_mmlu_fisher.measured in the profile"
)
SEGMENTATIONS = ("record", "line")
TEMPLATE = "csv-line/1"
COMPRESSOR = "compressor"
COMPRESSOR_PERMUTATIONS = 25
MODEL_FREE = (
    *("subset", "segmentation", "examples", "lines_per_record", "spanning", "shared_passages"),
    *("verdict", "compressor_log10_p"),
)

Segmented = Mapping[str, Mapping[str, ExampleSet]]  # segmentation -> subset -> its examples


def subset_names() -> list[str]:
    """Name the subsets, in the order of Table 4; professional_law comes last."""
    return [name.removeprefix(FAMILY) for name in registered(FAMILY)]


def title(subset: str) -> str:
    """Write the name of a subset for running text: "High School US History"."""
    special = {"us": "US", "and": "and"}
    return " ".join(special.get(word, word.capitalize()) for word in subset.split("_"))


def subsets_at_hand(
    max_records: int, *, wanted: bool, access: Access = ACCESS
) -> dict[str, ExampleSet | str]:
    """Open every subset by its name, at most `max_records` records of each, or say why not.

    A reason starts with "not run here" (the subset was not `wanted`, or needs a network and there
    is none) or with "failed" (its file is not what the registry says). After one that is out of
    reach no other is asked for. Raises InputError for fewer than two records.
    """
    if max_records < 2:
        raise InputError(f"max_records is {max_records}: give at least two records of each subset")
    if not wanted:
        return dict.fromkeys(subset_names(), NOT_WANTED)

    def load(name: str) -> ExampleSet:
        return replace(access.open_set(FAMILY + name, max_records=max_records), name=name)

    return load_each(subset_names(), load, at_hand=lambda name: available(FAMILY + name))


def physical_lines(record: Record) -> list[str]:
    """Write a record as lines of a CSV file, without blank ones and without their ends.

    Fields are quoted where they must be, as in the files in which MMLU is published; the choices
    may be four fields or a list.
    """
    row, fields = io.StringIO(), list[object]()
    for value in record.values() if isinstance(record, Mapping) else record:
        inner = value.values() if isinstance(value, Mapping) else value
        fields += list(inner) if isinstance(value, Mapping | list | tuple) else [value]
    csv.writer(row, lineterminator="\n").writerow(fields)
    return [line for line in row.getvalue().split("\n") if line.strip()]


def by_line(test_set: ExampleSet) -> ExampleSet:
    """Return the test set whose examples are the physical lines of the records, header left out.

    It has a name and a revision of its own, and with them its own stores and orderings.
    """
    lines = (line for record in test_set.records for line in physical_lines(record))
    return replace(
        test_set,
        name=f"{test_set.name}-by-line",
        examples=tuple(f"{line}\n" for line in lines),
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
    `contamination.audit.diagnostics.diagnose` within the shards of the sharded t-test,
    compressor_log10_p that of the exact test on a compressor's scores in the same shards.
    """
    rows = []
    for subset, records in sets.get("record", {}).items():
        lines = [physical_lines(record) for record in records.records]
        holders = Counter(line for single in lines for line in set(single))
        shared = [holders[max(single, key=len)] > 1 for single in lines]
        lengths = np.array([len(single) for single in lines])
        facts = float(lengths.mean()), float((lengths > 1).mean()), float(np.mean(shared))
        for segmentation in SEGMENTATIONS:
            one = sets[segmentation][subset]
            count = len(one.examples)
            cut = plan_store(TESTS["sharded_t"], count, shards).shards
            verdict = diagnose_order(one, seed=seed, shards=cut).verdict
            settings = {"shards": cut, "permutations": COMPRESSOR_PERMUTATIONS, "seed": seed}
            compressed = compressor_test(one, kind="orderings", **settings)
            rows.append((subset, segmentation, count, *facts, verdict, compressed.log10_p))
    return pd.DataFrame(rows, columns=list(MODEL_FREE))
