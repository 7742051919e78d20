"""Where a small p-value is no contamination, and where contamination gives no small p-value.

Each row is one canary set with its records put into an order that means something, or joined to
examples that exceed the context of the model. Under a model that has not read the set, a small
p-value beside a verdict that is not "quiet" is no contamination. Under one that has read it, long
examples show how much power is left.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from contamination.audit import Request, audit
from contamination.pretraining.experiment import Experiment
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize

TESTS = ("successor", "sharded_exact")
PERMUTATIONS = 10
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


def failure_table(
    experiment: Experiment, model: str, dataset: str, *, orders: Sequence[str] = tuple(ORDERS)
) -> pd.DataFrame:
    """Audit a canary set in every order of `ORDERS`, or in those that are named.

    `model` is "clean" for orders that mean something, "contaminated" for what long examples cost.
    `longer` is the share of examples that exceed the context, `verdict` that of the diagnostics
    and log10_p_compressor that of the negative control, both of the successor test.
    """
    original, scorer = experiment.test_set(dataset), TransformersScorer(experiment.model(model))
    # Another corpus or model has other stores: nothing has to be removed first.
    revision = f"{original.revision[:8]}-{scorer.revision[:8]}"
    request = Request(
        TESTS,
        permutations=PERMUTATIONS,
        seed=experiment.profile.seed,
        directory=experiment.build / "stores" / "failures" / revision,
        name=model,
    )
    rows = []
    for order in orders:
        changed = replace(
            original,
            name=f"{original.name}-{order.replace(' ', '-')}",
            examples=tuple(ORDERS[order](original.examples)),
            revision=f"{original.revision} {order}",
            records=(),
        )
        lengths = [len(ids) for ids in tokenize(scorer.tokenizer, changed.examples)]
        found = audit(scorer, changed, request)
        rows.append(
            {
                "model": model,
                "dataset": dataset,
                "order": order,
                "examples": len(changed.examples),
                "longer": float(np.mean(np.array(lengths) > scorer.context)),
                "verdict": found.diagnosis[0].verdict,
                "log10_p_compressor": float(np.round(found.control[0].log10_p, 3)),
                **{f"log10_p_{r.test}": float(np.round(r.log10_p, 3)) for r in found.results},
            }
        )
    return pd.DataFrame(rows)
