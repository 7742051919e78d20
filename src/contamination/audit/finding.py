"""The result of one test of an audit, with its controls."""

from dataclasses import dataclass

from contamination.audit.controls.diagnosis import Diagnosis
from contamination.audit.power import SimulatedPower
from contamination.scoring.store import Store
from contamination.statistics import TestResult


@dataclass(frozen=True, eq=False)
class Finding:
    """The result of one test, with its controls.

    Attributes
    ----------
    result
        Uncorrected result: choose the test before you look.
    diagnosis
        Whether what the test permutes carries information by itself. Unless it is
        quiet, a small p-value is no evidence of contamination. None where a key has
        drawn what is tested.
    zlib
        The same test under the zlib baseline, which has seen no test set; None
        likewise.
    error
        Standard error of log10 p over sampled orderings, where p is below 1e-6.
    simulated_power
        p-values of simulated copies of this set, for each effect that studies measured.
    store
        The store that the test has read; None for a test of a model's texts.
    answers_problem
        Why a large p says nothing; "" if it does.
    """

    result: TestResult
    diagnosis: Diagnosis | None = None
    zlib: TestResult | None = None
    error: float | None = None
    simulated_power: tuple[SimulatedPower, ...] = ()
    store: Store | None = None
    answers_problem: str = ""
