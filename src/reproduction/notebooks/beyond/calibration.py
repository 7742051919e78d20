"""Calibration under the null: how often every test rejects where there is nothing to find.

The scores are those of real models on sets that they have not seen, or heavy-tailed random numbers.
Any ordering may be called canonical then: drawing one at random, anew for every shard and trial, is
an exact draw from the null given the scores, and costs no scoring. Trials are independent given the
scores, so the counts of rejections obey the binomial law.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from statsmodels.stats.proportion import proportion_confint
from tqdm import tqdm

from contamination.audit.battery import TESTS, sampled_successors
from contamination.scoring.plan import SUCCESSOR_TOKENS
from contamination.statistics import (
    anytime_test,
    null_scores,
    sharded_exact_monte_carlo,
    sharded_exact_test,
    sharded_t_test,
)
from reproduction.run.experiment import Experiment

CALIBRATION = (
    *("scores", "test", "shards", "permutations", "alpha", "rejections", "trials", "rate"),
    *("low", "high"),
)
RESAMPLES = 1_999  # so that 0.05, 0.01 and 0.001 are all attainable p-values
T, EXACT = TESTS["sharded_t"].label, TESTS["sharded_exact"].label

# Label and p-value. The study samples where it could convolve: the same p, which a test checks, and
# for many shards in a tenth of the time.
PValue = Callable[[np.ndarray, np.random.Generator], float]
P_VALUES: dict[str, tuple[str, PValue]] = {
    "sharded_t": (T, lambda scores, rng: sharded_t_test(scores).p),
    "sharded_t_ddof_0": (f"{T}, ddof 0", lambda scores, rng: sharded_t_test(scores, ddof=0).p),
    "sharded_exact": (f"{EXACT}, FFT", lambda scores, rng: sharded_exact_test(scores).p),
    "sharded_exact_monte_carlo": (
        f"{EXACT}, Monte Carlo",
        lambda scores, rng: sharded_exact_monte_carlo(scores, resamples=RESAMPLES, rng=rng).p,
    ),
    "anytime": ("Anytime-valid", lambda scores, rng: anytime_test(scores, alpha=0.05).p),
}


def pools_of(
    experiment: Experiment,
    model: str,
    datasets: Sequence[str],
    *,
    shards: int,
    permutations: Sequence[int],
    successor_shards: int,
    rng: np.random.Generator,
) -> dict[tuple[str, int], np.ndarray]:
    """Collect the scores of the shards of all sets, (shards, m + 1) by (statistic, permutations).

    Statistics are "sum" (of all tokens), "token_standardised", "boundary" and, with as many sampled
    orderings as the largest number of permutations, "successor".
    """
    scored_by = {"sum": "sharded_exact"} | {n: n for n in ("token_standardised", "boundary")}
    kinds = {name: TESTS[test].on_tokens[TESTS[test].b] for name, test in scored_by.items()}
    rows: dict[tuple[str, int], list[np.ndarray]] = {}
    most = max(permutations)
    for name in tqdm(datasets, desc="scores under the null", unit="set"):
        store = experiment.scored(model, name, shards=shards, permutations=most)
        for shard in range(shards):
            tokens = store.shard_tokens(shard, most)
            for m in permutations:
                for kind, score in kinds.items():
                    rows.setdefault((kind, m), []).append(score(tokens.first_orderings(m)))
        pairs = experiment.scored(
            model,
            name,
            shards=successor_shards,
            kind="successors",
            tokens_per_example=SUCCESSOR_TOKENS,
        )
        rows.setdefault(("successor", most), []).extend(
            sampled_successors(pairs, shard, SUCCESSOR_TOKENS, orderings=most, rng=rng)
            for shard in range(successor_shards)
        )
    return {key: np.stack(values) for key, values in rows.items()}


def heavy_tailed(
    permutations: Sequence[int], *, shards: int, rng: np.random.Generator
) -> dict[tuple[str, int], np.ndarray]:
    """Draw independent Student's t numbers with 2 degrees of freedom, of infinite variance."""
    return {("heavy_tailed", m): rng.standard_t(2, size=(shards, m + 1)) for m in permutations}


def calibration_table(
    pools: Mapping[tuple[str, int], np.ndarray],
    tests: Mapping[str, Sequence[str]],
    *,
    shards: Sequence[int],
    alphas: Sequence[float],
    trials: int,
    rng: np.random.Generator,
    jobs: int = 1,
) -> pd.DataFrame:
    """Count the rejections of every test on every pool, with Clopper-Pearson intervals (95%).

    Parameters
    ----------
    pools : from `pools_of` or `heavy_tailed`; `scores` in the table is their statistic.
    tests : for every statistic, the names of `P_VALUES` to try on it.
    jobs : processes that share the settings, -1 for one per core; the table is the same for all.
    """
    rows: list[tuple[Any, ...]] = []
    settings = [
        (scores, m, test, r)
        for (scores, m) in pools
        for test in tests.get(scores, ())
        for r in shards
        if r <= len(pools[scores, m])
    ]
    # A stream for each setting, so that it does not matter which process draws from it.
    streams = rng.spawn(len(settings))
    found = Parallel(n_jobs=jobs, return_as="generator")(
        delayed(_p_values)(test, pools[scores, m], r, trials, stream)
        for (scores, m, test, r), stream in zip(settings, streams, strict=True)
    )
    bar = tqdm(found, desc="calibration", unit="setting", total=len(settings))
    for (scores, m, test, r), p_values in zip(settings, bar, strict=True):
        for alpha in alphas:
            hits = int((p_values <= alpha).sum())
            low, high = proportion_confint(hits, trials, method="beta")
            rows.append((scores, test, r, m, alpha, hits, trials, hits / trials, low, high))
    return pd.DataFrame(rows, columns=list(CALIBRATION))


def _p_values(
    test: str, pool: np.ndarray, shards: int, trials: int, rng: np.random.Generator
) -> np.ndarray:
    """p-values of independent trials, (trials,)."""
    _, p_value = P_VALUES[test]
    return np.array([p_value(null_scores(pool, shards, rng=rng), rng) for _ in range(trials)])
