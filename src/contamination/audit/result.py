"""The results of an audit: one `Finding` for each test, and the `Audit` of all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contamination import statistics
from contamination.audit.controls.diagnosis import Diagnosis
from contamination.audit.decision import (
    COMPRESSOR,
    Evidence,
    Verdict,
    both_axes,
    decide,
    log10_floor,
)
from contamination.audit.other_tests import OtherTest, other_tests, told
from contamination.audit.plan import ScoringPlan
from contamination.audit.power import SimulatedPower
from contamination.audit.registry import ITEM_TESTS
from contamination.scoring.store import Store
from contamination.scoring.store_format import Header
from contamination.statistics import PValue, TestResult

if TYPE_CHECKING:
    from contamination.scoring.completions import CompletionHeader

SCHEMA = "contamination-result/1"  # of `Audit.as_dict`: export.py says what may change in it
# What JSON has of a store's header, and of the result of a test.
IDENTITY = ("model", "model_revision", "dataset", "dataset_revision", "template", "seed")
RESULT = ("test", "statistic", "p", "log10_p", "shards", "permutations")
OF_SOME = ("best", "stopped_at", "known_at_least")  # of the result of some tests


@dataclass(frozen=True, eq=False)
class Finding:
    """A test of an audit: what it found, and what stands beside it.

    Attributes
    ----------
    result : uncorrected: choose the test before you look.
    diagnosis : whether what the test permutes carries information by itself. Unless it is quiet, a
        small p-value is no evidence of contamination. None where a key has drawn what is tested.
    control : the same shards under a compressor, which has seen no test set; None likewise.
    error : standard error of log10 p over sampled orderings, where p is below 1e-6.
    planted : p-values of simulated copies of this set, for each effect that studies measured.
    store : that the test has read; None of what a model wrote.
    answers_problem : why a large p says nothing; "" if it does.
    """

    result: TestResult
    diagnosis: Diagnosis | None = None
    control: TestResult | None = None
    error: float | None = None
    planted: tuple[SimulatedPower, ...] = ()
    store: Store | None = None
    answers_problem: str = ""


@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit found, and what it took.

    Attributes
    ----------
    header : of a store that was read; it names the model and the set.
    findings : one for each test.
    seconds : that scoring took in this run.
    noise : nats a token by which an endpoint's answers to one prompt differed in this run; None of
        a model here, and where nothing was asked.
    precision : in which the model computed; "unknown" behind an endpoint.
    joint : of both axes together, if both were asked (`joint`), or of all that a key has drawn.
    drawn : whether a seed alone has arranged the options (`Request.drawn`).
    beside : the same audit of a control, a model that cannot have read the set, if one was named.
    written : what the model wrote, if that was tested (`contamination.audit.generation`).
    """

    header: "Header | CompletionHeader"
    plan: ScoringPlan
    findings: tuple[Finding, ...]
    stores: tuple[Path, ...]
    seconds: float
    noise: float | None
    precision: str
    joint: PValue | None = None
    drawn: bool = False
    beside: "Audit | None" = None
    written: Mapping[str, Any] | None = None

    @property
    def results(self) -> tuple[TestResult, ...]:
        """What each test found."""
        return tuple(each.result for each in self.findings)

    @property
    def holm_p(self) -> tuple[float, ...]:
        """p-values of the results after Holm's correction over the tests that were asked for."""
        log10_p = [result.log10_p for result in self.results]
        return tuple(map(float, statistics.adjust(log10_p=log10_p, method="holm").p))

    def verdict(self, alpha: float = 0.05) -> Verdict:
        """Judge the p-values at a level, with their controls."""
        return decide(self.evidence(self.holm_p, len(self.findings)), alpha=alpha)

    def evidence(self, p_values: Sequence[float], corrected_for: int) -> list[Evidence]:
        """Return what the verdict rests on: each test after correction, or all parts together.

        Of both axes the order of records counts by itself as well, where authors have arranged the
        options and there is no control model.

        Parameters
        ----------
        p_values : of the tests, after correction.
        corrected_for : number of tests over which they were corrected.
        """
        if self.joint is None:
            pairs = enumerate(zip(self.findings, p_values, strict=True))
            return [self._evidence_of(i, each, p, corrected_for) for i, (each, p) in pairs]
        if self.findings[0].diagnosis is None:  # a key has drawn all that is tested
            problems = [each.answers_problem for each in self.findings if each.answers_problem]
            problem = "; ".join(dict.fromkeys(problems))
            return [Evidence("all together", self.joint.p, drawn=True, answers_problem=problem)]
        parts = [
            self._evidence_of(i, each, each.result.p, corrected_for)
            for i, each in enumerate(self.findings)
        ]
        joint_control = {}
        if self.beside is not None and self.beside.joint is not None:
            joint_control[self._control_name] = self.beside.joint.p
        both = both_axes(self.joint.p, parts, joint_control)
        if both.habit and self.beside is None:
            return [parts[0], both]
        return [both]

    def _evidence_of(self, number: int, finding: Finding, p: float, corrected_for: int) -> Evidence:
        """Return the evidence of one test, with its controls."""
        result = finding.result
        controls = {}
        if finding.control is not None:
            controls[COMPRESSOR] = finding.control.p
        if self.beside is not None:
            controls[self._control_name] = self.beside.results[number].p
        of_items = result.test in ITEM_TESTS
        return Evidence(
            test=result.test,
            p=p,
            floor=min(1.0, corrected_for * 10 ** log10_floor(result)),
            order="quiet" if finding.diagnosis is None else finding.diagnosis.verdict,
            controls=controls,
            habit=of_items and not self.drawn,
            planted=finding.planted,
            corrected_for=corrected_for,
            drawn=finding.diagnosis is None or (of_items and self.drawn),
            answers_problem=finding.answers_problem,
        )

    @property
    def _control_name(self) -> str:
        assert self.beside is not None
        return f"the control {self.beside.header.model}"

    @property
    def other_tests(self) -> list[OtherTest]:
        """What other commands have tested of this model and set, as far as their stores say."""
        pairs = [(each.store.directory, each.result) for each in self.findings if each.store]
        return other_tests(self.stores, pairs)

    @property
    def tokens_scored(self) -> int:
        """Tokens scored in this run; 0 if all was stored."""
        return self.plan.missing

    def as_dict(self, alpha: float = 0.05) -> dict[str, Any]:
        """Return the audit for JSON."""
        judged = self.verdict(alpha)
        results = [_described(result) for result in self.results]
        for result, holm, each in zip(results, self.holm_p, self.findings, strict=True):
            error = {} if each.error is None else {"log10_p_error": each.error}
            result |= {"holm_p": holm, "min_p": 10 ** log10_floor(each.result)} | error
        return {
            "schema": SCHEMA,
            **{name: getattr(self.header, name) for name in IDENTITY},
            "version": version("contamination"),
            "precision": self.precision,
            "alpha": alpha,
            "verdict": asdict(judged) | {"status": judged.status},
            **({} if self.joint is None else {"joint": asdict(self.joint)}),
            "plan": asdict(self.plan),
            "results": results,
            "diagnosis": [each.diagnosis.as_dict() for each in self.findings if each.diagnosis],
            "control": [_described(each.control) for each in self.findings if each.control],
            "stores": [str(path) for path in self.stores],
            "other_tests": [each._asdict() for each in self.other_tests],
            "tokens_scored": self.tokens_scored,
            "seconds": self.seconds,
            "noise": self.noise,
            **({} if self.written is None else {"written": dict(self.written)}),
            **({} if self.beside is None else {"control_model": self.beside.as_dict(alpha)}),
        }

    def notes(self) -> list[str]:
        """Return lines for people on what stands beside the p-values: limits, order, controls."""
        lines = [f"all together (Fisher): p = {self.joint.p:.3g}"] if self.joint else []
        for each in self.findings:
            result, name = each.result, each.result.test
            if hasattr(result, "stopped_at"):
                ended = "not enough evidence" if result.stopped_at is None else "stopped"
                lines.append(f"{name}: {ended} after {result.shards} shards; p is anytime-valid")
            if best := getattr(result, "best", None):
                lines.append(f"{name}: the smallest p was that of {best}")
            if (known := getattr(result, "known_at_least", None)) is not None:
                lines.append(f"{name}: {known} or more of {result.shards} are known")
            if result.log10_p <= 0.999 * log10_floor(result):
                lines.append(f"{name}: no smaller p exists for so many shards and orderings")
            if each.error is not None and each.error >= 0.05:
                moved = f"other sampled orderings would move log10 p by about {each.error:.1f}"
                lines.append(f"{name}: {moved}")
        for found in {each.diagnosis: None for each in self.findings if each.diagnosis}:
            lines.append(f"{found.what}: {found.verdict}")
            lines += [f"  {reason}" for reason in found.reasons]
            if found.remark:
                lines.append(found.remark)
        controls = {each.control: None for each in self.findings if each.control}
        for control in controls:
            tests = ", ".join(each.result.test for each in self.findings if each.control is control)
            of = f" ({tests})" if len(controls) > 1 else ""
            lines.append(f"a compressor, which has seen nothing{of}: p = {control.p:.3g}")
        if self.beside is not None:
            p = {result.test: result.p for result in self.beside.results}
            if self.beside.joint is not None:
                p["together"] = self.beside.joint.p
            each_p = ", ".join(f"{name} p = {value:.3g}" for name, value in p.items())
            lines.append(f"the control, {self.beside.header.model}: {each_p}")
        if others := self.other_tests:
            lines.append(told(others))
        return lines

    def summary(self) -> str:
        """One line for each test, what stands beside them, and the verdict at 0.05."""
        what = f"{self.header.model} on {self.header.dataset}"
        lines = [f"{what}: {result.test} test, p = {result.p:.3g}" for result in self.results]
        return "\n".join([*lines, *self.notes(), str(self.verdict())])


def _described(result: TestResult) -> dict[str, Any]:
    return {name: getattr(result, name) for name in RESULT + OF_SOME if hasattr(result, name)}
