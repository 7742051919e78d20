"""The passes of notebook 05: settings of the power study, the null, and sets in other orders."""

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np
import pandas as pd

from contamination.audit.battery import TESTS
from contamination.audit.compressor import compressor_test
from contamination.audit.diagnostics import diagnose_order
from contamination.audit.plan import score_for
from contamination.audit.request import Request
from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import SUCCESSOR_TOKENS, StorePlan
from contamination.testsets.tokens import tokenize
from reproduction.notebooks.beyond import tables
from reproduction.run.experiment import Experiment

ORDER_TESTS = ("successor", "sharded_exact")
ORDER_PERMUTATIONS = 10


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
    canaries, orderings = experiment.profile.canaries, experiment.profile.scoring.shards
    study = (max(permutations), successor_shards, max(tables.TOKENS.values()))
    null = (max(null_permutations), successor_shards[:1], SUCCESSOR_TOKENS)
    wanted = [("contaminated", spec.name, *study) for spec in canaries]
    for model, name, most, counts, tokens in wanted + [("clean", n, *null) for n in null_datasets]:
        experiment.score(model, name, StorePlan("orderings", orderings), most)
        for count in counts:
            experiment.score(model, name, StorePlan("successors", count, tokens))
    most_planted = max(canaries, key=attrgetter("dup_count")).name
    scored = [
        score_orders(experiment, "clean", null_datasets[0], list(tables.ORDERS)),
        score_orders(experiment, "clean", most_planted, [tables.LONG]),
        score_orders(experiment, "contaminated", most_planted, [tables.AS_PUBLISHED, tables.LONG]),
    ]
    return {"orders": pd.concat(scored, ignore_index=True)}


def score_orders(
    experiment: Experiment, model: str, dataset: str, orders: Sequence[str]
) -> pd.DataFrame:
    """Score a canary set in each order, and test it: a row per order.

    `longer` is the share of examples that exceed the context, `verdict` that of the diagnostics and
    log10_p_compressor that of the negative control, both of the successor test.
    """
    original, scorer = experiment.test_set(dataset), TransformersScorer(experiment.model(model))
    # Another corpus or model has other stores: nothing has to be removed first.
    revision = f"{original.revision[:8]}-{scorer.revision[:8]}"
    request = Request(
        ORDER_TESTS,
        permutations=ORDER_PERMUTATIONS,
        seed=experiment.profile.seed,
        directory=experiment.build / "stores" / "failures" / revision,
        name=model,
    )
    rows, m = [], ORDER_PERMUTATIONS
    for order in orders:
        changed = replace(
            original,
            name=f"{original.name}-{order.replace(' ', '-')}",
            examples=tuple(tables.ORDERS[order](original.examples)),
            revision=f"{original.revision} {order}",
            records=(),
        )
        lengths = np.array([len(ids) for ids in tokenize(scorer.tokenizer, changed.examples)])
        stores = {
            test: score_for(test, scorer, changed, request, keep_revisions=False)
            for test in ORDER_TESTS
        }
        header = stores["successor"].header
        shards = {"shards": header.shards, "seed": header.seed}
        silent = compressor_test(changed, kind=header.kind, permutations=m, **shards)
        tested = {test: TESTS[test].result(store, m) for test, store in stores.items()}
        results = {"compressor": silent} | tested
        row = {"model": model, "dataset": dataset, "order": order, "examples": len(lengths)}
        row |= {"longer": float(np.mean(lengths > scorer.context))}
        row |= {"verdict": diagnose_order(changed, **shards).verdict}
        p = {f"log10_p_{name}": float(np.round(one.log10_p, 3)) for name, one in results.items()}
        rows.append(row | p)
    return pd.DataFrame(rows)
