"""The result of comparing two sides as plain data: p-values, controls, and a verdict."""

from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from contamination.audit.control_fit import ControlFit, fit_of_control
from contamination.audit.controls.sides import SidesControl
from contamination.audit.decision import Verdict, decide
from contamination.audit.objections import Evidence
from contamination.audit.other_tests import OtherTest, other_tests
from contamination.audit.sides_store import SidesStore
from contamination.statistics.held_out import HeldOutResult

# of `Comparison.as_dict`: export.py says what may change in it
SCHEMA = "contamination-comparison/1"
ASSUMPTION = (
    "which records were published and which were held back was drawn at random, and the "
    "model depends on the draw only by having read them"
)
BY_KEY = "the key of a seal has drawn the sides"
STATED = "the author states that the sides were drawn at random"


@dataclass(frozen=True, eq=False)
class Comparison:
    """The result of comparing two sides under one model.

    Attributes
    ----------
    store
        The stored scores, and how they were tested.
    result
        p of all scores together; `aucs` says how well each score separates the sides.
    read_records
        Numbers, from 0, of published records that were read, at a false discovery rate
        of `level`; `read_bound` bounds from below how many were. None within strata,
        where records do not compare.
    level
        Level of the bound and of the list of read records.
    drawn
        Whether a key has drawn the sides, so that nothing can object to them.
    precision
        Precision of the model's computation; "unknown" behind an endpoint.
    blind
        Baselines without a model; None where a key has drawn the sides, and of a
        control.
    tokens_scored, seconds
        Tokens of both sides that were scored in this run, 0 if all was stored, and the
        time of it. The JSON leaves them out: it is the same in every run.
    nats_per_character
        Mean over the texts of both sides; None if the loss was not asked for.
    control
        The same comparison under a model that cannot have read either side.
    """

    store: SidesStore
    result: HeldOutResult
    aucs: dict[str, float]
    level: float
    read_records: tuple[int, ...] | None
    read_bound: int | None
    drawn: bool
    precision: str
    blind: SidesControl | None
    tokens_scored: int
    seconds: float
    nats_per_character: float | None = None
    control: "Comparison | None" = None

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.store.header.model

    @property
    def suspect(self) -> str:
        """The name of the published records."""
        return self.store.header.dataset

    @property
    def draw(self) -> str:
        """Return how the draw of the sides was declared, in words."""
        return BY_KEY if self.drawn else STATED

    @property
    def left_out(self) -> tuple[str, ...]:
        """Scores that were declared, and that the model or a record does not have."""
        compared = self.result.names
        return tuple(name for name in self.store.header.scores if name not in compared)

    @property
    def control_fit(self) -> ControlFit | None:
        """How well the control predicts the texts; None without one, or if unknown."""
        if self.control is None:
            return None
        return fit_of_control(self.nats_per_character, self.control.nats_per_character)

    @property
    def other_tests(self) -> list[OtherTest]:
        """Other tests of this model and set, as far as their stores say."""
        return other_tests([self.store.directory], [self.store.note])

    def evidence(self, p: float | None = None, corrected_for: int = 1) -> Evidence:
        """Return the p-value with its controls, as the decision takes it.

        `p` is corrected over `corrected_for` tests; None takes that of the result.
        """
        controls = {}
        if self.control is not None:
            controls[f"the control {self.control.model}"] = self.control.result.p
        return Evidence(
            test=self.result.test,
            p=self.result.p if p is None else p,
            floor=min(1.0, corrected_for * 10**self.result.log10_least),
            controls=controls,
            corrected_for=corrected_for,
            drawn=self.drawn,
            of_sides=True,
            blind_p=1.0 if self.blind is None else self.blind.p,
            blind_best="" if self.blind is None else self.blind.best,
            fit=self.control_fit,
        )

    def verdict(self, alpha: float = 0.05) -> Verdict:
        """Return the verdict at a level."""
        return decide([self.evidence()], alpha=alpha)

    def as_dict(self, alpha: float = 0.05) -> dict[str, Any]:
        """Return the comparison as JSON has it, with the verdict at a level; see `SCHEMA`."""
        header = self.store.header
        test = self.store.test
        verdict = self.verdict(alpha)
        described: dict[str, Any] = {
            "schema": SCHEMA,
            "version": version("contamination"),
            "model": header.model,
            "model_revision": header.model_revision,
            "precision": self.precision,
            "suspect": header.dataset,
            "suspect_revision": header.dataset_revision,
            "held_out": header.held_out,
            "held_out_revision": header.held_out_revision,
            "template": header.template,
            "assumption": ASSUMPTION,
            "draw": self.draw,
            "p": self.result.p,
            "log10_p": self.result.log10_p,
            "statistic": self.result.statistic,
            "best": self.result.best,
            "published": self.result.published,
            "held_out_records": self.result.held_out,
            "strata": self.result.strata,
            "within": test.within,
            "paired": test.paired,
            "summed_by": test.statistic,
            "resamples": test.resamples,
            "seed": test.seed,
            "scores": self._scores(),
            "left_out": list(self.left_out),
            "read_at_least": self.read_bound,
            "read_records": None if self.read_records is None else list(self.read_records),
            "blind": None if self.blind is None else {"p": self.blind.p, **self.blind.p_values},
            "store": str(self.store.directory),
            "other_tests": [other._asdict() for other in self.other_tests],
            "verdict": {
                "alpha": alpha,
                "conclusion": verdict.conclusion,
                "reason": verdict.reason,
                "p": verdict.p,
                "status": verdict.status,
                "objections": list(verdict.objections),
            },
        }
        if self.control is not None:
            described["control_model"] = self.control.as_dict(alpha)
        if self.control_fit is not None:
            described["nats_per_character"] = asdict(self.control_fit)
        return described

    def _scores(self) -> list[dict[str, Any]]:
        rows = []
        for name, p in zip(self.result.names, self.result.marginal_p, strict=True):
            rows.append({"score": name, "auc": self.aucs[name], "p": p})
        return rows
