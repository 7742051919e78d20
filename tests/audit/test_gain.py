"""The gain of the canonical order, token by token, against one computed by hand."""

from pathlib import Path

import numpy as np
import pytest

from contamination.audit.gain import gain_by_position
from contamination.scoring.store import Store
from fakes.made_up_store import HEADER, units


def test_it_is_the_mean_over_examples_that_follow_another(tmp_path: Path) -> None:
    store = Store(tmp_path, HEADER)
    items = units(5)
    store.append(items)
    rows = {}  # (example, position) -> {ordering: (nats, whether the example leads)}
    for (_, index), examples, values in items:
        places = [(e, p) for e in examples.tolist() for p in range(HEADER.stored[e])]
        for (example, position), value in zip(places, values.tolist(), strict=True):
            rows.setdefault((example, position), {})[index] = value, example == examples[0]
    gains: dict[int, list[float]] = {}
    for (_, position), found in rows.items():
        value, leads = found[0]
        if not leads:
            mean = np.mean([v for v, first in found.values() if not first])
            gains.setdefault(position, []).append(value - mean)
    reached = [p for p in sorted(gains) if len(gains[p]) >= len(gains[0]) / 2]
    expected = [np.mean(gains[p]) for p in reached]
    assert len(expected) < max(HEADER.example_tokens)
    assert gain_by_position(store, 5) == pytest.approx(expected, abs=1e-6)
