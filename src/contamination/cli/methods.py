"""The methods of testing a model: by log-probabilities, or by generated text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from contamination.audit.request import Request
from contamination.cli.choices import ModelChoice, open_generator, open_scorer

if TYPE_CHECKING:
    from contamination.audit.generation_plan import GenerationAudit
    from contamination.audit.plan import Work
    from contamination.audit.result import Audit
    from contamination.scoring.generation import Generator, Sampling
    from contamination.testsets.example_set import ExampleSet
    from contamination.testsets.variants import VariantSet


class Method(Protocol):
    """A way of testing a model: it opens the model, plans the work, and audits."""

    @property
    def choice(self) -> ModelChoice:
        """How to load or reach the model."""

    def open_model(self, name: str) -> Any:
        """Return the scorer or the generator of a model."""

    def works(
        self,
        model: Any,
        request: Request,
    ) -> "Sequence[Work | GenerationAudit]":
        """Return what there is to score or to write, which has a plan."""

    def audit(self, model: Any, request: Request) -> "Audit":
        """Score or write what is missing, and test it."""


@dataclass(frozen=True)
class ByLogProbabilities:
    """The tests on log-probabilities of the records, or of orders of their options.

    `variants` are the arrangements of the options, None where only records are tested.
    Scoring stops at the level `stop_at`, shard by shard; None scores all shards.
    """

    choice: ModelChoice
    examples: "ExampleSet"
    variants: "VariantSet | None" = None
    stop_at: float | None = None

    @property
    def _variant_sets(self) -> "list[VariantSet] | None":
        if self.variants is None:
            return None
        return [self.variants]

    def open_model(self, name: str) -> Any:
        """Return the scorer of a model."""
        return open_scorer(name, self.choice.of_model(name))

    def works(self, model: Any, request: Request) -> "list[Work]":
        """Return what there is to score."""
        from contamination.audit.plan import Work

        work = Work(
            model,
            self.examples,
            request,
            variants=self._variant_sets,
            dry=True,
        )
        return [work]

    def score(self, model: Any, request: Request) -> "Audit":
        """Score what is missing; the audit has no finding."""
        from contamination.audit.plan import Work
        from contamination.audit.run import make_audit, score_work

        work = Work(model, self.examples, request, variants=self._variant_sets)
        return make_audit(work, score_work(work), findings=[])

    def audit(self, model: Any, request: Request) -> "Audit":
        """Score what is missing, and test it."""
        from contamination.audit.run import run_audit

        return run_audit(
            model,
            self.examples,
            request,
            variants=self._variant_sets,
            stop_at=self.stop_at,
        )


@dataclass(frozen=True)
class ByTexts:
    """The tests on text that a model generates about a set.

    `variants` are the checked options of the items, None on the axis of records. With
    `next_record` the model is asked which record comes next. The bound of a quiz has
    confidence 1 - `alpha`.
    """

    choice: ModelChoice
    examples: "ExampleSet"
    variants: "VariantSet | None"
    sampling: "Sampling"
    next_record: bool
    alpha: float

    def open_model(self, name: str) -> "Generator":
        """Return the generator of a model."""
        asks_letters = self.next_record or self.variants is not None
        return open_generator(name, self.choice.of_model(name), asks_letters=asks_letters)

    def works(self, model: "Generator", request: Request) -> "list[GenerationAudit]":
        """Return what there is to write."""
        from contamination.audit.generation_plan import GenerationAudit

        work = GenerationAudit(
            model,
            self.examples,
            request,
            sampling=self.sampling,
            next_record=self.next_record,
            template=None if self.variants is None else self.variants.template,
        )
        return [work]

    def audit(self, model: "Generator", request: Request) -> "Audit":
        """Have the model write what is missing, and test it."""
        from contamination.audit.generation import audit_generation

        (work,) = self.works(model, request)
        return audit_generation(work, alpha=self.alpha)
