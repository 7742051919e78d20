import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from contamination.statistics import neighbour_similarity as module
from contamination.statistics.exchangeability import random_orderings
from contamination.statistics.neighbour_similarity import neighbour_similarity


def unit_rows(rng, n, v=4):
    rows = rng.random((n, v))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(deadline=None)
def test_by_brute_force(seed, one_shard):
    rng = np.random.default_rng(seed)
    bounds = [(0, 9)] if one_shard else [(0, 2), (2, 6), (6, 9)]
    rows, copies = unit_rows(rng, 9), rng.integers(0, 4, 9)
    orderings = random_orderings(bounds, 3, rng=rng)
    found = neighbour_similarity(
        scipy.sparse.csr_matrix(rows),
        orderings,
        bounds,
        lags=(1, 2, 3),
        threshold=0.9,
        copies=copies,
    )
    cosine = rows @ rows.T
    near = (cosine > 0.9) & (copies[:, None] != copies)
    np.testing.assert_array_equal(found.has_twin, near.any(axis=1))
    for j, order in enumerate(orderings):
        for index, lag in enumerate((1, 2, 3)):
            pairs = [(order[i], order[i + lag]) for a, b in bounds for i in range(a, b - lag)]
            assert found.means[index, j] == pytest.approx(np.mean([cosine[p] for p in pairs]))
            if lag == 1:
                assert found.close[j] == pytest.approx(np.mean([near[p] for p in pairs]))


def test_blocks_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    rows, bounds = unit_rows(rng, 20), [(0, 12), (12, 20)]
    orderings = random_orderings(bounds, 5, rng=rng)
    settings_ = {"lags": (1, 4), "threshold": 0.95, "copies": np.arange(20)}
    whole = neighbour_similarity(rows, orderings, bounds, **settings_)
    monkeypatch.setattr(module, "_BLOCK", 60)
    parts = neighbour_similarity(rows, orderings, bounds, **settings_)
    np.testing.assert_allclose(parts.means, whole.means, rtol=1e-14)
    np.testing.assert_array_equal(parts.close, whole.close)
    np.testing.assert_array_equal(parts.has_twin, whole.has_twin)
    assert whole.has_twin.any()


def test_lag_longer_than_every_shard_is_zero():
    bounds = [(0, 3), (3, 6)]
    orderings = random_orderings(bounds, 2, rng=np.random.default_rng(0))
    found = neighbour_similarity(
        np.eye(6)[[0] * 6], orderings, bounds, lags=(1, 3), threshold=0.5, copies=[0] * 6
    )
    np.testing.assert_array_equal(found.means, [[1] * 3, [0] * 3])
    np.testing.assert_array_equal(found.close, [0] * 3)  # copies are no near-duplicates
    assert not found.has_twin.any()
