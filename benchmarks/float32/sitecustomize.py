"""Every Python process of a run computes in float32, as on a processor without bfloat16.

PYTHONPATH=benchmarks/float32 make reproduce

Python imports this file when it starts, so that the kernels of the notebooks do it, too.
"""

import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


def _never(device: object) -> bool:
    """Return that a device does not compute in bfloat16."""
    return False


class Finder(PathFinder):
    """Finds `contamination.device`, and has it say that no device computes in bfloat16."""

    @classmethod
    def find_spec(cls, name: str, path=None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find that module as usual, and no other one."""
        if name != "contamination.device":
            return None
        spec = super().find_spec(name, path, target)
        execute = spec.loader.exec_module

        def patched(module: ModuleType) -> None:
            execute(module)
            module.has_bfloat16 = _never

        spec.loader.exec_module = patched
        return spec


sys.meta_path.insert(0, Finder)
