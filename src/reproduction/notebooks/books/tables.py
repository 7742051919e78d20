"""Tables of the audit of books: rates beside the truth, AUCs, and what Shi prints."""

import pandas as pd

from contamination.membership.books import SCORES, Validation
from contamination.tables import MISSING, format_estimate, lay_out

AGAIN, ONCE, UNREAD, ELSEWHERE = "read again", "read once", "unread", "unread, elsewhere"
TRUTHS = (AGAIN, ONCE, UNREAD, ELSEWHERE)
# Truth of the validation books that are non-members -> what the tables call that validation.
VALIDATIONS = {UNREAD: "same packages", ELSEWHERE: "other packages"}

BOOK_COLUMNS = (
    *("book", "source", "truth", "validation", "snippets", "rate", "low", "high"),
    *("threshold", "validation_tpr", "validation_fpr", "mean", "p", "log10_p"),
)
# What Shi prints of the books: key of `shi2023_text.csv` -> what it is, and its unit.
PUBLISHED = {
    "books_audited": ("Books audited", ""),
    "book_snippets": ("Snippets of a book", ""),
    "book_snippet_words": ("Words of a snippet", ""),
    "books_above_half_percent": ("Books with a rate above 50%", "%"),
    "books_listed": ("Books listed, those with the highest rates", ""),
    "books_highest_rate_percent": ("Highest rate listed", "%"),
}


def validations(books: pd.DataFrame, scored: pd.DataFrame) -> dict[str, Validation]:
    """Fit two validations with the same members, by the names of `VALIDATIONS`.

    Non-members are of the same packages, or of others; a validation without any is left out.
    """
    truth = scored["book"].map(books[books["validation"]].set_index("book")["truth"])
    return {
        label: Validation(scored[truth == AGAIN], scored[truth == unread])
        for unread, label in VALIDATIONS.items()
        if (truth == unread).any()
    }


def audit_made_books(
    books: pd.DataFrame, scored: pd.DataFrame, fitted: dict[str, Validation]
) -> pd.DataFrame:
    """Contamination rate of every audited book under every validation: `BOOK_COLUMNS`."""
    audited = books.loc[~books["validation"], ["book", "source", "truth"]]
    parts = [
        validation.rates(scored[scored["book"].isin(audited["book"])]).assign(
            validation=label,
            threshold=validation.threshold.value,
            validation_tpr=validation.tpr,
            validation_fpr=validation.false_positive_rate,
        )
        for label, validation in fitted.items()
    ]
    return pd.concat(parts).merge(audited, on="book")[list(BOOK_COLUMNS)]


def validation_layout(aucs: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Lay out `Validation.aucs`, with a column `validation`, beside those of Shi's figure 3."""
    ends = ("auc", "auc_low", "auc_high")
    shown = lay_out(
        aucs.assign(score=aucs["score"].map(SCORES)),
        {"score": "Score"},
        lambda row: {f"Unread: {row['validation']}": format_estimate(*(row[end] for end in ends))},
    )
    paper = published[published["table"] == "Figure 3"].set_index("method")["value"]
    paper = paper.rename({"Min-20% Prob": "Min-20%"}).map("{:.2f}".format)
    return shown.assign(Published=shown["Score"].map(paper).fillna(MISSING))


def verdicts(table: pd.DataFrame, *, accused: float, alpha: float) -> pd.DataFrame:
    """Count, by validation and truth, books with a rate above `accused` or a p up to `alpha`."""
    rows = []
    for (label, truth), found in table.groupby(["validation", "truth"], sort=False):
        counts = (int((found["rate"] > accused).sum()), int((found["p"] <= alpha).sum()))
        shown = [f"{count}/{len(found)}" for count in counts]
        rows.append((label, truth, len(found), f"{found['rate'].mean():.0%}", *shown))
    names = ["validation", "truth", "books", "rate", "accused", "rejected"]
    return pd.DataFrame(rows, columns=names)


def published_layout(text: pd.DataFrame) -> pd.DataFrame:
    """Lay out what Shi prints of the rates of books (section 5, Table 2)."""
    rows = text.set_index("key").loc[list(PUBLISHED)]
    what, units = zip(*PUBLISHED.values(), strict=True)
    values = [f"{value:g}{unit}" for value, unit in zip(rows["value"], units, strict=True)]
    return pd.DataFrame({"Published": what, "Value": values, "Where": rows["where"].to_list()})
