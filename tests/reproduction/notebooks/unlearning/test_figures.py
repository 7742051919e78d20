"""The figure of the audit of unlearning: where its points lie."""

import numpy as np
import pandas as pd
import pytest

from reproduction.notebooks.unlearning.figures import plot_unlearning


@pytest.fixture
def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "ratio": [3.0, 1.0, 0.9, 2.0],
            "treated": [True, False, False, True],
            "suspicious": [False, True, True, False],
            "completion_original": [0.2, 0.4, 0.8, 0.4],
            "completion_clean": [0.0, 0.1, 0.1, 0.2],
            "answers_original": [0.2, np.nan, 0.8, 0.4],
            "answers_clean": [0.0, np.nan, 0.1, 0.2],
        }
    )


@pytest.fixture
def figure(table: pd.DataFrame):
    return plot_unlearning(table, window=1.15)


def test_chunks_stand_by_their_ratio(figure) -> None:
    untreated, treated = figure.axes[0].lines
    assert untreated.get_xdata().tolist() == [1, 2]
    assert untreated.get_ydata().tolist() == [0.9, 1.0]
    assert treated.get_xdata().tolist() == [3, 4]
    assert treated.get_ydata().tolist() == [2.0, 3.0]
    (band,) = figure.axes[0].patches
    assert band.get_y() == pytest.approx(1 / 1.15)
    assert band.get_y() + band.get_height() == pytest.approx(1.15)
    low, high = figure.axes[0].get_ylim()
    assert low < 0.9 and high > 3


def test_means_by_model_probe_and_group(figure) -> None:
    completion, answers = figure.axes[1:]
    titles = [axes.get_title() for axes in (completion, answers)]
    assert titles == ["Rest of a chunk", "Answer to a question"]
    points = [float(c.lines[0].get_ydata()[0]) for c in completion.containers]
    assert points == pytest.approx([0.6, 0.3, 0.1, 0.1])
    points = [float(c.lines[0].get_ydata()[0]) for c in answers.containers]
    assert points == pytest.approx([0.8, 0.3, 0.1, 0.1])  # no question of a chunk: left out
    low, high = completion.containers[0].lines[2][0].get_segments()[0][:, 1]
    assert (high - low) / 2 == pytest.approx(1.96 * np.std([0.4, 0.8], ddof=1) / np.sqrt(2))
    assert len(answers.containers[0].lines[2]) == 0  # one chunk has no interval
    labels = [text.get_text() for text in answers.get_legend().get_texts()]
    assert labels == ["Suspicious", "Other chunks"]
    assert [t.get_text() for t in answers.get_xticklabels()] == ["Original", "Clean"]


def test_a_group_without_a_chunk_is_left_out(table: pd.DataFrame) -> None:
    alone = table.drop(columns=["completion_original", "answers_original", "answers_clean"])
    drawn = plot_unlearning(alone.assign(suspicious=True), window=1.15)
    assert [len(axes.containers) for axes in drawn.axes[1:]] == [1]
