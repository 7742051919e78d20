"""Where a small p-value is no contamination, and where contamination gives no small p-value.

Each row is one canary set with its records put into an order that means something, or joined to
examples that exceed the context of the model. Under a model that has not read the set, a small
p-value beside a verdict that is not "quiet" is no contamination. Under one that has read it, long
examples show how much power is left.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.audit.battery import TESTS as TESTS_BY_NAME
from contamination.audit.compressor import compressor_test
from contamination.audit.diagnostics import diagnose_order
from contamination.scoring.store import open_store
from contamination.testsets.example_set import ExampleSet
from reproduction.run.experiment import Experiment

TESTS = ("successor", "sharded_exact")
PERMUTATIONS = 10
STORES = Path("stores") / "failures"  # in the build directory
JOINED = 10  # records to one example, so that it exceeds a context of 256 tokens


def _duplicated(examples: Sequence[str]) -> list[str]:
    """Each record followed by a near copy of itself; half as many records."""
    half = examples[: len(examples) // 2]
    return [text for record in half for text in (record, record.replace("the ", "a "))]


def _joined(examples: Sequence[str]) -> list[str]:
    """Neighbours made one example, in their order; records that are left over go."""
    whole = len(examples) - len(examples) % JOINED
    return ["".join(examples[start : start + JOINED]) for start in range(0, whole, JOINED)]


AS_PUBLISHED = "as published (shuffled)"
SHORT = "very short (three words)"
LONG = "joined in tens (longer than the context)"
ORDERS: dict[str, Callable[[Sequence[str]], list[str]]] = {
    AS_PUBLISHED: list,
    "sorted by text": sorted,
    "sorted by length": lambda examples: sorted(examples, key=len),
    "near-duplicates in pairs": _duplicated,
    "numbered": lambda examples: [f"{i}. {text}" for i, text in enumerate(examples, start=1)],
    SHORT: lambda examples: [" ".join(text.split()[:3]) + "\n" for text in examples],
    LONG: _joined,
}


def rearranged(original: ExampleSet, order: str) -> ExampleSet:
    """Return a set in one of `ORDERS`, under a name and a revision of its own."""
    return replace(
        original,
        name=f"{original.name}-{order.replace(' ', '-')}",
        examples=tuple(ORDERS[order](original.examples)),
        revision=f"{original.revision} {order}",
        records=(),
    )


def failure_table(experiment: Experiment, scored: pd.DataFrame) -> pd.DataFrame:
    """Test every set and order of `reproduction.notebooks.beyond.measure.score_orders`.

    `longer` is the share of examples that exceed the context, `verdict` that of the diagnostics
    and log10_p_compressor that of the negative control, both of the successor test.
    """
    rows = []
    for row in scored.to_dict("records"):
        changed = rearranged(experiment.test_set(row["dataset"]), row["order"])
        stores = {test: open_store(experiment.build / STORES / row[test]) for test in TESTS}
        header = stores[TESTS[0]].header
        control = compressor_test(
            changed,
            kind=header.kind,
            shards=header.shards,
            permutations=PERMUTATIONS,
            seed=header.seed,
        )
        found = {
            f"log10_p_{test}": TESTS_BY_NAME[test].result(store, PERMUTATIONS).log10_p
            for test, store in stores.items()
        }
        rows.append(
            {
                "model": row["model"],
                "dataset": row["dataset"],
                "order": row["order"],
                "examples": len(changed.examples),
                "longer": row["longer"],
                "verdict": diagnose_order(changed, seed=header.seed, shards=header.shards).verdict,
                "log10_p_compressor": float(np.round(control.log10_p, 3)),
                **{name: float(np.round(value, 3)) for name, value in found.items()},
            }
        )
    return pd.DataFrame(rows)
