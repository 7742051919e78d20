"""What a run of released models will take, before anything is downloaded.

Each measurement runs on models that count (`reproduction.run.counting`); devices are those of the
machine, or described.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.errors import InputError
from contamination.scoring.cost import total
from reproduction.notebooks.table import notebook_of
from reproduction.report.notebooks import notebook_parameters
from reproduction.run.counting import Counting
from reproduction.run.experiment import Experiment

# Of the rate of a matrix product alone. On a CPU docs/throughput.md measured 0.35 to 0.77 of it;
# for GPUs it is an assumption, and what is left for Python, padding and attention.
SHARE = 0.4
BFLOAT16 = 2  # bytes
ONE, SPREAD, NONE = "one device", "spread over all", "too large"
SIDE, SECONDS = 2048, 0.5  # of the matrices that are multiplied, and for how long

COLUMNS = (
    *("model", "id", "parameters", "download_gb", "memory_gb", "placement", "notebooks"),
    *("tokens_read", "tokens_scored", "flops", "hours", "exact"),
)


@dataclass(frozen=True)
class Device:
    """A device: its memory in bytes, FLOP/s of a matrix product on it, and bytes of a weight."""

    name: str
    memory: int
    flops_per_second: float
    weight: int = BFLOAT16


def described(text: str) -> Device:
    """Read "GB:TFLOPS", such as "141:989", of a GPU that is not here: 10^9 bytes, bfloat16, dense.

    Raises InputError for anything else.
    """
    memory, _, rate = text.partition(":")
    try:
        device = Device(f"GPU of {text}", int(1e9 * float(memory)), 1e12 * float(rate))
    except ValueError:
        device = Device(text, 0, 0.0)
    if not (device.memory > 0 and device.flops_per_second > 0):
        raise InputError(f"--gpu {text}: write GB:TFLOPS, as in 24:165")
    return device


def devices_found() -> list[Device]:
    """The GPUs of this machine, else its CPU; each multiplies matrices for half a second."""
    import torch

    from contamination.device import describe, has_bfloat16, memories

    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    dtype = torch.bfloat16 if has_bfloat16(device) else torch.float32
    left, right = (torch.ones(SIDE, SIDE, dtype=dtype, device=device) for _ in range(2))
    rounds, started, seconds = 0, time.perf_counter(), 0.0
    while seconds < SECONDS:
        float((left @ right)[0, 0])  # waits for the device
        rounds, seconds = rounds + 1, time.perf_counter() - started
    rate = 2.0 * SIDE**3 * rounds / seconds
    found = memories(device)
    return [Device(describe(device), memory, rate, dtype.itemsize) for memory in found]


def count_profile(experiment: Experiment, folder: Path, counting: Counting) -> None:
    """Make the measurements of every notebook of a profile without a corpus on models that count.

    `folder` holds the notebooks; those without a measurement are left out. Raises InputError as
    `notebook_parameters` does.
    """
    for name in experiment.profile.notebooks:
        source = folder / f"{name}.ipynb"
        package = f"reproduction.notebooks.{notebook_of(source).package}"
        measure = getattr(import_module(f"{package}.measure"), "measure", None)
        if measure is not None:
            values = notebook_parameters(source, experiment, source)
            wanted = {key: values[key] for key in signature(measure).parameters if key in values}
            counting.notebook = name
            measure(experiment, **wanted, access=counting)


def cost_table(counting: Counting, devices: Sequence[Device]) -> pd.DataFrame:
    """Add up what was counted, a row for each model, `COLUMNS`, the largest last.

    memory_gb is that of the weights, in bfloat16 where the devices have it. `placement` says
    whether they fit one of the `devices`, all of them together, or none. hours are those of all
    devices where a model fits each of them, of one where it is spread, since then they wait for
    each other; NaN for what is too large. exact: nothing is an estimate.
    """
    from contamination.scoring.local import ROOM

    rows = []
    for name, model in counting.models.items():
        found = {key: work for key, work in counting.works.items() if key[1] == name}
        if not found:
            continue
        entry, facts, work = model.entry, model.facts, total(found.values())
        weights = devices[0].weight * (facts.parameters or 0)
        slowest = min(device.flops_per_second for device in devices)
        if weights <= ROOM * min(device.memory for device in devices):
            placement, rate = ONE, len(devices) * slowest
        elif weights <= ROOM * sum(device.memory for device in devices):
            placement, rate = SPREAD, slowest
        else:
            placement, rate = NONE, float("nan")
        flops = facts.shape.flops(work)
        rows.append(
            {
                "model": entry.name,
                "id": entry.id,
                "parameters": facts.parameters,
                "download_gb": facts.download / 1e9,
                "memory_gb": weights / 1e9,
                "placement": placement,
                "notebooks": " ".join(dict.fromkeys(notebook[:2] for notebook, *_ in found)),
                "tokens_read": work.read,
                "tokens_scored": work.scored,
                "flops": flops,
                "hours": flops / (SHARE * rate) / 3600,
                "exact": model.exact,
            }
        )
    table = pd.DataFrame(rows, columns=list(COLUMNS)).astype({"parameters": "Int64"})
    return table.sort_values("memory_gb", kind="stable", ignore_index=True)


def sums(table: pd.DataFrame) -> dict[str, float]:
    """Add up what the devices can run: models, gigabytes, tokens, FLOPs and hours."""
    fit = table[table["placement"] != NONE]
    names = ("download_gb", "tokens_read", "tokens_scored", "flops", "hours")
    whole = {name: float(fit[name].sum()) for name in names}
    return {"models": len(fit), "too_large": len(table) - len(fit), **whole}


def as_json(profile: str, devices: Sequence[Device], table: pd.DataFrame) -> dict[str, Any]:
    """Return the plan for programs; numbers that are not known are null."""
    models = table.astype(object).where(table.notna(), None).to_dict("records")
    shown = [asdict(device) for device in devices]
    return {"profile": profile, "devices": shown, "share": SHARE, "models": models} | {
        "total": sums(table)
    }
