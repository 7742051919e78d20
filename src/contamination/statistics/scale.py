"""The scale of scores: powers of two that tests divide by, and what counts as rounding.

Scores may have any size that a float can hold. Tests divide them by a power of two
(`without_scale`), which is exact, so that no square overflows and no spread underflows:
results do not depend on the unit of the scores.
"""

import numpy as np
from numpy.typing import NDArray

ROUNDING = 1e-12
"""Differences below this share of the largest |log-probability| are float64 rounding.

A log-probability is a float64 sum of some thousand token terms, so two orderings that
score the same in exact arithmetic may differ by about 1e-14 of their size.
"""


def rounding_of(values: NDArray[np.float64]) -> float:
    """Return the difference up to which two of the values are equal."""
    return ROUNDING * float(np.abs(values).max())


def without_scale(
    values: NDArray[np.float64], axis: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Divide finite numbers by a power of two: the largest absolute value is in [1/2, 1).

    Each line along the axis has a power of its own; without an axis all values have
    one. Values are divided exactly, but for what is 300 decades below the largest. The
    second array has the exponents of 2, in a shape that broadcasts against the values;
    0 for zeros alone.
    """
    largest = np.abs(values).max(axis=axis, keepdims=True)
    exponent = np.frexp(largest)[1]
    return np.ldexp(values, -exponent), exponent


def with_scale(value: float, exponent: int) -> float:
    """Multiply by a power of two, held at the largest float."""
    with np.errstate(over="ignore"):
        product = np.ldexp(value, exponent)
    largest = np.finfo(np.float64).max
    return float(np.clip(product, -largest, largest))
