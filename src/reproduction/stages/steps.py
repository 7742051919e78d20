"""Progress of a run: the number of a step and the time left.

`make` writes the stages that it is going to run, a line each, into the file that the variable STEPS
names. Every stage adds "begun TIME STEP" at its start. The times of the reference run say what is
left, scaled by how fast this run has been so far.
"""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from contamination.files import read_json

MEASURED = Path("results/reference/manifest.json")
BESIDE = 2.0  # steps that make runs at a time unless asked for another number
TRUST = 60.0  # seconds of this run that count as much as the reference run and that number
WIDTH = 48  # columns of the number of a step and what it does


def step_of(arguments: list[str]) -> str:
    """Name a step after the arguments of its stage, as a manifest does."""
    verb, *rest = arguments
    return f"{verb} {Path(rest[0]).stem}" if rest and not rest[0].startswith("-") else verb


def read_run() -> tuple[list[str], dict[str, float]]:
    """Return the steps that make planned, in its order, and the time when each stage began.

    There are none for a stage that a person runs by hand, and in further processes of a step.
    """
    path = Path(os.environ.get("STEPS") or "-")
    if not path.is_file() or os.environ.get("RANK", "0") != "0":
        return [], {}
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    begun = {" ".join(step): float(when) for what, when, *step in lines if what == "begun"}
    return [step_of(line) for line in lines if line[0] not in ("begun", "summary")], begun


def seconds_left(known: Mapping[str, float], elapsed: float, begun: Sequence[str]) -> float:
    """Estimate how long the rest takes; the last step that has begun counts as half done.

    `known` has what each of the planned steps took in the reference run, 0 where it had no such.
    """
    done = sum(known[step] for step in begun) - sum(known[step] for step in begun[-1:]) / 2
    return (sum(known.values()) - done) * (elapsed + TRUST) / (done + BESIDE * TRUST)


def in_words(seconds: float) -> str:
    """Round to what the estimate is good for: "<1 min", "4 min", "2 h"."""
    minutes = seconds / 60
    if minutes < 1:
        return "<1 min"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.0f} h"


def begin(arguments: list[str]) -> None:
    """Print the line of a stage that make runs, and note when it began."""
    planned, begun = read_run()
    if not arguments or (step := step_of(arguments)) not in planned:
        return
    path, now = Path(os.environ["STEPS"]), time.time()
    with path.open("a", encoding="utf-8") as file:
        file.write(f"begun {now:.3f} {step}\n")
    facts = read_json(MEASURED) if MEASURED.is_file() else {}
    timed = facts["steps"] if facts.get("profile") == path.parent.name else {}
    known = {name: float(timed.get(name, {}).get("seconds", 0)) for name in planned}
    left = seconds_left(known, now - min(begun.values(), default=now), [*begun])
    line = f"[{len(begun) + 1:>{len(str(len(planned)))}}/{len(planned)}] {step}"
    start = "\r\x1b[K" if sys.stderr.isatty() else ""  # over the bar of a step beside this one
    shown = f"{line:{WIDTH}} {in_words(left)} left" if left else line
    print(f"{start}{shown}", file=sys.stderr, flush=True)


def finished() -> str | None:
    """Say how many steps make ran and in what time; None for a stage that is run by hand."""
    _, begun = read_run()
    spent = in_words(time.time() - min(begun.values(), default=0.0))
    return f"{len(begun)} steps in {spent}" if begun else None
