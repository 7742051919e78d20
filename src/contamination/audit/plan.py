"""The scoring that an audit needs, and the stores that it fills.

Shards, tokens, FLOPs and time are counted before anything is paid for. A set is
tokenised once for each model: what was planned is what is scored.
"""

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from contamination.audit.registry import TESTS
from contamination.audit.request import Request
from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.scoring import cost, speed
from contamination.scoring.contract import Scorer
from contamination.scoring.job import ScoringJob
from contamination.scoring.loading import network_shape
from contamination.scoring.local import TransformersScorer
from contamination.scoring.pace import Pace, earlier_pace, keep_pace
from contamination.scoring.plan import StorePlan, plan_store
from contamination.scoring.processes import processes
from contamination.scoring.score import scoring_job, token_groups
from contamination.scoring.speed import NOTHING, Forecast, with_range
from contamination.scoring.store import Store
from contamination.scoring.store_checks import has_other_number
from contamination.scoring.store_format import count_values, read_header
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.tokens import TokenisedSet, tokenize_set

if TYPE_CHECKING:
    from contamination.testsets.variants import VariantSet


@dataclass(frozen=True)
class ScoringPlan:
    """The scoring that an audit needs.

    Attributes
    ----------
    stores
        One store for each test in their order, that of options last; tests may share
        one.
    work
        Tokens and forward passes over all stores, those already stored included.
    missing
        Tokens that are not stored yet.
    flops, seconds
        Predicted FLOPs and seconds of the missing work; None where the model runs
        elsewhere.
    least_seconds, most_seconds
        Range of the seconds.
    measured
        Date of the earlier run that the seconds follow from; None if they were measured
        for this plan.
    """

    examples: int
    permutations: int
    stores: tuple[StorePlan, ...]
    work: cost.Workload
    missing: int
    flops: float | None
    seconds: float | None
    least_seconds: float | None = None
    most_seconds: float | None = None
    measured: str | None = None


@dataclass(frozen=True, eq=False)
class StoreWork:
    """A store of an audit, and the work of filling the whole of it.

    A share of the work, from 0 to 1, is missing. The store holds `variants` of the
    records; None stands for orders of the records.
    """

    store: StorePlan
    directory: Path
    work: cost.Workload
    missing_share: float
    variants: "VariantSet | None" = None


