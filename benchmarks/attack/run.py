"""Attack the audit by bad records, templates, items, seals, logs, models, commands, servers.

    make attack                                  # all of it, about half an hour
    python benchmarks/attack/run.py --fronts stores --seed 7 --first 1234 --times 1   # one attempt

All temporary files stand in one folder, which is removed at the end.

Every attempt draws from a stream of its own, so that it can be repeated alone. It ends in one of

- refused: `InputError`, one line that says why;
- repaired: what was damaged or killed was made again, with the same result;
- survived: accepted, with the result that an independent reading gives.

Anything else has failed: another exception, a message of several lines, another result, or more
than 20 seconds. Each front replaces its row of results/tables/attack.csv; `docs/trust.md` has the
counts of one run of each, and what is not promised.
"""

import argparse
import importlib
import os
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import kills  # first: it sets what a process that forks must set before others are imported
import pandas as pd
from tqdm import tqdm

from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.tables import write_csv

SECONDS = 20  # that an attempt may take
ENDS = ("refused", "repaired", "survived", "failed")
# The module and the function that make an attempt, and how many are made. A front is imported once
# it is attacked: some import torch.
FRONTS: dict[str, tuple[str, str, int]] = {
    "records": ("records", "attack_records", 4000),
    "templates": ("records", "attack_templates", 4000),
    "items": ("sealing", "attack_items", 400),
    "seals": ("sealing", "attack_seals", 400),
    "logs": ("logs", "attack_logs", 2000),
    "api": ("api", "attack_api", 4000),
    "folders": ("folders", "attack_folders", 200),
    "commands": ("folders", "attack_commands", 400),
    "stores": ("stores", "attack_stores", 2000),
    "servers": ("servers", "attack_servers", 1000),
    "writers": ("writers", "attack_writers", 1000),
}


def attempt(front: str, seed: int, number: int) -> tuple[str, str]:
    """Make one attempt; return how it ended, and for a failure what was seen."""
    module, function, _ = FRONTS[front]
    make = getattr(importlib.import_module(module), function)
    rng = random_stream(seed, "attack", front, number)
    signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        with tempfile.TemporaryDirectory() as folder, redirect_stderr(StringIO()):
            end = make(rng, Path(folder))
    except InputError as error:
        lines = str(error).splitlines()
        return ("refused", "") if len(lines) == 1 else ("failed", f"{len(lines)} lines: {error}")
    except Exception:
        return "failed", traceback.format_exc(limit=-4)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return end, ""


def attack(front: str, *, seed: int, first: int, times: int) -> Counter[str]:
    """Make attempts `first` to `first + times - 1`; print every failure with how to repeat it."""
    ends: Counter[str] = Counter()
    for number in tqdm(range(first, first + times), desc=front, unit="attempt", mininterval=1):
        end, seen = attempt(front, seed, number)
        ends[end] += 1
        if seen:
            tqdm.write(f"--fronts {front} --seed {seed} --first {number}: {seen}\n")
    return ends


def main() -> None:
    """Attack, print a row of counts for each front, and exit with 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fronts", nargs="+", choices=[*FRONTS, *kills.STAGES])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first attempt")
    parser.add_argument("--times", type=int, help="attempts on each front")
    parser.add_argument("--kills", type=int, default=50, help="kills of each stage")
    parser.add_argument("--results", type=Path, default=Path("results"))
    asked = parser.parse_args()
    chosen = asked.fronts or [*kills.STAGES, *FRONTS]
    failed = False
    signal.signal(signal.SIGTERM, _ended)
    with _temporary_files_in_one_folder():
        for front in sorted(chosen, key=list(FRONTS).count):  # kills first: threads, forks clash
            row = _row(front, asked)
            failed = failed or row["failed"] > 0
            _write_row(row, asked.results)
    sys.exit(failed)


def _row(front: str, asked: argparse.Namespace) -> dict[str, Any]:
    """Attack one front; return its counts."""
    clock = time.perf_counter()
    if front in FRONTS:
        times = asked.times or FRONTS[front][2]
        ends = attack(front, seed=asked.seed, first=asked.first, times=times)
    else:
        ends = kills.attack(front, seed=asked.seed, times=asked.kills)
    counts = {end: ends[end] for end in ENDS}
    seconds = round(time.perf_counter() - clock)
    return {"front": front, "tried": ends.total(), **counts, "seconds": seconds}


def _write_row(row: dict[str, Any], results: Path) -> None:
    """Print a row, and put it into the table in the place of that front's earlier one."""
    table = pd.DataFrame([row])
    print(table.to_string(index=False), flush=True)
    path = results / "tables" / "attack.csv"
    if path.is_file():
        earlier = pd.read_csv(path)
        table = pd.concat([earlier[earlier["front"] != row["front"]], table])
    places = {front: place for place, front in enumerate([*kills.STAGES, *FRONTS])}
    write_csv(table.sort_values("front", key=lambda names: names.map(places)), results, "attack")


@contextmanager
def _temporary_files_in_one_folder() -> Iterator[None]:
    """Let this process and those that it starts leave temporary files in one folder; remove it."""
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        os.environ["TMPDIR"] = folder
        tempfile.tempdir = folder
        try:
            yield
        finally:
            tempfile.tempdir = None
            del os.environ["TMPDIR"]


def _ended(signum: int, frame: object) -> None:
    raise SystemExit(f"ended by signal {signum}")


def _too_long(signum: int, frame: object) -> None:
    raise TimeoutError(f"more than {SECONDS} seconds")


if __name__ == "__main__":
    main()
