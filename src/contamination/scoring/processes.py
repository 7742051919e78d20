"""The processes of one run: torchrun or accelerate starts them, and each takes its share.

They meet twice: before the work, to agree on what is missing, and after it. A process that dies in
between ends the run; what it had finished is stored, and the next run does the rest.
"""

import os
from datetime import timedelta
from functools import cache
from typing import Any

import torch
import torch.distributed as dist
from accelerate import PartialState

from contamination.errors import InputError

PATIENCE = timedelta(days=30)  # for the slowest process; one that has died is noticed at once


@cache
def processes() -> PartialState:
    """Return the number of this process, that of all of them, and the device of this one.

    Raises InputError if the environment names several processes that cannot meet.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    try:
        # Without `cpu`, accelerate takes processes on CPUs for so many that are alone.
        state = PartialState(cpu=size > 1 and not torch.accelerator.is_available())
        met, reason = state.num_processes == size, f"this one knows {state.num_processes}"
    except (ValueError, dist.DistError) as error:
        met, reason = False, str(error)
    if not met:
        raise InputError(
            f"WORLD_SIZE is {size}, and the processes do not find each other ({reason}); start "
            "them with torchrun"
        )
    return state


def gather(value: Any) -> list[Any]:
    """Wait for all processes and return the values of each, by its number.

    Raises InputError if another process has ended.
    """
    state = processes()
    if state.num_processes == 1:
        return [value]
    values: list[Any] = [None] * state.num_processes
    try:
        dist.all_gather_object(values, value, group=_group())
    except RuntimeError as error:
        raise InputError(
            f"process {state.process_index}: another process has ended; what is finished is "
            "stored, run the same command again for the rest"
        ) from error
    return values


@cache
def _group() -> Any:
    # Of its own: that of a GPU's network would give up on the slowest after ten minutes.
    return dist.new_group(backend="gloo", timeout=PATIENCE)
