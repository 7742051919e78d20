"""A small scoring run, of two processes also one of which one kills itself."""

import os
import signal
import sys
from pathlib import Path

from contamination.errors import InputError
from contamination.scoring import score as scoring
from contamination.scoring.plan import StorePlan
from contamination.scoring.processes import processes
from contamination.testsets.example_set import ExampleSet

EXAMPLES = tuple(f"{word} {'stone ' * (i % 4)}№{i}\n" for i, word in enumerate(["lamp", "é"] * 7))
SET = ExampleSet("made-up", EXAMPLES, "text/1", "data-1")
SMALLEST_PART = 100  # so that there are enough of them


def run(scorer, directory: Path):
    """Score a small set; return the store."""
    plan = StorePlan("orderings", 3)
    return scoring.score(SET, scorer, directory, plan, model="m", permutations=5, seed=1)


def run_killed(scorer, directory: Path, rank: int, fifo: Path) -> None:
    """Score where the process of that rank kills itself in the middle of its first part.

    Then the other has a part, too. Nobody sleeps: who opens a FIFO waits for the other end.
    """
    calls, score = [], scorer.token_logprobs

    def token_logprobs(sequences, firsts=None):
        calls.append(sequences)
        if len(calls) == 1:
            with fifo.open("rw"[processes().is_main_process]):
                pass
        for number, result in enumerate(score(sequences, firsts)):
            if processes().process_index == rank and 2 * number >= len(sequences):
                os.kill(os.getpid(), signal.SIGKILL)
            yield result

    scorer.token_logprobs = token_logprobs
    try:
        run(scorer, directory)
    except InputError as error:
        sys.exit(f"error: {error}")


def threads_of_gloo() -> list[str]:
    """Name the threads of this process by which it talks to the others."""
    names = [name.read_text().strip() for name in Path("/proc/self/task").glob("*/comm")]
    return [name for name in names if "gloo" in name]


def nothing_is_left() -> None:
    """End with status 3 where threads live on that need Python: they abort a process at random."""
    if left := threads_of_gloo():
        print(f"still running: {left}", file=sys.stderr, flush=True)
        os._exit(3)
