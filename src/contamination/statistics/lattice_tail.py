"""The tail of a sum of independent lattice variables: FFT convolution under exponential tilting.

The computation behind the exact test of `recombination`. Tilting (Daniels 1954) moves the mean of
the sum to 0 before the convolution, so that FFT round-off, which is relative to the largest
probability, stays small beside a tail of 1e-80 or less.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.signal import fftconvolve
from scipy.special import logsumexp, softmax

_EPS = float(np.finfo(np.float64).eps)


def log_tail(steps: NDArray[np.int64]) -> float:
    """Upper bound, tight to float precision, of log P(sum_i steps[i, J_i] >= 0), J_i uniform.

    With K(theta) = sum_i log mean_j exp(theta steps[i, j]) and q the tilted law of the sum,
    P(sum >= 0) = sum_{k >= 0} q(k) exp(K(theta) - theta k), for any theta. The one with K' = 0 puts
    the bulk of q where the tail begins. Needs a positive step somewhere, or no such theta exists.
    """
    theta = 0.0
    if _tilted_mean(theta, steps) < 0:
        high = 1 / int(np.abs(steps).max())
        while _tilted_mean(high, steps) < 0:
            high *= 2
        theta = brentq(_tilted_mean, 0.0, high, args=(steps,), xtol=1e-6 * high)
    logits = theta * steps
    log_mgf = float((logsumexp(logits, axis=1) - math.log(steps.shape[1])).sum())
    laws = [
        np.bincount(row - row.min(), weights=mass)
        for row, mass in zip(steps, softmax(logits, axis=1), strict=True)
    ]
    while len(laws) > 1:  # in pairs: neighbours are short, and few convolutions are long
        pairs = [fftconvolve(a, b) for a, b in zip(laws[::2], laws[1::2], strict=False)]
        laws = pairs + laws[2 * len(pairs) :]
    tail = laws[0][-int(steps.min(axis=1).sum()) :]
    # Round-off of one FFT of length n in the 2-norm is below 5 eps log2 n of its result (Higham,
    # Accuracy and Stability, theorem 24.2, rounded up for mixed radices). A convolution has three,
    # and probability vectors have norms at most 1, so no entry is off by 16 eps log2 n. Convolving
    # with another probability vector does not enlarge an entrywise error: the r - 1 errors add.
    error = (len(steps) - 1) * 16 * _EPS * math.log2(2 * len(laws[0]) + 2)
    decay = np.exp(-theta * np.arange(len(tail)))
    # The masses themselves carry the relative error of exp and of the sums that normalise them.
    relative = _EPS * (4 * float(np.abs(logits).max(axis=1).sum()) + steps.size)
    return log_mgf + math.log(float(((tail + error) * decay).sum())) + relative


def _tilted_mean(theta: float, steps: NDArray[np.int64]) -> float:
    """K'(theta): mean of the sum of steps under the law tilted by theta; it grows with theta."""
    return float((softmax(theta * steps, axis=1) * steps).sum())
