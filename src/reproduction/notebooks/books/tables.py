"""Tables and the figure of notebook 10: AUCs of scores, and rates of audited books.

A threshold of Min-20% Prob is fitted to validation books, of which the truth is known.
The share of a book's snippets that reach it is the contamination rate of the book (Shi,
section 5). There are two validations, with the same books that were read: unread books
of the same packages as the audited ones, or of others.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import roc_curve

from contamination.membership.evaluate import detected_share, weighted_aucs
from contamination.randomness import random_stream
from contamination.tables import MISSING, Layout, format_estimate, lay_out
from reproduction.notebooks.books.settings import (
    AGAIN,
    ELSEWHERE,
    ONCE,
    SCORE,
    SCORES,
    TRUTHS,
    UNREAD,
)
from reproduction.output.figures import MODEL_COLOURS, READ, panel_row
from reproduction.output.figures import UNREAD as UNREAD_COLOUR

# Truth of the unread validation books -> name of the validation.
VALIDATIONS = {UNREAD: "same packages", ELSEWHERE: "other packages"}
ENDS = (0.025, 0.975)  # quantiles of a 95% interval
STYLES = {  # colour and marker
    AGAIN: (READ, "o"),
    ONCE: (MODEL_COLOURS[4], "s"),
    UNREAD: (UNREAD_COLOUR, "^"),
    ELSEWHERE: (MODEL_COLOURS[5], "v"),
}

# name -> scored snippets, with a column `member`
Validations = Mapping[str, pd.DataFrame]


def validation_snippets(
    books: pd.DataFrame,
    scored: pd.DataFrame,
) -> dict[str, pd.DataFrame]:
    """Return the scored snippets of each validation that has unread books, with `member`."""
    truth_of_book = books[books["validation"]].set_index("book")["truth"]
    truth = scored["book"].map(truth_of_book)
    validations = {}
    for unread, name in VALIDATIONS.items():
        if (truth == unread).any():
            snippets = scored[truth.isin([AGAIN, unread])]
            validations[name] = snippets.assign(member=truth == AGAIN)
    return validations


def fit_best_threshold(scores: ArrayLike, members: ArrayLike) -> float:
    """Return the threshold that calls most snippets rightly; members reach it.

    Of equally good ones the largest counts, which accuses least; inf, if it is best to
    call none.
    """
    truth = np.asarray(members, dtype=bool)
    fpr, tpr, thresholds = roc_curve(truth, np.asarray(scores), drop_intermediate=False)
    right = tpr * truth.sum() + (1 - fpr) * (~truth).sum()
    return float(thresholds[np.argmax(np.rint(right))])


def validation_aucs(
    validations: Validations,
    *,
    seed: int,
    resamples: int,
) -> pd.DataFrame:
    """Compute the AUC of every score over the validation snippets (Shi, figure 3).

    Parameters
    ----------
    validations
        The table of `validation_snippets`.
    seed
        Draws the resamples.
    resamples
        Of the bootstrap. It draws whole books, since snippets of a book are alike; with
        few books its intervals are still too short.

    Returns
    -------
    A row for each validation and score: member_books, non_member_books, members,
    non_members (snippets), auc, and auc_low and auc_high (95%).
    """
    tables = []
    for name, snippets in validations.items():
        scores = snippets[list(SCORES)]
        members = snippets["member"].to_numpy()
        rng = random_stream(seed, "validation books", name)
        drawn = draw_books(snippets, rng=rng, resamples=resamples)
        resampled = weighted_aucs(scores, members, drawn)
        low, high = np.quantile(resampled, ENDS, axis=0)
        books = snippets.groupby("member")["book"].nunique()
        row = {
            "validation": name,
            "score": list(SCORES),
            "member_books": books[True],
            "non_member_books": books[False],
            "members": members.sum(),
            "non_members": (~members).sum(),
            "auc": weighted_aucs(scores, members, np.ones((1, len(scores))))[0],
            "auc_low": low,
            "auc_high": high,
        }
        tables.append(pd.DataFrame(row))
    return pd.concat(tables, ignore_index=True)


def draw_books(
    snippets: pd.DataFrame,
    *,
    rng: np.random.Generator,
    resamples: int,
) -> NDArray[np.float64]:
    """Resample the books of members and of others; count the draws of each snippet."""
    counts = np.empty((resamples, len(snippets)))
    for side in (True, False):
        places = np.flatnonzero(snippets["member"] == side)
        codes, names = pd.factorize(snippets["book"].iloc[places])
        chances = np.full(len(names), 1 / len(names))
        drawn = rng.multinomial(len(names), chances, size=resamples)
        counts[:, places] = drawn[:, codes]
    return counts


def book_rates(
    books: pd.DataFrame,
    scored: pd.DataFrame,
    validations: Validations,
) -> pd.DataFrame:
    """Compute the contamination rate of every audited book (Shi, figure 4 and Table 2).

    Parameters
    ----------
    books, scored
        The tables of the measurement.
    validations
        Of `validation_snippets`.

    Returns
    -------
    rates
        A row for each validation and book: source, truth, snippets, rate with low and
        high (95%, Clopper and Pearson, as if snippets were independent), threshold,
        validation_tpr and validation_fpr (share of the validation snippets that it
        calls members), mean (of the score), p and log10_p: the rank of the mean among
        the unread validation books, a p-value of "not read" if the book and they are
        exchangeable, at least 1 / (1 + their number).
    """
    audited = books[~books["validation"]]
    by_book = dict(list(scored.groupby("book")[SCORE]))
    rows = []
    for validation, snippets in validations.items():
        members = snippets["member"]
        threshold = fit_best_threshold(snippets[SCORE], members)
        called = snippets[SCORE] >= threshold
        unread_means = snippets[~members].groupby("book")[SCORE].mean()
        truths = audited[["book", "source", "truth"]]
        for book, source, truth in truths.itertuples(index=False):
            scores = by_book[book]
            rate, low, high = detected_share(scores, threshold)
            p = (1 + (unread_means >= scores.mean()).sum()) / (1 + len(unread_means))
            row = {
                "book": book,
                "source": source,
                "truth": truth,
                "validation": validation,
            }
            row |= {"snippets": len(scores), "rate": rate, "low": low, "high": high}
            row |= {"threshold": threshold, "validation_tpr": called[members].mean()}
            row |= {"validation_fpr": called[~members].mean(), "mean": scores.mean()}
            rows.append(row | {"p": p, "log10_p": np.log10(p)})
    return pd.DataFrame(rows)


def validation_layout(aucs: pd.DataFrame, published: pd.DataFrame) -> Layout:
    """Lay out `validation_aucs` with the AUCs of Shi's figure 3."""
    figure_3 = published[published["table"] == "Figure 3"].set_index("method")["value"]

    def cells(row: dict[Any, Any]) -> dict[str, str]:
        auc = format_estimate(row["auc"], row["auc_low"], row["auc_high"])
        printed = figure_3.get(row["method"])
        return {
            f"Unread: {row['validation']}": auc,
            "Published": MISSING if printed is None else f"{printed:.2f}",
        }

    shown = aucs.assign(method=aucs["score"].map(SCORES))
    measured = [f"Unread: {name}" for name in VALIDATIONS.values()]
    return lay_out(shown, {"method": "Score"}, cells, columns_first=measured)


