"""What the machine at hand can do: its devices, their memory, and whether they have bfloat16."""

import gc
import os
import platform
from contextlib import suppress
from pathlib import Path

import torch


def has_bfloat16(device: torch.device) -> bool:
    """Whether the device multiplies bfloat16 natively, so that it is faster than float32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == "cpu":
        found = torch.cpu.get_capabilities()
        # A Xeon without AMX multiplied it at 0.57 of the rate of float32 (docs/throughput.md).
        amd = found.get("avx512_bf16") and not str(found.get("cpu_name")).startswith("Intel")
        return bool(amd or found.get("amx_bf16") or found.get("bf16"))
    return False


def memories(device: torch.device) -> list[int]:
    """Bytes of memory of each GPU that this process sees; else those of this machine.

    A container counts as a machine that has what the container may take.
    """
    if device.type == "cuda":
        gpus = range(torch.cuda.device_count())
        return [torch.cuda.get_device_properties(gpu).total_memory for gpu in gpus]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no container, or one without a limit
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return [memory]


def free_memory() -> None:
    """Give back the memory of models that nobody refers to any more."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def describe(device: torch.device) -> str:
    """One line for tables and manifests: the device, and how many of it."""
    if device.type == "cuda":
        return f"{torch.cuda.device_count()} x {torch.cuda.get_device_name(device)}"
    name = torch.cpu.get_capabilities().get("cpu_name") or platform.machine()
    threads = torch.get_num_threads()
    return f"{name}, {threads} thread{'s' * (threads > 1)}"
