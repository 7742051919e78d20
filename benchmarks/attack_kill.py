"""Kill training, scoring and rendering at random moments: are the final bytes always the same?

    .venv/bin/python benchmarks/attack_kill.py --times 50 --seed 0

Each stage of a tiny run is killed with SIGKILL at a moment drawn uniformly from the time that it
takes, then started again to its end, and what it leaves is compared, byte by byte, with what it
leaves undisturbed. Only the seconds that a stage reports and the records of runs may differ.
Attempts are forks of this process, which imports once. Exit status 1 if anything differs.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}  # no threads before forks
os.environ["ACCELERATE_USE_CPU"] = "true"

import yaml

from contamination.cli import stage
from contamination.experiments.canaries import evaluation  # noqa: F401 - before the forks
from contamination.files import write_text
from contamination.pretraining import corpus_stage, training_stage  # noqa: F401
from contamination.report.explorer import page  # noqa: F401
from contamination.scoring import local, score  # noqa: F401
from contamination.testsets.sources import DATA_VARIABLE

WORDS = ["apple", "river", "stone", "cloud", "lamp", "green", "tower", "quiet", "orbit", "maple"]
STEPS_BETWEEN_CHECKPOINTS = 4
PROFILE = {
    "seed": 5,
    "corpus": {"files": ["corpus.jsonl"], "held_out": [], "vocabulary": 300},
    "canaries": [
        {"name": "planted", "file": "set.jsonl", "template": "text/1"}
        | {"examples": 24, "dup_count": 4}
    ],
    "model": {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64},
    "training": {
        "batch_size": 4,
        "micro_batch_size": 4,
        "learning_rate": 0.01,
        "weight_decay": 0.1,
        "warmup_steps": 2,
        "checkpoint_steps": STEPS_BETWEEN_CHECKPOINTS,
    },
    "scoring": {"shards": 4, "permutations": 15, "whole_set_permutations": 15},
    "notebooks": {},
}


def prepare(folder: Path) -> None:
    """Write the profile, its corpus and its canary set."""
    rng = random.Random(0)
    for name, count, length in (("corpus", 30, 40), ("set", 24, 8)):
        texts = (" ".join(rng.choices(WORDS, k=length)) + f" №{i}" for i in range(count))
        lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        write_text(folder / f"{name}.jsonl", lines)
    write_text(folder / "tiny.yaml", yaml.safe_dump(PROFILE))


def fork(work: Callable[[], object], log: Path, *, kill_after: float | None = None) -> bool:
    """Run `work` in a process of its own; return whether it was killed after so many seconds."""
    child = os.fork()
    if child == 0:
        with log.open("w", encoding="utf-8") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            try:
                work()
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
                os._exit(1)
            sys.stdout.flush()
            os._exit(0)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in (0, -signal.SIGKILL):
        raise SystemExit(f"a stage failed by itself:\n{log.read_text(encoding='utf-8')}")
    return status != 0


def contents(folder: Path) -> dict[str, str]:
    """SHA-256 of every file by its path, without locks, records of runs and reported seconds."""
    found = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        if path.name == ".lock" or path.name.startswith("run-"):
            continue
        data = path.read_bytes()
        if path.suffix == ".json" and "seconds" in (fields := json.loads(data)):
            data = json.dumps(fields | {"seconds": None}).encode()
        found[path.relative_to(folder).as_posix()] = hashlib.sha256(data).hexdigest()
    return found


def attack(
    name: str, work: Callable[[], object], output: Path, log: Path, *, times: int, seed: int
) -> bool:
    """Kill `work` so many times, print counts; return whether `output` was the same every time."""
    started = time.perf_counter()
    fork(work, log)
    seconds = time.perf_counter() - started
    expected, rng = contents(output), random.Random(f"{seed} {name}")
    killed = resumed = equal = left = attempts = 0
    while killed < times and attempts < 3 * times:
        shutil.rmtree(output)
        attempts += 1
        if not fork(work, log, kill_after=rng.uniform(0, seconds)):
            continue  # it was faster
        killed += 1
        files = [path.relative_to(output) for path in output.rglob("*") if path.is_file()]
        hidden = [any(part.startswith(".") for part in path.parts) for path in files]
        resumed += not all(hidden)
        left += any(hidden)
        fork(work, log)
        equal += contents(output) == expected
    print(
        f"{name}: {killed} of {attempts} attempts killed, {resumed} of them with something to "
        f"resume and {left} with a temporary file; final bytes equal {equal}, not {killed - equal} "
        f"({time.perf_counter() - started:.0f} s)",
        flush=True,
    )
    return killed == times == equal


def main() -> None:
    """Attack every stage."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--times", type=int, default=50, help="kills of each stage")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="attack-") as name:
        folder = Path(name)
        os.environ[DATA_VARIABLE] = name
        prepare(folder)
        run = {"profile": folder / "tiny.yaml", "build": folder / "build"}
        results = folder / "results"
        score.SMALLEST_PART = 200  # so that there are parts to lose
        fork(lambda: stage.corpus(**run), folder / "log")
        stages = {
            "training": (lambda: stage.train("contaminated", **run), folder / "build" / "models"),
            "scoring": (lambda: stage.score("contaminated", **run), folder / "build" / "stores"),
            "rendering": (lambda: stage.explorer(results=results, **run), results),
        }
        same = [
            attack(each, *stages[each], folder / "log", times=options.times, seed=options.seed)
            for each in stages
        ]
    sys.exit(0 if all(same) else 1)


if __name__ == "__main__":
    main()
