"""From a model and a test set to a verdict: the plan, the tests, the decision.

::

    from contamination import Request, run_audit

    request = Request(tests=["sharded_exact"], permutations=50)
    print(run_audit("gpt2", "my_test_set.jsonl", request).summary())

`registry.TESTS` is the registry of tests. Experiments, reports and commands may call
this subpackage.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from contamination.audit.request import Request

if TYPE_CHECKING:
    from contamination.audit.result import Audit
    from contamination.audit.run import run_audit

__all__ = ["Audit", "Request", "run_audit"]
HOMES = {"Audit": "result", "run_audit": "run"}


def __getattr__(name: str) -> Any:
    """Import an audit where it is used: the help needs the names of tests alone."""
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
