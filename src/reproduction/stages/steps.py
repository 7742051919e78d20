"""Progress of a run: the number of a step, its expected time, the time left.

`make` writes the stages that it is going to run, a line each, into the file that the variable STEPS
names. Every stage adds a line when it begins and one when it ends. The times of the reference run
say what is left, scaled by how fast this run has been so far.
"""

import os
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
BESIDE = 2.0  # steps that make runs at a time unless asked for another number
TRUST = 60.0  # seconds of this run that count as much as the reference run and that number
WIDTH = 48  # columns of the number of a step and what it does
BARS = 2  # that a step shows at a time, one within the other


@dataclass
class Run:
    """What is known of one `make`; times in seconds since the epoch.

    Attributes
    ----------
    planned : steps by name ("train clean", "notebook 06_wikimia"), in the order of make.
    begun, ended : when each step began and ended.
    rows : place of a step among those that run at the same time, counted from 0.
    """

    planned: list[str] = field(default_factory=list)
    begun: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)

    def seconds_left(self, measured: Mapping[str, float], now: float) -> float:
        """Estimate how long the rest takes, running steps included; unknown steps count nothing."""
        known = {step: measured.get(step, 0.0) for step in self.planned}
        spent = {step: self.ended.get(step, now) - begun for step, begun in self.begun.items()}
        done = sum(known[step] for step in self.ended)
        slower = (sum(spent[step] for step in self.ended) + TRUST) / (done + TRUST)
        running = set(self.begun) - set(self.ended)
        done += sum(min(known[step], max(0.0, spent[step] / slower)) for step in running)
        elapsed = max(0.0, now - min(self.begun.values(), default=now))
        return (sum(known.values()) - done) * (elapsed + TRUST) / (done + BESIDE * TRUST)


def step_of(arguments: list[str]) -> str:
    """Name a step after the arguments of its stage, as a manifest does; "" for the summary."""
    verb, *rest = arguments
    named = rest and not rest[0].startswith("-")
    return "" if verb == "summary" else f"{verb} {Path(rest[0]).stem}" if named else verb


def read_run(path: Path) -> Run:
    """Read what make planned, and what stages added: "begun TIME ROW STEP", "ended ..."."""
    run = Run()
    for line in path.read_text(encoding="utf-8").splitlines():
        match line.split(" ", 3):
            case ["begun", when, row, step]:
                run.begun[step], run.rows[step] = float(when), int(row)
            case ["ended", when, _, step]:
                run.ended[step] = float(when)
            case _ if step := step_of(line.split()):
                run.planned.append(step)
    return run


def in_words(seconds: float) -> str:
    """Round to what the estimate is good for: "<1 min", "4 min", "2 h"."""
    minutes = seconds / 60
    if minutes < 1:
        return "<1 min"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.0f} h"


def begin(arguments: list[str]) -> Callable[[], None] | None:
    """Print the line of a stage that make runs; return what to call at its end.

    A stage that a person runs by hand prints nothing, and there is nothing to call.
    """
    path = _steps()
    if path is None or not arguments or os.environ.get("RANK", "0") != "0":
        return None
    step = step_of(arguments)
    with FileLock(path.with_name(".steps.lock")):  # two steps may begin at once
        run, now = read_run(path), time.time()
        if step not in run.planned:
            return None
        taken = {row for key, row in run.rows.items() if key not in run.ended}
        row = min(set(range(len(taken) + 1)) - taken)
        _add(path, f"begun {now:.1f} {row} {step}")
    total, left = len(run.planned), run.seconds_left(_measured(path.parent.name), now)
    line = f"[{len(run.begun) + 1:>{len(str(total))}}/{total}] {step}"
    line = f"{line:{WIDTH}} {in_words(left)} left" if left else line
    if sys.stderr.isatty():
        # Lines that are left free are those of the bars of the steps beside us.
        for place in range(BARS * row):
            tqdm(position=place, file=StringIO(), leave=False)
        line = f"\r\x1b[K{line}"
    print(line, file=sys.stderr, flush=True)
    return lambda: _add(path, f"ended {time.time():.1f} {row} {step}")


def finished() -> str | None:
    """Say how many steps make ran and in what time; None for a stage that is run by hand."""
    path = _steps()
    run = read_run(path) if path else Run()
    if not run.ended:
        return None
    seconds = max(run.ended.values()) - min(run.begun.values())
    return f"{len(run.ended)} steps in {in_words(seconds)}"


def _steps() -> Path | None:
    path = Path(os.environ.get("STEPS") or "-")
    return path if path.is_file() else None


def _measured(profile: str) -> dict[str, float]:
    """Return the seconds of the steps of the reference run; none if it is of another profile."""
    facts: dict[str, Any] = read_json(MEASURED) if MEASURED.is_file() else {}
    timed = facts["steps"] if facts.get("profile") == profile else {}
    return {step: float(found["seconds"]) for step, found in timed.items()}


def _add(path: Path, line: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
