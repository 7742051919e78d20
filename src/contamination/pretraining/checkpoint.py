"""Checkpoints of a training run, as one safetensors file that is whole or absent.

Weights, the moments of AdamW and the recent losses are tensors; the step and the identity of the
run stand in the file's metadata. A checkpoint is resumed only by the very run that wrote it.
"""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from contamination.files import replacing


def save_checkpoint(
    path: Path,
    key: str,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    state: dict[str, Any],
) -> None:
    """Write model, optimiser and state (step, seconds, losses) of the run named `key`."""
    tensors = {f"model.{name}": p.detach() for name, p in model.named_parameters()}
    for index, slots in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{slot}": value for slot, value in slots.items()}
    tensors["losses"] = torch.tensor(state["losses"], dtype=torch.float64)
    metadata = {"key": key, "step": str(state["step"]), "seconds": str(state["seconds"])}
    with replacing(path) as temporary:
        save_file({k: v.contiguous().cpu() for k, v in tensors.items()}, temporary, metadata)


def load_checkpoint(
    path: Path, key: str, model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> dict[str, Any]:
    """Load a checkpoint of this very run into model and optimiser, or start at step 0."""
    fresh = {"step": 0, "seconds": 0.0, "losses": []}
    if not path.exists():
        return fresh
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata()
            if metadata["key"] != key:
                return fresh
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError:
        return fresh  # unreadable: training from the start costs time, never correctness
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors[f"model.{name}"])
    slots: dict[int, dict[str, torch.Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith("optimizer."):
            _, index, slot = name.split(".")
            slots.setdefault(int(index), {})[slot] = value
    optimizer.load_state_dict(optimizer.state_dict() | {"state": slots})
    return {
        "step": int(metadata["step"]),
        "seconds": float(metadata["seconds"]),
        "losses": tensors["losses"].tolist(),
    }
