"""Proving test-set contamination of language models from log-probabilities.

The method is that of Oren, Meister, Chatterji, Ladhak and Hashimoto, *Proving Test Set
Contamination in Black-Box Language Models*, ICLR 2024 (arXiv 2310.17623), cited below
as Oren.

The names below are the public face. Each is imported when it is first used, so that
statistics of stored log-probabilities need neither torch nor transformers::

    from contamination import open_store, sharded_exact_test

    store = open_store("contamination-stores/MODEL/SET/orderings-025")
    print(sharded_exact_test(store.log_probs(25)).p)
"""

import warnings
from importlib import import_module
from typing import Any

# In a notebook without ipywidgets a bar of tqdm is text, which is no reason for a red box.
warnings.filterwarnings("ignore", message="IProgress not found")

# Public name -> the module that defines it. Names of statistics are listed by their own package.
HOMES = {
    "Audit": "audit.result",
    "ExampleSet": "testsets.example_set",
    "InputError": "errors",
    "ModelSource": "scoring.loading",
    "Request": "audit.request",
    "SidesRequest": "audit.held_out",
    "Store": "scoring.store",
    "TransformersScorer": "scoring.local",
    "compare": "audit.held_out",
    "membership_scores": "membership.api",
    "open_store": "scoring.store",
    "open_test_set": "testsets.sources",
    "run_audit": "audit.run",
}


def __getattr__(name: str) -> Any:
    """Import a public name on its first use."""
    if name in HOMES:
        return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
    statistics = import_module(f"{__name__}.statistics")
    if name in statistics.__all__:
        return getattr(statistics, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    statistics = import_module(f"{__name__}.statistics")
    return sorted([*HOMES, *statistics.__all__])
