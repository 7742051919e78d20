"""Forecasts that follow from a run of another set, against runs.

    .venv/bin/python benchmarks/forecasts_earlier.py MODEL --sets mmlu/anatomy mmlu/virology

MODEL is the directory of a model. Each set is scored in turn, by pairs and by whole
orderings; after each run, a dry run of every set says how long it would take. Seconds
are those of the processor, with one thread: other jobs on the machine then hardly
count. Adds to docs/measurements/forecasts_earlier.csv: a row for each pair of sets,
where `taken` is the run of `dataset`, `forecast` its dry run after that of `earlier`,
and `ratio` the one over the other. Forecasts that had to be measured by samples are
left out.
"""

import argparse
import os
import shutil
import tempfile
import time
from dataclasses import replace
from datetime import date
from pathlib import Path

import pandas as pd
from forecasts import ProcessorClock, add_rows

from contamination.audit import Request
from contamination.audit.plan import Work
from contamination.scoring import job, speed
from contamination.scoring.local import TransformersScorer
from contamination.testsets.sources import CACHE_VARIABLE, open_test_set

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "docs" / "measurements" / "forecasts_earlier.csv"
RECORDS_OF_SHARD = 10
TESTS = ("successor", "sharded_exact")


def rows_of(model: Path, test: str, names: list[str], records: int) -> list[dict]:
    """Score each set, and return what dry runs after each run say of all of them."""
    sets = {name: open_test_set(name, max_records=records) for name in names}
    taken: dict[str, float] = {}
    rows = []
    for earlier in names:
        with tempfile.TemporaryDirectory() as folder:
            request = Request(
                [test],
                shards=records // RECORDS_OF_SHARD,
                permutations=3,
                directory=Path(folder, "stores"),
            )
            left_by_run = Path(folder, "cache")
            os.environ[CACHE_VARIABLE] = str(left_by_run)
            scorer = TransformersScorer(model)  # a new one, as in a command of its own
            scorer.load()
            started = time.process_time()
            Work(scorer, sets[earlier], request, timed=False).fill()
            taken[earlier] = time.process_time() - started
            for number, name in enumerate(names):
                # Each dry run sees what the run has left, and not what others have.
                cache = Path(folder, str(number))
                shutil.copytree(left_by_run, cache)
                os.environ[CACHE_VARIABLE] = str(cache)
                empty = replace(request, directory=cache / "stores")
                plan = Work(scorer, sets[name], empty, dry=True).plan
                if plan.measured is None:
                    continue
                row = {
                    "test": test,
                    "records": records,
                    "earlier": earlier,
                    "dataset": name,
                    "forecast": plan.seconds,
                    "least": plan.least_seconds,
                    "most": plan.most_seconds,
                }
                rows.append(row)
    for row in rows:
        row["taken"] = taken[row["dataset"]]
        row["ratio"] = row["taken"] / row["forecast"]
    return rows


def main() -> None:
    """Measure, and add to the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--sets", nargs="+", required=True)
    parser.add_argument("--records", type=int, default=100)
    options = parser.parse_args()
    job.time = ProcessorClock()
    speed.time = ProcessorClock()
    rows = []
    for test in TESTS:
        rows += rows_of(options.model, test, options.sets, options.records)
    table = pd.DataFrame(rows)
    table.insert(0, "model", options.model.name)
    table["date"] = date.today().isoformat()
    print(table.to_string(index=False))
    add_rows(table, OUTPUT)


if __name__ == "__main__":
    main()
