"""Simulated power: the probability that a test would have found copies of a set.

Assumption: the model remembers copies as the models of our studies did. Nothing about
the audited model shows that, so the spread between studies is part of every
probability. The effect of a copy is z of a planted set over the root of its records
that follow another one in their shard. It is predicted for a *new* set in a *new*
study: Student's t around the mean over studies, with K - 1 degrees of freedom for K
studies and the scale that `benchmarks/effects.py` derives.

The help of the command reads this module, so functions import numpy when they compute.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from contamination.audit.registry import Test
from contamination.audit.shard_scores import store_stream

if TYPE_CHECKING:
    import numpy as np

    from contamination.scoring.store import Store

EFFECTS = Path(__file__).with_name("effects.csv")
DRAWS = 2_000
FEWEST_TOKENS = 4  # of the median record: many orders of shorter ones are alike
WANTED = 0.8  # of `Power.records_needed`
MOST_RECORDS = 100_000  # that are looked at for it


@dataclass(frozen=True)
class Effect:
    """The predicted effect of copies on a test, a row of `effects.csv`.

    Attributes
    ----------
    model
        Kind of model that the studies trained.
    copies
        Number of times that a set was read.
    studies, sets
        Numbers of studies and of planted sets behind the effect.
    mean, scale
        Mean and scale of Student's t with `studies` - 1 degrees of freedom, per square
        root of the number of records.
    """

    test: str
    model: str
    copies: int
    studies: int
    sets: int
    mean: float
    scale: float


@dataclass(frozen=True)
class Power:
    """The power of a test on a set of this size.

    Attributes
    ----------
    probability
        Estimated probability that the test finds a set of `records` records that was
        read `copies` times.
    records_needed
        Smallest number of records, to two digits, with a probability of `WANTED`; None
        above `MOST_RECORDS`.
    """

    test: str
    model: str
    copies: int
    studies: int
    sets: int
    probability: float
    records: int
    records_needed: int | None


@dataclass(frozen=True, eq=False)
class SimulatedPower:
    """p-values of simulated copies of a set, (draws,), under one effect.

    Attributes
    ----------
    records, shards
        Size of the set, and the number of shards into which the test cuts it.
    """

    effect: Effect
    records: int
    shards: int
    p_values: "np.ndarray"

    def at(self, level: float) -> Power:
        """Return the power at a level."""
        effect = self.effect
        return Power(
            test=effect.test,
            model=effect.model,
            copies=effect.copies,
            studies=effect.studies,
            sets=effect.sets,
            probability=float((self.p_values <= level).mean()),
            records=self.records,
            records_needed=records_needed(
                effect, level=level, shard_size=self.records / self.shards
            ),
        )


@cache
def load_effects() -> tuple[Effect, ...]:
    """Return the rows of `effects.csv`."""
    with EFFECTS.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return tuple(
        Effect(
            test=row["test"],
            model=row["model"],
            copies=int(row["copies"]),
            studies=int(row["studies"]),
            sets=int(row["sets"]),
            mean=float(row["mean"]),
            scale=float(row["scale"]),
        )
        for row in rows
    )


def simulate_power(
    test: Test,
    store: "Store",
    scores: "np.ndarray",
) -> tuple[SimulatedPower, ...]:
    """Return p-values on copies of this set, for each effect that studies measured.

    The noise is that of this model on this set: canonical orders are redrawn among the
    stored ones, and raised by effects drawn from their predictive law. The bounds of
    the store say how many records follow another one. `scores` are (r, n+1), canonical
    first. A test that no study measured gets nothing. Nor do scores of fewer than 5
    shuffled orderings, which do not show the spread, and records of a few tokens: those
    of the studies have 22 and more.
    """
    import numpy as np

    from contamination.statistics.simulation import FEWEST_PERMUTATIONS, ShuffledScores

    if scores.shape[-1] <= FEWEST_PERMUTATIONS:
        return ()
    if np.median(store.header.example_tokens) < FEWEST_TOKENS:
        return ()
    bounds = store.header.bounds
    following = np.sqrt([stop - start - 1 for start, stop in bounds])
    measured = [effect for effect in load_effects() if effect.test == test.name]
    if not measured:
        return ()
    shuffled = ShuffledScores(scores)
    rng = store_stream(store, "planted copies", test.name)
    simulated = []
    for effect in measured:
        deviations = rng.standard_t(effect.studies - 1, (DRAWS, 1))
        effects = (effect.mean + effect.scale * deviations) * following
        p_values = shuffled.p_values(effects, rng=rng)
        simulated.append(
            SimulatedPower(
                effect=effect,
                records=bounds[-1][1],
                shards=len(bounds),
                p_values=p_values,
            )
        )
    return tuple(simulated)


def detection_probability(effect: Effect, following: float, *, level: float) -> float:
    """Return the probability of p <= `level` for a new set, by a normal statistic.

    `following` is the number of records that follow another one in their shard.

    Examples
    --------
    >>> effect = Effect(
    ...     "successor", "gpt2", copies=4, studies=3, sets=30, mean=0.2, scale=0.05
    ... )
    >>> round(detection_probability(effect, following=360, level=0.05), 2)
    0.89
    """
    import numpy as np
    from scipy.special import ndtr, ndtri

    effects = effect.mean + effect.scale * _quantiles(effect.studies - 1)
    return float(ndtr(effects * np.sqrt(following) + ndtri(level)).mean())


@cache
def _quantiles(degrees: int) -> "np.ndarray":
    """Return quantiles of Student's t in equal steps of probability, (2000,)."""
    import numpy as np
    from scipy.stats import t

    shares = (np.arange(2_000) + 0.5) / 2_000
    return np.asarray(t.ppf(shares, degrees))


