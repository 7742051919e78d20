"""How many records and variants a sealed set needs to find what was read of it."""

from collections.abc import Sequence

import numpy as np
from scipy.stats import binom, norm

EFFECTS = (0.1, 0.2, 0.5, 1.0)
POWER = 0.8
MOST_RECORDS = 20_000


def records_needed(effect: float, variants: int, *, level: float, power: float = POWER) -> int:
    """Return how many records find an effect with this power at this level.

    Parameters
    ----------
    effect : by how many standard deviations, of the score over a record's variants, reading the
        published one raises its score.
    variants : of each record, the published one included. Two are a sign test, whose law is that of
        fair coins; of more, the sum of scores is taken as normal.
    """
    if variants > 2:
        z = norm.isf(level) + norm.ppf(power)
        return int(np.ceil((z / effect) ** 2 * variants / (variants - 1)))
    counts = np.arange(1, MOST_RECORDS)
    wins = binom.isf(level, counts, 0.5)  # rejected above
    enough = binom.sf(wins, counts, norm.cdf(effect / np.sqrt(2))) >= power
    return int(counts[enough][0])


def power_table(variants: Sequence[int], *, level: float) -> list[tuple[float, ...]]:
    """Return (effect, records needed of each number of variants) for the `EFFECTS`."""
    return [
        (effect, *(records_needed(effect, count, level=level) for count in variants))
        for effect in EFFECTS
    ]
