"""One store, every test that it allows: p-values, z-scores of its shards, null distributions.

The p-values are those of `contamination.audit.battery`, from the same scores; beside its settings
stand other numbers b of tokens per example.
"""

from dataclasses import dataclass

import numpy as np
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
from contamination.scoring.store_format import read_units
from contamination.statistics import (
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

Histogram = tuple[np.ndarray, np.ndarray]  # counts (BINS,) and edges (BINS + 1,)


@dataclass(frozen=True, eq=False)
class Outcome:
    """One test with one choice of shards and b.

    Attributes
    ----------
    b : how many of the first tokens of an example count, a key of `COUNTED`; None in tests that
        have no such choice.
    by_shard : (r,), evidence of each shard for the canonical order: z-scores, of the sharded t-test
        nats.
    null : of the statistic where order carries no information; of the sharded t-test Student's law,
        which it assumes.
    canonical : the statistic on the scale of `null`: a z-score, or t.
    """

    test: str
    b: str | None
    result: TestResult
    by_shard: np.ndarray
    null: Histogram
    canonical: float


def store_outcomes(store: Store) -> tuple[list[Outcome], TestResult]:
    """Run every test that the store allows; also the best exact one, corrected for trying them.

    Raises InputError if the store is not scored to its end, is damaged, or keeps only the
    beginnings of examples in whole orderings.
    """
    header = store.header
    rng = random_stream(header.seed, "explorer", header.dataset_revision, header.shards)
    scores = _scores(store)
    outcomes = [_outcome(test, b, each, rng) for (test, b), each in scores.items()]
    exact = [each for (test, _), each in scores.items() if test != "sharded_t"]
    if len(exact) == 1:
        return outcomes, outcomes[0].result
    fewer = [each[:, : JOINT_ORDERINGS + 1] for each in exact]
    return outcomes, westfall_young_test(fewer, resamples=JOINT_DRAWS, rng=rng)


def _scores(store: Store) -> dict[tuple[str, str | None], np.ndarray]:
    """Scores (r, n+1) by test and b; those of successors for every b on the same orderings."""
    header, kept = store.header, store.header.tokens_per_example
    shards = range(header.shards)
    if header.kind == "successors":
        allowed = [b for b, n in COUNTED.items() if kept is None or (n or LARGEST_B + 1) <= kept]
        if not allowed:
            raise InputError(
                f"{store.directory}: the store keeps {kept} tokens of an example, too few for any "
                f"choice of b; score at least {next(iter(COUNTED))}"
            )
        streams = [sampling_stream(store, shard) for shard in shards]  # as the battery draws
        sampled = [
            joint_successors(store, shard, orderings=SAMPLED_ORDERINGS, rng=rng)
            for shard, rng in zip(shards, streams, strict=True)
        ]
        by_b = dict(zip(COUNTED, np.stack(sampled, axis=1), strict=True))
        return {("successor", b): by_b[b] for b in allowed}
    if kept is not None:
        raise InputError(
            f"{store.directory}: the store keeps {kept} tokens of an example alone; score whole "
            "ones to explore them"
        )
    units = (rows.unit for path in store.parts() for rows in read_units(path, header))
    permutations = max((ordering for _, ordering in units), default=0)
    if permutations < 1:
        raise InputError(
            f"{store.directory}: no shuffled ordering is scored yet; score the store to its end"
        )
    if header.shards == 1:
        return {("permutation", None): store.log_probs(permutations)}
    by_shard = []
    for shard in shards:
        tokens = store.shard_tokens(shard, permutations)
        by_shard.append({choice: score(tokens) for choice, score in variants(COMPARED).items()})
    return {choice: np.stack([each[choice] for each in by_shard]) for choice in by_shard[0]}


def _outcome(test: str, b: str | None, scores: np.ndarray, rng: np.random.Generator) -> Outcome:
    if test == "sharded_t":
        t = sharded_t_test(scores)
        law = scipy.stats.t(t.df)
        edges = np.linspace(law.ppf(0.001), law.ppf(0.999), BINS + 1)
        null = np.rint(DRAWS * np.diff(law.cdf(edges))).astype(np.int64), edges
        return Outcome(test, b, t, t.differences, null, t.statistic)
    z = contributions(scores, weights="inverse_sd")
    if test == "permutation":
        whole = permutation_test(scores[0])
        return Outcome(test, b, whole, z[0, :1], np.histogram(z[0, 1:], BINS), float(z[0, 0]))
    exact = sharded_exact_test(scores)
    drawn = sum(row[rng.integers(len(row), size=DRAWS)] for row in z) / (exact.null_sd or 1.0)
    return Outcome(test, b, exact, shard_z_scores(scores), np.histogram(drawn, BINS), exact.z)
