"""What each ordering adds to a sum over shards, and what float rounding may add to it."""

import math
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from contamination.errors import InputError
from contamination.statistics.inputs import (
    ROUNDING,
    without_scale,
)

Weights = Literal["equal", "inverse_sd"]
Floats = NDArray[np.float64]


def without_units(
    blocks: Sequence[Floats],
    scheme: Weights,
) -> tuple[list[Floats], int]:
    """Return scores divided by powers of two, and the exponent of the unit of T.

    With "inverse_sd" every shard is divided by its own power, and T has no unit. Raises
    InputError for an unknown weighting.
    """
    if scheme not in get_args(Weights):
        raise InputError(f'weights is {scheme!r:.40}: give "inverse_sd" or "equal"')
    if scheme == "inverse_sd":
        return [without_scale(values, axis=1)[0] for values in blocks], 0
    largest = max(float(np.abs(values).max()) for values in blocks)
    exponent = math.frexp(largest)[1]
    return [np.ldexp(values, -exponent) for values in blocks], exponent


def weighted(values: Floats, scheme: Weights) -> Floats:
    """Return w_i (L[i, j] - mean_i), (r, m+1)."""
    centred = values - values.mean(axis=1, keepdims=True)
    return np.asarray(weights_of(values, scheme) * centred)


def weights_of(values: Floats, scheme: Weights) -> Floats:
    """Return w_i as a column, (r, 1)."""
    if scheme == "equal":
        return np.ones((len(values), 1))
    # Dividing rounding noise by its own sd would give a constant shard a full vote.
    varies = np.ptp(values, axis=1, keepdims=True) > rounding_of(values)
    sd = values.std(axis=1, keepdims=True)
    return np.asarray(np.divide(1.0, sd, out=np.zeros_like(sd), where=varies))


def rounding_of(values: Floats) -> Floats:
    """Return the differences (r, 1) below which scores of a shard are equal."""
    return np.asarray(ROUNDING * np.abs(values).max(axis=1, keepdims=True))


def float_noise(values: Floats, scheme: Weights) -> float:
    """Return what float rounding may add to a sum over shards."""
    return float((weights_of(values, scheme) * rounding_of(values)).sum())


def gaps_of(values: Floats, scheme: Weights) -> Floats:
    """Return w_i (L[i, j] - L[i, 0]): the event T >= t is {sum of gaps >= 0}.

    Equal scores must stay ties although they may differ in their last bits, or p would
    be too small: gaps at rounding level are set to 0 here, and sums are compared with a
    tolerance (Monte Carlo) or rounded up by far more than that (lattice).
    """
    gaps = values - values[:, :1]
    gaps[np.abs(gaps) <= rounding_of(values)] = 0.0
    return np.asarray(weights_of(values, scheme) * gaps)


def raised_gaps_of(values: Floats, scheme: Weights) -> Floats:
    """Return the gaps with only those set to 0 that lie below it by no more than rounding.

    None is below its true value. `gaps_of` also lowers gaps just above 0, which hides
    that much of a sum.
    """
    gaps = values - values[:, :1]
    negligible = np.abs(gaps) <= rounding_of(values)
    gaps[negligible & (gaps < 0)] = 0.0
    return np.asarray(weights_of(values, scheme) * gaps)


def log_share_of_ties(gaps: Floats) -> float:
    """Return the log-probability that every shard draws its canonical score."""
    return float(np.log((gaps == 0).mean(axis=1)).sum())
