"""Which of how many steps a stage is, how long it takes about, and how long the rest of them.

`make` writes the commands that it is going to run, as `make -n` prints them, into a file that the
variable STEPS names. Every stage adds when it began and when it ended. The times of the reference
run are scaled by how fast this run has been so far.
"""

import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from filelock import FileLock
from tqdm import tqdm

from contamination.files import read_json

MEASURED = Path("results/reference/manifest.json")
PRIOR = 60.0  # seconds of this run that count as much as what the reference run says
BESIDE = 2.0  # steps that make runs at a time unless told otherwise
TRUST = 300.0  # seconds of this run that count as much as that
WIDTH = 55  # columns of the number of a step and what it does
BARS = 2  # that a step shows at a time, one within the other
LABELS = {
    "corpus": "corpus, test sets to be planted, tokenizer",
    "train": "train the {} model",
    "score": "score the planted sets, {} model",
    "measure": "scores for {}",
    "notebook": "notebook {}",
    "explorer": "page of MMLU and all scored sets",
    "manifest": "what ran, and every number of the report",
    "report": "report and slides",
}


@dataclass
class Run:
    """What is known of one `make`; times in seconds since the epoch.

    Attributes
    ----------
    planned : the commands of `make -n`, (verb, name) by their key.
    begun, ended : when each step began and ended.
    rows : place of a step among those that run at the same time, counted from 0.
    """

    planned: dict[str, tuple[str, str]] = field(default_factory=dict)
    begun: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)

    def free_row(self) -> int:
        """Return the first place that no running step has."""
        taken = {row for key, row in self.rows.items() if key not in self.ended}
        return min(set(range(len(taken) + 1)) - taken)


def key_of(verb: str, name: str) -> str:
    """Name a step as a manifest does: "train clean", "notebook 06_wikimia", "report"."""
    return verb if name.startswith("-") else f"{verb} {Path(name).stem}"


def read_run(path: Path) -> Run:
    """Read what `make -n` planned and what stages added: "begun TIME ROW KEY", "ended TIME KEY"."""
    run = Run()
    for line in path.read_text(encoding="utf-8").splitlines():
        if found := re.search(r"-m reproduction (?!summary)(\w+) (\S+)", line):
            run.planned[key_of(found[1], found[2])] = found[1], found[2]
        elif found := re.match(r"begun ([\d.]+) (\d+) (.+)", line):
            run.begun[found[3]], run.rows[found[3]] = float(found[1]), int(found[2])
        elif found := re.match(r"ended ([\d.]+) (.+)", line):
            run.ended[found[2]] = float(found[1])
    return run


def read_measured(manifest: Path, profile: str) -> dict[str, float]:
    """Return the seconds of the steps of a run; empty where it is of another profile, or missing.

    What a step computes is timed there, not its start.
    """
    facts: dict[str, Any] = read_json(manifest) if manifest.is_file() else {}
    timed = facts["steps"] if facts.get("profile") == profile else {}
    return {key: float(step["seconds"]) for key, step in timed.items()}


def pace(run: Run, measured: Mapping[str, float]) -> float:
    """How many times as long as the reference run a step of this run takes."""
    known = [key for key in run.ended if key in measured]
    here = sum(run.ended[key] - run.begun[key] for key in known)
    return (here + PRIOR) / (sum(measured[key] for key in known) + PRIOR)


def seconds_left(run: Run, measured: Mapping[str, float], now: float) -> float:
    """Estimate how long the rest takes, running steps included; unknown steps count nothing."""
    slower = pace(run, measured)
    spent = {key: run.ended.get(key, now) - begun for key, begun in run.begun.items()}
    work = sum(
        max(0.0, slower * measured.get(key, 0.0) - spent.get(key, 0.0))
        for key in run.planned
        if key not in run.ended
    )
    elapsed = now - min(run.begun.values(), default=now)
    return work * (elapsed + TRUST) / (sum(spent.values()) + BESIDE * TRUST)


def in_words(seconds: float) -> str:
    """Round to what the estimate is good for: "<1 min", "4 min", "2 h"."""
    minutes = seconds / 60
    if minutes < 1:
        return "<1 min"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.0f} h"


def label(verb: str, name: str) -> str:
    """Say what a step computes; a notebook says so by its title."""
    path = Path(name)
    if path.suffix == ".ipynb":
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        name = "".join(cells[0]["source"]).splitlines()[0].lstrip("# ")
    return LABELS.get(verb, verb).format(name)


def announcement(run: Run, key: str, measured: Mapping[str, float], now: float) -> str:
    """Return the line of a step that begins now: its number, what it does, times if known.

    A line before the first step says how many there are.
    """
    total, left = len(run.planned), seconds_left(run, measured, now)
    number = f"[{len(run.begun) + 1:>{len(str(total))}}/{total}]"
    line = f"{number} {label(*run.planned[key])}"
    if key in measured:
        own = in_words(pace(run, measured) * measured[key])
        line = f"{line:{WIDTH}} {own}, {in_words(left)} left"
    if not run.begun:
        together = f", about {in_words(left)}" if left else ""
        line = f"{total} step{'s' * (total != 1)}{together}\n{line}"
    return line


def begin(arguments: list[str]) -> Callable[[], None] | None:
    """Print the line of a stage (verb, name, ...) that make runs; return what to call at its end.

    Nothing is printed or returned for a stage that somebody runs by hand.
    """
    path, key = Path(os.environ.get("STEPS") or "-"), key_of(*[*arguments, "-", "-"][:2])
    if os.environ.get("RANK", "0") != "0" or not path.is_file():
        return None
    with FileLock(path.with_name(".steps.lock")):  # two steps may begin at once
        run, now = read_run(path), time.time()
        if key not in run.planned:
            return None
        row = run.free_row()
        _add(path, f"begun {now:.1f} {row} {key}")
    line = announcement(run, key, read_measured(MEASURED, path.parent.name), now)
    if sys.stderr.isatty():
        # Lines that are left free are those of the bars of the steps beside us.
        for place in range(BARS * row):
            tqdm(position=place, file=StringIO(), leave=False)
        line = "\n".join(f"\r\x1b[K{part}" for part in line.splitlines())
    print(line, file=sys.stderr, flush=True)
    return lambda: _add(path, f"ended {time.time():.1f} {key}")


def finished() -> str | None:
    """Say how many steps make ran and in what time; None for a stage that somebody runs by hand."""
    path = Path(os.environ.get("STEPS") or "-")
    run = read_run(path) if path.is_file() else Run()
    if not run.ended:
        return None
    many = f"{len(run.ended)} step{'s' * (len(run.ended) != 1)}"
    return f"{many} in {in_words(max(run.ended.values()) - min(run.begun.values()))}"


def _add(path: Path, line: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
