"""What an audit has to score, and the stores that it fills.

Shards, tokens, FLOPs and time are counted before anything is paid for. A set is tokenised once for
each model: what was planned is what is scored.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contamination.audit.registry import TESTS
from contamination.audit.request import Request
from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.scoring import cost, score
from contamination.scoring.contract import Scorer
from contamination.scoring.loading import model_shape
from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import StorePlan, plan_store
from contamination.scoring.store import Store
from contamination.scoring.store_format import count_values
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.orderings import shard_bounds
from contamination.testsets.tokens import TokenisedSet, tokenize_set

if TYPE_CHECKING:
    from contamination.testsets.variants import VariantSet


@dataclass(frozen=True)
class ScoringPlan:
    """What an audit will score.

    Attributes
    ----------
    stores : one for each test asked for, in their order, that of options last; tests may share one.
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


@dataclass(frozen=True, eq=False)
class Part:
    """A store of an audit: what filling it takes, which share is missing, and how it is filled.

    `sample` are sequences as the model reads them.
    """

    store: StorePlan
    work: cost.Workload
    share: float
    sample: Iterable[np.ndarray]
    fill: Callable[..., Store]


@dataclass(frozen=True, eq=False)
class Work:
    """The work of an audit under one model: orders of the records, alternatives of each, or both.

    Attributes
    ----------
    given : sets of alternatives of the records, which come after the orders; None makes those that
        are asked for.
    timed : whether a sample is run to predict FLOPs and seconds of what is missing.
    keep_revisions : whether a store of orders is named after the revisions of model and set, and
        those of others stay beside it. Else it takes their place, by `fill(replace=True)`.
    """

    scorer: Scorer
    test_set: ExampleSet
    request: Request
    given: Sequence["VariantSet"] | None = None
    timed: bool = True
    keep_revisions: bool = False

    @cached_property
    def tokenised(self) -> TokenisedSet:
        """The set as the model reads it."""
        return tokenize_set(self.scorer.tokenizer, self.test_set)

    @cached_property
    def alternatives(self) -> Sequence["VariantSet"]:
        """Those given, else those asked for; errors as `Request.alternatives`."""
        if self.given is None and self.request.axis != "order":
            return [self.request.alternatives(self.test_set)]
        return self.given or ()

    @property
    def name(self) -> str:
        """What tables and stores call the model."""
        return self.request.name or self.scorer.revision[:12]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """One for each test of the request, then one for each set of alternatives.

        Raises InputError if there are too few examples for the shards, or what is read at once is
        longer than the context.
        """
        lengths, shards = self.tokenised.lengths, self.request.shards
        chosen = [
            plan_store(TESTS[test], len(lengths), shards).within(self.scorer.context, lengths)
            for test in self.request.order_tests
        ]
        orders = map(cache(self.order_part), chosen)  # tests may share a store
        return (*orders, *map(self._alternatives_part, self.alternatives))

    @cached_property
    def plan(self) -> ScoringPlan:
        """Count what there is to score, before anything is; errors as `parts`."""
        parts = list(dict.fromkeys(self.parts))
        flops = seconds = None
        missing = [part for part in parts if part.share]
        if self.timed and missing and isinstance(self.scorer, TransformersScorer):
            shape = model_shape(self.scorer.config)
            flops = sum(shape.flops(part.work) * part.share for part in missing)
            sample = [ids for part in missing for ids in part.sample]
            seconds = flops / cost.flops_per_second(self.scorer, shape, sample)
        options = self.request.axis == "options"
        return ScoringPlan(
            len(self.test_set.examples),
            self.request.arrangements - 1 if options else self.request.permutations,
            tuple(part.store for part in self.parts),
            cost.total([part.work for part in parts]),
            sum(round(part.work.scored * part.share) for part in parts),
            flops,
            seconds,
        )

    def fill(self, **how: Any) -> list[Store]:
        """Score what is missing, and open the stores of the plan, one for each of its `stores`.

        `how` are further settings of `contamination.scoring.score.score`.
        """
        filled = {part: part.fill(**how) for part in dict.fromkeys(self.parts)}
        return [filled[part] for part in self.parts]

    def order_part(self, store: StorePlan) -> Part:
        """Plan one store of orders."""
        tokenised, request, identity = self.tokenised, self.request, None
        if self.keep_revisions:
            revisions = self.scorer.revision, self.test_set.revision
            identity = sha256_of(*revisions, str(request.seed))
        path = store.path(request.directory, self.name, tokenised.test_set.name, identity)
        settings: dict[str, Any] = {"model": self.name, "seed": request.seed}
        settings["permutations"] = request.permutations
        fill = partial(score.score, tokenised, self.scorer, path, store, **settings)
        work = cost.workload(store, tokenised.lengths, request.permutations, self.scorer.context)
        bounds = shard_bounds(len(tokenised.ids), store.shards)
        sample = (np.concatenate(tokenised.ids[start:stop]) for start, stop in bounds)
        return Part(store, work, missing_share(path, work.scored), sample, fill)

    def _alternatives_part(self, alternatives: "VariantSet") -> Part:
        """Plan the store of alternatives: other ones of the same set lie beside it."""
        request, name = self.request, alternatives.name
        groups = score.token_groups(self.scorer.tokenizer, alternatives)
        longest = max(len(rest) for group in groups for rest in group.rests)
        if longest > (context := self.scorer.context):
            raise InputError(
                f"{name}: an item takes {longest} tokens, over context={context}",
                parameter="context",
            )
        store = StorePlan("alternatives", len(groups), None)
        path = store.path(request.directory, self.name, name, alternatives.revision)
        rows = sum(len(group.rests[number]) for group in groups for number in group.which)
        sample = (np.concatenate([group.prefix, *group.rests]) for group in groups)
        settings: dict[str, Any] = {"model": self.name, "seed": request.seed}
        fill = partial(score.score, alternatives, self.scorer, path, **settings)
        rests = ((len(group.prefix), np.array([*map(len, group.rests)])) for group in groups)
        work = cost.total(starmap(cost.continuation_workload, rests))
        return Part(store, work, missing_share(path, rows), sample, fill)


def missing_share(directory: Path, tokens: int) -> float:
    """How much of the tokens that a full store has is missing, by the footers of its parts."""
    return max(0, tokens - sum(map(count_values, directory.glob("part-*.parquet")))) / tokens
