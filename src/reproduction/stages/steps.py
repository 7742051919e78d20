"""Progress of a run: the number of a step and the time left.

`make` writes the stages that it is going to run, a line each, into the file that the variable STEPS
names. Every stage adds "begun TIME STEP" and "ended TIME STEP". The times of the reference run say
what is left, scaled by how fast this run has been so far.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from contamination.files import read_json

MEASURED = Path("results/reference/manifest.json")
BESIDE = 2.0  # steps that make runs at a time unless asked for another number
TRUST = 60.0  # seconds of this run that count as much as the reference run and that number
WIDTH = 48  # columns of the number of a step and what it does

Times = dict[str, float]  # by step, in seconds since the epoch


def step_of(arguments: list[str]) -> str:
    """Name a step after the arguments of its stage, as a manifest does; "" for the summary."""
    verb, *rest = arguments
    named = rest and not rest[0].startswith("-")
    return "" if verb == "summary" else f"{verb} {Path(rest[0]).stem}" if named else verb


def read_run(path: Path) -> tuple[list[str], Times, Times]:
    """Read the steps that make planned, in its order, and when stages began and ended."""
    planned: list[str] = []
    begun: Times = {}
    ended: Times = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        match line.split(" ", 2):
            case ["begun" | "ended" as what, when, step]:
                (begun if what == "begun" else ended)[step] = float(when)
            case _ if step := step_of(line.split()):
                planned.append(step)
    return planned, begun, ended


def seconds_left(known: Mapping[str, float], begun: Times, ended: Times, now: float) -> float:
    """Estimate how long the rest takes, running steps included.

    `known` has what each of the planned steps took in the reference run, 0 where it had no such.
    """
    spent = sum(ended[step] - begun[step] for step in ended)
    done = sum(known[step] for step in ended)
    slower = (spent + TRUST) / (done + TRUST)
    done += sum(min(known[s], (now - begun[s]) / slower) for s in begun.keys() - ended.keys())
    elapsed = now - min(begun.values(), default=now)
    return (sum(known.values()) - done) * (elapsed + TRUST) / (done + BESIDE * TRUST)


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
    path = Path(os.environ.get("STEPS") or "-")
    if not path.is_file() or not arguments or os.environ.get("RANK", "0") != "0":
        return None
    step = step_of(arguments)
    if step not in read_run(path)[0]:
        return None

    def note(what: str) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{what} {time.time():.3f} {step}\n")

    note("begun")
    planned, begun, ended = read_run(path)
    facts = read_json(MEASURED) if MEASURED.is_file() else {}
    timed = facts["steps"] if facts.get("profile") == path.parent.name else {}
    known = {name: float(timed.get(name, {}).get("seconds", 0)) for name in planned}
    left = seconds_left(known, begun, ended, max(time.time(), begun[step]))
    line = f"[{list(begun).index(step) + 1:>{len(str(len(planned)))}}/{len(planned)}] {step}"
    start = "\r\x1b[K" if sys.stderr.isatty() else ""  # over the bar of a step beside this one
    shown = f"{line:{WIDTH}} {in_words(left)} left" if left else line
    print(f"{start}{shown}", file=sys.stderr, flush=True)
    return lambda: note("ended")


def finished() -> str | None:
    """Say how many steps make ran and in what time; None for a stage that is run by hand."""
    path = Path(os.environ.get("STEPS") or "-")
    _, begun, ended = read_run(path) if path.is_file() else ([], {}, {})
    if not ended:
        return None
    return f"{len(ended)} steps in {in_words(max(ended.values()) - min(begun.values()))}"
