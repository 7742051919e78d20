"""Progress of a run: the number of a step and the time left.

`make` writes the stages that it is going to run, a line each, into the file that the
variable STEPS names. Every stage adds "begun TIME STEP" at its start. The times of the
reference run say what is left, scaled by how fast this run has been so far.
"""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from contamination.files import read_json

MEASURED = Path("results/reference/manifest.json")
PARALLEL = 2.0  # steps that make runs at a time, unless it is told another number
# seconds of this run that count as much as the reference run and that number
TRUST = 60.0
WIDTH = 48  # columns of the number of a step and what it does


def step_of(arguments: list[str]) -> str:
    """Name a step after the arguments of its stage, as a manifest does."""
    verb, *rest = arguments
    if rest and not rest[0].startswith("-"):
        return f"{verb} {Path(rest[0]).stem}"
    return verb


def read_run() -> tuple[list[str], dict[str, float]]:
    """Return the steps that make planned, in its order, and the time when each stage began.

    There are none for a stage that a person runs by hand, and in further processes of a
    step.
    """
    path = Path(os.environ.get("STEPS") or "-")
    if not path.is_file() or os.environ.get("RANK", "0") != "0":
        return [], {}
    planned: list[str] = []
    begun: dict[str, float] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.split()
        if words[0] == "begun":
            time_begun, *step = words[1:]
            begun[" ".join(step)] = float(time_begun)
        elif words[0] != "summary":
            planned.append(step_of(words))
    return planned, begun


def seconds_left(
    known: Mapping[str, float],
    elapsed: float,
    begun: Sequence[str],
) -> float:
    """Estimate how long the rest takes; the last step that has begun counts as half done.

    Parameters
    ----------
    known : seconds of each planned step in the reference run, 0 where it had no such
        step.
    elapsed : seconds of this run.
    begun : the steps that have begun.
    """
    begun_seconds = sum(known[step] for step in begun)
    last_seconds = sum(known[step] for step in begun[-1:])
    done = begun_seconds - last_seconds / 2
    return (sum(known.values()) - done) * (elapsed + TRUST) / (done + PARALLEL * TRUST)


def in_words(seconds: float) -> str:
    """Round to what the estimate is good for: "<1 min", "4 min", "2 h"."""
    minutes = seconds / 60
    if minutes < 1:
        return "<1 min"
    if minutes < 90:
        return f"{minutes:.0f} min"
    return f"{minutes / 60:.0f} h"


def begin(arguments: list[str]) -> None:
    """Print the line of a stage that make runs, and note when it began."""
    if not arguments:
        return
    step = step_of(arguments)
    if step not in read_run()[0]:
        return
    path = Path(os.environ["STEPS"])
    with path.open("a", encoding="utf-8") as file:
        file.write(f"begun {time.time():.3f} {step}\n")
    planned, begun = read_run()  # steps that begin at once have numbers of their own
    earlier = list(begun)[: list(begun).index(step)]
    known = _reference_seconds(planned, profile=path.parent.name)
    left = seconds_left(known, begun[step] - min(begun.values()), earlier)
    width = len(str(len(planned)))
    line = f"[{len(earlier) + 1:>{width}}/{len(planned)}] {step}"
    if left:
        line = f"{line:{WIDTH}} {in_words(left)} left"
    # A terminal may show the bar of a step that runs at the same time: the line
    # replaces it.
    start = "\r\x1b[K" if sys.stderr.isatty() else ""
    print(f"{start}{line}", file=sys.stderr, flush=True)


def _reference_seconds(steps: Sequence[str], *, profile: str) -> dict[str, float]:
    """Return the seconds of each step in the reference run, 0 of another profile or step."""
    timed: dict[str, dict[str, float]] = {}
    if MEASURED.is_file():
        manifest = read_json(MEASURED)
        if manifest.get("profile") == profile:
            timed = manifest["steps"]
    return {step: float(timed.get(step, {}).get("seconds", 0)) for step in steps}


def finished() -> str | None:
    """Say how many steps make ran and in what time; None for a stage that is run by hand."""
    _, begun = read_run()
    if not begun:
        return None
    spent = in_words(time.time() - min(begun.values()))
    return f"{len(begun)} steps in {spent}"
