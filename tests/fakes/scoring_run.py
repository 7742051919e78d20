"""A small scoring run, as a program of its own: to be launched several times at once, or killed.

python scoring_run.py SCORER MODEL STORE [share FIFOS | kill RANK FIFOS]

SCORER is "network" or "made-up", which takes only the tokenizer of the model and starts sooner.
share: process 1 keeps its first part until process 0 has done all the others. kill: a process ends
in the middle of its first part, while the other one has a part, too. Nobody sleeps: who opens a
FIFO waits for the other end.
"""

import os
import signal
import sys
from pathlib import Path

from transformers import AutoTokenizer

from contamination.errors import InputError
from contamination.scoring import queue as queue_module
from contamination.scoring import score as scoring
from contamination.scoring.queue import work_queue
from contamination.testsets.example_set import ExampleSet
from fakes.made_up_scorer import MadeUpScorer

EXAMPLES = tuple(f"{word} {'stone ' * (i % 4)}№{i}\n" for i, word in enumerate(["lamp", "é"] * 7))
SET = ExampleSet("made-up", EXAMPLES, "text/1", "data-1")
SMALLEST_PART = 100  # so that there are enough of them


def scorer_of(kind: str, model: Path):
    """Make the scorer of that kind."""
    if kind == "made-up":
        return MadeUpScorer(AutoTokenizer.from_pretrained(model))

    from contamination.scoring.local import TransformersScorer

    return TransformersScorer(model, batch_tokens=25)


def run(scorer, directory: Path):
    """Score a small set; return the store."""
    return scoring.score(SET, scorer, directory, model="m", shards=3, permutations=5, seed=1)


def meet(fifo: Path, mode: str) -> None:
    """Wait until the other process has come here."""
    with fifo.open(mode):
        pass


def share(scorer, fifos: Path) -> None:
    """Make process 1 slower than process 0, however fast it is."""
    rank, calls = work_queue().rank, []
    score, wait = scorer.token_logprobs, queue_module.SharedQueue._wait_for_the_others

    def token_logprobs(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            meet(fifos / "taken", "wr"[rank == 0])
            if rank == 1:
                meet(fifos / "others-done", "r")
        return score(*arguments)

    def wait_for_the_others(*arguments):
        # One write, so that two processes do not write into each other's lines.
        print(f"process 0 had scored {len(calls)} parts\n", end="", flush=True)
        meet(fifos / "others-done", "w")
        wait(*arguments)

    scorer.token_logprobs = token_logprobs
    queue_module.SharedQueue._wait_for_the_others = wait_for_the_others


def kill(scorer, rank: int, fifos: Path) -> None:
    """Make a process kill itself when it has scored half of its first part."""
    calls, score = [], scorer.token_logprobs

    def token_logprobs(sequences, wanted):
        calls.append(sequences)
        if len(calls) == 1:
            meet(fifos / "taken", "wr"[work_queue().rank == 0])
        for number, result in enumerate(score(sequences, wanted)):
            if work_queue().rank == rank and 2 * number >= len(sequences):
                os.kill(os.getpid(), signal.SIGKILL)
            yield result

    scorer.token_logprobs = token_logprobs


if __name__ == "__main__":
    scoring.SMALLEST_PART = SMALLEST_PART
    scorer = scorer_of(sys.argv[1], Path(sys.argv[2]))
    match sys.argv[4:]:
        case ["share", fifos]:
            share(scorer, Path(fifos))
        case ["kill", rank, fifos]:
            kill(scorer, int(rank), Path(fifos))
    if "PATIENCE" in os.environ:
        queue_module.PATIENCE_SECONDS = float(os.environ["PATIENCE"])
    try:
        store = run(scorer, Path(sys.argv[3]))
    except InputError as error:
        sys.exit(f"error: {error}")
    # Every process sees the whole store when it is told that it is done.
    assert store.log_probs(5).shape == (3, 6)
