"""Where the weights of a model go: to the device of a process, over all devices, or nowhere."""

import os
from dataclasses import replace
from typing import Any

import torch

from contamination.device import memories
from contamination.errors import InputError
from contamination.scoring.loading import ModelSource, count_parameters

ROOM = 0.8  # of the memory for weights; the rest is for batches


def place(
    source: ModelSource, config: Any, dtype: torch.dtype, device: torch.device
) -> ModelSource:
    """Return the source with a `device_map` if its weights exceed the device of a process.

    On a CPU processes share the memory, and so each has a part of it for a model of its own. All
    processes that see the same devices decide alike. What comes with code of its own is not
    measured. Raises InputError if the weights exceed all devices together, and as `model_shape`.
    """
    if source.device_map is not None or source.trust_remote_code:
        return source
    bytes_each = int(source.bits) / 8 if source.bits else dtype.itemsize
    weights, devices = count_parameters(config) * bytes_each, memories(device)
    gpu = device.type == "cuda"
    own = min(devices) if gpu else devices[0] / int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if weights <= ROOM * own:
        return source
    if weights <= ROOM * sum(devices):
        return replace(source, device_map="auto")
    several = len(devices) > 1
    where = f"{len(devices)} GPU{'s have' if several else ' has'}" if gpu else "this machine has"
    raise InputError(
        f"{source.name}: its weights take {weights / 1e9:,.3g} GB in "
        f"{f'{source.bits} bits' if source.bits else str(dtype).removeprefix('torch.')}, and "
        f"{where} {sum(devices) / 1e9:,.3g} GB of memory, {ROOM:.0%} of it for weights; "
        "quantise it (bits), take a smaller one, or a machine with more"
    )
