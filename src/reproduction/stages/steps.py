"""Progress of a run: the number of a step and the time left.

`make` writes the stages that it is going to run, a line each, into the file that the
variable STEPS names. Every stage adds "begun TIME STEP" at its start, "left SECONDS" if
it could say what is left, and "spent SECONDS STEP", of processors, at its end. The
times of the reference run say what is left, scaled by how fast this run has been so
far. The time that is shown never rises: where an estimate does, the last one stays.
"""

import atexit
import math
import os
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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


@dataclass
class Run:
    """The contents of the file of a run of make so far.

    Attributes
    ----------
    planned
        The steps that make planned, in its order.
    begun
        The time when each stage began.
    left
        The seconds that the last stage said were left; infinite before the first.
    spent
        Seconds of processor time of each stage that has ended.
    """

    planned: list[str] = field(default_factory=list)
    begun: dict[str, float] = field(default_factory=dict)
    left: float = math.inf
    spent: dict[str, float] = field(default_factory=dict)


def read_run() -> Run:
    """Return the run of make that started this stage.

    It is empty for a stage that a person runs by hand, and in further processes of a
    step.
    """
    run = Run()
    path = Path(os.environ.get("STEPS") or "-")
    if not path.is_file() or os.environ.get("RANK", "0") != "0":
        return run
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.split()
        if words[0] == "begun":
            run.begun[" ".join(words[2:])] = float(words[1])
        elif words[0] == "spent":
            run.spent[" ".join(words[2:])] = float(words[1])
        elif words[0] == "left":
            run.left = float(words[1])
        elif words[0] != "summary":
            run.planned.append(step_of(words))
    return run


def _note(path: Path, line: str) -> None:
    """Add a line to the file of the run."""
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def _note_spent(path: Path, step: str) -> None:
    """Note the processor time of this stage and of the processes that it started."""
    seconds = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        seconds += usage.ru_utime + usage.ru_stime
    if path.is_file():
        _note(path, f"spent {seconds:.3f} {step}")


def seconds_left(
    known: Mapping[str, float],
    elapsed: float,
    begun: Sequence[str],
) -> float:
    """Return the estimated seconds of the rest; the last step that has begun counts as half done.

    Parameters
    ----------
    known
        Seconds of each planned step in the reference run, 0 where it had no such step.
    elapsed
        Seconds of this run.
    begun
        The steps that have begun.
    """
    begun_seconds = sum(known[step] for step in begun)
    last_seconds = sum(known[step] for step in begun[-1:])
    done = begun_seconds - last_seconds / 2
    return (sum(known.values()) - done) * (elapsed + TRUST) / (done + PARALLEL * TRUST)


def in_words(seconds: float) -> str:
    """Return a time as coarse as the estimate is: "<1 min", "4 min", "2 h"."""
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
    if step not in read_run().planned:
        return
    path = Path(os.environ["STEPS"])
    _note(path, f"begun {time.time():.3f} {step}")
    atexit.register(_note_spent, path, step)
    run = read_run()  # steps that begin at once have numbers of their own
    planned = run.planned
    earlier = list(run.begun)[: list(run.begun).index(step)]
    known = _reference_seconds(planned, profile=path.parent.name)
    elapsed = run.begun[step] - min(run.begun.values())
    left = min(run.left, seconds_left(known, elapsed, earlier))
    if left:
        _note(path, f"left {left:.3f}")
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


def longest_first(notebooks: Sequence[str], root: Path) -> list[str]:
    """Sort notebooks by the time that they took in the reference run, passes included.

    Two steps run at a time: a long one that came last would run alone.
    """
    manifest = root / MEASURED
    if not manifest.is_file():
        return list(notebooks)
    timed = read_json(manifest)["steps"]

    def seconds(name: str) -> float:
        steps = (f"measure {name}", f"notebook {name}")
        return sum(float(timed.get(step, {}).get("seconds", 0)) for step in steps)

    return sorted(notebooks, key=seconds, reverse=True)


def finished() -> str | None:
    """Return number and time of the steps that make ran; None for a stage that is run by hand."""
    run = read_run()
    if not run.begun:
        return None
    wall = in_words(time.time() - min(run.begun.values()))
    line = f"{len(run.begun)} steps in {wall} by the clock"
    if run.spent:
        line += f", {in_words(sum(run.spent.values()))} of processor time"
    return line
