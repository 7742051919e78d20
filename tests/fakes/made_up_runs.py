"""Scores of made-up training runs of controlled contamination, of which the truth is known."""

from itertools import product

import numpy as np
import pandas as pd

from reproduction.notebooks.controlled.tables import (
    BASE,
    COUNT,
    INSIDE,
    OUTLIER,
    RATE,
    SIZE,
    TRAINED,
)

HALF = 60
SETS = {OUTLIER: ("one", "two"), INSIDE: ("left",)}


def made_up(
    effects: dict[str, dict[float, float]], *, inside: float = 0.0, half: int = HALF
) -> pd.DataFrame:
    """Scores as of `score_runs`: members gain effects[experiment][value] standard deviations.

    Documents gain `inside` times as much. What a text is like is the same under every model.
    """
    rng = np.random.default_rng(0)
    parts = []
    for contaminant, names in SETS.items():
        for dataset in names:
            tastes = rng.normal(size=(2, half, 2))
            for experiment, gains in effects.items():
                if contaminant == INSIDE and experiment != SIZE:
                    continue
                values = [(0, 0.0), *gains.items()]
                for (value, gain), member in product(values, (True, False)):
                    a, b = tastes[int(member)].T
                    times = (inside if contaminant == INSIDE else 1) * member
                    scores = pd.DataFrame({"min_k_20": a + gain * times, "loss": b})
                    at = {"experiment": experiment, "contaminant": contaminant, "dataset": dataset}
                    at |= {"model": TRAINED if value else BASE, "member": member}
                    at["corpus_tokens"] = value if experiment == SIZE else 90 * bool(value)
                    at["dup_count"] = value or 1 if experiment == COUNT else 1
                    at["learning_rate"] = value if experiment == RATE else 0.1 * bool(value)
                    parts.append(scores.assign(text=range(half), **at))
    return pd.concat(parts, ignore_index=True)


STRONG = {
    SIZE: {100: 2.0, 200: 1.0, 400: 0.2},
    COUNT: {1: 0.2, 2: 1.0, 4: 2.0},
    RATE: {1e-4: 0.1, 1e-3: 1.5},
}
