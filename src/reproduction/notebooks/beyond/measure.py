"""The passes of notebook 05: power study, null, other orders, and texts."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, product
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd

from contamination.audit.controls.records import diagnose_order
from contamination.audit.controls.zlib import zlib_test
from contamination.audit.generation import audit_generation
from contamination.audit.generation_plan import GenerationAudit
from contamination.audit.plan import Work
from contamination.audit.registry import TESTS
from contamination.audit.request import Request
from contamination.scoring.generation import Generator, LocalGenerator
from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import SUCCESSOR_TOKENS, StorePlan
from contamination.scoring.processes import distribute
from contamination.statistics import TestResult
from contamination.statistics.results import outcome_row
from reproduction.notebooks.beyond import tables
from reproduction.notebooks.beyond.settings import Settings
from reproduction.run.experiment import MODELS, Experiment, parts_of

ORDER_TESTS = ("successor", "sharded_exact")
ORDER_PERMUTATIONS = 10


def measure(experiment: Experiment, settings: Settings) -> dict[str, pd.DataFrame]:
    """Fill stores of power and of the null, score other orders, and generate texts.

    Returns
    -------
    orders : of `score_orders`: a set that nobody has read, in all orders, and the set
        that was planted most often, joined to long examples.
    generated : of `score_texts`, under both models.
    """
    canaries = experiment.profile.canaries
    for spec in canaries:
        _fill_stores(
            experiment,
            "contaminated",
            spec.name,
            permutations=max(settings.permutations),
            successor_shards=settings.successor_shards,
            tokens=max(tables.TOKENS.values()),
        )
    for name in settings.null_datasets:
        _fill_stores(
            experiment,
            "clean",
            name,
            permutations=max(settings.null_permutations),
            successor_shards=settings.successor_shards[:1],
            tokens=SUCCESSOR_TOKENS,
        )
    unread = settings.null_datasets[0]
    most_planted = max(canaries, key=attrgetter("dup_count")).name
    scored = [
        score_orders(experiment, "clean", unread, list(tables.ORDERS)),
        score_orders(experiment, "clean", most_planted, [tables.LONG]),
        score_orders(
            experiment,
            "contaminated",
            most_planted,
            [tables.AS_PUBLISHED, tables.LONG],
        ),
    ]
    generators = []
    for model in MODELS:
        generators.append(
            LocalGenerator(TransformersScorer(experiment.model(model)), model),
        )
    jobs = []
    for generator, name in product(generators, settings.generated_datasets):
        jobs.append(partial(score_texts, experiment, generator, name))
    rows = chain.from_iterable(distribute("texts", jobs))
    generated = pd.DataFrame(rows, columns=tables.GENERATED)
    return {
        "orders": pd.concat(scored, ignore_index=True),
        "generated": generated.astype({"samples": "Int64"}),
    }


def _fill_stores(
    experiment: Experiment,
    model: str,
    dataset: str,
    *,
    permutations: int,
    successor_shards: Sequence[int],
    tokens: int,
) -> None:
    """Score a canary set in whole orderings, and in successors."""
    shards = experiment.profile.scoring.shards
    experiment.score(model, dataset, StorePlan("orderings", shards), permutations)
    for count in successor_shards:
        experiment.score(model, dataset, StorePlan("successors", count, tokens))


def score_texts(
    experiment: Experiment,
    by: Generator,
    dataset: str,
) -> list[dict[str, Any]]:
    """Test the order of a canary set by the texts that a model writes after each record.

    Parameters
    ----------
    experiment
        The run.
    by
        The generator of the model.
    dataset
        Name of the canary set.

    Returns
    -------
    Two rows with `tables.GENERATED`: one of the texts, one of the successor test of notebook 01 on
    log-probabilities, whose `tokens` are those that count of each example.
    """
    spec = experiment.spec(dataset)
    # Another model has other texts: nothing has to be removed first.
    place = parts_of(experiment, "beyond") / f"texts-{by.revision[:8]}"
    request = Request(seed=experiment.profile.seed, directory=place, name=by.name)
    work = GenerationAudit(by, experiment.test_set(dataset), request)
    (from_texts,) = audit_generation(work).results
    successor = TESTS["successor"]
    store, permutations = experiment.store_for(by.name, dataset, successor)
    from_scores = successor.result(store, permutations)
    about: dict[str, Any] = {
        "model": by.name,
        "dataset": dataset,
        "examples": spec.examples,
        "dup_count": spec.dup_count,
    }
    sampling = work.effective_sampling
    texts = {
        "access": "generated",
        "samples": sampling.samples,
        "tokens": sampling.tokens,
    }
    scores = {"access": "log-probabilities", "samples": None, "tokens": SUCCESSOR_TOKENS}
    return [
        about | texts | outcome_row(from_texts),
        about | scores | outcome_row(from_scores),
    ]


def score_orders(
    experiment: Experiment,
    model: str,
    dataset: str,
    orders: Sequence[str],
) -> pd.DataFrame:
    """Score a canary set in each order, and test it.

    Parameters
    ----------
    experiment
        The run.
    model
        Name of the model.
    dataset
        Name of the canary set.
    orders
        Names of `tables.ORDERS`.

    Returns
    -------
    A row for each order: `longer` is the share of examples that exceed the context, `verdict` that
    of the diagnostics and log10_p_compressor that of the zlib baseline, both in the shards of the
    successor test.
    """
    original = experiment.test_set(dataset)
    scorer = TransformersScorer(experiment.model(model))
    # Another corpus or model has other stores: nothing has to be removed first.
    revision = f"{original.revision[:8]}-{scorer.revision[:8]}"
    request = Request(
        ORDER_TESTS,
        permutations=ORDER_PERMUTATIONS,
        seed=experiment.profile.seed,
        directory=experiment.build / "stores" / "failures" / revision,
        name=model,
    )
    rows = []
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
        diagnosis = diagnose_order(changed, shards=header.shards, seed=header.seed)
        results: dict[str, TestResult] = {
            "compressor": zlib_test(
                changed,
                kind=header.kind,
                permutations=ORDER_PERMUTATIONS,
                shards=header.shards,
                seed=header.seed,
            )
        }
        for test, store in stores.items():
            results[test] = TESTS[test].result(store, ORDER_PERMUTATIONS)
        row: dict[str, Any] = {
            "model": model,
            "dataset": dataset,
            "order": order,
            "examples": len(lengths),
            "longer": float(np.mean(lengths > scorer.context)),
            "verdict": diagnosis.verdict,
        }
        for name, result in results.items():
            row[f"log10_p_{name}"] = float(np.round(result.log10_p, 3))
        rows.append(row)
    return pd.DataFrame(rows)
