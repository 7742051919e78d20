"""The tables of controlled contamination, cell by cell."""

import numpy as np
import pandas as pd
import pytest

from fakes.data_fixtures import ROOT
from reproduction.notebooks.controlled.aucs import MEAN
from reproduction.notebooks.controlled.contaminants import INSIDE, LEFT_OUT, OUTLIER
from reproduction.notebooks.controlled.runs import BASE, RATE, SIZE, TRAINED
from reproduction.notebooks.controlled.tables import main_layout, published_layout, rate_layout
from reproduction.output.published import load_published

LABELS = {"loss": "PPL", "min_k_20": "Min-20%"}
SCORES = (*LABELS, "zlib")


@pytest.fixture
def table() -> pd.DataFrame:
    """AUCs that say where they stand; intervals leave out 0.5 under the trained model alone."""
    runs = [(SIZE, 0, 0.0, BASE), (SIZE, 100, 1e-3, TRAINED), (SIZE, 300, 1e-3, TRAINED)]
    runs += [(RATE, 0, 0.0, BASE), (RATE, 100, 1e-3, TRAINED), (RATE, 100, 1e-4, TRAINED)]
    names = ["experiment", "corpus_tokens", "learning_rate", "model", "dataset", "score"]
    sets = ("question", "files.jsonl", LEFT_OUT, MEAN)
    rows = [(*run, dataset, score) for run in runs for dataset in sets for score in SCORES]
    table = pd.DataFrame(rows, columns=names)
    left = table["dataset"] == LEFT_OUT
    table = table.assign(contaminant=left.map({True: INSIDE, False: OUTLIER}))
    table = table[~left | (table["experiment"] == SIZE)]
    auc = 0.6 + table["corpus_tokens"] / 1000 + table["learning_rate"] * 20
    auc = auc.where(table["model"] != BASE, 0.5)
    return table.assign(
        auc=auc + 0.01 * (table["score"] == "loss"),
        auc_low=auc - 0.1,
        auc_high=auc + 0.1,
        tpr_at_5_fpr=table["corpus_tokens"] / 1000,
    )


def test_table_3_is_at_the_largest_size(table: pd.DataFrame) -> None:
    shown = main_layout(table, LABELS)
    assert list(shown) == [
        *("Method", "Question", "Files.jsonl", "Mean", "Before training", "TPR at 5% FPR"),
        "Left-out documents",
    ]
    assert shown["Method"].tolist() == ["PPL", "Min-20%"]
    first = shown.iloc[0].tolist()
    assert first == [
        *("PPL", "**0.93**", "**0.93**", "**0.93** (0.82 to 1.02)", "0.51 (0.40 to 0.60)", "30%"),
        "**0.93**",
    ]


def test_without_documents_left_out_their_column_is_missing(table: pd.DataFrame) -> None:
    shown = main_layout(table[table["dataset"] != LEFT_OUT], LABELS)
    assert list(shown)[-1] == "TPR at 5% FPR"


def test_table_4_has_a_row_for_each_rate_and_the_base_first(table: pd.DataFrame) -> None:
    shown = rate_layout(table, "min_k_20")
    assert shown["Learning rate"].tolist() == ["before training", "0.0001", "0.001"]
    assert shown["Question"].tolist() == ["0.50", "**0.70**", "**0.72**"]
    assert shown["Mean"].tolist()[2] == "**0.72** (0.62 to 0.82)"


def test_published_numbers_stand_where_they_belong() -> None:
    headline = load_published(ROOT / "data" / "published", "shi2023_downstream")
    shown = published_layout(headline).set_index(["Table", "Method"])
    assert list(dict.fromkeys(shown.index.get_level_values(0))) == ["Table 3", "Table 7", "Table 4"]
    assert shown.loc[("Table 3", "PPL"), "Average"] == "0.84"
    assert shown.loc[("Table 3", "Min-20%"), "IMDB"] == "0.98"
    assert shown.loc[("Table 7", "Min-20%"), "Average"] == "46"
    assert shown.loc[("Table 4", "Min-20%, rate 1e-5"), "BoolQ"] == "0.64"
    assert shown.loc[("Table 4", "Min-20%, rate 1e-4"), "BoolQ"] == "0.91"
    numbers = shown.drop(columns="Measure").to_numpy().ravel()
    wanted = headline[headline["table"].isin({"Table 3", "Table 7", "Table 4"})]["value"]
    assert sorted(float(n) for n in numbers if n != "—") == pytest.approx(np.sort(wanted))
