"""Is there a better weight for a token of a successor than 1? Searched and confirmed on other sets.

    .venv/bin/python benchmarks/weight_search.py study-2

Every candidate turns the tokens of successors into one number for each pair, without looking at the
order, so that the exact test stays exact. What is learned (weights by position, the likelihood
ratio of adjacent pairs) is learned on sets whose names end in 0 or 1 and applied to those that end
in 2 or 3, on which nothing was chosen. Writes docs/measurements/weights.csv: mean log10 p by
candidate, duplication count and half.
"""

import argparse
import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import norm, rankdata
from sklearn.linear_model import LogisticRegression
from tqdm import tqdm

from contamination.files import replacing
from contamination.randomness import random_stream
from contamination.scoring.plan import StorePlan
from contamination.statistics import (
    centred_successors,
    sampled_successor_scores,
    sharded_exact_test,
)
from reproduction.run.experiment import Experiment

ROOT = Path(__file__).parents[1]
SHARDS, FIRST, ORDERINGS = 10, 32, 2_000
BINS = (0, 1, 2, 4, 8, 16, 32)

Pairs = Callable[[np.ndarray], np.ndarray]  # tokens (k, k, b) -> (k, k)


def residuals(tokens: np.ndarray) -> np.ndarray:
    """Each token of a successor less its mean over all predecessors, (k, k, b)."""
    return tokens - np.nanmean(tokens, axis=0)


def weighted(weights: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """Sum of the residuals with a weight for each position."""
    return residuals(tokens) @ weights


def clipped(at: float, tokens: np.ndarray) -> np.ndarray:
    """Sum of the residuals, none beyond `at` nats."""
    return residuals(tokens).clip(-at, at).sum(axis=2)


def standardised(floor: float, tokens: np.ndarray) -> np.ndarray:
    """Sum of the residuals, each divided by its spread over the predecessors plus a floor."""
    return (residuals(tokens) / (np.nanstd(tokens, axis=0) + floor)).sum(axis=2)


def ranked(tokens: np.ndarray) -> np.ndarray:
    """Normal scores of the ranks of the centred sums within the shard."""
    sums = centred_successors(tokens.sum(axis=2))
    off = ~np.eye(len(sums), dtype=bool)
    ranks = np.full(sums.shape, np.nan)
    ranks[off] = norm.ppf((rankdata(sums[off]) - 0.5) / off.sum())
    return ranks


def features(tokens: np.ndarray) -> np.ndarray:
    """Sums of residuals and of clipped ones by range of positions, (k, k, 2 * ranges)."""
    kept = residuals(tokens)
    parts = []
    for values in (kept, kept.clip(-1, 1)):
        for start, stop in itertools.pairwise(BINS):
            parts.append(values[..., start:stop].sum(axis=2))
    return np.stack(parts, axis=2)


def _examples(shards: list[np.ndarray], of: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of the shards: their features, and whether they are neighbours in the set."""
    found, labels = [], []
    for tokens in shards:
        values = of(tokens)
        k = len(tokens)
        off = ~np.eye(k, dtype=bool)
        found.append(values[off])
        labels.append(np.eye(k, k=1, dtype=bool)[off])
    return np.concatenate(found), np.concatenate(labels)


def position_weights(shards: list[np.ndarray]) -> np.ndarray:
    """Fisher's linear discriminant of adjacent pairs against all others, (b,)."""
    values, adjacent = _examples(shards, residuals)
    spread = np.cov(values[~adjacent].T) + 0.01 * np.eye(values.shape[1])
    return np.linalg.solve(spread, values[adjacent].mean(axis=0) - values[~adjacent].mean(axis=0))


def likelihood_ratio(shards: list[np.ndarray]) -> Pairs:
    """Log odds that a pair is adjacent, by logistic regression on `features`."""
    values, adjacent = _examples(shards, features)
    scale = values.std(axis=0)
    fitted = LogisticRegression(C=0.1, max_iter=2_000).fit(values / scale, adjacent)
    weights = fitted.coef_[0] / scale
    return lambda tokens: features(tokens) @ weights


def candidates(learning: list[np.ndarray]) -> dict[str, Pairs]:
    """All candidates, those that are learned from these shards."""
    position = np.arange(FIRST)
    tried: dict[str, Pairs] = {
        f"sum of {b}": partial(weighted, (position < b).astype(float)) for b in (8, 16, 32)
    }
    tried |= {
        f"weights falling by e in {tau}": partial(weighted, np.exp(-position / tau))
        for tau in (4, 8, 16)
    }
    tried |= {f"clipped at {c:g}": partial(clipped, c) for c in (0.25, 0.5, 1, 2)}
    tried |= {f"standardised, floor {f:g}": partial(standardised, f) for f in (0.05, 0.2, 1)}
    tried["ranks"] = ranked
    tried["position weights, learned"] = partial(weighted, position_weights(learning))
    tried["likelihood ratio, learned"] = likelihood_ratio(learning)
    return tried


def log10_p(shards: list[np.ndarray], pairs: Pairs, rng: np.random.Generator) -> float:
    """Result of the exact test with these numbers for pairs."""
    scores = [
        sampled_successor_scores(centred_successors(pairs(tokens)), resamples=ORDERINGS, rng=rng)
        for tokens in shards
    ]
    return sharded_exact_test(np.stack(scores)).log10_p


def main() -> None:
    """Search in one profile's stores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("profile")
    profile = parser.parse_args().profile
    experiment = Experiment(ROOT / "profiles" / f"{profile}.yaml", ROOT / "build" / profile)
    tokens = {}
    for spec in tqdm(experiment.profile.canaries, desc="read stores", unit="set"):
        plan = StorePlan("successors", SHARDS, FIRST)
        store = experiment.scored("contaminated", spec.name, plan)
        tokens[spec.name] = [
            store.successor_tokens(shard, FIRST).astype(np.float64) for shard in range(SHARDS)
        ]
    choosing = [spec.name for spec in experiment.profile.canaries if spec.name[-1] in "01"]
    learning = []
    for name in choosing:
        if experiment.spec(name).dup_count > 1:
            learning += tokens[name]
    rng = random_stream(experiment.profile.seed, "weight search")
    bar = tqdm(candidates(learning).items(), desc="candidates", unit="candidate")
    rows = []
    for name, pairs in bar:
        for spec in experiment.profile.canaries:
            rows.append(
                {
                    "candidate": name,
                    "sets": "choosing" if spec.name in choosing else "confirming",
                    "dup_count": spec.dup_count,
                    "log10_p": log10_p(tokens[spec.name], pairs, rng),
                }
            )
    grouped = pd.DataFrame(rows).groupby(["candidate", "sets", "dup_count"])["log10_p"]
    table = grouped.agg(mean_log10_p="mean", se_log10_p="sem", datasets="size").reset_index()
    with replacing(ROOT / "docs" / "measurements" / "weights.csv") as path:
        table.assign(profile=profile).round(4).to_csv(path, index=False, lineterminator="\n")
    wide = table.pivot_table(
        index="candidate", columns=["sets", "dup_count"], values="mean_log10_p"
    )
    print(wide.sort_values(("choosing", 8)).round(2).to_string())


if __name__ == "__main__":
    main()
