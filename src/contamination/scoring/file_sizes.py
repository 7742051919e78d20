"""Models whose files are so short that their weights fit, and need not be counted.

Counting builds the network, and to import its code takes longer than to import torch: a
command that finds all its stores full does without it.
"""

import os
from pathlib import Path

import torch

from contamination.device import memories
from contamination.scoring.checkpoint import weights_of
from contamination.scoring.model_source import ModelSource

WEIGHTS_PER_BYTE = 2  # at most: no file holds less than four bits of each
SHARE = 0.5  # of a device's memory, in which the weights fit beyond doubt


def fits_surely(
    source: ModelSource,
    dtype: torch.dtype,
    device: torch.device,
) -> bool:
    """Say whether a model's files are too short to hold weights that exceed a device.

    It is False for a hub id, whose files may not be here. A configuration may describe
    more weights than the files hold: whoever loads them counts.

    Parameters
    ----------
    source
        Source of the weights.
    dtype
        Precision in which they are loaded.
    device
        Device of this process; several processes of a machine may share it.
    """
    directory = Path(source.name)
    if not directory.is_dir():
        return False
    size = sum(file.stat().st_size for file in weights_of(directory))
    most = WEIGHTS_PER_BYTE * size * dtype.itemsize
    sharing = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return most <= SHARE * min(memories(device)) / sharing
