"""What an audit has to score: shards, tokens, FLOPs and time, before anything is paid for."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from contamination.audit.battery import TESTS
from contamination.audit.request import Request
from contamination.errors import InputError
from contamination.scoring import cost
from contamination.scoring.contract import Scorer
from contamination.scoring.loading import model_shape
from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import StorePlan, kept_tokens, plan_store
from contamination.statistics import shard_size_for_budget, successor_cost
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.orderings import shard_bounds
from contamination.testsets.tokens import tokenize


@dataclass(frozen=True)
class ScoringPlan:
    """What an audit will score.

    Attributes
    ----------
    stores : one for each test asked for, in their order; tests may share one.
    work : tokens and forward passes over all stores, those already stored included.
    missing : tokens that are not stored yet.
    flops, seconds : of what is missing, predicted; None where the model runs elsewhere.
    """

    examples: int
    permutations: int
    stores: tuple[StorePlan, ...]
    work: cost.Workload
    missing: int
    flops: float | None
    seconds: float | None


def plan_audit(scorer: Scorer, test_set: ExampleSet, request: Request) -> ScoringPlan:
    """Count what an audit has to score; where that is anything, run a sample to predict the time.

    Raises
    ------
    InputError
        Too few examples for the shards, or too small a budget.
    """
    count = len(test_set.examples)
    ids = tokenize(scorer.tokenizer, test_set.examples)
    lengths = [len(i) for i in ids]
    stores = tuple(choose_store(test, lengths, scorer.context, request) for test in request.tests)
    distinct = list(dict.fromkeys(stores))
    works = [store.work(lengths, request.permutations, scorer.context) for store in distinct]
    work = cost.total(works)
    name = name_model(scorer, request)
    missing = sum(
        max(0, w.scored - _stored_tokens(store.path(request.directory, name, test_set.name)))
        for store, w in zip(distinct, works, strict=True)
    )
    flops = seconds = None
    if isinstance(scorer, TransformersScorer) and missing:
        shape = model_shape(scorer.config)
        flops = shape.flops(work) * missing / work.scored
        sample = [
            np.concatenate(ids[start:stop])
            for store in distinct
            for start, stop in shard_bounds(count, store.shards)
        ]
        seconds = flops / cost.flops_per_second(scorer, shape, sample)
    return ScoringPlan(count, request.permutations, stores, work, missing, flops, seconds)


def name_model(scorer: Scorer, request: Request) -> str:
    """Return what tables and stores call the model of an audit."""
    return request.name or scorer.revision[:12]


def choose_store(test: str, lengths: Sequence[int], context: int, request: Request) -> StorePlan:
    """Choose the store that a test reads of examples of so many tokens.

    Raises
    ------
    InputError
        Too few examples for the shards, or too small a budget.
    """
    shards = request.shards
    if request.budget is not None:
        tokens_per_example = (
            plan_store(TESTS[test], len(lengths), None).within(context, lengths).tokens_per_example
        )
        shards = _shards_within(
            request.budget, TESTS[test].fewest, lengths, kept_tokens(lengths, tokens_per_example)
        )
    return plan_store(TESTS[test], len(lengths), shards).within(context, lengths)


def _shards_within(budget: int, fewest: int, lengths: Sequence[int], kept: Sequence[int]) -> int:
    """Fewest shards, hence the largest, whose successors cost no more than a budget of tokens."""
    count = len(lengths)
    length, tokens_per_example = sum(lengths) / count, math.ceil(sum(kept) / count)
    smallest = -(-count // (count // fewest))
    least = math.ceil(
        successor_cost(
            smallest, examples=count, mean_length=length, tokens_per_example=tokens_per_example
        )
    )
    if budget < least:
        raise InputError(
            f"--budget is {budget:,} tokens, and shards of {smallest} examples read up to "
            f"{least:,}: give at least that, or use fewer examples (--max-records)"
        )
    size = shard_size_for_budget(
        budget, examples=count, mean_length=length, tokens_per_example=tokens_per_example
    )
    return -(-count // size)


def _stored_tokens(directory: Path) -> int:
    return sum(pq.read_metadata(part).num_rows for part in directory.glob("part-*.parquet"))
