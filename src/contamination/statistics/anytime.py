"""Evidence that may be read at any time: stop early, or score more shards later (new here).

On the shards and permutations of Oren section 3.2. Each shard is a fair bet on which of
its orderings is the canonical one. The wealth of a gambler who keeps betting is a test
martingale, and by Ville's inequality large wealth is as rare under H0 as a small
p-value, however often one looks.
"""

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from contamination.errors import InputError
from contamination.statistics.inputs import as_level, as_log_probs
from contamination.statistics.results import TestResult, p_from_log10
from contamination.statistics.scale import ROUNDING, without_scale

# Bets on an effect of lambda standard deviations per shard. A finer or longer grid
# gains little: the best lambda is never off by more than a factor of sqrt(2), and its
# share of the prior counts.
_LAMBDAS = 2.0 ** np.arange(-3, 3)
# Log wealth of each view, stake and lambda at first.
_EVEN = np.zeros((2, 2, len(_LAMBDAS)))


@dataclass(frozen=True, eq=False, kw_only=True)
class AnytimeResult(TestResult):
    """Evidence so far: none before the first shard, `update` after each.

    Attributes
    ----------
    statistic
        log10 E, where E is the mean wealth over the bets.
    p, log10_p
        The always-valid p-value: the smallest 1/E so far, at most 1.
    permutations
        The smallest m of any shard.
    alpha
        Level of the rule "stop at the first E >= 1/alpha".
    stopped_at
        Number of shards at which it stops, None where E has never reached 1/alpha.
    log_wealth
        (2, 2, 6), log wealth (nats) of each bet: by scores or by ranks; with the whole
        stake or half of it; by lambda.

    Examples
    --------
    >>> evidence = AnytimeResult(alpha=0.05)
    >>> for _ in range(4):
    ...     evidence = evidence.update([-90.0, -95.0, -96.0, -97.0])
    >>> evidence.shards, evidence.stopped_at, round(evidence.p, 3)
    (4, 4, 0.02)
    """

    test: str = "anytime"
    statistic: float = 0.0
    p: float = 1.0
    log10_p: float = 0.0
    shards: int = 0
    permutations: int = sys.maxsize
    alpha: float
    stopped_at: int | None = None
    log_wealth: NDArray[np.float64] = field(default_factory=lambda: _EVEN)

    def __post_init__(self) -> None:
        """Refuse an alpha outside (0, 1)."""
        as_level(self.alpha, "alpha")

    def update(self, log_probs: ArrayLike) -> "AnytimeResult":
        """Return the evidence with one more shard, `log_probs` (m+1,) as in `anytime_test`.

        Raises InputError for a wrong number of dimensions, no permutation, or a value
        that is not a finite number.
        """
        values = as_log_probs(log_probs, ndim=1)
        log_wealth = self.log_wealth + log_e_values(values)[0]
        top = float(log_wealth.max())
        log10_e = (top + math.log(float(np.exp(log_wealth - top).mean()))) / math.log(10)
        shards = self.shards + 1
        log10_p = min(self.log10_p, -log10_e)
        reached = shards if log10_p <= math.log10(self.alpha) else None
        return replace(
            self,
            statistic=log10_e,
            p=p_from_log10(log10_p),
            log10_p=log10_p,
            shards=shards,
            permutations=min(self.permutations, len(values) - 1),
            stopped_at=self.stopped_at or reached,
            log_wealth=log_wealth,
        )


