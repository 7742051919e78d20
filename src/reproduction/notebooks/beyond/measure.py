"""The passes of notebook 05: settings of the power study, the null, other orders, and texts."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd

from contamination.audit.controls.records import diagnose_order
from contamination.audit.controls.zlib import zlib_test
from contamination.audit.generation import GenerationAudit, audit_generation
from contamination.audit.plan import Work
from contamination.audit.registry import TESTS
from contamination.audit.request import Request
from contamination.scoring.generation import Generator, LocalGenerator
from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import SUCCESSOR_TOKENS, StorePlan
from contamination.scoring.processes import deal
from contamination.tables import outcome_row
from reproduction.notebooks.beyond import tables
from reproduction.run.experiment import MODELS, Experiment, parts_of

ORDER_TESTS = ("successor", "sharded_exact")
ORDER_PERMUTATIONS = 10


def measure(
    experiment: Experiment,
    *,
    permutations: Sequence[int],
    successor_shards: Sequence[int],
    null_datasets: Sequence[str],
    null_permutations: Sequence[int],
    generated_datasets: Sequence[str],
) -> dict[str, pd.DataFrame]:
    """Fill the stores of the power study and of the null, score misleading orders, and write texts.

    The table `orders` is that of `score_orders`: of a set that nobody has read, in all orders, and
    of the one that was planted most often, joined to long examples. The table `generated` is that
    of `score_texts`, of both models.
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
    writers = [LocalGenerator(TransformersScorer(experiment.model(one)), one) for one in MODELS]
    asked = [partial(score_texts, experiment, w, n) for w in writers for n in generated_datasets]
    written = [row for rows in deal("texts", asked) for row in rows]
    return {
        "orders": pd.concat(scored, ignore_index=True),
        "generated": pd.DataFrame(written, columns=tables.GENERATED).astype({"samples": "Int64"}),
    }


def score_texts(experiment: Experiment, by: Generator, dataset: str) -> list[dict[str, Any]]:
    """Test the order of a canary set by what a model writes after each record; also by its scores.

    A row for each access, with `tables.GENERATED`. With log-probabilities it is the successor test
    of notebook 01, and `tokens` are those that count of each example.
    """
    spec, successor = experiment.spec(dataset), TESTS["successor"]
    # Another model has other texts: nothing has to be removed first.
    place = parts_of(experiment, "beyond") / f"texts-{by.revision[:8]}"
    request = Request(seed=experiment.profile.seed, directory=place, name=by.name)
    work = GenerationAudit(by, experiment.test_set(dataset), request)
    (generated,) = audit_generation(work).results
    store, permutations = experiment.store_for(by.name, dataset, successor)
    about: dict[str, Any] = {"model": by.name, "dataset": dataset}
    about |= {"examples": spec.examples, "dup_count": spec.dup_count}
    asked = {"access": "generated", "samples": work.asked.samples, "tokens": work.asked.tokens}
    read = {"access": "log-probabilities", "samples": None, "tokens": SUCCESSOR_TOKENS}
    scored = successor.result(store, permutations)
    return [about | asked | outcome_row(generated), about | read | outcome_row(scored)]


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
        work = Work(scorer, changed, request)
        lengths = np.array(work.tokenised.lengths)
        stores = dict(zip(ORDER_TESTS, work.fill(replace=True), strict=True))
        header = stores["successor"].header
        shards = {"shards": header.shards, "seed": header.seed}
        silent = zlib_test(changed, kind=header.kind, permutations=m, **shards)
        tested = {test: TESTS[test].result(store, m) for test, store in stores.items()}
        results = {"compressor": silent} | tested
        row = {"model": model, "dataset": dataset, "order": order, "examples": len(lengths)}
        row |= {"longer": float(np.mean(lengths > scorer.context))}
        row |= {"verdict": diagnose_order(changed, **shards).verdict}
        p = {f"log10_p_{name}": float(np.round(one.log10_p, 3)) for name, one in results.items()}
        rows.append(row | p)
    return pd.DataFrame(rows)
