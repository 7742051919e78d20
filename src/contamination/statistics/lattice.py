"""The law of a sum over shards on a lattice, and its tail, never below the true one.

How the tail is computed. Every score is measured from the canonical one of its shard,
in whole steps of a common lattice, *rounded up*; the canonical score sits at step 0
without rounding. The event {T >= t} then becomes {sum of steps >= 0} and can only have
grown. Exponential tilting moves the mean of the sum to 0 before the convolution, so
that FFT round-off, which is relative to the largest probability, stays small against a
tail of 1e-80 or less.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.optimize import brentq
from scipy.special import logsumexp, softmax

# Fine enough that the rounding moves log10 p by a hundredth at z = 6 with 50 shards of
# 250 permutations, coarse enough that this takes tens of milliseconds.
STEPS_PER_SHARD = 4096
_EPS = float(np.finfo(np.float64).eps)
_FEW = 32  # gaps of a shard that show whether there may be a unit
_SHORT = 64  # terms of a law that is convolved directly: an FFT would take longer

Floats = NDArray[np.float64]


def lattice_step(gaps: Sequence[Floats]) -> tuple[float, float]:
    """Return the step of the lattice that gaps are rounded up to, and the width of the rounding.

    Whole multiples of a power of two are a lattice of their own, and nothing is
    rounded.

    Examples
    --------
    >>> lattice_step([np.array([[0.0, -2.0, 1.0]])])
    (1.0, 0.0)
    """
    shards = sum(len(block) for block in gaps)
    width = sum(float(np.ptp(block, axis=1).sum()) for block in gaps)
    step = width / (STEPS_PER_SHARD * shards)
    # A unit of all gaps is one of a few of them, and hardly any scores have one.
    few = [block[:, :_FEW] for block in gaps]
    if _power_of_two_unit(few) <= step:
        return step, step * shards
    unit = _power_of_two_unit(gaps)
    if unit <= step:
        return step, step * shards
    return unit, 0.0


def _power_of_two_unit(gaps: Sequence[Floats]) -> float:
    """Return the largest power of two of which all gaps are multiples; infinity of zeros alone."""
    nonzero = np.concatenate([block[block != 0] for block in gaps])
    if not len(nonzero):
        return math.inf
    mantissa, exponent = np.frexp(np.abs(nonzero))
    digits = np.ldexp(mantissa, 53).astype(np.int64)
    lowest_bit = digits & -digits
    place = np.frexp(lowest_bit.astype(np.float64))[1] - 1
    return float(np.ldexp(1.0, int((exponent - 53 + place).min())))


def log_tail(blocks: Sequence[NDArray[np.int64]]) -> float:
    """Bound log P(sum_i steps[i, J_i] >= 0) from above, J_i uniform.

    The bound is tight to float precision.

    The rows of all blocks (r, m + 1) are summed. With K(theta) = sum_i log mean_j
    exp(theta steps[i, j]) and q the tilted law of the sum,
    P(sum >= 0) = sum_{k >= 0} q(k) exp(K(theta) - theta k), for any theta. The one with
    K' = 0 puts the bulk of q where the tail begins. Needs a positive step somewhere, or
    no such theta exists.

    Examples
    --------
    >>> steps = np.array([[0, -1, 1], [0, -1, -1]])
    >>> round(math.exp(log_tail([steps])), 6)  # 4 of 9 pairs have a sum of 0 or more
    0.444444
    """
    theta = 0.0
    numbers = [steps.astype(np.float64) for steps in blocks]
    if _tilted_mean(theta, numbers) < 0:
        high = 1 / max(int(np.abs(steps).max()) for steps in blocks)
        while _tilted_mean(high, numbers) < 0:
            high *= 2
        theta = brentq(_tilted_mean, 0.0, high, args=(numbers,), xtol=1e-6 * high)
    log_mgf = 0.0
    laws: list[Floats] = []
    largest = 0.0
    for steps in blocks:
        logits = theta * steps
        log_mgf += float((logsumexp(logits, axis=1) - math.log(steps.shape[1])).sum())
        largest += float(np.abs(logits).max(axis=1).sum())
        for row, masses in zip(steps, softmax(logits, axis=1), strict=True):
            law_of_shard = np.bincount(row - row.min(), weights=masses)
            laws.append(law_of_shard.astype(np.float64))
    law, error = convolve(laws)
    least = sum(int(steps.min(axis=1).sum()) for steps in blocks)
    tail = law[-least:]
    decay = np.exp(-theta * np.arange(len(tail)))
    # The masses themselves carry the relative error of exp and of the sums that
    # normalise them.
    relative = _EPS * (4 * largest + sum(steps.size for steps in blocks))
    return log_mgf + math.log(float(((tail + error) * decay).sum())) + relative


def convolve(laws: list[Floats]) -> tuple[Floats, float]:
    """Return the law of the sum of independent variables on 0, 1, 2 ..., and a bound on its error.

    The bound holds for every entry.

    Examples
    --------
    >>> law, error = convolve([np.array([0.5, 0.5]), np.array([0.5, 0.5])])
    >>> law, error < 1e-13
    (array([0.25, 0.5 , 0.25]), True)
    """
    count = len(laws)
    while len(laws) > 1:  # in pairs: neighbours are short, and few convolutions are long
        pairs = zip(laws[::2], laws[1::2], strict=False)
        sums = [_convolve_pair(first, second) for first, second in pairs]
        laws = sums + laws[2 * len(sums) :]
    # Round-off of one FFT of length n in the 2-norm is below 5 eps log2 n of its result
    # (Higham, Accuracy and Stability, theorem 24.2, rounded up for mixed radices). A
    # convolution has three, and probability vectors have norms at most 1, so no entry
    # is off by 16 eps log2 n. Convolving with another probability vector does not
    # enlarge an entrywise error: the count - 1 errors add. A direct one of up to 64
    # terms is off by 64 eps of each entry at most, which is less.
    law = laws[0]
    return law, (count - 1) * 16 * _EPS * math.log2(2 * len(law) + 2)


def _convolve_pair(first: Floats, second: Floats) -> Floats:
    if min(len(first), len(second)) <= _SHORT:
        return np.convolve(first, second)
    terms = len(first) + len(second) - 1
    size = next_fast_len(terms, real=True)
    both = np.zeros((2, size))
    both[0, : len(first)] = first
    both[1, : len(second)] = second
    # Two of one length at once: the same bits, in two thirds of the time.
    transforms = rfft(both)
    return np.asarray(irfft(transforms[0] * transforms[1], size)[:terms])


def _tilted_mean(theta: float, blocks: Sequence[Floats]) -> float:
    """Return K'(theta): the mean of the sum of steps under the law tilted by theta.

    It grows with theta.
    """
    total = 0.0
    for steps in blocks:
        total += float((softmax(theta * steps, axis=1) * steps).sum())
    return total