def anytime_test(shards: Iterable[ArrayLike], *, alpha: float) -> AnytimeResult:
    """Compute the evidence against H0 after the last shard, valid at every stopping time.

    E_t = mean over bets b of prod_{i <= t} e_{i, b};  p_t = min_{s <= t} min(1, 1 / E_s)

    Parameters
    ----------
    shards
        (m_i + 1,) each, log-probability (nats), or any other score, in each ordering,
        in the order in which the shards were scored; entry 0 is canonical. Larger is
        more evidence.
    alpha
        Level of the rule "stop at the first E >= 1/alpha". It affects `stopped_at`
        alone.

    Returns
    -------
    AnytimeResult, whose p is the always-valid p-value after the last shard.

    Raises
    ------
    InputError
        For no shard, a shard that `AnytimeResult.update` refuses, or an alpha outside
        (0, 1).

    Notes
    -----
    H0: given the past and the m+1 scores of the next shard as a set, each of them is
    equally likely to be the canonical one (its orderings are exchangeable under the m+1
    relabellings). Alternative: canonical orderings are more likely.

    A bet sees z_ij, a symmetric function of the shard's scores: the scores standardised
    by the mean and sd of all m+1, or the standardised normal scores of their mid-ranks
    (0 for a constant shard). Its e-value is e_i = exp(lambda z_i0) / mean_j exp(lambda
    z_ij), or (1 + e_i) / 2 with half a stake. Given the set of scores, the mean of e_i
    over the possible canonical indices is exactly 1, with ties or without. So the
    wealth of each bet, and with it their mean E_t, is a non-negative martingale that
    starts from 1.

    Ville's inequality: P(E_t >= 1/alpha for some t) <= alpha. Hence P(p_t <= alpha for
    some t) <= alpha: exact for finite samples, with no law assumed, whenever and why
    ever one stops, and if shards are added later. Which shard comes next and with how
    many orderings may depend on earlier shards, but never on its own scores.

    A mean over bets loses no more than the logarithm of their number (1.4 decades) to
    the best of them. The bets by ranks win under heavy tails, those by scores under
    light ones, half stakes where the model knows some shards only. Simulated with
    normal scores, the mean number of shards to E >= 1/alpha is about that at which the
    exact test of fixed size has power 0.9.

    Ville (1939), Étude critique de la notion de collectif. Ramdas, Grünwald, Vovk and
    Shafer (2023), "Game-theoretic statistics and safe anytime-valid inference",
    Statistical Science 38(4).

    Examples
    --------
    >>> result = anytime_test([[-90.0, -95.0, -96.0, -97.0]] * 10, alpha=0.05)
    >>> result.stopped_at
    4
    """
    result = AnytimeResult(alpha=alpha)
    if not np.iterable(shards):
        raise InputError(f"shards is {shards!r:.40}: give the scores of each, (m+1,)")
    for log_probs in shards:
        result = result.update(log_probs)
    if not result.shards:
        raise InputError("shards is empty: give the scores of at least 1 shard")
    return result


def log_e_values(log_probs: ArrayLike) -> NDArray[np.float64]:
    """Return the log e-value of each bet on one shard, were each of its orderings canonical.

    Parameters
    ----------
    log_probs
        (m+1,), scores of one shard, as in `anytime_test`.

    Returns
    -------
    (m+1, 2, 2, 6), nats: by ordering, view (scores or ranks), stake (whole or half) and
    lambda. The mean over orderings of exp of each bet is at most 1.

    Raises
    ------
    InputError
        For a wrong number of dimensions, no permutation, or a value that is not a
        finite number.

    Examples
    --------
    >>> np.exp(log_e_values([3.0, 1.0, 2.0])).mean(axis=0).round(6).max()
    np.float64(1.0)
    """
    values = without_scale(as_log_probs(log_probs, ndim=1))[0]
    rounding = ROUNDING * np.abs(values).max()
    order = np.argsort(values)
    # Scores that differ by float noise share a rank; linking neighbours treats all m+1
    # alike.
    tie = np.empty(len(values), dtype=np.intp)
    tie[order] = np.concatenate([[0], np.cumsum(np.diff(values[order]) > rounding)])
    counts = np.bincount(tie)
    if len(counts) == 1:  # no bet on a constant shard wins or loses
        return np.zeros((len(values), *_EVEN.shape))
    middles = (np.cumsum(counts) - counts / 2) / len(values)
    # Standardised scores, and standardised normal scores of their mid-ranks.
    views = np.stack([values, ndtri(middles)[tie]])
    views -= views.mean(axis=1, keepdims=True)
    views /= views.std(axis=1, keepdims=True)
    logits = _LAMBDAS[:, None] * views[:, None, :]  # (views, lambdas, m+1)
    top = logits.max(axis=-1, keepdims=True)
    log_mean = top + np.log(np.exp(logits - top).mean(axis=-1, keepdims=True))
    whole = np.moveaxis(logits - log_mean, -1, 0)  # (m+1, views, lambdas)
    half = np.logaddexp(0.0, whole) - math.log(2)
    return np.stack([whole, half], axis=2)
