"""Processor time of commands that score little or nothing: what it takes to start.

    python benchmarks/start.py MODEL DATASET --before OTHER_CHECKOUT/src

Each command runs in turn with the code of another checkout and with this one, each in a
process of its own. MODEL is a small model on this machine; its store of DATASET is
filled first, and that of a few records under smollm2-135m. What earlier runs have left
in the cache about the speed of models is removed. Writes docs/measurements/start.csv: a
row for each command and version of the code, with the median of the rounds, least and
most.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from contamination.files import replacing
from contamination.testsets.sources import cache_directory

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "measurements" / "start.csv"
RELEASED = ("test", "smollm2-135m", "mmlu/anatomy")
FEW = (*RELEASED, "--max-records", "20", "--store", "few")
FIRST = "test smollm2-135m --dry-run, nothing stored, model never read"
CLI = ("-m", "contamination.cli.main")
DONE = (0, 1, 3)  # statuses of a verdict


def seconds_of(command: Sequence[str], source: Path, directory: Path) -> float:
    """Return the processor seconds of a Python command with the code of a directory `src`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *command],
        env=os.environ | {"PYTHONPATH": str(source)},
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in DONE:
        raise RuntimeError(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure each command with both versions, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--before", type=Path, required=True, help="src of another checkout")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    stored = (*CLI, "test", str(options.model.resolve()), str(options.dataset.resolve()))
    few = (*CLI, *FEW)
    released = (*CLI, *RELEASED, "--dry-run")
    commands = {
        "import torch": ("-c", "import torch"),
        "--help": (*CLI, "--help"),
        "test, store full": stored,
        "test --dry-run, store full": (*stored, "--dry-run"),
        "test smollm2-135m, store full": few,
        "test smollm2-135m --dry-run, store full": (*few, "--dry-run"),
        FIRST: released,
        "test smollm2-135m --dry-run, nothing stored, model read before": released,
        "verify, one store": (*CLI, "verify", "few"),
    }
    sources = {"before": options.before.resolve(), "after": ROOT / "src"}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        seconds_of(stored, sources["before"], directory)
        seconds_of(few, sources["before"], directory)
        for name, command in commands.items():
            taken: dict[str, list[float]] = {when: [] for when in sources}
            for _ in range(options.rounds):
                for when, source in sources.items():
                    if name == FIRST:
                        shutil.rmtree(cache_directory() / "paces", ignore_errors=True)
                    taken[when].append(seconds_of(command, source, directory))
            for when, seconds in taken.items():
                rows.append(
                    {
                        "command": name,
                        "when": when,
                        "seconds": statistics.median(seconds),
                        "least": min(seconds),
                        "most": max(seconds),
                        "rounds": len(seconds),
                        "ratio": statistics.median(seconds) / statistics.median(taken["before"]),
                    }
                )
    table = pd.DataFrame(rows)
    print(table.to_string(index=False))
    with replacing(OUT) as path:
        table.to_csv(path, index=False, float_format="%.2f", lineterminator="\n")


if __name__ == "__main__":
    main()
