"""Calibration under the null: how often tests reject where there is nothing to find.

The scores are those of real models on sets that they have not seen, or heavy-tailed
random numbers. Any ordering may be called canonical then: drawing one at random, anew
for every shard and trial, is an exact draw from the null given the scores. Trials are
independent given the scores, so the counts of rejections obey the binomial law.

All tests of one setting see the same draws, so that their rates differ by the tests
alone. Shards are drawn from the pool for a group of trials at a time, and each trial of
a group calls other orderings of them canonical: what depends on the scores alone is
computed once a group.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from statsmodels.stats.proportion import proportion_confint
from tqdm import tqdm

from contamination.audit.registry import TESTS
from contamination.statistics import (
    contributions,
    log_e_values,
    sharded_exact_p_values,
    sharded_t_p_values,
)

Floats = NDArray[np.float64]
GROUP = 20  # trials that see the same shards
RESAMPLES = 1_999  # of a group; 0.05, 0.01 and 0.001 are attainable p-values
TIES = 1e-9  # sums of z-scores that are closer count as equal
T = TESTS["sharded_t"].label
EXACT = TESTS["sharded_exact"].label


def sampled_p_values(
    scores: Floats,
    canonical: NDArray[np.int64],
    rng: np.random.Generator,
) -> Floats:
    """Compute p of `sharded_exact_monte_carlo` for each canonical choice, (b,).

    All choices are compared with one sample of the null law. Each p-value keeps its
    level for itself; that twenty of them share a sample adds 1% to the variance of a
    count.

    Parameters
    ----------
    scores
        Scores of each shard, (r, m+1).
    canonical
        (b, r), the orderings that are called canonical in each trial.
    rng
        Draws the sample.
    """
    shares = contributions(scores, weights="inverse_sd")
    shards, orderings = shares.shape
    columns = rng.integers(orderings, size=(shards, RESAMPLES))
    null = np.take_along_axis(shares, columns, axis=1).sum(axis=0)
    sums = shares[np.arange(shards), canonical].sum(axis=1)
    below = np.searchsorted(np.sort(null), sums - TIES)
    return np.asarray((1 + RESAMPLES - below) / (1 + RESAMPLES))


@lru_cache(maxsize=1024)
def _log_e_values(shard: bytes) -> Floats:
    """Return the log e-values of a shard, (m+1, bets); a shard may come again."""
    scores = np.frombuffer(shard, dtype=np.float64)
    return log_e_values(scores).reshape(len(scores), -1)


def anytime_p_values(scores: Floats, canonical: NDArray[np.int64]) -> Floats:
    """Compute the always-valid p of `anytime_test` for each canonical choice, (b,).

    Scores are those of each shard, (r, m+1), `canonical` (b, r) the orderings that are
    called canonical in each trial.
    """
    shards = len(scores)
    log_e = np.stack([_log_e_values(shard.tobytes()) for shard in scores])
    wealth = np.cumsum(log_e[np.arange(shards), canonical], axis=1)  # (b, r, bets)
    top = wealth.max(axis=2)
    log_mean = top + np.log(np.exp(wealth - top[..., None]).mean(axis=2))
    return np.asarray(np.exp(-np.maximum(0, log_mean.max(axis=1))))


class Calibrated(NamedTuple):
    """A test of the study of calibration.

    Attributes
    ----------
    label
        Name of the test for readers.
    compute
        Returns what `p_values` does, of scores and canonical orderings.
    samples
        Whether the test draws random numbers: `compute` then takes a generator, too.
    """

    label: str
    compute: Callable[..., Floats]
    samples: bool = False

    def p_values(
        self, scores: Floats, canonical: NDArray[np.int64], rng: np.random.Generator
    ) -> Floats:
        """Return p of each canonical choice, (b,), of arguments as `sampled_p_values` has them."""
        if self.samples:
            return self.compute(scores, canonical, rng)
        return self.compute(scores, canonical)


# For many shards sampling takes a hundredth of the time of convolving; a test checks
# that p agrees.
P_VALUES: dict[str, Calibrated] = {
    "sharded_t": Calibrated(T, sharded_t_p_values),
    "sharded_t_ddof_0": Calibrated(f"{T}, ddof 0", partial(sharded_t_p_values, ddof=0)),
    "sharded_exact": Calibrated(f"{EXACT}, FFT", sharded_exact_p_values),
    "sharded_exact_monte_carlo": Calibrated(
        f"{EXACT}, Monte Carlo", sampled_p_values, samples=True
    ),
    "anytime": Calibrated("Anytime-valid", anytime_p_values),
}


def heavy_tailed(
    permutations: Sequence[int],
    *,
    shards: int,
    rng: np.random.Generator,
) -> dict[tuple[str, int], Floats]:
    """Draw Student's t numbers with 2 degrees of freedom, of infinite variance.

    Parameters
    ----------
    permutations
        Numbers of permutations; each gets one array of scores.
    shards
        Number of shards of each array.
    rng
        Draws the numbers.
    """
    return {("heavy_tailed", m): rng.standard_t(2, size=(shards, m + 1)) for m in permutations}


class Setting(NamedTuple):
    """Scores, number of shards and permutations of which one stream draws all trials."""

    scores: str
    shards: int
    permutations: int


def calibration_table(
    pools: Mapping[tuple[str, int], Floats],
    tests: Mapping[str, Sequence[str]],
    *,
    shards: Sequence[int],
    alphas: Sequence[float],
    trials: int,
    rng: np.random.Generator,
    jobs: int = 1,
) -> pd.DataFrame:
    """Count the rejections of every test on every pool, with 95% intervals.

    Parameters
    ----------
    pools
        Scores of shards, (shards, m + 1), by their statistic and m.
    tests
        Names of `P_VALUES` to try on each statistic; all of them see the same draws.
    shards
        Numbers of shards, r; those that a pool does not have are left out.
    alphas
        Levels of the tests.
    trials
        Number of trials of each setting.
    rng
        Gives each setting (scores, r, m) a stream of its own.
    jobs
        Processes that share the settings, -1 for one per core; any number gives the
        same table.

    Returns
    -------
    A row for each setting, test and level, with the columns scores (the statistic of a pool), test,
    shards, permutations, alpha, rejections, trials, rate, low and high.
    """
    settings: list[Setting] = []
    for scores, m in pools:
        if scores in tests:
            sizes = [r for r in shards if r <= len(pools[scores, m])]
            settings += [Setting(scores, r, m) for r in sizes]
    jobs_of = [
        delayed(null_p_values)(
            pools[setting.scores, setting.permutations],
            tests[setting.scores],
            shards=setting.shards,
            trials=trials,
            rng=stream,
        )
        for setting, stream in zip(settings, rng.spawn(len(settings)), strict=True)
    ]
    computed = Parallel(n_jobs=jobs, return_as="generator")(jobs_of)
    bar = tqdm(computed, desc="calibration", unit="setting", total=len(settings))
    counted = [
        _count_rejections(setting, p_values, alphas)
        for setting, p_values in zip(settings, bar, strict=True)
    ]
    table = pd.concat(counted, ignore_index=True)
    low, high = proportion_confint(table["rejections"], table["trials"], method="beta")
    return table.assign(rate=table["rejections"] / table["trials"], low=low, high=high)


def _count_rejections(
    setting: Setting,
    p_values: pd.DataFrame,
    alphas: Sequence[float],
) -> pd.DataFrame:
    """Count the p-values of each test (columns) that are at most each level."""
    rows = []
    for test in p_values.columns:
        for alpha in alphas:
            rows.append(
                {
                    "scores": setting.scores,
                    "test": test,
                    "shards": setting.shards,
                    "permutations": setting.permutations,
                    "alpha": alpha,
                    "rejections": int((p_values[test] <= alpha).sum()),
                    "trials": len(p_values),
                },
            )
    return pd.DataFrame(rows)


def null_p_values(
    pool: Floats,
    tests: Sequence[str],
    *,
    shards: int,
    trials: int,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Compute p-values of the tests in `P_VALUES` where H0 holds, a row a trial.

    Parameters
    ----------
    pool
        (shards or more, m + 1), scores of shards under a model that has not read them.
    tests
        Names of `P_VALUES`. All see the same draws, whichever others there are.
    shards
        r, drawn from the pool without replacement for each group of trials.
    trials
        Number of rows.
    rng
        Draws the trials.
    """
    groups = np.array_split(np.arange(trials), max(1, trials // GROUP))
    sampling = rng.spawn(len(groups))  # what a test draws for itself moves no other draw
    parts: dict[str, list[Floats]] = {test: [] for test in tests}
    for group, stream in zip(groups, sampling, strict=True):
        scores = pool[rng.choice(len(pool), size=shards, replace=False)]
        canonical = rng.integers(pool.shape[1], size=(len(group), shards))
        for test in tests:
            parts[test].append(P_VALUES[test].p_values(scores, canonical, stream))
    return pd.DataFrame({test: np.concatenate(of_groups) for test, of_groups in parts.items()})
