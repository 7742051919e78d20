import pytest

from contamination.statistics.results import p_from_log10


@pytest.mark.parametrize("log10_p", [-1e6, -400.0, -308.0, -2.0, 0.0])
def test_p_is_never_zero_nor_below_what_log10_p_says(log10_p):
    assert 0 < p_from_log10(log10_p) <= 1
    assert p_from_log10(log10_p) >= 10.0**log10_p
