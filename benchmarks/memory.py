"""Memory of a full-sequence test, by number of permutations, and of reading a large store.

    .venv/bin/python benchmarks/memory.py [--store-only]

Scores and tests 50 shards under a random model of five million parameters, each number of
permutations in a process of its own. Then it writes a store of 10^8 random log-probabilities by
the store's own writer, in parts as large as a run would cut them, and another one of 10^6. It takes
two tests of each, every time in a process of its own. What the larger store adds to the peak is the
memory that its reader holds.
Writes docs/measurements/memory.csv and prints its rows.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from throughput import make_inputs

from contamination.files import replacing
from contamination.randomness import random_stream

OUTPUT = Path(__file__).parents[1] / "docs" / "measurements" / "memory.csv"
SHARDS, EXAMPLES = 50, 200
PERMUTATIONS = (25, 100, 250)
STORE_SHARDS = 50
STORE_PERMUTATIONS = 25
STORE_TOKENS = (1_000_000, 100_000_000)
STORE_TESTS = ("sharded_exact", "token_standardised")


def peak() -> float:
    """Return the most memory (MB) that this process has held so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def audit_here(directory: Path, permutations: int) -> None:
    """Audit the model in `directory`, and print tokens, p and the peak memory."""
    from contamination.audit import Request, run_audit
    from contamination.testsets.example_set import ExampleSet

    strings = json.loads((directory / "strings.json").read_text())
    examples = tuple(f"{strings[i % len(strings)][i : i + 120]}\n" for i in range(EXAMPLES))
    found = run_audit(
        directory,
        ExampleSet("strings", examples, "text/1", "made up"),
        Request(
            ["sharded_exact"],
            shards=SHARDS,
            permutations=permutations,
            directory=directory / f"stores-{permutations}",
        ),
    )
    said = {
        "what": f"audit with {permutations} permutations",
        "tokens": found.tokens_scored,
        "seconds": found.seconds,
        "peak_mb": peak(),
    }
    print(json.dumps(said))


def write_here(directory: Path, tokens: int) -> None:
    """Write a store of about `tokens` random log-probabilities."""
    from contamination.scoring.store import create_store
    from contamination.scoring.store_format import Header
    from contamination.scoring.work import LARGEST_PART
    from contamination.testsets.tokens import consecutive

    of_example = 100
    sequences = STORE_SHARDS * (STORE_PERMUTATIONS + 1)
    examples_of_shard = round(tokens / (sequences * of_example))
    header = Header(
        model="made-up",
        model_revision="0",
        dataset="made-up",
        dataset_revision="0",
        template="text/1",
        seed=0,
        shards=STORE_SHARDS,
        example_tokens=(of_example,) * (STORE_SHARDS * examples_of_shard),
        kind="orderings",
    )
    store = create_store(directory, header)
    places = store.places(permutations=STORE_PERMUTATIONS)
    sizes = [store.tokens_stored_of(place) for place in places]
    draw = random_stream(0, "made-up store")

    def sequences_of(part: list[int]) -> Iterator[tuple]:
        for index in part:
            nats = -draw.exponential(2.0, sizes[index]).astype(np.float32)
            yield places[index], store.examples(places[index]), nats

    for part in consecutive(sizes, LARGEST_PART):
        store.append(sequences_of(list(part)))


def read_here(directory: Path, test: str) -> None:
    """Take a test of the store, and print the memory that it added."""
    from contamination.audit.registry import TESTS
    from contamination.scoring.store import open_store

    store = open_store(directory)
    started = time.process_time()
    result = TESTS[test].result(store, STORE_PERMUTATIONS)
    said = {
        "what": f"{test} of a store",
        "tokens": store.tokens_stored(STORE_PERMUTATIONS),
        "seconds": time.process_time() - started,
        "peak_mb": peak(),
        "disk_mb": sum(path.stat().st_size for path in store.parts()) / 2**20,
        "parts": len(store.parts()),
        "p": result.p,
    }
    print(json.dumps(said))


def run(task: str, folder: Path, value: object) -> dict:
    """Return what a process of its own prints of a task, nothing if it prints nothing."""
    command = [sys.executable, __file__, "--here", task, str(folder), str(value)]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    lines = done.stdout.splitlines()
    return json.loads(lines[-1]) if lines else {}


def measure_audits() -> list[dict]:
    """Return a row for each number of permutations."""
    with tempfile.TemporaryDirectory() as folder:
        make_inputs("small", Path(folder), torch.device("cpu"), factor=1)
        return [run("audit", Path(folder), permutations) for permutations in PERMUTATIONS]


def measure_store(tokens: int) -> list[dict]:
    """Return a row for each test of a store of `tokens` tokens."""
    with tempfile.TemporaryDirectory() as folder:
        run("write", Path(folder), tokens)
        return [run("read", Path(folder), test) for test in STORE_TESTS]


def main() -> None:
    """Measure everything, or one task in this process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store-only", action="store_true", help="leave out the audits")
    parser.add_argument("--here", nargs=3, metavar=("TASK", "FOLDER", "VALUE"))
    chosen = parser.parse_args()
    if chosen.here:
        task, folder, value = chosen.here
        if task == "audit":
            audit_here(Path(folder), int(value))
        elif task == "write":
            write_here(Path(folder), int(value))
        else:
            read_here(Path(folder), value)
        return
    rows = [] if chosen.store_only else measure_audits()
    for tokens in STORE_TOKENS:
        rows += measure_store(tokens)
    table = pd.DataFrame(rows).assign(date=date.today().isoformat())
    print(table.to_string(index=False))
    with replacing(OUTPUT) as path:
        table.round(3).to_csv(path, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
