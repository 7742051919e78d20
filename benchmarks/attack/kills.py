"""Stages killed at random moments, for `run.py`: are the final bytes always the same?

A stage of a tiny run is killed with SIGKILL at a moment drawn uniformly from the time that it
takes, then started again to its end, and what it leaves is compared, byte by byte, with what it
leaves undisturbed. Only the seconds that a stage reports and the records of runs may differ.
Attempts are forks of this process, which imports once.
"""

import hashlib
import importlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import chdir
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from threading import RLock

os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}  # no threads before forks
os.environ["ACCELERATE_USE_CPU"] = "true"

import yaml
from tqdm import tqdm

from contamination.files import TEMPORARY, write_text
from contamination.scoring import work as scoring_work
from contamination.testsets.sources import DATA_VARIABLE
from reproduction.stages import stage

tqdm.monitor_interval = 0  # its thread would hold a lock in some fork
tqdm.set_lock(RLock())  # one of all processes stays taken by a fork that is killed

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
    """Run `work` in a process of its own; return whether it was killed."""
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
    """SHA-256 of every file by its path, but of locks, records of runs and reported seconds.

    What a killed process left under a temporary name is left out: it goes a day later.
    """
    found = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        parts = path.relative_to(folder).parts
        if any(fnmatch(part, TEMPORARY) for part in parts):
            continue
        if path.name == ".lock" or path.name.startswith("run-"):
            continue
        data = path.read_bytes()
        if path.suffix == ".json" and "seconds" in (fields := json.loads(data)):
            data = json.dumps(fields | {"seconds": None}).encode()
        found[path.relative_to(folder).as_posix()] = hashlib.sha256(data).hexdigest()
    return found


def attack(name: str, *, times: int, seed: int) -> Counter[str]:
    """Kill a stage repeatedly; count the runs that ended with the same bytes, and the others."""
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        os.environ[DATA_VARIABLE] = folder
        prepare(Path(folder))
        scoring_work.SMALLEST_PART = 200  # so that there are parts to lose
        before, work, output = STAGES[name]
        for module in IMPORTED[name]:
            importlib.import_module(module)
        log = Path(folder) / "log"
        for earlier in before:
            fork(partial(earlier, Path(folder)), log)
        return _kill(name, partial(work, Path(folder)), Path(folder) / output, log, times, seed)


def _kill(
    name: str, work: Callable[[], object], output: Path, log: Path, times: int, seed: int
) -> Counter[str]:
    started = time.perf_counter()
    fork(work, log)
    seconds = time.perf_counter() - started
    expected = contents(output)
    rng = random.Random(f"{seed} {name}")
    ends: Counter[str] = Counter()
    with tqdm(total=times, desc=name, unit="kill") as bar:
        while ends.total() < times:
            shutil.rmtree(output)
            if not fork(work, log, kill_after=rng.uniform(0, seconds)):
                continue  # it was faster
            fork(work, log)
            ends["repaired" if contents(output) == expected else "failed"] += 1
            bar.update()
    return ends


def _run(folder: Path) -> dict[str, Path]:
    return {"profile": folder / "tiny.yaml", "build": folder / "build"}


def _corpus(folder: Path) -> None:
    stage.corpus(**_run(folder))


def _train(folder: Path) -> None:
    stage.train("contaminated", **_run(folder))


def _score(folder: Path) -> None:
    stage.score("contaminated", **_run(folder))


def _write_paper(folder: Path) -> None:
    """Write a report and slides of a few lines under the headers of the real ones."""
    paper = Path(__file__).parents[2] / "paper"
    ignored = shutil.ignore_patterns("*.qmd")
    shutil.copytree(paper, folder / "paper", ignore=ignored, symlinks=True)
    for name in ("report.qmd", "slides.qmd"):
        header, _, _ = (paper / name).read_text(encoding="utf-8").partition("\n---\n")
        text = f"{header}\n---\n\n## A result\n\n| Set | p |\n|---|---|\n| planted | 0.01 |\n"
        write_text(folder / "paper" / name, text)


def _render(folder: Path) -> None:
    write_text(folder / "results" / "variables.yml", "corpus: {}\n")
    with chdir(folder):  # where the stage looks for the paper
        stage.report(folder / "results")


Stage = Callable[[Path], None]
# What has to run before, what is killed, and where it leaves its files.
STAGES: dict[str, tuple[tuple[Stage, ...], Stage, str]] = {
    "training killed": ((_corpus,), _train, "build/models"),
    "scoring killed": ((_corpus, _train), _score, "build/stores"),
    "rendering killed": ((_write_paper,), _render, "results"),
}
# What they import, before the forks.
TRAINING = ("reproduction.run.corpus_stage", "reproduction.run.training")
SCORING = (
    "contamination.scoring.local",
    "contamination.scoring.score",
    "reproduction.notebooks.canaries.tables",
)
IMPORTED = {
    "training killed": TRAINING,
    "scoring killed": (*TRAINING, *SCORING),
    "rendering killed": ("reproduction.report.render",),
}
