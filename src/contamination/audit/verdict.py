"""A p-value for one model and one test set, in one call (Oren, Algorithm 1, and what goes beyond).

`audit` scores what no store holds yet, and tests. An `Audit` is what it found, and says what it
amounts to.

The order of the options is a second axis of proof, wherever an item stood when it was read. H0: the
published arrangement of every item was drawn uniformly from those that are permitted, without
regard to the model and independently over items. The p-value is exact under H0. What breaks H0
without any contamination is how people write options; `contamination.testsets.variants` says
what stays in place for that, and a model that cannot have read the set is tested beside this one.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contamination import statistics
from contamination.audit.battery import ITEM_TESTS, TESTS
from contamination.audit.compressor import compressor_alternatives, compressor_test
from contamination.audit.decision import (
    COMPRESSOR,
    Evidence,
    Verdict,
    both_axes,
    decide,
    log10_floor,
)
from contamination.audit.diagnostics import diagnose_arrangements, diagnose_order
from contamination.audit.other_tests import OtherTest, note_test, other_tests, told
from contamination.audit.plan import ScoringPlan, Work
from contamination.audit.power import simulate_power
from contamination.audit.request import Request
from contamination.audit.result import Finding
from contamination.scoring.contract import Scorer
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.scoring.models import label
from contamination.scoring.processes import processes
from contamination.scoring.store import Store
from contamination.scoring.store_format import Header, Kind
from contamination.statistics import PValue, TestResult
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.sources import open_test_set

if TYPE_CHECKING:
    from contamination.scoring.completions import CompletionHeader

SCHEMA = "contamination-result/1"  # of `Audit.as_dict`: export.py says what may change in it
# What `--json` prints of a store's header, and of the result of a test.
IDENTITY = ("model", "model_revision", "dataset", "dataset_revision", "template", "seed")
SAMPLED, FAR = ("successor",), -6.0  # tests on sampled orderings; log10 p where the draw matters
RESULT = ("test", "statistic", "p", "log10_p", "shards", "permutations")
OF_SOME = ("best", "stopped_at", "known_at_least")  # of the result of some tests


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
    written : what the model wrote, if that was tested (`contamination.audit.generated`).
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
        """Return what `--json` prints."""
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


def audit(
    model: Scorer | ModelSource | Path | str,
    test_set: ExampleSet | Path | str,
    request: Request = Request(),  # noqa: B008 - frozen
    *,
    template: str | None = None,
) -> Audit:
    """Score what is missing and test H0 "the model gives every ordering the same chance".

    An ordering is one of the records of a shard or, on the axis of options, of the options of an
    item. Raises InputError for whatever loading, planning (`contamination.audit.plan.Work`) and
    scoring refuse.

    Parameters
    ----------
    model : a scorer, or what `TransformersScorer` takes: hub id, directory, GGUF file.
    test_set : a test set, or what the command takes as DATASET: a registered name, a file, a
        directory or a data set of the hub.
    template : how a record of a set that is opened here becomes text, by name or with {field}; None
        is the set's own, else "text/1" (of items that of
        `contamination.testsets.variants.open_items`).
    """
    if isinstance(model, str | Path | ModelSource):
        source = model if isinstance(model, ModelSource) else ModelSource(str(model))
        model = TransformersScorer(source)
        request = replace(request, name=request.name or label(source.name))
    examples = test_set
    if not isinstance(examples, ExampleSet):
        if request.axis == "order":
            examples = open_test_set(examples, template=template)
        else:
            from contamination.testsets.variants import open_items

            examples = open_items(examples, template=template)
    return audit_work(Work(model, examples, request))


def audit_work(work: Work, *, stop_at: float | None = None) -> Audit:
    """Score what is missing and test it, beside what the order gives away without the model.

    With `stop_at`, shard after shard is scored until the evidence reaches 1 / stop_at, or all are.
    The guarantee of the anytime-valid test (`statistics.anytime`) holds for any rule of stopping,
    and an audit that did not stop can go on later, with the shards that are left. Its result is an
    `AnytimeResult` of the shards that were looked at; diagnosis and control are those of all.
    Raises InputError as `audit`; with `stop_at` also for options, for several tests, and for one
    that needs all shards at once.
    """
    found = carry_out(work, stop_at)
    request = work.request
    test_set = work.test_set
    diagnose = cache(partial(diagnose_order, test_set, seed=request.seed))  # once for its shards

    @cache
    def beside(kind: Kind, shards: int) -> dict[str, Any]:
        if kind == "alternatives":
            diagnosis = diagnose_arrangements(test_set, seed=request.seed, keep=request.keep)
            return {"diagnosis": diagnosis, "control": compressor_alternatives(*work.alternatives)}
        control = compressor_test(
            test_set,
            kind=kind,
            shards=shards,
            permutations=request.permutations,
            seed=request.seed,
        )
        return {"diagnosis": diagnose(shards=shards), "control": control}

    pairs = zip(found.findings, found.plan.stores, strict=True)
    findings = [replace(each, **beside(store.kind, store.shards)) for each, store in pairs]
    both = joint(*found.results) if request.axis == "both" else None
    return replace(found, findings=tuple(findings), joint=both, drawn=request.drawn)


def carry_out(
    work: Work, stop_at: float | None = None, /, **others: Callable[[Store], TestResult]
) -> Audit:
    """Score what is missing and test as `audit_work`, with nothing beside the results.

    `others` are tests of alternatives that are not in `TESTS`, by what the alternatives are.
    """
    evidence: list[statistics.AnytimeResult] = []  # after each shard
    if stop_at is not None:
        evidence = [statistics.AnytimeResult(test=work.request.stopping_test, alpha=stop_at)]
    plan, permutations = work.plan, work.request.permutations  # made before anything is scored

    def suffices(store: Store, shard: int) -> bool:
        test = TESTS[evidence[0].test]
        evidence.append(evidence[-1].update(test.shard_scores(store, shard, permutations)))
        return evidence[-1].stopped_at is not None

    started = time.perf_counter()
    stores = work.fill(**({"enough": suffices} if evidence else {}))
    seconds = time.perf_counter() - started
    findings = [Finding(result, store=stores[0]) for result in evidence[-1:]]
    if evidence:
        left = round(plan.work.scored * work.order_part(plan.stores[0]).share)
        plan = replace(plan, missing=max(0, plan.missing - left))
    tests = [*work.request.order_tests, *(each.what for each in work.alternatives)]
    for name, store in zip(tests, stores, strict=True) if not evidence else ():
        if name in others:
            findings.append(Finding(others[name](store), store=store))
            continue
        scores = TESTS[name].scores(store, permutations)
        error = None
        result = TESTS[name].judge(store, scores)
        if name in SAMPLED and result.log10_p < FAR:
            error = statistics.sampling_error(scores)
        problem = ""
        if not np.ptp(scores, axis=-1).any():
            problem = "the model gives all orders the same probability, so nothing can stand out"
        findings.append(
            Finding(
                result,
                error=error,
                planted=simulate_power(TESTS[name], store, scores),
                store=store,
                answers_problem=problem,
            )
        )
    for each in findings:
        if each.store is not None and processes().is_main_process:
            note_test(each.store.directory, each.result)
    directories = tuple(dict.fromkeys(store.directory for store in stores))
    noise = getattr(work.scorer, "noise", None)
    precision = str(getattr(work.scorer, "dtype", "unknown")).removeprefix("torch.")
    return Audit(stores[0].header, plan, tuple(findings), directories, seconds, noise, precision)


def joint(*results: TestResult) -> PValue:
    """Combine the p-values of the order of records and of the order of options, by Fisher's rule.

    Exact under H0 of both. The p-value q of options is a function of the arrangements A alone.
    Given A, the records are exchangeable within shards, so p of their order has P(p <= a | A) <= a.
    Hence P(p <= a and q <= b) <= a b: the pair is at least as large as two independent uniforms.
    """
    return statistics.fisher(log10_p=[result.log10_p for result in results])
