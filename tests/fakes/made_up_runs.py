"""Scores of made-up training runs of controlled contamination, of which the truth is known."""

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
    rows = []
    for contaminant, names in SETS.items():
        for dataset in names:
            tastes = rng.normal(size=(2, half, 2))
            for experiment, gains in effects.items():
                if contaminant == INSIDE and experiment != SIZE:
                    continue
                for value, gain in [(0, 0.0), *gains.items()]:
                    at = {
                        "experiment": experiment,
                        "contaminant": contaminant,
                        "dataset": dataset,
                        "model": TRAINED if value else BASE,
                        "corpus_tokens": value if experiment == SIZE else 90 * bool(value),
                        "dup_count": value or 1 if experiment == COUNT else 1,
                        "learning_rate": value if experiment == RATE else 0.1 * bool(value),
                    }
                    for member in (True, False):
                        times = (inside if contaminant == INSIDE else 1) * member
                        for text, (a, b) in enumerate(tastes[int(member)]):
                            rows.append(
                                at
                                | {"member": member, "text": text}
                                | {"min_k_20": a + gain * times, "loss": b}
                            )
    return pd.DataFrame(rows)


STRONG = {
    SIZE: {100: 2.0, 200: 1.0, 400: 0.2},
    COUNT: {1: 0.2, 2: 1.0, 4: 2.0},
    RATE: {1e-4: 0.1, 1e-3: 1.5},
}
