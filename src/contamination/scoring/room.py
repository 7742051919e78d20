"""The room in memory for the weights of a model, and for the batches that a GPU reads.

The tokens of a batch follow from the free memory of the card by a law of bytes.

A layer has its largest tensors alive at once between its two linear maps: per token six
vectors of the hidden width and four of the inner one (three with a gate, four or five
where the activation takes several steps), in the precision of the model, and one row of
a mask. Attention without a fused kernel adds four rows of scores per head, one of them
in float32. Where prefixes are shared, the keys and values of all layers
stay until the batch is read. Beside them lie the logits of one block of the output
layer. The law does not cover the states of recurrent layers: where it says too much,
memory runs out, and the scorer halves its batches.
"""

import os
from pathlib import Path
from typing import Any

import torch

from contamination.device import memories
from contamination.errors import InputError
from contamination.scoring.checkpoint import weights_of
from contamination.scoring.configuration import count_parameters
from contamination.scoring.model_source import ModelSource

ROOM = 0.8  # of the memory for weights; the rest is for batches
SHARE = 0.8  # of the free memory; the rest is for gaps between blocks, and for kernels
WEIGHTS_PER_BYTE = 2  # of a file at most: none holds less than four bits of each
SURE_SHARE = 0.5  # of a device's memory, in which weights fit beyond doubt
HEAD_SHARE = 0.25  # of the free memory at most, for logits of the output layer
FLOAT32 = 4  # bytes
HIDDEN_VECTORS = 6
INNER_VECTORS = 4
INNER_WIDTHS = ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "d_ff")


def head_rows(free: int | None, vocabulary: int, *, itemsize: int, most: int) -> int:
    """Return how many positions the output layer computes logits for at a time, at least one.

    `free` bytes of memory are free; None if nobody counts them. A logit exists in the
    precision of the model, of `itemsize` bytes, and in float32; a block has `most` at
    most.
    """
    logits = most
    if free is not None:
        logits = min(most, int(HEAD_SHARE * free) // (itemsize + FLOAT32))
    return max(1, logits // vocabulary)


def batch_room(
    free: int,
    config: Any,
    *,
    row: int,
    itemsize: int,
    most: int,
    block: int,
    keeps_keys: bool = False,
) -> int:
    """Return the tokens of a batch: `most`, halved until its bytes fit into the free memory.

    The bytes are `bytes_per_token` times the tokens, and the block of logits. They may
    be 80% of the free ones. Halving keeps the batches of two runs equal where a few
    megabytes more or less are free. The least is one row, which cannot be divided.

    Parameters
    ----------
    free
        Bytes of memory that are free, with the weights loaded.
    config
        Configuration of the model.
    row
        Tokens of the longest row.
    itemsize
        Bytes of a number of the model.
    most
        Tokens of a batch at most.
    block
        Logits of a block of the output layer.
    keeps_keys
        Whether keys and values of all layers stay, for rows that share a prefix.
    """
    room = SHARE * free - block * (itemsize + FLOAT32)
    each = bytes_per_token(config, row=row, itemsize=itemsize, keeps_keys=keeps_keys)
    tokens = most
    while tokens > row and tokens * each > room:
        tokens //= 2
    return max(tokens, min(row, most))


def bytes_per_token(config: Any, *, row: int, itemsize: int, keeps_keys: bool = False) -> int:
    """Return the bytes that a token of a batch takes while a layer computes; see `batch_room`."""
    text = config.get_text_config()
    width = text.hidden_size
    heads = getattr(text, "num_attention_heads", None) or 1
    numbers = HIDDEN_VECTORS * width + INNER_VECTORS * inner_width(text) + 2 * row
    if keeps_keys:
        size = getattr(text, "head_dim", None) or width // heads
        key_heads = getattr(text, "num_key_value_heads", None) or heads
        # Of one layer they exist twice, for every head: behind each row that continues.
        numbers += 2 * text.num_hidden_layers * key_heads * size + 4 * heads * size
    each = itemsize * numbers
    if getattr(config, "_attn_implementation", None) == "eager":
        each += heads * row * (3 * itemsize + FLOAT32)
    return int(each)


def inner_width(text: Any) -> int:
    """Return the numbers between the linear maps of a layer, of all experts of a token.

    It is four times the hidden width where a configuration says nothing.
    """
    experts = getattr(text, "num_experts_per_tok", None) or 1
    for name in INNER_WIDTHS:
        width = getattr(text, name, None)
        if isinstance(width, int) and width > 0:
            return width * experts
    return 4 * int(text.hidden_size) * experts


def fits_surely(
    source: ModelSource,
    dtype: torch.dtype,
    device: torch.device,
) -> bool:
    """Return whether a model's files are too short to hold weights that exceed a device.

    Counting builds the network, and to import its code takes longer than to import
    torch: a command that finds all its stores full does without it. It is False for a
    hub id, whose files may not be here. A configuration may describe more weights than
    the files hold: whoever loads them counts. Several processes of a machine may share
    the device.
    """
    directory = Path(source.name)
    if not directory.is_dir():
        return False
    size = sum(file.stat().st_size for file in weights_of(directory))
    most = WEIGHTS_PER_BYTE * size * dtype.itemsize
    sharing = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return most <= SURE_SHARE * min(memories(device)) / sharing


def must_spread(
    source: ModelSource,
    config: Any,
    dtype: torch.dtype,
    device: torch.device,
) -> bool:
    """Return whether the weights exceed the device of a process, and are spread over all devices.

    On a CPU processes share the memory. What comes with code of its own is not
    measured. Raises InputError if the weights exceed all devices together, or no
    network can be built.
    """
    if source.trust_remote_code:
        return False
    weights = count_parameters(config) * dtype.itemsize
    devices = memories(device)
    own: float = min(devices)
    if device.type != "cuda":  # processes on one machine share its memory
        own = devices[0] / int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if weights <= ROOM * sum(devices):
        return weights > ROOM * own
    raise InputError(
        f"{source.name}: its weights take {weights / 1e9:,.3g} GB, and {len(devices)} "
        f"device(s) ({device.type}) have {sum(devices) / 1e9:,.3g} GB of memory, "
        f"{ROOM:.0%} of it for weights; take a smaller one, or a machine with more"
    )
