"""Scores without their unit: results do not depend on it.

Tests divide scores by a power of two, which is exact, so that no square overflows and no
spread underflows, whatever size of a float the scores have.
"""

import numpy as np
from numpy.typing import NDArray


def without_scale(
    values: NDArray[np.float64], axis: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Divide by a power of two, so that the largest absolute value is in [1/2, 1).

    Parameters
    ----------
    values
        Finite numbers.
    axis
        Each line along this axis has a power of its own; by default all values have
        one.

    Returns
    -------
    scaled : the values divided, exactly but for what is 300 decades below the largest.
    exponent : of 2, in a shape that broadcasts against `values`; 0 for zeros alone.
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
