"""The passes of notebook 05: settings of the power study, the null, and sets in other orders."""

from collections.abc import Sequence
from operator import attrgetter

import numpy as np
import pandas as pd

from contamination.audit.request import Request
from contamination.audit.verdict import score_for
from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import SUCCESSOR_TOKENS
from contamination.testsets.tokens import tokenize
from reproduction.notebooks.beyond.failures import (
    AS_PUBLISHED,
    LONG,
    ORDERS,
    PERMUTATIONS,
    STORES,
    TESTS,
    rearranged,
)
from reproduction.notebooks.beyond.power import TOKENS
from reproduction.run.experiment import Experiment


def measure(
    experiment: Experiment,
    *,
    permutations: Sequence[int],
    successor_shards: Sequence[int],
    null_datasets: Sequence[str],
    null_permutations: Sequence[int],
) -> dict[str, pd.DataFrame]:
    """Fill the stores of the power study and of the null, and score sets in orders that mislead.

    The table `orders` is that of `score_orders`: of a set that nobody has read, in all orders, and
    of the one that was planted most often, joined to long examples.
    """
    score_study(
        experiment,
        permutations=max(permutations),
        successor_shards=successor_shards,
    )
    shards = experiment.profile.scoring.shards
    for name in null_datasets:
        experiment.score("clean", name, shards=shards, permutations=max(null_permutations))
        experiment.score(
            "clean",
            name,
            shards=successor_shards[0],
            kind="successors",
            tokens_per_example=SUCCESSOR_TOKENS,
        )
    most = max(experiment.profile.canaries, key=attrgetter("dup_count")).name
    scored = [
        score_orders(experiment, "clean", null_datasets[0], list(ORDERS)),
        score_orders(experiment, "clean", most, [LONG]),
        score_orders(experiment, "contaminated", most, [AS_PUBLISHED, LONG]),
    ]
    return {"orders": pd.concat(scored, ignore_index=True)}


def score_study(
    experiment: Experiment, *, permutations: int, successor_shards: Sequence[int]
) -> None:
    """Score every canary set under the contaminated model for `power.power_rows`."""
    shards = experiment.profile.scoring.shards
    for spec in experiment.profile.canaries:
        experiment.score("contaminated", spec.name, shards=shards, permutations=permutations)
        for count in successor_shards:
            experiment.score(
                "contaminated",
                spec.name,
                shards=count,
                kind="successors",
                tokens_per_example=max(TOKENS.values()),
            )


def score_orders(
    experiment: Experiment, model: str, dataset: str, orders: Sequence[str]
) -> pd.DataFrame:
    """Score a canary set in each order for each of `TESTS`.

    A row per order: model, dataset, order, longer (share of examples that exceed the context) and,
    by the name of each test, the folder of its store in `STORES`.
    """
    original, scorer = experiment.test_set(dataset), TransformersScorer(experiment.model(model))
    folder = experiment.build / STORES
    # Another corpus or model has other stores: nothing has to be removed first.
    revision = f"{original.revision[:8]}-{scorer.revision[:8]}"
    request = Request(
        TESTS,
        permutations=PERMUTATIONS,
        seed=experiment.profile.seed,
        directory=folder / revision,
        name=model,
    )
    rows = []
    for order in orders:
        changed = rearranged(original, order)
        lengths = [len(ids) for ids in tokenize(scorer.tokenizer, changed.examples)]
        row = {
            "model": model,
            "dataset": dataset,
            "order": order,
            "longer": float(np.mean(np.array(lengths) > scorer.context)),
        }
        for test in TESTS:
            store = score_for(test, scorer, changed, request, keep_revisions=False)
            row[test] = store.directory.relative_to(folder).as_posix()
        rows.append(row)
    return pd.DataFrame(rows)
