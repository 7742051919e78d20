"""What a scored store shows beside a p-value: controls of redrawn orders, and where it gains.

The shuffled orderings of a store are independent uniform permutations. One of them, drawn at random
in each shard, may therefore be called canonical in the place of the published one, whatever the
model has read: H0 holds by construction. How often a test then rejects shows whether it keeps its
level for this model and this set, given these scores. It does not show whether the published order
was read, or whether the records are exchangeable (a sorted set passes, too). Raised by an effect
that a study of planted sets has measured, redrawn orders show how often one like them is found.
"""

import csv
from pathlib import Path

import numpy as np

from contamination import statistics
from contamination.audit.battery import Test, store_stream
from contamination.scoring.store import Store

EFFECTS = Path(__file__).with_name("effects.csv")
PLANTED_DRAWS = 2_000
FEWEST_PERMUTATIONS = 5  # for a power
# A study's model, how often it read each of its sets and how many these were -> p-values (draws,).
Planted = dict[tuple[str, int, int], np.ndarray]


def redrawn_p_values(test: Test, store: Store, scores: np.ndarray, *, draws: int) -> np.ndarray:
    """p-values of a test on so many redrawn canonical orders, each as if published, (draws,).

    The published order takes no part: each p-value is that of the test with one ordering of each
    shard fewer. `scores` (r, n+1) are those of the test on its store, canonical first. Raises
    InputError for scores with fewer than 2 shuffled orderings.
    """
    shuffled = scores[:, 1:]
    rng = store_stream(store, "redrawn canonical orders", test.name)
    canonical = rng.integers(shuffled.shape[1], size=(draws, len(shuffled)))
    if test.stops:  # the exact test on shards: all orders at once
        return statistics.sharded_exact_p_values(shuffled, canonical)
    swapped = (statistics.called_canonical(shuffled, each) for each in canonical)
    return np.array([test.statistic(each, rng).p for each in swapped])


def planted_copies(test: Test, store: Store, scores: np.ndarray) -> Planted:
    """p-values that a test of this set would have, were it remembered as sets of a study were.

    There are PLANTED_DRAWS for each row of the test in `effects.csv`: of redrawn orders, with
    effects drawn as they vary between the sets of the study. An effect is z over the root of the
    number of records that follow another one in their shard, so sets of other sizes have their own
    power (`benchmarks/effects.py`). `scores` as in `redrawn_p_values`; of fewer than 5 shuffled
    orderings nothing is said.
    """
    if scores.shape[-1] <= FEWEST_PERMUTATIONS:
        return {}
    with EFFECTS.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["test"] == test.name]
    rng = store_stream(store, "planted copies", test.name)
    following = np.sqrt([stop - start - 1 for start, stop in store.header.bounds])
    found: Planted = {}
    for row in rows:
        sets = int(row["sets"])
        another = rng.standard_t(sets - 1, (PLANTED_DRAWS, 1))  # few sets are not known to be alike
        effects = (float(row["mean"]) + float(row["sd"]) * another) * following
        p = statistics.planted_p_values(scores, effects, rng=rng)
        found[row["model"], int(row["copies"]), sets] = p
    return found


def gain_by_position(store: Store, permutations: int) -> np.ndarray:
    """How much likelier tokens are in the canonical order than on average, by place in the example.

    (tokens,) in nats, mean over all examples that do not lead their shard; entry 0 is the first
    token. Places that fewer than half of these examples reach are left out.
    """
    longest = int(store.header.stored.max())
    sums, counts = np.zeros(longest), np.zeros(longest)
    for shard in range(store.header.shards):
        tokens = store.shard_tokens(shard, permutations)
        follows = ~tokens.leading[0]
        gains = statistics.centred_tokens(tokens.logprobs, tokens.leading)[0]
        np.add.at(sums, tokens.position[follows], gains[follows])
        np.add.at(counts, tokens.position[follows], 1)
    reached = counts >= counts[0] / 2  # a prefix: every example has a first token
    return np.asarray(sums[reached] / counts[reached])
