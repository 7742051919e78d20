"""Text of the tables of books: numbers in their places, and counts at the edges."""

import pandas as pd

from contamination.membership.books import SCORES
from fakes.data_fixtures import ROOT
from reproduction.notebooks.books.made_books import AGAIN, UNREAD
from reproduction.notebooks.books.tables import published_layout, validation_layout, verdicts
from reproduction.output.published import load_published


def test_the_layout_of_the_validations() -> None:
    values = {"near": 0.5, "far": 0.6}
    rows = [(kind, score, auc, 0.4, 0.9) for kind, auc in values.items() for score in SCORES]
    aucs = pd.DataFrame(rows, columns=["validation", "score", "auc", "auc_low", "auc_high"])
    rows = [("Figure 3", "Min-20% Prob", 0.88), ("Figure 3", "Zlib", 0.8), ("Table 1", "PPL", 0.6)]
    shown = validation_layout(aucs, pd.DataFrame(rows, columns=["table", "method", "value"]))
    near, far = "0.50 (0.40 to 0.90)", "0.60 (0.40 to 0.90)"
    published = {"Min-20%": "0.88", "PPL": "—", "Zlib": "0.80", "Lowercase": "—"}
    assert shown.values.tolist() == [[name, near, far, one] for name, one in published.items()]
    assert list(shown) == ["Score", "Unread: near", "Unread: far", "Published"]


def test_a_book_is_accused_above_the_rate_and_rejected_up_to_the_level() -> None:
    rows = [("v", UNREAD, rate, p) for rate, p in ((0.5, 0.1), (0.51, 0.11), (0.4, 0.05))]
    table = pd.DataFrame(rows, columns=["validation", "truth", "rate", "p"])
    (row,) = verdicts(table, accused=0.5, alpha=0.1).to_dict("records")
    assert (row["accused"], row["rejected"], row["rate"]) == ("1/3", "2/3", "47%")


def test_verdicts_stand_by_validation_and_truth() -> None:
    pairs = [(validation, truth) for validation in ("near", "far") for truth in (UNREAD, AGAIN)]
    table = pd.DataFrame(pairs, columns=["validation", "truth"]).assign(rate=0.9, p=0.5)
    found = verdicts(table, accused=0.5, alpha=0.1)
    shown = list(zip(found["validation"], found["truth"], strict=True))
    assert shown == [(v, t) for v in ("near", "far") for t in (AGAIN, UNREAD)]


def test_what_the_paper_prints_of_books_stands_with_its_section_and_without_titles() -> None:
    shown = published_layout(load_published(ROOT / "data" / "published", "shi2023_text"))
    assert list(shown) == ["Published", "Value", "Where"]
    values = dict(zip(shown["Published"], shown["Value"], strict=True))
    assert values["Books with a rate above 50%"] == "90%"
    assert values["Highest rate listed"] == "100%"
    assert values["Words of a snippet"] == "512"
    assert set(shown["Where"]) == {"section 5.1", "section 5.2, nearly", "Table 2"}
