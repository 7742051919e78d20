"""The record of a run that adds parts to a store: what ran, and what came of it (`run-*.json`)."""

import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import version
from typing import Any
from uuid import uuid4

from contamination.device import describe
from contamination.files import write_json
from contamination.scoring.contract import Scorer
from contamination.scoring.processes import gather, processes
from contamination.scoring.store_format import count_values
from contamination.scoring.stores.base import Store

PACKAGES = ("contamination", "torch", "transformers", "tokenizers", "numpy", "pyarrow")


@contextmanager
def recorded(store: Store, scorer: Scorer) -> Iterator[None]:
    """Write `run-*.json` before the block and, whatever ends it, what came of it afterwards.

    Its seconds are null if the run was killed; `noise` is of an endpoint, in nats a
    token, and `step` the nats to whose multiples it rounds, if that is coarse. Process
    0 alone writes it.
    """
    devices = gather(partial(_device_name, scorer))
    if not processes().is_main_process:
        yield
        return
    started = datetime.now(UTC)
    clock = time.perf_counter()
    before = set(store.parts())
    path = store.directory / f"run-{started:%Y%m%dT%H%M%SZ}-{uuid4().hex[:8]}.json"
    record: dict[str, Any] = {
        "started": started.isoformat(timespec="seconds"),
        "processes": processes().num_processes,
        "devices": sorted(set(devices)),
        "precision": str(getattr(scorer, "dtype", "unknown")).removeprefix("torch."),
        "packages": _versions(),
        "python": platform.python_version(),
    }
    outcome: dict[str, Any] = {"parts": [], "tokens": 0}
    outcome |= {"seconds": None, "noise": None, "step": None}
    write_json(path, record | outcome)
    try:
        yield
    finally:
        added = [part for part in store.parts() if part not in before]
        outcome = {
            "parts": [part.name for part in added],
            "tokens": sum(map(count_values, added)),
            "seconds": time.perf_counter() - clock,
            "noise": getattr(scorer, "noise", None),
            "step": getattr(scorer, "step", None),
        }
        write_json(path, record | outcome)


@cache  # the metadata of six packages take longer than the rest of a record
def _versions() -> dict[str, str]:
    """Return the version of each of `PACKAGES`."""
    return {name: version(name) for name in PACKAGES}


def _device_name(scorer: Scorer) -> str:
    """Return the name of the device of this process; that of a server is not known."""
    device = getattr(scorer, "device", None)
    if device is None:
        return "elsewhere"
    return describe(device)
