"""Model + test set -> verdict: what there is to score, the tests by name, and whom to believe.

::

    from contamination.audit import Request, audit

    request = Request(tests=["sharded_exact"], permutations=50)
    print(audit("gpt2", "my_test_set.jsonl", request).summary())

`battery.TESTS` is the registry of tests. Experiments, reports and commands may call this room.
"""

from typing import TYPE_CHECKING, Any

from contamination.audit.request import Request

if TYPE_CHECKING:
    from contamination.audit.verdict import Audit, audit

__all__ = ["Audit", "Request", "audit"]


def __getattr__(name: str) -> Any:
    """Import torch when an audit is asked for: `contamination --help` needs the names of tests."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from contamination.audit import verdict

    return getattr(verdict, name)
