import numpy as np
import pytest

from contamination.errors import InputError
from contamination.statistics import dkw_band, ecdf


def test_ecdf():
    x, heights = ecdf([0.5, 0.1, 1.0, 0.1])
    np.testing.assert_array_equal(x, [0.1, 0.1, 0.5, 1.0])
    np.testing.assert_array_equal(heights, [0.25, 0.5, 0.75, 1.0])


def test_dkw_band_covers_uniform_samples():
    """The band is conservative, and nearly exact: 5% of samples leave it, never many more."""
    assert dkw_band(100, 0.95) == pytest.approx(1.3581 / 10, rel=1e-4)  # as in textbooks
    rng = np.random.default_rng(0)
    n, trials, outside = 50, 2000, 0
    for _ in range(trials):
        x, heights = ecdf(1 - rng.random(n))
        gap = max((heights - x).max(), (x - heights + 1 / n).max())
        outside += gap > dkw_band(n, 0.95)
    assert 0.01 * trials < outside < 0.07 * trials


@pytest.mark.parametrize(("n", "level"), [(0, 0.95), (10, 0.0), (10, 1.0), (10, 95)])
def test_bad_input(n, level):
    with pytest.raises(InputError):
        dkw_band(n, level)
