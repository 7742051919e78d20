"""How many records a sealed set needs: as often as simulated models are found."""

import numpy as np
import pytest
from scipy.stats import binom

from contamination.seal.power import POWER, records_needed


@pytest.mark.parametrize(("effect", "variants"), [(0.5, 2), (1.0, 2), (0.5, 3), (0.3, 24)])
def test_so_many_records_find_the_effect_as_often_as_said(effect, variants) -> None:
    rng, found = np.random.default_rng(0), []
    count = records_needed(effect, variants, level=0.05)
    for _ in range(1500):
        scores = rng.normal(size=(count, variants))
        scores[:, 0] += effect
        if variants == 2:
            wins = (scores[:, 0] > scores[:, 1]).sum()
            found.append(binom.sf(wins - 1, count, 0.5) <= 0.05)
        else:
            z = (scores[:, 0] - scores.mean(axis=1)).sum() / np.sqrt(count * (1 - 1 / variants))
            found.append(z >= 1.645)
    assert POWER - 0.03 < np.mean(found) < POWER + 0.06  # of few records the law has large steps
