import numpy as np
import pytest

from contamination.errors import InputError
from contamination.statistics.results import p_from_log10
from contamination.statistics.validation import as_log_probs, as_p_values, with_ties


@pytest.mark.parametrize(
    ("scores", "asked", "message"),
    [
        ([1.0, 2.0], {}, "shape"),
        (np.zeros((2, 2, 2)), {}, "shape"),
        (np.zeros((0, 3)), {}, "at least 1"),
        ([[1.0, 2.0]], {"min_shards": 2}, "at least 2"),
        (np.zeros((3, 1)), {}, "at least 1 permutation"),
        ([[1.0, 2.0], [1.0]], {}, "same length"),
        ([["a", "b"]], {}, "numbers"),
        ([[1, 2, 3], [1, 2, np.nan]], {}, "shard 1, ordering 2 is nan"),
        ([[1, -np.inf, 3]], {}, "shard 0, ordering 1 is -inf"),
        ([0.0, np.nan], {"ndim": 1}, "log_probs of ordering 1 is nan"),
    ],
)
def test_bad_log_probs_are_named_in_one_line(scores, asked, message):
    with pytest.raises(InputError, match=message) as caught:
        as_log_probs(scores, **{"ndim": 2} | asked)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bad", [0.0, -0.1, 1.0000001, np.nan, np.inf])
def test_bad_p_values_are_named(bad):
    with pytest.raises(InputError, match=r"p_values\[1\]"):
        as_p_values([0.5, bad, 0.0])
    for shape in ([], [[0.5]], 0.5):
        with pytest.raises(InputError, match="shape"):
            as_p_values(shape)


def test_good_input_passes_unchanged():
    np.testing.assert_array_equal(as_log_probs([[1, 2]], ndim=2), [[1.0, 2.0]])
    np.testing.assert_array_equal(as_p_values([1, 5e-324]), [1.0, 5e-324])


@pytest.mark.parametrize("log10_p", [-1e6, -400.0, -308.0, -2.0, 0.0])
def test_p_is_never_zero_nor_below_what_log10_p_says(log10_p):
    assert 0 < p_from_log10(log10_p) <= 1
    assert p_from_log10(log10_p) >= 10.0**log10_p


def test_only_a_row_within_the_resolution_is_made_equal():
    scores = np.array([[-3.0, -3.001, -3.002], [-3.0, -3.001, -4.0]])
    tied = with_ties(scores, [0.01, 0.01])
    assert np.ptp(tied[0]) == 0
    np.testing.assert_array_equal(tied[1], scores[1])
    np.testing.assert_array_equal(with_ties(scores, 0.0), scores)
