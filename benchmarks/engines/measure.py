"""Shared code of the engines: the strings, the clock and the memory. Needs torch alone."""

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


def report(score: Callable[[Sequence[str]], list[tuple[int, float]]], strings: list[str]) -> None:
    """Time `score`, which returns tokens and nats of each string, and print the result as JSON."""
    score(strings[:2])  # load, allocate, choose kernels
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    started = time.perf_counter()
    found = score(strings)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        peak = torch.cuda.max_memory_allocated()
    seconds = time.perf_counter() - started
    if not torch.cuda.is_available():
        unit = 1 if sys.platform == "darwin" else 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    print(
        json.dumps(
            {
                "tokens": sum(tokens for tokens, _ in found),
                "nats": [nats for _, nats in found],
                "seconds": seconds,
                "peak_bytes": peak,
            }
        )
    )
