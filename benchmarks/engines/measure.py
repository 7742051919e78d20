"""What the engines share: the strings, the clock and the memory. Needs torch alone."""

import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch


def arguments() -> tuple[Path, str, int, list[str]]:
    """Directory of the model, precision, batch size and strings, from the command line."""
    directory, dtype, batch, count = sys.argv[1:]
    strings = json.loads((Path(directory) / "strings.json").read_text())
    return Path(directory), dtype, int(batch), strings[: int(count)]


def report(score: Callable[[Sequence[str]], int], strings: Sequence[str]) -> None:
    """Time `score`, which returns the number of tokens it scored, and print the result as JSON."""
    score(strings[:2])  # load, allocate, choose kernels
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    started = time.perf_counter()
    tokens = score(strings)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        peak = torch.cuda.max_memory_allocated()
    seconds = time.perf_counter() - started
    if not torch.cuda.is_available():
        unit = 1 if sys.platform == "darwin" else 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    print(
        json.dumps(
            {"tokens": tokens, "seconds": seconds, "peak_bytes": peak, "sequences": len(strings)}
        )
    )
