"""The contribution of each ordering to a sum over shards, and of float rounding to it."""

import math
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from contamination.errors import InputError
from contamination.statistics.lattice import lattice_step
from contamination.statistics.scale import ROUNDING, without_scale

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
    varies = np.ptp(values, axis=1, keepdims=True) > rounding_of_shards(values)
    sd = values.std(axis=1, keepdims=True)
    return np.asarray(np.divide(1.0, sd, out=np.zeros_like(sd), where=varies))


def rounding_of_shards(values: Floats) -> Floats:
    """Return the differences (r, 1) below which scores of a shard are equal."""
    return np.asarray(ROUNDING * np.abs(values).max(axis=1, keepdims=True))


def float_noise(values: Floats, scheme: Weights) -> float:
    """Return what float rounding may add to a sum over shards."""
    return float((weights_of(values, scheme) * rounding_of_shards(values)).sum())


def gaps_of(values: Floats, scheme: Weights) -> Floats:
    """Return w_i (L[i, j] - L[i, 0]): the event T >= t is {sum of gaps >= 0}.

    Equal scores must stay ties although they may differ in their last bits, or p would
    be too small: gaps at rounding level are set to 0 here, and sums are compared with a
    tolerance (Monte Carlo) or rounded up by far more than that (lattice).
    """
    gaps = values - values[:, :1]
    gaps[np.abs(gaps) <= rounding_of_shards(values)] = 0.0
    return np.asarray(weights_of(values, scheme) * gaps)


def gaps_of_blocks(blocks: Sequence[Floats], scheme: Weights) -> list[Floats]:
    """Return the gaps of several blocks, such that no sum falls below 0 by a tie.

    `gaps_of` sets gaps just above 0 to 0, which may lower a sum. Where all of them
    together could take a sum from 0 to one that is not counted, they are kept.
    """
    gaps = [gaps_of(values, scheme) for values in blocks]
    raised = [_raised_gaps_of(values, scheme) for values in blocks]
    lowered = 0.0
    for block, raised_block in zip(gaps, raised, strict=True):
        lowered += float((raised_block - block).max(axis=1).sum())
    return raised if lowered >= _least_shortfall(gaps) / 2 else gaps


def _raised_gaps_of(values: Floats, scheme: Weights) -> Floats:
    """Return the gaps with only those set to 0 that lie below it by no more than rounding."""
    gaps = values - values[:, :1]
    negligible = np.abs(gaps) <= rounding_of_shards(values)
    gaps[negligible & (gaps < 0)] = 0.0
    return np.asarray(weights_of(values, scheme) * gaps)


def _least_shortfall(blocks: Sequence[Floats]) -> float:
    """Return how far below 0 a sum of gaps is at least, if it is not counted as 0 or more.

    Infinity where all sums are counted.
    """
    if max(gaps.max() for gaps in blocks) > 0:
        step, _ = lattice_step(blocks)
        return step
    return min(float(-gaps.max(where=gaps < 0, initial=-np.inf)) for gaps in blocks)


def log_share_of_ties(gaps: Floats) -> float:
    """Return the log-probability that every shard draws its canonical score."""
    return float(np.log((gaps == 0).mean(axis=1)).sum())
