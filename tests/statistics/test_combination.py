from pathlib import Path

import mpmath
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from contamination.errors import InputError
from contamination.statistics import fisher, holm

TABLE_4 = Path(__file__).parents[2] / "data" / "published" / "oren2024_table4_mmlu.csv"
P_VALUES = st.lists(st.floats(1e-300, 1), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("model", "published"),
    [("llama2_7b", 0.0146), ("mistral_7b", 0.0113), ("pythia_1_4b", 0.362)],
)
def test_published_mmlu_aggregation(model, published):
    """Oren Table 2, last row: Fisher over the subsets that neither negative control rejects."""
    table = pd.read_csv(TABLE_4)
    kept = table[(table["gpt2_xl"] >= 0.05) & (table["biomedlm"] >= 0.05)]
    assert (len(table), len(kept)) == (56, 43)
    result = fisher(kept[model])
    assert result.dof == 86
    assert result.p == pytest.approx(published, rel=5e-3)  # three printed digits, rounded p-values


@given(P_VALUES)
@settings(deadline=None)
def test_fisher_agrees_with_scipy(p_values):
    expected = scipy.stats.combine_pvalues(p_values, method="fisher")
    result = fisher(p_values)
    assert 0 < result.p <= 1
    assert result.statistic == pytest.approx(expected.statistic)
    if expected.pvalue > 1e-290:
        assert result.p == pytest.approx(expected.pvalue, rel=1e-9)
        assert result.log10_p == pytest.approx(np.log10(expected.pvalue), abs=1e-9)


def test_fisher_has_no_floor():
    p_values = [1e-200] * 10
    result = fisher(p_values)
    with mpmath.workdps(30):
        exact = mpmath.log10(mpmath.gammainc(10, result.statistic / 2, regularized=True))
    assert result.log10_p == pytest.approx(float(exact), rel=1e-12)
    assert result.log10_p < -1900
    assert result.p > 0


def test_fisher_of_one_is_itself():
    assert fisher([0.03]).p == pytest.approx(0.03)
    assert fisher([1.0]).p == 1.0


def test_fisher_is_calibrated_under_independence():
    rng = np.random.default_rng(0)
    p_values = 1 - rng.random((3000, 6))
    rejections = sum(fisher(row).p <= 0.05 for row in p_values)
    low, high = scipy.stats.binom.ppf([1e-4, 1 - 1e-4], 3000, 0.05)
    assert low <= rejections <= high


def test_holm_by_hand():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])


@given(P_VALUES)
@settings(max_examples=20, deadline=None)  # statsmodels takes 50 ms a call
def test_holm_is_between_raw_and_bonferroni(p_values):
    raw, adjusted = np.array(p_values), holm(p_values)
    assert (adjusted >= raw).all()
    assert (adjusted <= np.minimum(1, raw * len(raw))).all()
    assert (np.diff(adjusted[np.argsort(raw)]) >= 0).all()


@pytest.mark.parametrize("combine", [fisher, holm])
@pytest.mark.parametrize("bad", [0.0, 1.5, np.nan])
def test_bad_input(combine, bad):
    with pytest.raises(InputError, match=r"p_values\[2\]"):
        combine([0.2, 0.3, bad])
