"""The results of an audit as plain data: its findings, their controls, and its cost."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contamination import statistics
from contamination.audit import text_report
from contamination.audit.control_fit import ControlFit, fit_of_control, nats_per_token
from contamination.audit.decision import Verdict, decide, log10_floor
from contamination.audit.evidence import CombinedP, ControlModel, evidence_of
from contamination.audit.finding import Finding
from contamination.audit.objections import Evidence
from contamination.audit.other_tests import OtherTest, note_of, other_tests
from contamination.audit.plan import ScoringPlan
from contamination.scoring.store_format import Header
from contamination.statistics import TestResult

if TYPE_CHECKING:
    from contamination.audit.comparison import Comparison
    from contamination.scoring.completions import CompletionHeader

# of `Audit.as_dict`: export.py says what may change in it
SCHEMA = "contamination-result/1"
# Attributes that `Audit.as_dict` takes from a store's header, and from the result of a
# test.
IDENTITY = (
    "model",
    "model_revision",
    "dataset",
    "dataset_revision",
    "template",
    "seed",
)
RESULT = ("test", "statistic", "p", "log10_p", "shards", "permutations")
# What it takes from the comparison with held-out records: no revision of these, since
# whoever has the digest of a few records could guess them.
OF_SIDES = (
    "assumption",
    "p",
    "log10_p",
    "statistic",
    "best",
    "published",
    "held_out_records",
    "resamples",
    "scores",
    "read_at_least",
    "read_records",
)
OF_SOME = ("best", "stopped_at", "known_at_least")  # of the results of some tests


@dataclass(frozen=True, eq=False)
class Audit:
    """Audit results and cost.

    Attributes
    ----------
    header
        Header of one of the stores; it names the model and the set.
    plan
        The work, the part that was already stored included; `missing` is what was
        scored in this run. The comparison with held-out records is not part of it.
    findings
        The finding of each test.
    stores
        Directories that were read, without that of the comparison with held-out
        records: its name is a digest, from which a few records could be guessed.
    seconds
        Scoring time in this run, that of the comparison included.
    noise
        Nats a token by which an endpoint's answers to one prompt differed in this run;
        None for a local model, and where nothing was scored.
    step
        Nats to whose multiples an endpoint rounded its log-probabilities in this run, if
        that is coarse; else None.
    precision
        Precision of the model's computation; "unknown" behind an endpoint.
    combined
        p-value of all tests together: of both axes, or of everything that a key has
        drawn.
    combined_by
        Rule by which the p-values were combined, for people.
    held_out
        Comparison of published records with those that a key has held back, if any.
    options_drawn
        Whether the option order was randomised by a seed (`Request.drawn`).
    order_drawn
        Whether the author states that the order of records was drawn
        (`Request.order_drawn`).
    control
        The same audit of a control, a model that cannot have read the set, if one was
        named.
    generation
        Counts and settings of the texts that the model wrote, if those were tested
        (`contamination.audit.generation`); of a sealed set with options, also those of
        the quiz on them, under "options".
    tokens_per_character
        Of the texts of the set, as the model reads them; None if the model has written
        texts of its own.
    """

    header: "Header | CompletionHeader"
    plan: ScoringPlan
    findings: tuple[Finding, ...]
    stores: tuple[Path, ...]
    seconds: float
    noise: float | None
    precision: str
    combined: CombinedP | None = None
    combined_by: str = "Fisher"
    held_out: "Comparison | None" = None
    options_drawn: bool = False
    order_drawn: bool = False
    control: "Audit | None" = None
    generation: Mapping[str, Any] | None = None
    tokens_per_character: float | None = None
    step: float | None = None

    @property
    def results(self) -> tuple[TestResult, ...]:
        """The result of each test."""
        return tuple(finding.result for finding in self.findings)

    @property
    def holm_p(self) -> tuple[float, ...]:
        """p-values after Holm's correction over the tests of this audit."""
        log10_p = [result.log10_p for result in self.results]
        corrected = statistics.adjust(log10_p=log10_p, method="holm")
        return tuple(float(p) for p in corrected.p)

    @property
    def tokens_scored(self) -> int:
        """Tokens scored in this run, those of held-out records included; 0 if all was stored."""
        if self.held_out is None:
            return self.plan.missing
        return self.plan.missing + self.held_out.tokens_scored

    @property
    def other_tests(self) -> list[OtherTest]:
        """Tests of this model and set by other commands, as far as their stores say."""
        return other_tests(self.stores, self.test_notes)

    @property
    def test_notes(self) -> list[Path]:
        """The files in which the tests of this audit have left word."""
        notes = []
        for finding in self.findings:
            if finding.store is not None:
                notes.append(note_of(finding.store.directory, finding.result))
        if self.held_out is not None:
            notes.append(self.held_out.store.note)
        return notes

    @cached_property
    def nats_per_character(self) -> float | None:
        """Mean nats per character of the texts, as the first test reads them; None if unknown.

        Of a store that keeps the first tokens of each text, these alone count.
        """
        store = self.findings[0].store
        if store is None or self.tokens_per_character is None:
            return None
        return nats_per_token(store) * self.tokens_per_character

    @cached_property
    def control_fit(self) -> ControlFit | None:
        """How well the control predicts the texts; None without one, or if unknown."""
        if self.control is None:
            return None
        return fit_of_control(self.nats_per_character, self.control.nats_per_character)

    def evidence(self, p_values: Sequence[float], corrected_for: int) -> list[Evidence]:
        """Return the plain values on which the verdict rests.

        The p-values of the tests are corrected over `corrected_for` tests.
        """
        return evidence_of(
            self.findings,
            p_values=p_values,
            corrected_for=corrected_for,
            options_drawn=self.options_drawn,
            order_drawn=self.order_drawn,
            combined=self.combined,
            control=self._control_model(),
        )

    def verdict(self, alpha: float = 0.05) -> Verdict:
        """Return the verdict at a level, with the controls taken into account."""
        evidence = self.evidence(self.holm_p, len(self.findings))
        return decide(evidence, alpha=alpha)

    def notes(self) -> list[str]:
        """Return lines for people on the limits of the p-values, and on controls."""
        return text_report.notes_on(
            self.findings,
            combined_p=None if self.combined is None else self.combined.p,
            combined_by=self.combined_by,
            control=self._control_model(),
            held_out=self.held_out,
            other_tests=self.other_tests,
        )

    def summary(self) -> str:
        """Return a line for each test, the notes, and the verdict at 0.05."""
        return text_report.summary(
            self.header.model,
            self.header.dataset,
            self.findings,
            self.notes(),
            self.verdict(),
        )

    def as_dict(self, alpha: float = 0.05) -> dict[str, Any]:
        """Return the result for JSON, with the verdict at a level; see `SCHEMA`.

        There "control" is the zlib baseline, and "control_model" is `control`.
        """
        verdict = self.verdict(alpha)
        described: dict[str, Any] = {"schema": SCHEMA}
        for name in IDENTITY:
            described[name] = getattr(self.header, name)
        described["version"] = version("contamination")
        described["precision"] = self.precision
        described["alpha"] = alpha
        described["verdict"] = asdict(verdict) | {"status": verdict.status}
        if self.combined is not None:
            joint = asdict(self.combined)
            del joint["log10_least"]  # -inf, which JSON has not, if p has no least
            described["joint"] = joint | {"min_p": self.combined.least}
        if self.held_out is not None:
            compared = self.held_out.as_dict()
            described["held_out"] = {name: compared[name] for name in OF_SIDES}
        described["plan"] = asdict(self.plan)
        del described["plan"]["measured"]  # what is scored is timed anew
        described["results"] = self._results_as_dicts()
        diagnoses = [finding.diagnosis for finding in self.findings if finding.diagnosis]
        described["diagnosis"] = [diagnosis.as_dict() for diagnosis in diagnoses]
        baselines = [finding.zlib for finding in self.findings if finding.zlib]
        described["control"] = [_result_as_dict(result) for result in baselines]
        described["stores"] = [str(path) for path in self.stores]
        described["other_tests"] = [other._asdict() for other in self.other_tests]
        described["tokens_scored"] = self.tokens_scored
        described["seconds"] = self.seconds
        described["noise"] = self.noise
        if self.order_drawn:
            described["order_drawn"] = True
        if self.generation is not None:
            described["written"] = dict(self.generation)
        if self.control is not None:
            described["control_model"] = self.control.as_dict(alpha)
        if self.control_fit is not None:
            described["nats_per_character"] = asdict(self.control_fit)
        return described

    def _results_as_dicts(self) -> list[dict[str, Any]]:
        described = []
        for finding, holm_p in zip(self.findings, self.holm_p, strict=True):
            result = _result_as_dict(finding.result)
            result["holm_p"] = holm_p
            result["min_p"] = 10 ** log10_floor(finding.result)
            if finding.error is not None:
                result["log10_p_error"] = finding.error
            described.append(result)
        return described

    def _control_model(self) -> ControlModel | None:
        """Return the p-values of the control, if there is one."""
        if self.control is None:
            return None
        combined = self.control.combined
        return ControlModel(
            name=self.control.header.model,
            p_values=tuple(result.p for result in self.control.results),
            combined_p=None if combined is None else combined.p,
            fit=self.control_fit,
        )


def _result_as_dict(result: TestResult) -> dict[str, Any]:
    """Return the attributes of a result that JSON has."""
    names = [name for name in RESULT + OF_SOME if hasattr(result, name)]
    return {name: getattr(result, name) for name in names}
