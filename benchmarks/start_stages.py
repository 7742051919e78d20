"""Processor time of each stage of a first `test smollm2-135m mmlu/anatomy --dry-run`.

    python benchmarks/start_stages.py --rounds 5

Every round is a process of its own, which imports and computes what the command does,
in the same order, by one clock: that of the processor. Writes
docs/measurements/start_stages.csv: a row for each stage, with the median of the rounds,
least and most.
"""

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from contamination.files import replacing

OUT = Path(__file__).parents[1] / "docs" / "measurements" / "start_stages.csv"
MODEL = "smollm2-135m"
DATASET = "mmlu/anatomy"


class Laps:
    """Seconds of the processor from one stage to the next."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.last = 0.0

    def end(self, stage: str) -> None:
        """Keep the seconds since the stage before."""
        now = time.process_time()
        self.seconds[stage] = now - self.last
        self.last = now


def run_here() -> None:
    """Go through the stages in this process, and print their seconds as JSON."""
    laps = Laps()
    importlib.import_module("contamination.cli.test")
    sources = importlib.import_module("contamination.testsets.sources")
    test_set = sources.open_test_set(DATASET)
    laps.end("Python, the command, the set")
    importlib.import_module("torch")
    laps.end("import torch")
    importlib.import_module("transformers")
    importlib.import_module("transformers.models.auto.modeling_auto")
    laps.end("import transformers, names of its models")
    local = importlib.import_module("contamination.scoring.local")
    plan = importlib.import_module("contamination.audit.plan")
    request = importlib.import_module("contamination.audit.request")
    laps.end("our modules, accelerate, pyarrow")
    scorer = local.TransformersScorer(MODEL)
    work = plan.Work(scorer, test_set, request.Request(name=MODEL))
    _ = work.parts
    laps.end("tokenizer, checksum of the weights, plan")
    importlib.import_module("transformers.models.llama.modeling_llama")
    laps.end("import of the network's code")
    scorer.load()
    laps.end("weights, check of the output layer")
    _ = work.plan
    laps.end("samples")
    print(json.dumps(laps.seconds))


def main() -> None:
    """Measure, or run in this process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--here", action="store_true")
    options = parser.parse_args()
    if options.here:
        run_here()
        return
    import pandas as pd  # the stages are timed without it

    rounds = []
    for _ in range(options.rounds):
        command = [sys.executable, __file__, "--here"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        rounds.append(json.loads(done.stdout.splitlines()[-1]))
    rows = []
    for stage in rounds[0]:
        seconds = [measured[stage] for measured in rounds]
        rows.append(
            {
                "stage": stage,
                "seconds": statistics.median(seconds),
                "least": min(seconds),
                "most": max(seconds),
                "rounds": len(seconds),
            }
        )
    table = pd.DataFrame(rows)
    print(table.to_string(index=False))
    with replacing(OUT) as path:
        table.to_csv(path, index=False, float_format="%.2f", lineterminator="\n")


if __name__ == "__main__":
    main()
