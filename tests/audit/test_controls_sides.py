"""Baselines of two sides: of many records a part is compared, which has both sides."""

import numpy as np
import pytest

from contamination.audit.controls import sides


@pytest.mark.parametrize("paired", [False, True])
def test_of_many_records_a_part_with_both_sides_is_compared(monkeypatch, paired):
    monkeypatch.setattr(sides, "MOST_RECORDS", 20)
    texts = [f"red stone {number}" for number in range(120)]
    published = np.arange(120) < (60 if paired else 118)
    strata = np.tile(np.arange(60), 2) if paired else np.zeros(120, dtype=int)
    control = sides.compare_sides(texts, published, strata, seed=0)
    assert set(control.p_values) == set(sides.FEATURES)
    assert 0 < control.p <= 1
