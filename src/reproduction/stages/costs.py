"""What a run of released models takes, before it downloads anything: `make plan`.

Each measurement runs on models that count (`reproduction.run.counting`); devices are those of the
machine, or described. (`contamination plan` is another thing: how many shards a power takes.)
"""

import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import pandas as pd
from huggingface_hub.utils.tqdm import disable_progress_bars

from contamination.cli.printing import print_table
from contamination.errors import InputError
from contamination.scoring.cost import total
from contamination.scoring.local import ROOM
from reproduction.notebooks.table import notebook_of
from reproduction.output.figures import short_count
from reproduction.report.notebooks import notebook_parameters
from reproduction.run.counting import Counting
from reproduction.run.experiment import Experiment

NOTEBOOKS, MEASURED = Path("notebooks"), Path("docs/measurements/set_tokens.csv")
# Of the rate of a matrix product alone. On a CPU docs/throughput.md measured 0.35 to 0.77 of it;
# for GPUs it is an assumption, and what is left for Python, padding and attention.
SHARE = 0.4
YEAR = 8_766  # hours
BFLOAT16 = 2  # bytes
ONE, SPREAD, NONE = "one device", "spread over all", "too large"
SIDE, SECONDS = 2048, 0.5  # of the matrices that are multiplied, and for how long

Row = dict[str, Any]


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

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dtype = torch.bfloat16 if has_bfloat16(device) else torch.float32
    left, right = (torch.ones(SIDE, SIDE, dtype=dtype, device=device) for _ in range(2))
    rounds, started, seconds = 0, time.perf_counter(), 0.0
    while seconds < SECONDS:
        float((left @ right)[0, 0])  # waits for the device
        rounds, seconds = rounds + 1, time.perf_counter() - started
    rate = 2.0 * SIDE**3 * rounds / seconds
    found = memories(device)
    return [Device(describe(device), memory, rate, dtype.itemsize) for memory in found]


def count_profile(experiment: Experiment) -> Counting:
    """Make the measurements of every notebook of a profile without a corpus on models that count.

    Notebooks without a measurement are left out. Raises InputError as `notebook_parameters` does.
    """
    counting = Counting(pd.read_csv(MEASURED))
    for name in experiment.profile.notebooks:
        source = NOTEBOOKS / f"{name}.ipynb"
        package = f"reproduction.notebooks.{notebook_of(source).package}"
        measure = getattr(import_module(f"{package}.measure"), "measure", None)
        if measure is not None:
            values = notebook_parameters(source, experiment, source)
            wanted = {key: values[key] for key in signature(measure).parameters if key in values}
            counting.notebook = name
            measure(experiment, **wanted, access=counting)
    return counting


def cost_table(counting: Counting, devices: Sequence[Device]) -> list[Row]:
    """Add up what was counted, a row for each model, the largest last.

    memory_gb is that of the weights, in bfloat16 where the devices have it. `placement` says
    whether they fit one of the `devices`, all of them together, or none. hours are those of all
    devices where a model fits each of them, of one where it is spread, since then they wait for
    each other; None for what is too large. exact: nothing is an estimate.
    """
    rows: list[Row] = []
    slowest = min(device.flops_per_second for device in devices)
    memories = [device.memory for device in devices]
    room = {ONE: min(memories), SPREAD: sum(memories), NONE: math.inf}
    rates = {ONE: len(devices) * slowest, SPREAD: slowest}
    for name, model in counting.models.items():
        found = {key: work for key, work in counting.works.items() if key[1] == name}
        if not found:
            continue
        work, weights = total(found.values()), devices[0].weight * (model.parameters or 0)
        placement = next(place for place, memory in room.items() if weights <= ROOM * memory)
        flops, rate = model.shape.flops(work), rates.get(placement)
        row: Row = {"model": name, "id": model.entry.id, "parameters": model.parameters}
        row |= {"download_gb": model.download / 1e9, "memory_gb": weights / 1e9}
        row |= {"placement": placement}
        row |= {"notebooks": " ".join(dict.fromkeys(notebook[:2] for notebook, *_ in found))}
        row |= {"tokens_read": work.read, "tokens_scored": work.scored, "flops": flops}
        row |= {"hours": flops / (SHARE * rate) / 3600 if rate else None, "exact": model.exact}
        rows.append(row)
    return sorted(rows, key=lambda row: row["memory_gb"])


def sums(rows: Sequence[Row]) -> dict[str, float]:
    """Add up what the devices can run: models, gigabytes, tokens, FLOPs and hours."""
    fit = [row for row in rows if row["placement"] != NONE]
    names = ("download_gb", "tokens_read", "tokens_scored", "flops", "hours")
    whole = {name: sum(row[name] for row in fit) for name in names}
    return {"models": len(fit), "too_large": len(rows) - len(fit), **whole}


def print_costs(experiment: Experiment, gpus: Sequence[str], *, as_json: bool) -> None:
    """Print what a profile without a corpus downloads, reads and takes, and download nothing."""
    profile = experiment.profile.name
    if experiment.profile.pretraining is not None:
        shown = f"profile {profile} trains its own models and downloads none"
        print(json.dumps({"profile": profile, "trains": True}) if as_json else shown)
        return
    disable_progress_bars()  # of looking for files that are not fetched
    devices = [described(text) for text in gpus] or devices_found()
    found = cost_table(count_profile(experiment), devices)
    whole, exact = sums(found), all(row["exact"] for row in found)
    if as_json:
        plan = {"profile": profile, "devices": [asdict(device) for device in devices]}
        print(json.dumps(plan | {"share": SHARE, "models": found, "total": whole}, indent=1))
        return
    rows = []
    for row in [*found, whole | {"model": f"{whole['models']} models", "exact": exact}]:
        about, placement, taken = (
            "~" * (not row["exact"]),
            row.get("placement", ""),
            row["hours"] or 0,
        )
        hours = f"{taken:,.1f}" if taken < YEAR else f"{taken / YEAR:,.0f} years"
        hours = "< 0.1" if taken < 0.05 else hours
        cells = [row["model"], f"{row['download_gb']:.1f}"]
        cells += [f"{row['memory_gb']:.1f}" if placement else ""]
        cells += [about + short_count(row["tokens_read"])]
        cells += [about + f"{row['flops']:.1e}".replace("e+", "e")]
        rows.append([*cells, {NONE: NONE, SPREAD: f"{hours} *"}.get(placement, hours)])
    columns = ("model", "GB", "memory", "tokens", "FLOPs", "hours")
    print_table(columns, rows, title=f"What PROFILE={profile} takes")
    first = devices[0]
    notes = {
        f"devices: {len(devices)} of {first.memory / 1e9:,.0f} GB and "
        f"{first.flops_per_second / 1e12:,.3g} TFLOP/s ({first.name})": True,
        "GB: weights that are still to be fetched; memory: GB of the weights there": True,
        "tokens: at most so many; a model reads equal orderings of small shards once": True,
        f"hours: computed, not measured: FLOPs over {SHARE:.0%} of that rate, without downloads "
        "and loading": True,
        "~: estimated, since the model or a test set is not at hand; GB then count two bytes a "
        "parameter, and some files have four": not exact,
        "*: on all devices together, of which one works at a time": SPREAD
        in {row["placement"] for row in found},
        f"{NONE}: {whole['too_large']} models, not in the sums": whole["too_large"],
    }
    print("\n".join(note for note, holds in notes.items() if holds))
