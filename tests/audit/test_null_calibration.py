"""Redrawn canonical orders: each is drawn as often, and a test that rejects too often shows."""

import itertools
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from contamination.audit.null_calibration import gain_by_position, null_calibration_p_values
from contamination.audit.registry import TESTS
from contamination.scoring.store import create_store
from contamination.statistics import relabel_canonical, sharded_exact_test
from fakes.level import check_level
from fakes.made_up_store import HEADER, units

DRAWS = 2_000
STORE = SimpleNamespace(header=SimpleNamespace(seed=1, dataset_revision="r", shards=3))


def redrawn(test, scores, draws=DRAWS):
    return null_calibration_p_values(test, STORE, scores, draws=draws)


@pytest.mark.parametrize("name", ["sharded_exact", "sharded_t"])
def test_every_choice_of_shuffled_orderings_is_drawn_as_often(name):
    """Two shards with three shuffled orderings each: nine p-values, by the test itself."""
    scores = np.random.default_rng(0).normal(-100, 3, (2, 4))
    test = TESTS[name]
    rng = np.random.default_rng(1)
    each = [
        test.to_result(relabel_canonical(scores[:, 1:], chosen), rng).p
        for chosen in itertools.product(range(3), repeat=2)
    ]
    found = redrawn(test, scores, 4_500)
    nearest = np.abs(found[:, None] / each - 1).argmin(axis=1)
    np.testing.assert_allclose(found, np.array(each)[nearest], rtol=1e-5)
    assert stats.chisquare(np.bincount(nearest, minlength=9)).pvalue > 1e-4


@pytest.mark.parametrize("name", ["sharded_exact", "sharded_t", "successor"])
def test_the_published_order_takes_no_part(name):
    scores = np.random.default_rng(2).normal(-100, 3, (5, 30))
    read = scores.copy()
    read[:, 0] += 1_000  # a model that knows its order by heart
    before, after = (redrawn(TESTS[name], each, 50) for each in (scores, read))
    np.testing.assert_array_equal(before, after)
    check_level(redrawn(TESTS[name], read), 0.05, 0.2)


def test_weights_that_look_at_the_canonical_order_are_found_out():
    """A shard that counts only where the canonical score is high: the proof forbids it."""
    scores = np.random.default_rng(7).normal(size=(5, 60))

    def chosen_shards(values, rng):
        high = values[:, 0] > values.mean(axis=1)
        return sharded_exact_test(values[high]) if high.any() else SimpleNamespace(p=1.0)

    defective = replace(TESTS["sharded_t"], to_result=chosen_shards)
    with pytest.raises(AssertionError):
        check_level(redrawn(defective, scores, 600), 0.05)


def test_the_gain_is_the_mean_over_examples_that_follow_another(tmp_path: Path) -> None:
    store = create_store(tmp_path, HEADER)
    items = units(5)
    store.append(items)
    rows = {}  # (example, position) -> {ordering: (nats, whether the example leads)}
    for (_, index), examples, values in items:
        places = []
        for example in examples.tolist():
            places += [(example, position) for position in range(HEADER.stored[example])]
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
