"""A small training run, as a program of its own: to be killed, or launched twice at once.

python training_run.py TOKENIZER DIRECTORY [kill-at-step N | kill-while-saving N | micro-batch N]
"""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from accelerate import PartialState
from transformers import AutoTokenizer

from reproduction.run import training
from reproduction.run.network import NextTokenLoss
from reproduction.run.profile import Architecture, TrainingSpec

SHAPE = Architecture(n_embd=16, n_layer=1, n_head=2, n_positions=8)
SPEC = TrainingSpec(
    batch_size=8,
    micro_batch_size=2,
    learning_rate=0.01,
    weight_decay=0.1,
    warmup_steps=3,
    checkpoint_steps=5,
)
STEPS = 18


def tokens(seed: int = 0) -> np.ndarray:
    """Return a stream of exactly STEPS steps and a tail that is dropped."""
    length = STEPS * SPEC.batch_size * SHAPE.n_positions + 1 + 5
    return np.random.default_rng(seed).integers(0, 60, length, dtype=np.int32)


def run(tokenizer, directory: Path, **changes):
    """Train the small model, with some arguments changed."""
    arguments = {"tokens": tokens(), "shape": SHAPE, "spec": SPEC, "seed": 1, "label": "test"}
    arguments |= {"tokenizer": tokenizer, "directory": directory}
    return training.train(**(arguments | changes))


def kill_at(function, call: int, path_of_half=None):
    """Wrap a function so that its n-th call is the last thing that the process does."""
    calls = []

    def wrapped(*arguments):
        calls.append(None)
        if len(calls) == call:
            if path_of_half:
                path_of_half(arguments).write_bytes(b"half")
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments)

    return wrapped


def count_targets() -> list[int]:
    """Return a list that grows by the number of targets of each forward pass."""
    targets, forward = [], NextTokenLoss.forward

    def counted(self, ids):
        targets.append(ids[:, 1:].numel())
        return forward(self, ids)

    NextTokenLoss.forward = counted
    return targets


if __name__ == "__main__":
    tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
    match sys.argv[3:]:
        case ["kill-at-step", count]:
            training._step = kill_at(training._step, int(count))
        case ["kill-while-saving", count]:
            training.torch.save = kill_at(training.torch.save, int(count), lambda a: a[1])
    micro = int(sys.argv[4]) if sys.argv[3:4] == ["micro-batch"] else SPEC.micro_batch_size
    targets = count_targets()
    run(tokenizer, Path(sys.argv[2]), spec=replace(SPEC, micro_batch_size=micro))
    # One write, so that two processes do not write into each other's lines.
    print(f"{sum(targets)} targets in 1 of {PartialState().num_processes} processes\n", end="")
