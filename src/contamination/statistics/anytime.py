"""Evidence that may be read at any time: stop early, or score more shards later (new here).

On the shards and permutations of Oren section 3.2. Each shard is a fair bet on which of its
orderings is the canonical one. The wealth of a gambler who keeps betting is a test martingale, and
by Ville's inequality large wealth is as rare under H0 as a small p-value, however often one looks.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from contamination.errors import InputError
from contamination.statistics.results import ROUNDING, TestResult, as_log_probs, p_from_log10

# Bets on an effect of lambda standard deviations per shard. A finer or longer grid gains little:
# the best lambda is never off by more than a factor of sqrt(2), and its share of the prior counts.
_LAMBDAS = 2.0 ** np.arange(-3, 3)
_VIEWS, _STAKES = 2, 2


@dataclass(frozen=True, eq=False, kw_only=True)
class AnytimeResult(TestResult):
    """`anytime_test`: `statistic` is log10 of the evidence after the last shard.

    `stopped_at` counts the shards after which the evidence first reached 1/alpha, None where it
    never did; `permutations` is the smallest m of any shard.
    """

    stopped_at: int | None


@dataclass(frozen=True, eq=False, kw_only=True)
class EProcess:
    """The evidence so far: `EProcess()` before the first shard, `update` after each.

    Attributes
    ----------
    log_wealth : (2, 2, 6), log wealth (nats) of each bet: by scores or by ranks; with the whole
        stake or half of it; by lambda.
    log10_e : log10 E, where E is the mean wealth over the bets.
    log10_p : of the always-valid p-value: the smallest 1/E so far, at most 1.
    """

    log_wealth: NDArray[np.float64] = field(
        default_factory=lambda: np.zeros((_VIEWS, _STAKES, len(_LAMBDAS)))
    )
    log10_e: float = 0.0
    log10_p: float = 0.0

    def update(self, log_probs: ArrayLike) -> "EProcess":
        """Return the evidence with one more shard, `log_probs` (m+1,) as in `anytime_test`.

        Raises InputError for a wrong number of dimensions, no permutation, or a value that is not
        finite.
        """
        log_wealth = self.log_wealth + _log_e_values(as_log_probs(log_probs, ndim=1))
        top = float(log_wealth.max())
        log10_e = (top + math.log(float(np.exp(log_wealth - top).mean()))) / math.log(10)
        log10_p = min(self.log10_p, -log10_e)
        return EProcess(log_wealth=log_wealth, log10_e=log10_e, log10_p=log10_p)

    def rejects(self, alpha: float) -> bool:
        """Whether E has reached 1/alpha: stop here, H0 is rejected at level alpha.

        Raises InputError for an alpha outside (0, 1).
        """
        if not 0 < alpha < 1:
            raise InputError(f"alpha is {alpha}: give a level between 0 and 1, such as 0.05")
        return self.log10_p <= math.log10(alpha)


def anytime_test(shards: Iterable[ArrayLike], *, alpha: float) -> AnytimeResult:
    """Evidence against H0 after each shard, valid at every stopping time.

    E_t = mean over bets b of prod_{i <= t} e_{i, b};  p_t = min_{s <= t} min(1, 1 / E_s)

    `p` is the always-valid p-value after the last shard, to the last bit what `EProcess.update`
    gives shard by shard. Raises InputError for no shard, a shard without permutations or of another
    shape, a value that is not finite, or an alpha outside (0, 1).

    Parameters
    ----------
    shards : (m_i + 1,) each, log-probability (nats), or any other score, in each ordering, in the
        order in which the shards were scored; entry 0 is canonical. Larger is more evidence.
    alpha : level of the rule "stop at the first E >= 1/alpha". It affects `stopped_at` alone.

    Notes
    -----
    H0: given the past and the m+1 scores of the next shard as a set, each of them is equally likely
    to be the canonical one (its orderings are exchangeable under the m+1 relabellings).
    Alternative: canonical orderings are more likely.

    A bet sees z_ij, a symmetric function of the shard's scores: the scores standardised by the mean
    and sd of all m+1, or the standardised normal scores of their mid-ranks (0 for a constant
    shard). Its e-value is e_i = exp(lambda z_i0) / mean_j exp(lambda z_ij), or (1 + e_i) / 2 with
    half a stake. Given the set of scores, the mean of e_i over the possible canonical indices is
    exactly 1, with ties or without. So the wealth of each bet, and with it their mean E_t, is a
    non-negative martingale that starts from 1.

    Ville's inequality: P(E_t >= 1/alpha for some t) <= alpha. Hence P(p_t <= alpha for some t) <=
    alpha: exact for finite samples, with no law assumed, whenever and why ever one stops, and if
    shards are added later. Which shard comes next and with how many orderings may depend on earlier
    shards, but never on its own scores.

    A mean over bets loses no more than the logarithm of their number (1.4 decades) to the best of
    them. The bets by ranks win under heavy tails, those by scores under light ones, half stakes
    where the model knows some shards only. Simulated with normal scores, the mean number of shards
    to E >= 1/alpha is about that at which the exact test of fixed size has power 0.9.

    References
    ----------
    Ville (1939), Étude critique de la notion de collectif. Ramdas, Grünwald, Vovk and Shafer
    (2023), "Game-theoretic statistics and safe anytime-valid inference", Statistical Science 38(4).
    """
    state, permutations, stopped_at = EProcess(), list[int](), None
    for log_probs in shards:
        state = state.update(log_probs)
        permutations.append(np.size(log_probs) - 1)
        if stopped_at is None and state.rejects(alpha):
            stopped_at = len(permutations)
    if not permutations:
        raise InputError("shards is empty: give the scores of at least 1 shard")
    return AnytimeResult(
        test="anytime",
        statistic=state.log10_e,
        p=p_from_log10(state.log10_p),
        log10_p=state.log10_p,
        shards=len(permutations),
        permutations=min(permutations),
        stopped_at=stopped_at,
    )


def _log_e_values(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log e-value of one shard for each bet, (views, stakes, lambdas)."""
    rounding = ROUNDING * np.abs(values).max()
    order = np.argsort(values)
    # Scores that differ by float noise share a rank; linking neighbours treats all m+1 alike.
    tie = np.empty(len(values), dtype=np.intp)
    tie[order] = np.concatenate([[0], np.cumsum(np.diff(values[order]) > rounding)])
    counts = np.bincount(tie)
    if len(counts) == 1:  # no bet on a constant shard wins or loses
        return np.zeros((_VIEWS, _STAKES, len(_LAMBDAS)))
    middles = (np.cumsum(counts) - counts / 2) / len(values)
    # Standardised scores, and standardised normal scores of their mid-ranks.
    views = np.stack([values, ndtri(middles)[tie]])
    views -= views.mean(axis=1, keepdims=True)
    views /= views.std(axis=1, keepdims=True)
    logits = _LAMBDAS[:, None] * views[:, None, :]
    top = logits.max(axis=-1, keepdims=True)
    log_mean = top[..., 0] + np.log(np.exp(logits - top).mean(axis=-1))
    whole = logits[..., 0] - log_mean
    return np.stack([whole, np.logaddexp(0.0, whole) - math.log(2)], axis=1)
