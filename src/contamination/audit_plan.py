"""What an audit has to score: shards, tokens, FLOPs and time, before anything is paid for."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from contamination.battery import DEFAULT_TESTS, TESTS, Test
from contamination.engine import cost
from contamination.engine.contract import Scorer
from contamination.engine.local import TransformersScorer
from contamination.errors import InputError
from contamination.orderings import shard_bounds
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
        return Path(directory) / _slug(model) / _slug(test_set.name) / name

    def work(self, lengths: Sequence[int], permutations: int, context: int) -> cost.Workload:
        """What filling it takes, for examples of so many tokens.

        Raises
        ------
        InputError
            Too few examples for the shards, or successors longer than the context.
        """
        if self.first is not None:
            if (longest := min(self.first, max(lengths))) > context:
                raise InputError(
                    f"the successor test reads up to {longest} tokens of an example at once, and "
                    f"the context is {context}; use another test (--test exact)"
                )
            return cost.successor_workload(lengths, shards=self.shards, first=self.first)
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


def plan_audit(
    scorer: Scorer,
    test_set: TestSet,
    *,
    tests: Sequence[str] = DEFAULT_TESTS,
    shards: int | None = None,
    permutations: int = 25,
    directory: Path | str = "contamination-stores",
    name: str,
) -> Plan:
    """Count what an audit has to score; where that is anything, run a sample to predict the time.

    Parameters are those of `contamination.audit.audit`.

    Raises
    ------
    InputError
        An unknown test, no permutations, or too few examples for the shards.
    """
    if unknown := [t for t in tests if t not in TESTS]:
        raise InputError(f"unknown test {unknown[0]!r}: choose from {', '.join(TESTS)}")
    if permutations < 1:
        raise InputError(f"permutations is {permutations}: give at least 1")
    count = len(test_set.examples)
    stores = tuple(store_plan(TESTS[test], count, shards) for test in tests)
    ids = tokenize(scorer.tokenizer, test_set.examples)
    lengths = [len(i) for i in ids]
    distinct = list(dict.fromkeys(stores))
    works = [store.work(lengths, permutations, scorer.context) for store in distinct]
    work = cost.total(works)
    missing = sum(
        max(0, w.scored - _stored_tokens(store.path(directory, name, test_set)))
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
    return Plan(count, permutations, stores, work, missing, flops, seconds)


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
    if examples < test.fewest * shards:
        raise InputError(
            f"{examples} examples are fewer than {test.fewest} per shard for {shards} shards; use "
            f"at most {examples // test.fewest} shards"
        )
    return StorePlan(test.kind, shards, test.first)


def _slug(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", label).strip("-.") or "unnamed"


def _stored_tokens(directory: Path) -> int:
    return sum(pq.read_metadata(part).num_rows for part in directory.glob("part-*.parquet"))
