"""What the machine at hand can do: its device, and whether it computes in bfloat16."""

import gc
import platform

import torch


def has_bfloat16(device: torch.device) -> bool:
    """Whether the device multiplies bfloat16 natively, so that it is faster than float32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == "cpu":
        capabilities = torch.cpu.get_capabilities()
        return any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))
    return False


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
