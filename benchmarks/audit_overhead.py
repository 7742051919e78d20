"""Processor time that an audit of many sets spends around the model, for each set.

    python benchmarks/audit_overhead.py
    python benchmarks/audit_overhead.py --before OTHER_CHECKOUT/src

Made-up sets of 100 records under a random model of two thin layers. What is left beside
its network and its output layer is opening the sets, tokenising, batches, stores, tests,
the diagnosis, the zlib baseline and the rows of the table. Imports, the model and two
sets that warm up come before the clock starts.

With `--before` another version of the code takes turns with this one, each round in a
process of its own, and both get a row. Rows have the least time of all rounds, since
other work on the machine only ever adds to it. Writes results/tables/audit_overhead.csv.
"""

import argparse
import datetime
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from contamination.audit.many import audit_pairs
from contamination.audit.request import Request
from contamination.audit.rows import judged_rows
from contamination.device import describe
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.tables import write_csv
from contamination.testsets.sources import open_test_set
from reproduction.run.tokenizer import train_tokenizer

RECORDS = 100
WORDS = (15, 60)  # of a record, least and most
VOCABULARY = 2048
CONTEXT = 1024
WARMING_UP = 2  # sets
SOURCE = Path(__file__).parent.parent / "src"
# One thread, and freed memory is kept, as by every command.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "-1",
}
COLLECTED_SELDOM = 50_000  # objects, as by every command


class Timed:
    """A part of the model that adds up the processor time of its calls.

    Parameters
    ----------
    part
        Called with whatever it is called with.
    """

    def __init__(self, part: Callable[..., Any]) -> None:
        self.part = part
        self.seconds = 0.0

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the part and add its seconds."""
        started = time.process_time()
        result = self.part(*arguments, **named)
        self.seconds += time.process_time() - started
        return result


def write_sets(sets: int, directory: Path) -> list[Path]:
    """Write sets of random words, and return their paths."""
    rng = random_stream(0, "made-up records")
    letters = list("abcdefghijklmnopqrstuvwxyz")
    known = []
    for _ in range(2_000):
        known.append("".join(rng.choice(letters, rng.integers(2, 9))))
    paths = []
    for number in range(sets):
        lines = []
        for _ in range(RECORDS):
            text = " ".join(rng.choice(known, rng.integers(*WORDS)))
            lines.append(json.dumps({"text": text}) + "\n")
        path = directory / f"set_{number:03d}.jsonl"
        path.write_text("".join(lines))
        paths.append(path)
    return paths


def write_model(texts: list[str], directory: Path) -> None:
    """Write a random model, with a tokenizer that was trained on some texts."""
    tokenizer = train_tokenizer(texts, VOCABULARY)
    tokenizer.model_max_length = CONTEXT
    tokenizer.save_pretrained(directory)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=CONTEXT,
    )
    LlamaForCausalLM(config).save_pretrained(directory)


def measure(sets: int) -> dict[str, float]:
    """Return the seconds of an audit of made-up sets, for each set."""
    gc.set_threshold(COLLECTED_SELDOM)
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        paths = write_sets(sets + WARMING_UP, directory)
        write_model(paths[0].read_text().splitlines(), directory / "model")
        scorer = TransformersScorer(directory / "model")
        network = Timed(scorer.body)
        head = Timed(scorer.head)
        scorer.body = network
        scorer.head = head
        request = Request(directory=directory / "stores")

        def audit(chosen: list[Path]) -> None:
            """Audit some sets, up to the rows of the table."""
            opened = {str(path): partial(open_test_set, path) for path in chosen}
            pairs = list(audit_pairs(["model"], opened, request, lambda _: scorer))
            judged_rows(pairs, alpha=0.05)

        audit(paths[:WARMING_UP])
        inside_before = network.seconds + head.seconds
        started = time.process_time()
        audit(paths[WARMING_UP:])
        total = time.process_time() - started
        inside = network.seconds + head.seconds - inside_before
    return {
        "seconds_per_set": total / sets,
        "model_seconds_per_set": inside / sets,
        "around_seconds_per_set": (total - inside) / sets,
    }


def measure_elsewhere(source: Path, sets: int) -> dict[str, float]:
    """Return the measurement of the code in a `src`, made in a process of its own."""
    command = [sys.executable, __file__, "--sets", str(sets), "--here"]
    environment = os.environ | ENVIRONMENT | {"PYTHONPATH": str(source.resolve())}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def main() -> None:
    """Measure in turn, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--before", type=Path, help="src of the code to compare with")
    parser.add_argument("--here", action="store_true", help="measure in this process")
    parser.add_argument("--results", type=Path, default=Path("results"))
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure(options.sets)))
        return
    sources = {"after": SOURCE}
    if options.before is not None:
        sources = {"before": options.before, "after": SOURCE}
    measured: dict[str, list[dict[str, float]]] = {when: [] for when in sources}
    for _ in range(options.rounds):
        for when, source in sources.items():
            measured[when].append(measure_elsewhere(source, options.sets))
    rows = []
    for when, of_rounds in measured.items():
        least = pd.DataFrame(of_rounds).min().round(3)
        row = {"when": when, "sets": options.sets, "records": RECORDS}
        row |= least.to_dict()
        row["rounds"] = options.rounds
        row["device"] = describe(torch.device("cpu"))
        row["date"] = datetime.date.today().isoformat()
        rows.append(row)
    table = pd.DataFrame(rows)
    print(table.to_string(index=False))
    print(write_csv(table, options.results, "audit_overhead"))


if __name__ == "__main__":
    main()
