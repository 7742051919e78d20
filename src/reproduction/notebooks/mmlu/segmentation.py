"""How a file of MMLU becomes examples: by record, or by physical line as a simple script does it.

Oren (section 4.3) exclude the subsets of MMLU whose order is preferred by a model that cannot know
them. Their public script takes a JSON list of examples, or else the lines of a file. A CSV record
whose question holds line breaks then falls apart, and shuffled lines make less sense than the text
that they come from.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from contamination.audit.battery import TESTS
from contamination.audit.compressor import compressor_test
from contamination.audit.diagnostics import Record, diagnose_order
from contamination.files import sha256_of
from contamination.scoring.plan import plan_store
from contamination.testsets.example_set import ExampleSet

SEGMENTATIONS = ("record", "line")
TEMPLATE = "csv-line/1"
COMPRESSOR = "compressor"
COMPRESSOR_PERMUTATIONS = 25
MODEL_FREE = (
    *("subset", "segmentation", "examples", "lines_per_record", "spanning", "shared_passages"),
    *("verdict", "compressor_log10_p"),
)

Segmented = Mapping[str, Mapping[str, ExampleSet]]  # segmentation -> subset -> its examples


def physical_lines(record: Record) -> list[str]:
    """Write a record as lines of a CSV file, without blank ones and without their ends.

    Fields are quoted where they must be, as in the files in which MMLU is published.
    """
    row = io.StringIO()
    csv.writer(row, lineterminator="\n").writerow(_leaves(record))
    return [line for line in row.getvalue().split("\n") if line.strip()]


def _leaves(value: object) -> Iterator[object]:
    """Fields of a record in order; the choices may be four fields or a list."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield value


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


def segmented(sets: Mapping[str, ExampleSet]) -> dict[str, dict[str, ExampleSet]]:
    """Return the subsets by record, as they are, and by line."""
    return {
        "record": dict(sets),
        "line": {subset: by_line(test_set) for subset, test_set in sets.items()},
    }


def model_free(sets: Segmented, *, seed: int) -> pd.DataFrame:
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
            shards = plan_store(TESTS["sharded_t"], count, None).shards
            verdict = diagnose_order(one, seed=seed, shards=shards).verdict
            settings = {"shards": shards, "permutations": COMPRESSOR_PERMUTATIONS, "seed": seed}
            compressed = compressor_test(one, kind="orderings", **settings)
            rows.append((subset, segmentation, count, *facts, verdict, compressed.log10_p))
    return pd.DataFrame(rows, columns=list(MODEL_FREE))
