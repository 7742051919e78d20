"""Where the test answers another question: records whose order carries information by itself.

Each row is one canary set with its records put into an order that means something, under a model
that has seen none of it. A small p-value beside a verdict that is not "quiet" is no contamination.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from contamination.audit import audit
from contamination.experiment import Experiment
from contamination.test_set import TestSet

TESTS = ("successor", "exact")
PERMUTATIONS = 10


def _duplicated(examples: Sequence[str]) -> list[str]:
    """Each record followed by a near copy of itself; half as many records."""
    half = examples[: len(examples) // 2]
    return [text for record in half for text in (record, record.replace("the ", "a "))]


ORDERS: dict[str, Callable[[Sequence[str]], list[str]]] = {
    "as published (shuffled)": list,
    "sorted by text": sorted,
    "sorted by length": lambda examples: sorted(examples, key=len),
    "near-duplicates in pairs": _duplicated,
    "numbered": lambda examples: [f"{i}. {text}" for i, text in enumerate(examples, start=1)],
    "very short (three words)": lambda examples: [
        " ".join(text.split()[:3]) + "\n" for text in examples
    ],
}


def failure_table(experiment: Experiment, model: str, dataset: str) -> pd.DataFrame:
    """p-values and the verdict of the diagnostics for every order of the records.

    Returns
    -------
    DataFrame
        order, examples, verdict, and log10_p_<test> for every test.
    """
    original = experiment.test_set(dataset)
    rows = []
    for name, arrange in ORDERS.items():
        examples = tuple(arrange(original.examples))
        slug = name.replace(" ", "-")
        changed: TestSet = replace(
            original,
            name=f"{dataset}-{slug}",
            examples=examples,
            revision=f"{original.revision} {name}",
            records=(),
        )
        found = audit(
            experiment.model(model),
            changed,
            tests=TESTS,
            permutations=PERMUTATIONS,
            seed=experiment.profile.seed,
            directory=experiment.build / "stores" / "failures",
        )
        rows.append(
            {
                "order": name,
                "examples": len(examples),
                "verdict": found.diagnosis.verdict,
                **{f"log10_p_{r.test}": float(np.round(r.log10_p, 3)) for r in found.results},
            }
        )
    return pd.DataFrame(rows)
