"""Devices of this machine: their memory, and whether they multiply bfloat16."""

import gc
import os
import platform
from contextlib import suppress
from pathlib import Path

import torch


def has_bfloat16(device: torch.device) -> bool:
    """Return whether the device multiplies bfloat16 natively, faster than float32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == "cpu":
        able = torch.cpu.get_capabilities()
        is_intel = str(able.get("cpu_name")).startswith("Intel")
        # A Xeon without AMX multiplied it at 0.57 of the rate of float32
        # (docs/throughput.md).
        has_fast_avx512 = able.get("avx512_bf16") and not is_intel
        return bool(has_fast_avx512 or able.get("amx_bf16") or able.get("bf16"))
    return False


def memories(device: torch.device) -> list[int]:
    """Return the bytes of memory of each GPU in sight, else those of the machine.

    A container counts as a machine that has what the container may take.
    """
    if device.type == "cuda":
        gpus = range(torch.cuda.device_count())
        return [torch.cuda.get_device_properties(gpu).total_memory for gpu in gpus]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no container, or one without a limit
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return [memory]


def free_bytes(device: torch.device, *, spread: bool = False) -> int | None:
    """Return the bytes of memory that are free on a GPU; None for any other device.

    What torch holds and does not use is free. Of a model that is spread over all GPUs,
    the one with the least counts.
    """
    if device.type != "cuda":
        return None
    gpus = [device]
    if spread:
        gpus = [torch.device("cuda", number) for number in range(torch.cuda.device_count())]
    return min(map(_free_on, gpus))


def _free_on(gpu: torch.device) -> int:
    """Return the bytes of one GPU that nobody has taken, or that torch does not use."""
    unused = torch.cuda.memory_reserved(gpu) - torch.cuda.memory_allocated(gpu)
    unclaimed, _ = torch.cuda.mem_get_info(gpu)
    return int(unclaimed + unused)


def free_memory() -> None:
    """Free the memory of models that are no longer referenced."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def describe(device: torch.device) -> str:
    """Return the device and its number as a line for tables and manifests."""
    if device.type == "cuda":
        return f"{torch.cuda.device_count()} x {torch.cuda.get_device_name(device)}"
    name = torch.cpu.get_capabilities().get("cpu_name") or platform.machine()
    threads = torch.get_num_threads()
    if threads == 1:
        return f"{name}, 1 thread"
    return f"{name}, {threads} threads"
