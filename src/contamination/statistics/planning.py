"""How many shards and permutations does a test need? Power and cost, from a few pilot shards.

Plans `sharded_exact_test`, which is exact whatever its size. The plan itself is approximate.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaincinv, gammaln, ndtr, ndtri

from contamination.errors import InputError
from contamination.statistics.results import ROUNDING, as_log_probs

_DRAWS = 1000  # of the effect given the pilot; 25 of them lie beyond each end of the interval
_FEWEST_PERMUTATIONS = 5  # in a pilot: the spread needs the fourth moment of Student's t
# Midpoints of equally likely cells: of a canonical score (variance 1), and of the variance of the
# shuffled ones. Doubling both numbers moves no mean or sd of z by a hundredth.
_NORMAL_CELLS = ndtri((np.arange(100) + 0.5) / 100)
_NORMAL_CELLS /= _NORMAL_CELLS.std()
_VARIANCE_CELLS = (np.arange(16) + 0.5) / 16

FRESH_SHARDS = (
    "a size planned from these scores depends on them: test shards that are not in the pilot, or "
    "use the anytime-valid test, which allows both"
)
NO_EVIDENCE = (
    "no evidence of an effect in the pilot: its interval reaches 0 or below, so no size is known "
    "to be enough; score more pilot shards"
)


@dataclass(frozen=True)
class Design:
    """One way to reach the wanted power; shards and tokens are infinite where no size does.

    Attributes
    ----------
    permutations : m, shuffled orderings per shard.
    shards : whole number that the estimated effect needs, and the ends of its 95% interval.
    tokens : to be scored, shards * (m+1) * tokens_per_shard, likewise.
    """

    permutations: int
    shards: tuple[float, ...]
    tokens: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class PowerPlan:
    """`plan`: what the pilot says about the effect, and what each number of permutations needs.

    Attributes
    ----------
    effect : by how many standard deviations of shuffled scores a canonical one exceeds their mean,
        averaged over shards, and the ends of its 95% interval.
    spread : standard deviation of canonical scores around it, in the same unit; at least 1.
    designs : one for each number of permutations, in the order given.
    notes : what to beware of; the first is `FRESH_SHARDS`.
    """

    effect: tuple[float, ...]
    spread: float
    designs: tuple[Design, ...]
    notes: tuple[str, ...]


def plan(
    pilot_scores: ArrayLike,
    *,
    tokens_per_shard: float,
    alpha: float,
    power: float,
    permutations: Sequence[int] = (1, 2, 5, 10, 25, 50),
    rng: np.random.Generator,
) -> PowerPlan:
    """Shards and scored tokens that `sharded_exact_test` needs, by number of permutations.

    Raises InputError for scores of another shape, too few of them, a value that is not finite, a
    shard whose shuffled scores are all equal, or alpha or power out of its range.

    Parameters
    ----------
    pilot_scores : (r0, m0+1), of a few shards in each ordering; column 0 is canonical. m0 >= 5.
    tokens_per_shard : of one shard in one ordering (mean over shards).
    alpha, power : level of the planned test, and the wanted probability of p <= alpha, in [0.5, 1).
    permutations : the m to plan for.

    Notes
    -----
    Model: in units of the sd of its shuffled scores, and measured from their mean, the canonical
    score of a shard is N(effect, spread^2); shuffled scores are N(0, 1). The planned shards are
    like those of the pilot, in size too. Under this model z_i0, the canonical score standardised by
    all m+1 scores, has a mean mu_m and sd s_m that follow by quadrature. With weights "inverse_sd",
    the statistic of `sharded_exact_test` is the sum of r of them, against a null sd of sqrt(r), so

        power = Phi((sqrt(r) mu_m - z_alpha) / s_m),   z_alpha = Phi^-1(1 - alpha)

    to the order of a central limit theorem in r. For a small effect and many permutations, mu_m is
    effect / sqrt(1 + 1/m): the shuffled mean is itself uncertain. Few permutations lose more than
    that, because the sd is uncertain too; m = 1 is a sign test with its lattice, and z_alpha grows
    by 1 / sqrt(r), the mean loss to rounding. Below r = log(1/alpha) / log(m+1) shards no p can
    reach alpha, and the power is 0. Simulated with normal scores, the power is within about 0.05 of
    the prediction from 3 shards on; in heavier tails it is higher, by up to 0.2.

    Estimates: Hedges' unbiased standardised mean difference of each shard; effect is their mean,
    and spread their sd after noise, held at 1 because knowing some shards better than others can
    only add to it. Intervals: draws from the fiducial law of mean and variance of r0 normal values
    (Student's t for the effect), which cover it in about 95% of pilots from 3 shards on.

    Hedges (1981), "Distribution theory for Glass's estimator of effect size and related
    estimators", Journal of Educational Statistics 6(2).
    """
    if not 0 < alpha < 0.5:
        raise InputError(f"alpha is {alpha}: give a level between 0 and 0.5, such as 0.05")
    if not 0.5 <= power < 1:
        raise InputError(f"power is {power}: give a probability from 0.5 to below 1, such as 0.8")
    values = as_log_probs(pilot_scores, ndim=2, min_shards=2)
    estimate, draws = _effects(values, rng)
    designs = []
    for m in permutations:
        shards = _interval(*(_shards_needed(each, m, alpha, power) for each in (estimate, draws)))
        tokens = (each * tokens_per_shard * (m + 1) for each in shards)
        designs.append(Design(m, shards, tuple(tokens)))
    effect = _interval(estimate.effect, draws.effect)
    return PowerPlan(
        effect=effect,
        spread=float(estimate.spread[0]),
        designs=tuple(designs),
        notes=(FRESH_SHARDS,) if effect[1] > 0 else (FRESH_SHARDS, NO_EVIDENCE),
    )


class _Effects(NamedTuple):
    """Values of the two parameters of the model, (n,) each."""

    effect: NDArray[np.float64]
    spread: NDArray[np.float64]


def _effects(values: NDArray[np.float64], rng: np.random.Generator) -> tuple[_Effects, _Effects]:
    """Estimates of effect and spread, (1,) each, and draws from their fiducial law."""
    pilot, m = len(values), values.shape[1] - 1
    if m < _FEWEST_PERMUTATIONS:
        raise InputError(
            f"the pilot has {m} permutation(s) per shard: score at least {_FEWEST_PERMUTATIONS}, "
            "or the noise of the effect stays unknown"
        )
    shuffled = values[:, 1:]
    flat = np.flatnonzero(np.ptp(shuffled, axis=1) <= ROUNDING * np.abs(values).max(axis=1))
    if len(flat):
        raise InputError(
            f"pilot shard {flat[0]} scores the same in every shuffled ordering: leave it out"
        )
    dof = m - 1
    unbias = math.exp(gammaln(dof / 2) - gammaln((dof - 1) / 2)) / math.sqrt(dof / 2)
    g = unbias * (values[:, 0] - shuffled.mean(axis=1)) / shuffled.std(axis=1, ddof=1)

    def model(mean: NDArray[np.float64], variance: NDArray[np.float64]) -> _Effects:
        # g is unbias times a scaled noncentral t, whose second moment is known.
        second = (variance + mean**2) * (dof - 2) / (dof * unbias**2)
        return _Effects(mean, np.sqrt(np.maximum(1.0, second - mean**2 - 1 / m)))

    mean, variance = np.array([g.mean()]), np.array([g.var(ddof=1)])
    variances = variance * (pilot - 1) / rng.chisquare(pilot - 1, _DRAWS)
    means = mean + np.sqrt(variances / pilot) * rng.standard_normal(_DRAWS)
    return model(mean, variance), model(means, variances)


def _moments(model: _Effects, m: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and sd of z_i0 among m+1 scores, (n,) each."""
    sd = np.sqrt(model.spread**2 + 1 / m)  # of the canonical score less the shuffled mean
    if m == 1:  # z is +-1
        mean = 2 * ndtr(model.effect / sd) - 1
        return mean, np.sqrt(1 - mean**2)
    excess = (model.effect[:, None] + sd[:, None] * _NORMAL_CELLS)[..., None]
    variance = 2 * gammaincinv((m - 1) / 2, _VARIANCE_CELLS) / m  # chi-squared, m - 1 d.o.f.
    z = excess * np.sqrt(m / ((m + 1) * variance + excess**2))
    return z.mean(axis=(1, 2)), z.std(axis=(1, 2))


def _shards_needed(model: _Effects, m: int, alpha: float, power: float) -> NDArray[np.float64]:
    """Fewest shards with at least the wanted power, (n,), infinite for an effect of 0 or less."""
    mean, sd = _moments(model, m)
    found = mean > 0
    # Solves sqrt(r) mean - lattice / sqrt(r) = quantile, a quadratic in sqrt(r).
    quantile = ndtri(power) * sd - ndtri(alpha)
    top = quantile + np.sqrt(quantile**2 + 4 * (m == 1) * np.maximum(mean, 0))
    root = np.divide(top, 2 * mean, out=np.full_like(mean, np.inf), where=found)
    fewest = math.ceil(-math.log(alpha) / math.log(m + 1) - 1e-9)  # with (m+1)^-r <= alpha
    return np.asarray(np.maximum(np.ceil(root**2), fewest))


def _interval(estimate: NDArray[np.float64], draws: NDArray[np.float64]) -> tuple[float, ...]:
    # Entries of the sample: interpolation would make infinity minus infinity.
    low, high = np.quantile(draws, [0.025, 0.975], method="inverted_cdf")
    return float(estimate[0]), float(low), float(high)
