"""A profile of the time that a GPU spends on scoring, for benchmarks/gpu.py."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from contamination.scoring.local import TransformersScorer

# Kernels by what their names hold; the first kind that fits counts.
KINDS = {
    "attention": ("attention", "flash", "fmha", "sdpa"),
    "matrix products": ("gemm", "matmul", "::mm", "addmm", "linear", "cutlass", "nvjet"),
    "copies": ("memcpy", "memset", "copy_"),
}
OTHERS = "other kernels (norms, activations, sums)"


class Profile(NamedTuple):
    """Shares of a time by kind, how many kernels ran in it, and its seconds."""

    shares: dict[str, float]
    kernels: int
    seconds: float


def kind_of(kernel: str) -> str:
    """Return what a kernel is counted as."""
    for kind, parts in KINDS.items():
        if any(part in kernel.lower() for part in parts):
            return kind
    return OTHERS


def wait(device: torch.device) -> None:
    """Wait until a GPU has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds_of(work: Callable[[], object], device: torch.device) -> float:
    """Return the seconds of a second call of some work."""
    work()
    wait(device)
    started = time.perf_counter()
    work()
    wait(device)
    return time.perf_counter() - started


def profile_of(
    scorer: TransformersScorer, sequences: Sequence[np.ndarray], device: torch.device
) -> Profile:
    """Return the shares of the time in which a scorer reads sequences.

    On a GPU only what runs there is traced. The output layer has no kernels of its own:
    its share is the time that it adds, and its kernels count among the others, too.

    Parameters
    ----------
    scorer
        With its network loaded.
    sequences
        To read, two batches about.
    device
        Where the network computes.
    """
    on_gpu = device.type == "cuda"

    def whole() -> None:
        list(scorer.token_logprobs(sequences))

    def body() -> None:
        list(scorer.token_values(sequences, None, without_head))

    seconds = seconds_of(whole, device)
    without = seconds_of(body, device)
    activity = ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU
    with profile(activities=[activity]) as trace:
        started = time.perf_counter()
        whole()
        wait(device)
        traced = time.perf_counter() - started
    busy: Counter[str] = Counter()
    kernels = 0
    for event in trace.key_averages():
        microseconds = event.self_device_time_total if on_gpu else event.self_cpu_time_total
        if microseconds:
            busy[kind_of(event.key)] += microseconds / 1e6
            kernels += event.count
    table = {kind: busy[kind] / traced for kind in [*KINDS, OTHERS]}
    table["launch gaps (nothing runs)"] = max(0.0, 1 - busy.total() / traced)
    table["output layer (the time that it adds)"] = 1 - without / seconds
    return Profile(table, kernels, traced)


def without_head(hidden: Tensor, targets: Tensor, read: Tensor) -> Tensor:
    """Return a zero for each token, in place of its log-probability."""
    return torch.zeros(len(targets), dtype=torch.float32, device=hidden.device)