def verdicts(rates: pd.DataFrame, *, accused: float, alpha: float) -> pd.DataFrame:
    """Count the books with a rate above `accused`, and those with p at most `alpha`."""
    rows = []
    for (validation, truth), books in rates.groupby(["validation", "truth"], sort=False):
        row = {
            "Unread validation books": validation,
            "Truth": truth,
            "Books": len(books),
        }
        row["Mean rate"] = f"{books['rate'].mean():.0%}"
        row[f"Rate above {accused:.0%}"] = f"{(books['rate'] > accused).sum()}/{len(books)}"
        row[f"p up to {alpha:g}"] = f"{(books['p'] <= alpha).sum()}/{len(books)}"
        rows.append(row)
    return pd.DataFrame(rows)


def plot_books(rates: pd.DataFrame, *, accused: float) -> Figure:
    """Draw the rate of every audited book by its truth, a panel for each validation.

    Short lines are means. A book with a rate above the dashed line is accused; the
    dotted line is the share of the unread validation snippets that reach the threshold.
    """
    names = list(dict.fromkeys(rates["validation"]))
    titles = [f"Unread validation books: {name}" for name in names]
    figure, panels = panel_row(titles, size=(7.2, 3.9), sharey=True)
    for axes, name in zip(panels, names, strict=True):
        _draw_rates(axes, rates[rates["validation"] == name], accused)
    panels[0].set_ylabel("Snippets called read (%)")
    handles = [
        Line2D([], [], color="0.35", ls="--", label="accused above"),
        Line2D([], [], color="0.35", ls=":", label="unread validation snippets"),
        Line2D([], [], color="0.35", lw=1.6, label="mean of books"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize="small")
    return figure


def _draw_rates(axes: Axes, rates: pd.DataFrame, accused: float) -> None:
    """Draw a point for each book of a validation, and the mean of each kind."""
    truths = [truth for truth in TRUTHS if (rates["truth"] == truth).any()]
    for place, truth in enumerate(truths):
        percent = 100 * rates.loc[rates["truth"] == truth, "rate"]
        colour, marker = STYLES[truth]
        # Equal rates stand side by side, so that all of them are seen.
        number = percent.groupby(percent).cumcount()
        among = percent.groupby(percent).transform("size")
        aside = (number - (among - 1) / 2) * min(0.1, 0.7 / among.max())
        axes.plot(place + aside, percent, marker, color=colour, ms=4.5, alpha=0.75)
        axes.plot(
            [place - 0.34, place + 0.34],
            [percent.mean()] * 2,
            color=colour,
            lw=1.6,
        )
    axes.axhline(100 * accused, color="0.35", lw=0.9, ls="--")
    axes.axhline(100 * rates["validation_fpr"].iloc[0], color="0.35", lw=1.1, ls=":")
    labels = [truth.replace(" ", "\n") for truth in truths]
    axes.set_xticks(range(len(truths)), labels, fontsize="small")
    axes.set(xlim=(-0.5, len(truths) - 0.5), ylim=(-4, 104))
    axes.grid(visible=False, axis="x")
