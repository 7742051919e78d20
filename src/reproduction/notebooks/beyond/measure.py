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
from reproduction.notebooks.beyond.tables import (
    AS_PUBLISHED,
    LONG,
    ORDER_PERMUTATIONS,
    ORDER_STORES,
    ORDER_TESTS,
    ORDERS,
    TOKENS,
    rearranged,
)
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
    canaries = experiment.profile.canaries
    study = [
        ("contaminated", spec.name, max(permutations), successor_shards, max(TOKENS.values()))
        for spec in canaries
    ]
    null = [
        ("clean", name, max(null_permutations), successor_shards[:1], SUCCESSOR_TOKENS)
        for name in null_datasets
    ]
    shards = experiment.profile.scoring.shards
    for model, name, most, counts, tokens in study + null:
        experiment.score(model, name, shards=shards, permutations=most)
        for count in counts:
            experiment.score(
                model, name, shards=count, kind="successors", tokens_per_example=tokens
            )
    most_planted = max(canaries, key=attrgetter("dup_count")).name
    scored = [
        score_orders(experiment, "clean", null_datasets[0], list(ORDERS)),
        score_orders(experiment, "clean", most_planted, [LONG]),
        score_orders(experiment, "contaminated", most_planted, [AS_PUBLISHED, LONG]),
    ]
    return {"orders": pd.concat(scored, ignore_index=True)}


def score_orders(
    experiment: Experiment, model: str, dataset: str, orders: Sequence[str]
) -> pd.DataFrame:
    """Score a canary set in each order for each of `ORDER_TESTS`.

    A row per order: model, dataset, order, longer (share of examples that exceed the context) and,
    by the name of each test, the folder of its store in `ORDER_STORES`.
    """
    original, scorer = experiment.test_set(dataset), TransformersScorer(experiment.model(model))
    folder = experiment.build / ORDER_STORES
    # Another corpus or model has other stores: nothing has to be removed first.
    revision = f"{original.revision[:8]}-{scorer.revision[:8]}"
    request = Request(
        ORDER_TESTS,
        permutations=ORDER_PERMUTATIONS,
        seed=experiment.profile.seed,
        directory=folder / revision,
        name=model,
    )
    rows = []
    for order in orders:
        changed = rearranged(original, order)
        lengths = np.array([len(ids) for ids in tokenize(scorer.tokenizer, changed.examples)])
        longer = float(np.mean(lengths > scorer.context))
        row = {"model": model, "dataset": dataset, "order": order, "longer": longer}
        for test in ORDER_TESTS:
            store = score_for(test, scorer, changed, request, keep_revisions=False)
            row[test] = store.directory.relative_to(folder).as_posix()
        rows.append(row)
    return pd.DataFrame(rows)
