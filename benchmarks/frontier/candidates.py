"""The candidates of docs/power.md as functions of arrays: scores of the orderings of a shard.

All are symmetric in the records of the shard: relabelling the records relabels what is scored and
permutes the scores of the orderings, so the published one stays one draw among them under H0.
"""

import hashlib
import itertools
from collections.abc import Sequence

import numpy as np

from contamination.statistics import centred_successors, sampled_successor_scores

SAMPLED = 10_000  # orderings of a shard, beside the published one
CONTEXT = 2  # records before x_a


def companions(texts: Sequence[str], start: int, stop: int, record: int) -> list[int]:
    """Two records outside the shard start..stop-1 that stand before `record`, by its content alone.

    Those whose SHA-256 together with the record is smallest, the smallest first: which they are
    depends on the text of the record and on the others of the set, never on a place in the shard.
    """
    outside = [i for i in range(len(texts)) if not start <= i < stop]

    def rank(other: int) -> bytes:
        return hashlib.sha256(f"{texts[record]}\0{texts[other]}".encode()).digest()

    return sorted(outside, key=rank)[:CONTEXT]


def pair_scores(
    successors: np.ndarray, *, resolution: float, rng: np.random.Generator
) -> np.ndarray:
    """Scores of the published and of sampled orderings, (SAMPLED + 1,), by centred S (k, k)."""
    centred = centred_successors(successors, resolution=resolution)
    return sampled_successor_scores(centred, resamples=SAMPLED, rng=rng)


def added_sizes(matrices: Sequence[np.ndarray], resolutions: Sequence[float]) -> np.ndarray:
    """Sum of the centred S of several models, each divided by its standard deviation, (k, k).

    A model that cannot tell the pairs of the shard apart adds nothing.
    """
    total = np.zeros(matrices[0].shape)
    for successors, resolution in zip(matrices, resolutions, strict=True):
        centred = centred_successors(successors, resolution=resolution)
        spread = np.nanstd(centred)
        total += centred / spread if spread > 0 else 0.0
    return total


def triple_scores(triples: np.ndarray) -> np.ndarray:
    """Scores of all k! orderings, the published one first, from T[a, b, c] (k, k, k) in nats.

    T is log p(x_c | x_a, x_b), less its mean over all pairs (a, b) before x_c; entries with a
    record twice are not used. An ordering scores the sum along its triples.
    """
    k = len(triples)
    a, b, c = np.indices((k, k, k))
    used = (a != b) & (b != c) & (a != c)
    values = np.where(used, triples, 0.0)
    values = values - values.sum(axis=(0, 1)) / used.sum(axis=(0, 1))
    orders = np.array(list(itertools.permutations(range(k))))
    return np.asarray(values[orders[:, :-2], orders[:, 1:-1], orders[:, 2:]].sum(axis=1))