@cache  # of all sets that are cut into shards of one size
def records_needed(effect: Effect, *, level: float, shard_size: float) -> int | None:
    """Return the smallest number of records that finds copies with probability `WANTED`.

    The number has two digits. None if more than `MOST_RECORDS` were needed: where
    studies disagree, no number may be enough. Of the `shard_size` records of a shard
    the first follows none.

    Examples
    --------
    >>> effect = Effect(
    ...     "successor", "gpt2", copies=4, studies=3, sets=30, mean=0.2, scale=0.01
    ... )
    >>> records_needed(effect, level=0.05, shard_size=10)
    180
    """
    share = 1 - 1 / shard_size
    sizes = [size for size in _sizes() if size >= shard_size]
    if detection_probability(effect, sizes[-1] * share, level=level) < WANTED:
        return None
    low = 0
    high = len(sizes) - 1
    while low < high:
        middle = (low + high) // 2
        if detection_probability(effect, sizes[middle] * share, level=level) < WANTED:
            low = middle + 1
        else:
            high = middle
    return sizes[low]


@cache
def _sizes() -> list[int]:
    """Return the numbers of two digits and zeros up to `MOST_RECORDS`, ascending."""
    sizes = {MOST_RECORDS}
    unit = 1
    while unit * 100 <= MOST_RECORDS:
        sizes.update(range(unit, 100 * unit, unit))
        unit *= 10
    return sorted(sizes)


def power_in_words(powers: Sequence[Power]) -> str:
    """Return the power as one line, by the kind of model in the studies; "" for none."""
    by_model: dict[str, list[str]] = {}
    for power in powers:
        probability = shown_probability(power.probability)
        chance = f"{probability} for {copies_in_words(power.copies)}"
        by_model.setdefault(power.model, []).append(chance)
    parts = [f"{model}: {', '.join(chances)}" for model, chances in by_model.items()]
    return "; ".join(parts)


def copies_in_words(copies: int) -> str:
    """Return "1 copy" or "4 copies"."""
    if copies == 1:
        return "1 copy"
    return f"{copies} copies"


def shown_probability(probability: float) -> str:
    """Return a simulated probability in percent, never 0 or 100%.

    Examples
    --------
    >>> shown_probability(1.0)
    '99%'
    """
    return f"{min(max(probability, 0.01), 0.99):.0%}"
