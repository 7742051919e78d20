"""Seconds that scoring was forecast to take, and seconds that it took.

    .venv/bin/python benchmarks/forecasts.py --old /path/of/an/older/src --rounds 2

Every setting is one model, test and number of records. Each run is a process of its own: it
plans, which times a sample, and then scores into a new store. With `--old`, a directory of the
sources of another version, both versions run in turn. Writes docs/measurements/forecasts.csv:
one row for each run, and beside it the range where a version says one.

`--clock processor` reads seconds of the processor in forecasts and runs, with one thread: other
jobs on the machine then hardly count. `--clock wall` reads those of the clock on the wall.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from datetime import date
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from contamination.files import replacing

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "docs" / "measurements" / "forecasts.csv"
SOURCES = ROOT / "src"
TIMED = ("speed", "cost")  # modules of contamination.scoring that have timed a sample
# Test, records.
SETTINGS = (
    ("successor", 40),
    ("successor", 400),
    ("sharded_exact", 12),
    ("options", 60),
)


def make_records(count: int) -> tuple[str, ...]:
    """Return records of 15 to 60 words of the README, each with a number of its own."""
    words = (ROOT / "README.md").read_text(encoding="utf-8").split()
    draw = random.Random(0)
    records = []
    for number in range(count):
        chosen = draw.choices(words, k=draw.randint(15, 60))
        records.append(f"{number} {' '.join(chosen)}\n")
    return tuple(records)


def make_items(count: int, folder: Path) -> Path:
    """Write multiple-choice items of the same words, and return the file."""
    draw = random.Random(1)
    path = folder / "items.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for record in make_records(count):
            words = record.split()
            item = {
                "question": " ".join(words[:-4]),
                "choices": [f"{word} {number}" for number, word in enumerate(words[-4:])],
                "answer": draw.randrange(4),
            }
            file.write(json.dumps(item) + "\n")
    return path


def run_here(model: str, test: str, count: int, clock: str) -> None:
    """Plan and score one setting in this process, and print what it says as JSON."""
    from contamination.audit import Request
    from contamination.audit.plan import Work
    from contamination.scoring.local import TransformersScorer
    from contamination.testsets.example_set import ExampleSet

    read_clock = time.process_time if clock == "processor" else time.perf_counter
    if clock == "processor":
        read_processor_time()
    scorer = TransformersScorer(model)
    with tempfile.TemporaryDirectory() as folder:
        stores = Path(folder) / "stores"
        if test == "options":
            from contamination.testsets.item_sets import open_items

            examples = open_items(make_items(count, Path(folder)))
            request = Request(axis="options", directory=stores)
        else:
            examples = ExampleSet("made-up", make_records(count), "text/1", "made up")
            request = Request([test], directory=stores)
        work = Work(scorer, examples, request)
        _ = work.parts  # planned before the clock runs
        scorer.load()
        started = read_clock()
        plan = work.plan
        planned = read_clock()
        work.fill()
        ended = read_clock()
    said = {
        "tokens": plan.work.read,
        "forecast": plan.seconds,
        "least": getattr(plan, "least_seconds", None),
        "most": getattr(plan, "most_seconds", None),
        "taken": ended - planned,
        "measuring": planned - started,
    }
    print(json.dumps(said))


def read_processor_time() -> None:
    """Let samples be timed by the processor's clock."""
    for name in TIMED:
        if find_spec(f"contamination.scoring.{name}") is not None:
            import_module(f"contamination.scoring.{name}").time = ProcessorClock()


class ProcessorClock:
    """Stands for the module `time`: its counter is that of the processor."""

    perf_counter = staticmethod(time.process_time)


def run_elsewhere(source: Path, model: str, test: str, count: int, clock: str) -> dict:
    """Return what a process with these sources says of a setting."""
    environment = dict(os.environ, PYTHONPATH=str(source))
    if clock == "processor":
        environment["OMP_NUM_THREADS"] = "1"
    command = [sys.executable, __file__, "--here", model, test, str(count), "--clock", clock]
    done = subprocess.run(
        command, env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    return json.loads(done.stdout.splitlines()[-1])


def measure(models: list[str], sources: dict[str, Path], rounds: int, clock: str) -> pd.DataFrame:
    """Return a row for each run, versions in turn."""
    rows = []
    for number in range(rounds):
        for model in models:
            for test, count in SETTINGS:
                for version, source in sources.items():
                    said = run_elsewhere(source, model, test, count, clock)
                    row = {
                        "version": version,
                        "clock": clock,
                        "model": Path(model).name,
                        "test": test,
                        "records": count,
                        "round": number,
                    }
                    row |= said
                    row["ratio"] = said["taken"] / said["forecast"]
                    row["date"] = date.today().isoformat()
                    rows.append(row)
                    print(row, flush=True)
    return pd.DataFrame(rows)


def add_rows(table: pd.DataFrame, output: Path) -> None:
    """Add rows to a table of measurements."""
    if output.is_file():
        table = pd.concat([pd.read_csv(output), table], ignore_index=True)
    with replacing(output) as path:
        table.round(4).to_csv(path, index=False, lineterminator="\n")


def main() -> None:
    """Measure every setting, or one in this process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="directories of models")
    parser.add_argument("--old", type=Path, help="sources of another version")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--clock", choices=("processor", "wall"), default="processor")
    parser.add_argument("--here", nargs=3, metavar=("MODEL", "TEST", "RECORDS"))
    chosen = parser.parse_args()
    if chosen.here:
        model, test, count = chosen.here
        run_here(model, test, int(count), chosen.clock)
        return
    sources = {"after": SOURCES}
    if chosen.old:
        sources = {"before": chosen.old, "after": SOURCES}
    table = measure(chosen.models, sources, chosen.rounds, chosen.clock)
    add_rows(table, OUTPUT)


if __name__ == "__main__":
    main()