@dataclass(frozen=True, eq=False)
class Work:
    """The work of an audit under one model: orders of records, variants, or both.

    Attributes
    ----------
    variants
        Sets of variants of the records, which come after the orders; None makes those
        of the request.
    timed
        Whether FLOPs and seconds of what is missing are predicted, from samples of it.
    dry
        Whether nothing is to be scored. The seconds are then predicted from an earlier
        run of the model on this machine, if there is one, without opening the network.
    keep_revisions
        Whether a store of orders is named after the revisions of model and set, and
        stays when another revision is scored. Else the new store takes its place, by
        `fill(replace=True)`.
    """

    scorer: Scorer
    test_set: ExampleSet
    request: Request
    variants: Sequence["VariantSet"] | None = None
    timed: bool = True
    dry: bool = False
    keep_revisions: bool = False

    @cached_property
    def tokenised(self) -> TokenisedSet:
        """The set as the model reads it."""
        return tokenize_set(self.scorer.tokenizer, self.test_set)

    @cached_property
    def variant_sets(self) -> tuple["VariantSet", ...]:
        """The sets of variants that are scored.

        Raises InputError if the request asks for options, and the set has none that may
        move.
        """
        if self.variants is not None:
            return tuple(self.variants)
        if self.request.axis == "order":
            return ()
        return (self.request.option_variants(self.test_set),)

    @property
    def tests(self) -> tuple[str, ...]:
        """The names of the tests: of the order of records, then of variants."""
        of_variants = [variants.what for variants in self.variant_sets]
        return (*self.request.order_tests, *of_variants)

    @property
    def model(self) -> str:
        """The name of the model in tables and stores."""
        return self.request.name or self.scorer.revision[:12]

    @cached_property
    def parts(self) -> tuple[StoreWork, ...]:
        """One for each test; tests may share one.

        Raises InputError if there are too few examples for the shards, or what is read
        at once is longer than the context.
        """
        lengths = self.tokenised.lengths
        of_orders: dict[StorePlan, StoreWork] = {}
        parts = []
        for test in self.request.order_tests:
            store = plan_store(TESTS[test], len(lengths), self.request.shards)
            store = store.within(self.scorer.context, lengths)
            if store not in of_orders:
                of_orders[store] = self.plan_orders(store)
            parts.append(of_orders[store])
        for variants in self.variant_sets:
            parts.append(self._plan_variants(variants))
        return tuple(parts)

    @property
    def distinct_parts(self) -> list[StoreWork]:
        """The parts, each once."""
        return list(dict.fromkeys(self.parts))

    @cached_property
    def plan(self) -> ScoringPlan:
        """Tokens, FLOPs and time of what there is to score, before anything is scored.

        Raises InputError as `parts` does: for too few examples, or too short a context.
        """
        missing = [part for part in self.distinct_parts if part.missing_share]
        permutations = self.request.permutations
        if self.request.axis == "options":
            permutations = self.request.arrangements - 1
        works = [part.work for part in self.distinct_parts]
        tokens_missing = 0
        for part in missing:
            tokens_missing += round(part.work.scored * part.missing_share)
        plan = ScoringPlan(
            examples=len(self.test_set.examples),
            permutations=permutations,
            stores=tuple(part.store for part in self.parts),
            work=cost.total(works),
            missing=tokens_missing,
            flops=None,
            seconds=None,
        )
        if not self.timed or not missing or not isinstance(self.scorer, TransformersScorer):
            return plan
        return self._with_forecast(plan, missing, self.scorer)

    def _with_forecast(
        self, plan: ScoringPlan, missing: Sequence[StoreWork], scorer: TransformersScorer
    ) -> ScoringPlan:
        """Return a plan with FLOPs and time of what is missing, by earlier runs or by samples."""
        paces: list[Pace] = []
        if self.dry:
            paces = self._earlier_paces(missing, scorer)
        known = bool(paces)
        if not known:
            paces = [self._sampled_pace(part, scorer) for part in missing]
        flops = 0.0
        time = NOTHING
        for pace in paces:
            flops += pace.flops
            time += pace.time
        return dataclasses.replace(
            plan,
            flops=flops,
            seconds=time.seconds,
            least_seconds=time.least,
            most_seconds=time.most,
            measured=min(pace.date for pace in paces) if known else None,
        )

    def _earlier_paces(
        self, missing: Sequence[StoreWork], scorer: TransformersScorer
    ) -> list[Pace]:
        """Return the pace of each part by earlier runs, or [] if one of them is not known."""
        paces: list[Pace] = []
        for part in missing:
            pace = earlier_pace(scorer, part.store.kind, part.work)
            if pace is None:
                return []
            flops = pace.shape.flops(part.work) * self._share_to_read(part)
            paces.append(pace.of(flops))
        return paces

    def _sampled_pace(self, part: StoreWork, scorer: TransformersScorer) -> Pace:
        """Return the pace of what a part lacks, from samples of it; a dry run keeps it."""
        job = self._job(part)
        work = speed.TimedWork(job.reader, job.places, job.tokens, job.alone)
        time = speed.forecast(work, scorer, self._share_to_read(part))
        pace = self._pace(part, scorer, time)
        if self.dry:
            keep_pace(pace, scorer, part.store.kind, part.work)
        return pace

    def _pace(self, part: StoreWork, scorer: TransformersScorer, time: Forecast) -> Pace:
        """Return the pace of what a part lacks, by the time that this takes."""
        shape = network_shape(scorer.model)
        flops = shape.flops(part.work) * self._share_to_read(part)
        return Pace(shape=shape, flops=flops, time=time)

    def fill(
        self,
        *,
        enough: Callable[[Store, int], bool] | None = None,
        replace: bool = False,
    ) -> list[Store]:
        """Score what is missing, and return the store of each test.

        `enough` is called after each shard with the store and its index, and scoring
        ends when it returns True; None scores all shards. With `replace` a store of
        something else is removed from the place of one of these.
        """
        stores: dict[StoreWork, Store] = {}
        for part in self.distinct_parts:
            job = self._job(part, replace=replace)
            stores[part] = job.run(enough)
            if enough is None:
                self._keep_time(part, job.seconds)
        return [stores[part] for part in self.parts]

    def _keep_time(self, part: StoreWork, seconds: float) -> None:
        """Keep how long a model here took for what a part lacked, for later dry runs."""
        nothing = seconds == 0.0
        if nothing or not processes().is_main_process:
            return
        if isinstance(self.scorer, TransformersScorer):
            time = with_range(seconds, fastest=seconds, slowest=seconds)
            pace = self._pace(part, self.scorer, time)
            keep_pace(pace, self.scorer, part.store.kind, part.work)

    def _job(self, part: StoreWork, *, replace: bool = False) -> ScoringJob:
        """Return the job of filling the store of a part; `replace` as in `fill`."""
        data: TokenisedSet | VariantSet
        if part.variants is None:
            data = self.tokenised
            permutations = self.request.permutations
        else:
            data = part.variants
            permutations = 0  # all variants are scored
        return scoring_job(
            data,
            self.scorer,
            part.directory,
            part.store,
            model=self.model,
            seed=self.request.seed,
            permutations=permutations,
            replace=replace,
        )

    def plan_orders(self, store: StorePlan) -> StoreWork:
        """Plan one store of orders of the records."""
        identity = None
        if self.keep_revisions:
            identity = sha256_of(
                self.scorer.revision, self.test_set.revision, str(self.request.seed)
            )
        directory = store.path(
            self.request.directory, self.model, self.tokenised.test_set.name, identity
        )
        if self._has_fewer_or_more(directory):
            directory = store.path(
                self.request.directory,
                self.model,
                self.tokenised.test_set.name,
                self.test_set.revision,
            )
        work = cost.workload(
            store,
            self.tokenised.lengths,
            self.request.permutations,
            self.scorer.context,
        )
        return StoreWork(store, directory, work, missing_share(directory, work.scored))

    def _has_fewer_or_more(self, directory: Path) -> bool:
        """Return whether a store holds another number of records of this set, for this model.

        A test of another number is one more test whatever its shards are. So it gets a
        store beside the first, where each result tells of the other.
        """
        stored = None
        with suppress(InputError):  # a damaged header is told where the store is opened
            stored = read_header(directory / "store.json")
        if stored is None or stored.model_revision != self.scorer.revision:
            return False
        if stored.template != self.test_set.template:
            return False
        expected = {"example_tokens": self.tokenised.lengths}
        return has_other_number(stored.as_json(), expected)

    def _plan_variants(self, variants: "VariantSet") -> StoreWork:
        """Plan the store of a set of variants."""
        groups = token_groups(self.scorer.tokenizer, variants)
        works = []
        tokens = 0
        for group in groups:
            lengths = [len(rest) for rest in group.rests]
            if max(lengths) > self.scorer.context:
                raise InputError(
                    f"{variants.name}: an item takes {max(lengths)} tokens, over "
                    f"context={self.scorer.context}",
                    parameter="context",
                )
            works.append(
                cost.continuation_workload(len(group.prefix), np.array(lengths)),
            )
            tokens += sum(lengths[number] for number in group.which)
        store = StorePlan("alternatives", len(groups), None)
        directory = store.path(
            self.request.directory,
            self.model,
            variants.name,
            variants.revision,
        )
        return StoreWork(
            store=store,
            directory=directory,
            work=cost.total(works),
            missing_share=missing_share(directory, tokens),
            variants=variants,
        )

    def _share_to_read(self, part: StoreWork) -> float:
        """Return the share of the work of a part that is missing, equal orderings once."""
        if part.store.kind != "orderings":
            return part.missing_share
        distinct = cost.distinct_share(
            len(self.tokenised.ids), part.store.shards, self.request.permutations
        )
        return part.missing_share * distinct


def missing_share(directory: Path, tokens: int) -> float:
    """Return the share of tokens that a store lacks, by the footers of its parts."""
    stored = sum(count_values(path) for path in directory.glob("part-*.parquet"))
    return max(0, tokens - stored) / tokens
