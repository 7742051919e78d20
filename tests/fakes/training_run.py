"""A small training run, and one that kills itself."""

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from safetensors.torch import load_file

from reproduction.run import training
from reproduction.run.profile import Architecture, TrainingSpec

if TYPE_CHECKING:
    import pytest

SHAPE = Architecture(n_embd=16, n_layer=1, n_head=2, n_positions=8)
SIZES = {"batch_size": 8, "micro_batch_size": 2, "warmup_steps": 3, "checkpoint_steps": 5}
SPEC = TrainingSpec(learning_rate=0.01, weight_decay=0.1, **SIZES)
STEPS = 18
KILLS = ("at-step", "while-saving")  # the 13th step, the second checkpoint
CHECKPOINT = "model.checkpoint"  # beside the directory of the model


def tokens(seed: int = 0) -> np.ndarray:
    """Return a stream of exactly STEPS steps and a tail that is dropped."""
    length = STEPS * SPEC.batch_size * SHAPE.n_positions + 1 + 5
    return np.random.default_rng(seed).integers(0, 60, length, dtype=np.int32)


def run(tokenizer, directory: Path, **changes):
    """Train the small model, with some arguments changed."""
    arguments = {"tokens": tokens(), "shape": SHAPE, "spec": SPEC, "seed": 1, "label": "test"}
    arguments |= {"tokenizer": tokenizer, "directory": directory}
    return training.train(**(arguments | changes))


def weights(directory: Path) -> bytes:
    """Return the bytes of a model's weights."""
    return (directory / "model.safetensors").read_bytes()


def record_steps(patch: "pytest.MonkeyPatch") -> list:
    """Return a list that grows by one entry (batch, parameter groups, loss) per step."""
    steps, real = [], training._step

    def recorded(accelerator, model, optimizer, batch, spec):
        groups = [dict(group) for group in optimizer.param_groups]
        loss = real(accelerator, model, optimizer, batch, spec)
        steps.append((batch.copy(), groups, loss))
        return loss

    patch.setattr(training, "_step", recorded)
    return steps


def largest_difference(left, right) -> float:
    """Compare weights, but for the bias of the keys.

    It shifts all attention logits of a query alike, so its gradient is zero up to rounding, which
    Adam blows up to full steps.
    """
    left, right = (load_file(directory / "model.safetensors") for directory in (left, right))
    assert left.keys() == right.keys()
    width = SHAPE.n_embd
    differences = []
    for name in left:
        difference = (left[name] - right[name]).abs()
        if name.endswith("attn.c_attn.bias"):
            difference[width : 2 * width] = 0
        differences.append(float(difference.max()))
    return max(differences)


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


def killed(how: str, tokenizer, directory: Path) -> int:
    """Train in a process that kills itself; return its exit status, as subprocess has it."""
    child = os.fork()
    if child == 0:
        try:
            if how == "at-step":
                training._step = kill_at(training._step, 13)
            else:
                training.torch.save = kill_at(training.torch.save, 2, lambda a: a[1])
            run(tokenizer, directory)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
