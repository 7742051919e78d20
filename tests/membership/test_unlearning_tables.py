"""Precision, recall and means by counting, with intervals; nothing where nothing is known."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contamination.membership.evaluate import auc
from contamination.membership.unlearning_tables import (
    detection,
    detection_layout,
    mean_recalls,
    recall_layout,
)


def test_precision_and_recall_by_counting() -> None:
    ratio = np.array([1.0, 1.1, 0.9, 1.3, 2.0, 1.05])
    untreated = np.array([True, True, False, True, False, False])
    table = detection(ratio, untreated, [1.15, 1.5, 1.001]).set_index("window")
    assert table.loc[1.15, ["suspicious", "untreated", "hits", "chunks"]].tolist() == [4, 3, 2, 6]
    assert table.loc[1.15, "precision"] == 2 / 4
    assert table.loc[1.15, "recall"] == 2 / 3
    interval = tuple(stats.binomtest(2, 4).proportion_ci())
    assert tuple(table.loc[1.15, ["precision_low", "precision_high"]]) == pytest.approx(interval)
    interval = tuple(stats.binomtest(2, 3).proportion_ci())
    assert tuple(table.loc[1.15, ["recall_low", "recall_high"]]) == pytest.approx(interval)
    assert table.loc[1.5, "recall"] == 1
    nearness = -np.abs(np.log(ratio))
    assert (table["auc"] == auc(nearness, untreated)).all()
    # Pairs in which the untreated one is smaller.
    assert table["auc_ratio"].to_numpy() == pytest.approx(4 / 9)


def test_where_nothing_is_suspicious_there_is_no_precision() -> None:
    (row,) = detection([2.0, 3.0], [True, False], [1.1]).to_dict("records")
    assert np.isnan(row["precision"]) and np.isnan(row["precision_low"])
    assert row["recall"] == 0


def test_means_of_two_groups_and_their_difference() -> None:
    rng = np.random.default_rng(0)
    flag = np.arange(40) % 4 == 0
    table = pd.DataFrame({"ratio": 1.0, "suspicious": flag, "treated": ~flag})
    table["completion_a"] = 0.5 * flag + rng.uniform(0, 0.2, 40)
    table["exact_a"] = flag
    table["answers_b"] = np.where(np.arange(40) < 4, np.nan, 0.25)
    found = mean_recalls(table).set_index(["probe", "model"])
    assert list(found.index) == [("completion", "a"), ("exact", "a"), ("answers", "b")]
    row = found.loc["completion", "a"]
    yes, no = table.loc[flag, "completion_a"], table.loc[~flag, "completion_a"]
    assert (row["yes"], row["no"]) == (yes.mean(), no.mean())
    assert row["difference"] == pytest.approx(yes.mean() - no.mean())
    error = np.hypot(yes.sem(), no.sem())
    assert row["difference_high"] - row["difference"] == pytest.approx(1.96 * error)
    assert row["difference_low"] > 0.35
    assert (found.loc["exact", "a"]["yes"], found.loc["exact", "a"]["no"]) == (1, 0)
    assert found.loc["answers", "b"]["difference"] == 0
    swapped = mean_recalls(table, "treated").set_index(["probe", "model"])
    assert swapped.loc["completion", "a"]["difference"] == pytest.approx(-row["difference"])


def test_a_group_of_one_chunk_has_no_interval() -> None:
    table = pd.DataFrame({"suspicious": [True, False, False], "completion_a": [1.0, 0.0, 0.5]})
    (row,) = mean_recalls(table).to_dict("records")
    assert row["difference"] == 0.75
    assert np.isnan(row["difference_low"])


def test_the_layouts() -> None:
    found = detection([1.0, 2.0, 3.0], [True, True, False], [1.1, 1.0001, 1.5])
    shares = ["1.00 (0.03 to 1.00)", "0.50 (0.01 to 0.99)"]
    assert detection_layout(found).iloc[0].tolist() == ["1.1", "1/3", *shares, "1.00", "1.00"]
    assert detection_layout(detection([2.0, 3.0], [True, False], [1.1]))["Precision"][0] == "—"
    table = pd.DataFrame({"suspicious": [True, False, False], "completion_a": [0.0, 1.0, 0.5]})
    shown = recall_layout(mean_recalls(table), "S", "O")
    assert list(shown) == ["Probe", "Model", "S", "O", "Difference"]
    assert shown.iloc[0].tolist() == ["Completion", "A", "0.00", "0.75", "—"]
    table["suspicious"] = False
    assert recall_layout(mean_recalls(table), "S", "O").iloc[0].tolist()[2:] == ["—", "0.50", "—"]
