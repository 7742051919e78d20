"""What an audit has to score: shards, tokens, FLOPs and time, before anything is paid for."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from contamination.audit_request import Request
from contamination.battery import SUCCESSOR_TOKENS, TESTS, Test
from contamination.engine import cost
from contamination.engine.contract import Scorer
from contamination.engine.local import TransformersScorer
from contamination.errors import InputError
from contamination.orderings import shard_bounds
from contamination.statistics import shard_size_for_budget, successor_cost
from contamination.store_layout import Kind
from contamination.test_set import TestSet
from contamination.tokenizer import tokenize

MOST_SHARDS = 50  # of whole orderings, as in Oren, section 4.2


@dataclass(frozen=True)
class StorePlan:
    """One store that an audit reads; see `contamination.store_layout.Header`."""

    kind: Kind
    shards: int
    first: int | None

    def path(self, directory: Path | str, model: str, test_set: TestSet) -> Path:
        """Where the audits in `directory` keep this store of that model and set."""
        name = f"{self.kind}-{self.shards:03d}"
        if self.kind == "successors" and self.first != SUCCESSOR_TOKENS:
            name += f"-{self.first or 'all'}"
        return Path(directory) / _slug(model) / _slug(test_set.name) / name

    def within(self, context: int, lengths: Sequence[int]) -> "StorePlan":
        """Keep no more of an example than leaves half of the context to the one before it.

        Of whole successors, that is; a plan that says how many tokens to keep stays as it is.
        """
        if self.kind == "orderings" or self.first is not None or max(lengths) <= context // 2:
            return self
        return replace(self, first=context // 2)

    def work(self, lengths: Sequence[int], permutations: int, context: int) -> cost.Workload:
        """What filling it takes, for examples of so many tokens.

        Raises
        ------
        InputError
            Too few examples for the shards, or successors longer than the context.
        """
        if self.kind == "successors":
            longest = max(_kept(lengths, self.first))
            if longest > context:
                raise InputError(
                    f"the successor test reads up to {longest} tokens of an example at once, and "
                    f"the context is {context}; use another test (--test exact)"
                )
            return cost.successor_workload(lengths, shards=self.shards, first=longest)
        return cost.workload(
            lengths, shards=self.shards, permutations=permutations, context=context
        )


@dataclass(frozen=True)
class Plan:
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


def plan_audit(scorer: Scorer, test_set: TestSet, request: Request) -> Plan:
    """Count what an audit has to score; where that is anything, run a sample to predict the time.

    Raises
    ------
    InputError
        Too few examples for the shards, or too small a budget.
    """
    count = len(test_set.examples)
    ids = tokenize(scorer.tokenizer, test_set.examples)
    lengths = [len(i) for i in ids]
    stores = tuple(planned_store(test, lengths, scorer.context, request) for test in request.tests)
    distinct = list(dict.fromkeys(stores))
    works = [store.work(lengths, request.permutations, scorer.context) for store in distinct]
    work = cost.total(works)
    name = called(scorer, request)
    missing = sum(
        max(0, w.scored - _stored_tokens(store.path(request.directory, name, test_set)))
        for store, w in zip(distinct, works, strict=True)
    )
    flops = seconds = None
    if isinstance(scorer, TransformersScorer) and missing:
        shape = cost.model_shape(scorer.config)
        flops = shape.flops(work) * missing / work.scored
        sample = [
            np.concatenate(ids[start:stop])
            for store in distinct
            for start, stop in shard_bounds(count, store.shards)
        ]
        seconds = flops / cost.flops_per_second(scorer, shape, sample)
    return Plan(count, request.permutations, stores, work, missing, flops, seconds)


def called(scorer: Scorer, request: Request) -> str:
    """What tables and stores call the model of an audit."""
    return request.name or scorer.revision[:12]


def planned_store(test: str, lengths: Sequence[int], context: int, request: Request) -> StorePlan:
    """Store that a test reads of examples of so many tokens.

    Raises
    ------
    InputError
        Too few examples for the shards, or too small a budget.
    """
    shards = request.shards
    if request.budget is not None:
        first = store_plan(TESTS[test], len(lengths), None).within(context, lengths).first
        shards = _shards_within(request.budget, TESTS[test].fewest, lengths, _kept(lengths, first))
    return store_plan(TESTS[test], len(lengths), shards).within(context, lengths)


def store_plan(test: Test, examples: int, shards: int | None) -> StorePlan:
    """Store that a test of so many examples reads, with its own shards or those asked for.

    Raises
    ------
    InputError
        Too few examples for the shards.
    """
    if test.shard_size is None:
        shards = 1
    elif shards is None:
        shards = max(1, examples // test.shard_size)
        if test.kind == "orderings":
            shards = min(shards, MOST_SHARDS)
    if examples < test.fewest:
        raise InputError(f"{examples} examples have no order to test: give {test.fewest} or more")
    if examples < test.fewest * shards:
        raise InputError(
            f"{examples} examples are fewer than {test.fewest} per shard for {shards} shards; use "
            f"at most {examples // test.fewest} shards"
        )
    return StorePlan(test.kind, shards, test.first)


def _shards_within(budget: int, fewest: int, lengths: Sequence[int], kept: Sequence[int]) -> int:
    """Fewest shards, hence the largest, whose successors cost no more than a budget of tokens."""
    count = len(lengths)
    length, first = sum(lengths) / count, math.ceil(sum(kept) / count)
    smallest = -(-count // (count // fewest))
    least = math.ceil(successor_cost(smallest, examples=count, mean_length=length, first=first))
    if budget < least:
        raise InputError(
            f"--budget is {budget:,} tokens, and shards of {smallest} examples read up to "
            f"{least:,}: give at least that, or use fewer examples (--first)"
        )
    size = shard_size_for_budget(budget, examples=count, mean_length=length, first=first)
    return -(-count // size)


def _kept(lengths: Sequence[int], first: int | None) -> list[int]:
    return [min(length, first or length) for length in lengths]


def _slug(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", label).strip("-.") or "unnamed"


def _stored_tokens(directory: Path) -> int:
    return sum(pq.read_metadata(part).num_rows for part in directory.glob("part-*.parquet"))
