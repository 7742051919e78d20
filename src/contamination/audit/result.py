"""The result of one test of an audit, with its controls."""

from dataclasses import dataclass

from contamination.audit.diagnostics import Diagnosis
from contamination.audit.power import SimulatedPower
from contamination.scoring.store import Store
from contamination.statistics import TestResult


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
