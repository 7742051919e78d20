"""What an audit will score, and what it found."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contamination.audit.battery import OPTION_TEST
from contamination.audit.diagnosis import Diagnosis
from contamination.audit.request import Request
from contamination.scoring import cost
from contamination.scoring.plan import StorePlan
from contamination.scoring.store_format import Header, count_rows
from contamination.statistics.multiple_testing import CombinedResult, adjust
from contamination.statistics.results import TestResult

if TYPE_CHECKING:  # results are read without torch
    from contamination.scoring.contract import Scorer

# What `--json` prints of a store's header.
IDENTITY = ("model", "model_revision", "dataset", "dataset_revision", "template", "seed")


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


def combined(plans: Sequence[ScoringPlan]) -> ScoringPlan:
    """Add up what is to be scored on several axes."""
    flops = [plan.flops for plan in plans if plan.flops is not None]
    seconds = [plan.seconds for plan in plans if plan.seconds is not None]
    return replace(
        plans[0],
        stores=tuple(store for plan in plans for store in plan.stores),
        work=cost.total([plan.work for plan in plans]),
        missing=sum(plan.missing for plan in plans),
        flops=sum(flops) if flops else None,
        seconds=sum(seconds) if seconds else None,
    )


def stored_tokens(directory: Path) -> int:
    """Tokens that lie in a store, by the footers of its parts."""
    return sum(map(count_rows, directory.glob("part-*.parquet")))


def name_model(scorer: "Scorer", request: Request) -> str:
    """Return what tables and stores call the model of an audit."""
    return request.name or scorer.revision[:12]


@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit found, and what it took.

    Attributes
    ----------
    header : of a store that was read; it names the model and the set.
    results : one for each test, uncorrected: choose the test before you look.
    diagnosis : one for each test: whether the order of the records within the shards that the test
        permutes, or that of the options, carries information by itself. Unless it is quiet, a small
        p-value is no evidence of contamination.
    control : one for each test: the same shards under a compressor, which has seen no test set.
        Where it is small, the order of the records, or of the options, carries information by
        itself.
    seconds : that scoring took in this run.
    noise : nats a token by which an endpoint's answers to one prompt differed in this run, on
        average over the prompt; None of a model here, and where nothing was asked.
    joint : of both axes together, if both were asked (`contamination.audit.option_axis.joint`).
    drawn : whether a seed alone has arranged the options (`Request.drawn`).
    beside : the same audit of a control, a model that cannot have read the set, if one was named.
    """

    header: Header
    plan: ScoringPlan
    results: tuple[TestResult, ...]
    diagnosis: tuple[Diagnosis, ...]
    control: tuple[TestResult, ...]
    stores: tuple[Path, ...]
    seconds: float
    noise: float | None
    joint: CombinedResult | None = None
    drawn: bool = False
    beside: "Audit | None" = None

    @property
    def holm_p(self) -> tuple[float, ...]:
        """p-values of the results after Holm's correction over the tests that were asked for."""
        log10_p = [result.log10_p for result in self.results]
        return tuple(map(float, adjust(log10_p=log10_p, method="holm").p))

    @property
    def decisive(self) -> dict[str, float]:
        """p-values to reject by: each test's after Holm's correction, or that of both axes."""
        if self.joint is not None:
            return {"joint": self.joint.p}
        return {r.test: p for r, p in zip(self.results, self.holm_p, strict=True)}

    def rejected(self, alpha: float) -> dict[str, bool | None]:
        """Whether each of the `decisive` p-values rejects; None: that cannot be said.

        The order of published options alone rejects nothing: how people write favours it as well.
        It takes a control model that does not prefer it. Without one, the order of records decides
        where both axes were asked for.
        """
        found: dict[str, bool | None] = {name: p <= alpha for name, p in self.decisive.items()}
        beside = self.beside.results if self.beside is not None else ()
        silent = any(r.test == OPTION_TEST and r.p > alpha for r in beside)
        if self.drawn or silent or self.results[-1].test != OPTION_TEST:
            return found
        if self.joint is not None:
            found[self.results[0].test] = self.results[0].p <= alpha
        return {n: None if r and n in (OPTION_TEST, "joint") else r for n, r in found.items()}

    @property
    def tokens_scored(self) -> int:
        """Tokens scored in this run; 0 if all was stored."""
        return self.plan.missing

    def as_dict(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        joint = {} if self.joint is None else {"joint": asdict(self.joint)}
        beside = {} if self.beside is None else {"control_model": self.beside.as_dict()}
        return (
            {name: getattr(self.header, name) for name in IDENTITY}
            | joint
            | {
                "plan": asdict(self.plan),
                "results": [describe(result) for result in self.results],
                "diagnosis": [each.as_dict() for each in self.diagnosis],
                "control": [describe(result) for result in self.control],
                "stores": [str(path) for path in self.stores],
                "tokens_scored": self.tokens_scored,
                "seconds": self.seconds,
                "noise": self.noise,
            }
            | beside
        )

    def summary(self) -> str:
        """One line for each test, and what the order of the records gives away without a model."""
        lines = [
            f"{self.header.model} on {self.header.dataset}: {r.test} test, p = {r.p:.3g} "
            f"({r.shards} {'items' if r.test == OPTION_TEST else 'shards'}); under a compressor, "
            f"p = {control.p:.3g}"
            for r, control in zip(self.results, self.control, strict=True)
        ]
        if self.joint is not None:
            lines.append(f"both together: p = {self.joint.p:.3g}")
        orders = (f"{each.what}: {each.verdict}" for each in dict.fromkeys(self.diagnosis))
        return "\n".join([*lines, *orders])


def describe(result: TestResult) -> dict[str, Any]:
    """What `--json` prints of the result of a test."""
    kept = ("test", "statistic", "p", "log10_p", "shards", "permutations")
    own = ("best", "stopped_at")  # of Westfall and Young's, and of a test that stops early
    return {name: getattr(result, name) for name in kept} | {
        name: getattr(result, name) for name in own if hasattr(result, name)
    }
