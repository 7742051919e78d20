"""What the runs were that filled a store: one small file for each, beside the parts.

Neither the header nor any part depends on it, so that equal numbers stay equal bytes.
"""

import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from uuid import uuid4

import pyarrow.parquet as pq

from contamination.device import describe
from contamination.files import write_json
from contamination.scoring.contract import Scorer
from contamination.scoring.queue import WorkQueue
from contamination.scoring.store import Store

PACKAGES = ("contamination", "torch", "transformers", "tokenizers", "numpy", "pyarrow")


def device_of(scorer: Scorer) -> str:
    """One line on the device of this process, if the model runs here."""
    device = getattr(scorer, "device", None)
    return "elsewhere" if device is None else describe(device)


@contextmanager
def recorded(store: Store, scorer: Scorer, queue: WorkQueue) -> Iterator[None]:
    """Write `run-*.json` before the block and, whatever ends it, what came of it afterwards.

    Contents: started (UTC), seconds (null if the run was killed), processes, lost (those that did
    not finish), devices, precision, packages, parts and tokens that were added.
    """
    if queue.rank != 0:
        yield
        return
    started, clock = datetime.now(UTC), time.perf_counter()
    path = store.directory / f"run-{started:%Y%m%dT%H%M%SZ}-{uuid4().hex[:8]}.json"
    before = set(store.parts())
    devices = [device_of(scorer)]
    record = {
        "started": started.isoformat(timespec="seconds"),
        "seconds": None,
        "processes": queue.size,
        "lost": [],
        "devices": devices,
        "precision": str(getattr(scorer, "dtype", "unknown")).removeprefix("torch."),
        "packages": {name: version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "parts": [],
        "tokens": 0,
    }
    write_json(path, record)
    try:
        yield
    finally:
        added = [part for part in store.parts() if part not in before]
        write_json(
            path,
            record
            | {
                "seconds": time.perf_counter() - clock,
                "lost": sorted(queue.lost),
                "devices": sorted({*devices, *queue.notes.values()}),
                "parts": [part.name for part in added],
                "tokens": sum(pq.read_metadata(part).num_rows for part in added),
            },
        )
