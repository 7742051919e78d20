"""The pace at which this machine read a model before, so that a dry run need not open it.

A run of scoring leaves here how long it took, and a dry run that had to read samples
leaves its forecast: one small file in the user's cache for each model, machine, way of
computing, and kind of work. Importing the code of a network takes longer than importing
torch; with such a file a dry run does without.
"""

import math
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import torch
import transformers
from pydantic import TypeAdapter

from contamination.device import describe
from contamination.errors import InputError
from contamination.files import read_json, sha256_of, write_json
from contamination.scoring.cost import Shape, Workload
from contamination.scoring.local import TransformersScorer
from contamination.scoring.processes import processes
from contamination.scoring.speed import Forecast
from contamination.testsets.sources import cache_directory


def _today() -> str:
    """Return the date (UTC), as 2026-11-28."""
    return datetime.now(UTC).date().isoformat()


@dataclass(frozen=True)
class Pace:
    """The time that some work takes, and its size.

    Attributes
    ----------
    shape
        Shape of the network, from which operations are counted.
    flops
        Floating-point operations of the work.
    time
        Time that the work took, or was to take according to samples.
    date
        Date of the measurement (UTC).
    """

    shape: Shape
    flops: float
    time: Forecast
    date: str = field(default_factory=_today)

    def of(self, flops: float) -> "Pace":
        """Return the pace of other work of this kind, whose time is in proportion."""
        time = self.time.scaled(flops / self.flops)
        return replace(self, flops=flops, time=time)


def earlier_pace(scorer: TransformersScorer, kind: str, work: Workload) -> Pace | None:
    """Return the pace that was kept last for such work on that kind of store, or None.

    The network of the model stays closed.
    """
    with suppress(InputError, ValueError):  # none there, damaged, or of another version
        return TypeAdapter(Pace).validate_python(read_json(_file(scorer, kind, work)))
    return None


def keep_pace(pace: Pace, scorer: TransformersScorer, kind: str, work: Workload) -> None:
    """Keep a pace, unless it is of less than a batch, or there is no place to keep it.

    One of as much work or more stays for the day on which it was measured. `work` is
    that of the whole store; the pace may be that of its missing part.
    """
    flops_of_batch = pace.shape.flops(work) * scorer.batch_tokens / work.read
    if pace.flops < flops_of_batch or not processes().is_main_process:
        return
    kept = earlier_pace(scorer, kind, work)
    if kept is not None and kept.date == pace.date and kept.flops >= pace.flops:
        return  # an audit of many sets does not write a file for each
    with suppress(InputError):  # a folder that cannot be written
        write_json(_file(scorer, kind, work), asdict(pace))


def _file(scorer: TransformersScorer, kind: str, work: Workload) -> Path:
    """Return the file of a pace, whose name depends on all that the pace depends on."""
    # A pace holds for windows from a power of two tokens to the next.
    width = int(math.log2(work.read / work.windows))
    names = (
        scorer.revision,
        describe(scorer.device),
        str(processes().num_processes),
        str(scorer.batch_tokens),
        str(scorer.source.attention),
        str(scorer.source.compile),
        version("contamination"),
        torch.__version__,
        transformers.__version__,
        kind,
        str(width),
    )
    return cache_directory() / "paces" / f"{sha256_of(*names)[:16]}.json"
