"""One store, every test that it allows: p-values, z-scores of its shards, null distributions.

The p-values are those of `contamination.audit.battery`, from the same scores; beside its settings
stand other numbers b of tokens per example.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.stats

from contamination.audit.battery import (
    COMPARED,
    COUNTED,
    SAMPLED_ORDERINGS,
    joint_successors,
    sampling_stream,
    variants,
)
from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.scoring.store import Store
from contamination.statistics import (
    ShardedExactResult,
    TestResult,
    contributions,
    permutation_test,
    shard_z_scores,
    sharded_exact_test,
    sharded_t_test,
    westfall_young_test,
)

BINS = 41
DRAWS = 10_000  # from the null law of a sum over shards
JOINT_ORDERINGS = 2_000  # of the sampled ones; all of them would cost seconds for large sets
JOINT_DRAWS = 10_000
LARGEST_B = max(filter(None, COUNTED.values()))  # "all" is worth showing if there is more

Choice = tuple[str, str | None]  # test and b, a key of COUNTED


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts (BINS,) in bins of equal width from low to high."""

    low: float
    high: float
    counts: np.ndarray


@dataclass(frozen=True, eq=False)
class Outcome:
    """One test with one choice of shards and b.

    Attributes
    ----------
    b : how many of the first tokens of an example count, a key of `COUNTED`; None in tests that
        have no such choice.
    by_shard : (r,), evidence of each shard for the canonical order, in `unit`.
    null : of the statistic where order carries no information; of the sharded t-test Student's law,
        which it assumes.
    canonical : the statistic on the scale of `null`: a z-score, or t.
    """

    test: str
    b: str | None
    result: TestResult
    by_shard: np.ndarray
    unit: Literal["z", "nats"]
    null: Histogram
    canonical: float


@dataclass(frozen=True, eq=False)
class StoreOutcomes:
    """All tests of one store; `joint` is the best of the exact ones, corrected for trying them."""

    outcomes: tuple[Outcome, ...]
    joint: TestResult


def store_outcomes(store: Store) -> StoreOutcomes:
    """Run every test that the store allows.

    Raises InputError if the store is not scored to its end, is damaged, or keeps only the
    beginnings of examples in whole orderings.
    """
    header = store.header
    rng = random_stream(header.seed, "explorer", header.dataset_revision, header.shards)
    scores = _scores(store)
    outcomes = tuple(_outcome(test, b, each, rng) for (test, b), each in scores.items())
    exact = [each for (test, _), each in scores.items() if test != "sharded_t"]
    if len(exact) == 1:
        return StoreOutcomes(outcomes, outcomes[0].result)
    fewer = [each[:, : JOINT_ORDERINGS + 1] for each in exact]
    return StoreOutcomes(outcomes, westfall_young_test(fewer, resamples=JOINT_DRAWS, rng=rng))


def _scores(store: Store) -> dict[Choice, np.ndarray]:
    """Scores (r, n+1) of every test; those of successors for every b on the same orderings."""
    header, kept = store.header, store.header.tokens_per_example
    shards = range(header.shards)
    if header.kind == "successors":
        allowed = [b for b, n in COUNTED.items() if kept is None or (n or LARGEST_B + 1) <= kept]
        if not allowed:
            raise InputError(
                f"{store.directory}: the store keeps {kept} tokens of an example, too few for any "
                f"choice of b; score at least {next(iter(COUNTED))}"
            )
        # Drawn as the battery draws them.
        m = SAMPLED_ORDERINGS
        sampled = [
            joint_successors(store, shard, orderings=m, rng=sampling_stream(store, shard))
            for shard in shards
        ]
        by_b = dict(zip(COUNTED, np.stack(sampled, axis=1), strict=True))
        return {("successor", b): by_b[b] for b in allowed}
    if kept is not None:
        raise InputError(
            f"{store.directory}: the store keeps {kept} tokens of an example alone; score whole "
            "ones to explore them"
        )
    permutations = _permutations(store)
    if header.shards == 1:
        return {("permutation", None): store.log_probs(permutations)}
    by_shard = []
    for shard in shards:
        tokens = store.shard_tokens(shard, permutations)
        by_shard.append({choice: score(tokens) for choice, score in variants(COMPARED).items()})
    return {choice: np.stack([each[choice] for each in by_shard]) for choice in by_shard[0]}


def _permutations(store: Store) -> int:
    """Highest ordering in any part; reading the orderings will show whether all below it exist."""
    highest = 0
    for path in store.parts():
        try:
            metadata = pq.read_metadata(path)
        except (OSError, pa.ArrowException) as error:
            raise InputError(
                f"{path}: the part is damaged; score again, and it is replaced"
            ) from error
        column = metadata.schema.names.index("ordering")
        for group in range(metadata.num_row_groups):
            highest = max(highest, metadata.row_group(group).column(column).statistics.max)
    if highest < 1:
        raise InputError(
            f"{store.directory}: no shuffled ordering is scored yet; score the store to its end"
        )
    return highest


def _outcome(test: str, b: str | None, scores: np.ndarray, rng: np.random.Generator) -> Outcome:
    if test == "permutation":
        whole = permutation_test(scores[0])
        z = contributions(scores, weights="inverse_sd")[0]
        return Outcome(test, b, whole, z[:1], "z", _histogram(z[1:]), float(z[0]))
    if test == "sharded_t":
        t = sharded_t_test(scores)
        return Outcome(test, b, t, t.differences, "nats", _student(t.df), t.statistic)
    exact = sharded_exact_test(scores)
    null = _histogram(_null_z(scores, exact, rng))
    return Outcome(test, b, exact, shard_z_scores(scores), "z", null, exact.z)


def _null_z(scores: np.ndarray, result: ShardedExactResult, rng: np.random.Generator) -> np.ndarray:
    """Draws of z under the null law of the exact test on shards, (DRAWS,)."""
    draws = np.zeros(DRAWS)
    for row in contributions(scores, weights="inverse_sd"):
        draws += row[rng.integers(len(row), size=DRAWS)]
    return draws / (result.null_sd or 1.0)


def _histogram(values: np.ndarray) -> Histogram:
    counts, edges = np.histogram(values, BINS)
    return Histogram(float(edges[0]), float(edges[-1]), counts)


def _student(df: int) -> Histogram:
    """Expected counts of DRAWS values; a thousandth is left out in either tail."""
    law = scipy.stats.t(df)
    edges = np.linspace(law.ppf(0.001), law.ppf(0.999), BINS + 1)
    counts = np.rint(DRAWS * np.diff(law.cdf(edges))).astype(np.int64)
    return Histogram(float(edges[0]), float(edges[-1]), counts)
