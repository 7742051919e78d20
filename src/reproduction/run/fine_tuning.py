"""Fine-tuning: a trained model reads a few texts some more times (Fu, the tuning phase).

Each text stands alone after the start token, as it is scored later. The result is kept
beside the other models and made again only if the model, the texts or the settings are
others.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from accelerate import PartialState
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel
from transformers.utils import logging

from contamination.errors import InputError
from contamination.files import read_json, replacing, sha256_of, write_json
from contamination.randomness import random_stream
from contamination.scoring.contract import start_token
from reproduction.run.network import NextTokenLoss, training_attention

RECORD = "fine_tuning.json"
RECIPE = 1  # part of the key of a model; raise it if the same arguments give another one


def fine_tune(
    model: Path,
    texts: Sequence[np.ndarray],
    directory: Path,
    *,
    learning_rate: float,
    seed: int,
    epochs: int = 1,
    batch_size: int = 8,
) -> Path:
    """Train a model further and save it in `directory`; return that directory.

    AdamW at a constant learning rate without weight decay; every epoch goes through the
    texts in another order. Nothing is done if the directory holds this very model
    already.

    Parameters
    ----------
    model
        Directory of the model and its tokenizer, which stay as they are.
    texts
        Token ids, all of one length of at most the context of the model.
    directory
        Folder of the new model.
    learning_rate
        Learning rate of every step.
    seed
        Draws the order of the texts.
    epochs
        Passes over the texts.
    batch_size
        Texts of a step.

    Raises
    ------
    InputError
        For no text, texts of several lengths or longer than the context, an argument
        that is not positive, or a learning rate at which the loss is not finite.
    """
    tokenizer = AutoTokenizer.from_pretrained(model, local_files_only=True)
    context = AutoConfig.from_pretrained(
        model,
        local_files_only=True,
    ).max_position_embeddings
    lengths = {len(ids) for ids in texts}
    if len(lengths) != 1 or max(lengths) > context or min(epochs, learning_rate, batch_size) <= 0:
        raise InputError(
            f"{len(texts)} texts of {lengths or 'no'} tokens, {epochs} epochs, learning "
            f"rate {learning_rate}: give positive numbers, and texts of one length, at "
            f"most the {context} tokens that {model} reads",
        )
    ids = np.stack(texts).astype(np.int64)
    identity = repr((RECIPE, ids.shape, epochs, learning_rate, seed, batch_size))
    key = sha256_of(model / "model.safetensors", ids.tobytes(), identity)
    record = directory / RECORD
    if record.is_file() and read_json(record)["key"] == key:
        return directory

    logging.disable_progress_bar()
    network = AutoModelForCausalLM.from_pretrained(
        model,
        local_files_only=True,
        dtype=torch.float32,
    )
    device = PartialState().device
    network.to(device).train()
    network.set_attn_implementation(training_attention(device, ids.shape[1]))
    loss_of = NextTokenLoss(network)
    optimizer = torch.optim.AdamW(
        network.parameters(),
        lr=learning_rate,
        weight_decay=0.0,
        fused=True,
    )
    starts = np.full((len(ids), 1), start_token(tokenizer), dtype=np.int64)
    rows = torch.from_numpy(np.concatenate([starts, ids], axis=1))
    rng = random_stream(seed, "fine-tuning")
    losses: list[float] = []
    for _ in range(epochs):
        order = rng.permutation(len(ids))
        total = 0.0
        for first in range(0, len(ids), batch_size):
            batch = rows[order[first : first + batch_size]].to(device)
            loss = loss_of(batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            total += loss.item() * len(batch)
        losses.append(total / len(ids))
        if not math.isfinite(losses[-1]):
            raise InputError(
                f"fine-tuning {model}: the loss is {losses[-1]}; lower the learning rate",
            )
    with replacing(directory) as temporary:
        temporary.mkdir()
        _save(network, temporary)
        tokenizer.save_pretrained(temporary)
        write_json(
            temporary / RECORD,
            {"key": key, "texts": len(ids), "epoch_losses": losses},
        )
    return directory


def _save(network: PreTrainedModel, directory: Path) -> None:
    """Save a model in any process: `save_pretrained` writes in the first alone."""
    network.config.architectures = [type(network).__name__]
    for part in (network.config, network.generation_config):
        part.save_pretrained(directory)
    weights = network.state_dict()
    for tied in network.all_tied_weights_keys:
        del weights[tied]
    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})
