"""The bytes of tensors that are alive at once while a network computes."""

from collections.abc import Iterable
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode


class LiveBytes(TorchDispatchMode):
    """Count the bytes of what operations return, and of what is left of it.

    Parameters
    ----------
    weights
        Tensors that do not count.
    """

    def __init__(self, weights: Iterable[torch.Tensor]) -> None:
        super().__init__()
        self.peak = 0
        self._weights = {tensor.untyped_storage()._cdata for tensor in weights}
        self._alive: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation, and look at what is alive after it."""
        output = func(*args, **(kwargs or {}))
        tensors = output if isinstance(output, tuple | list) else [output]
        for tensor in tensors:
            if isinstance(tensor, torch.Tensor):
                self._count(tensor.untyped_storage())
        self._alive = {key: kept for key, kept in self._alive.items() if not kept[0].expired()}
        self.peak = max(self.peak, sum(size for _, size in self._alive.values()))
        return output

    def _count(self, storage: torch.UntypedStorage) -> None:
        if storage._cdata not in self._weights:
            self._alive[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
