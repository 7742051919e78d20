"""Which books has a model read? (Shi, section 5.)

Snippets of books that the model is known to have read, and of books that it cannot have read, give
a threshold of Min-20% Prob. The contamination rate of any other book is the share of its snippets
above it. Nothing bounds how often that accuses an unread book: a rate means something beside the
rates of unread books, and only where those are books like the audited one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from statsmodels.stats.proportion import proportion_confint

from contamination.errors import InputError
from contamination.experiments.books.snippets import (
    SCORES,
    require_distinct,
    sample_snippets,
    score_snippets,
)
from contamination.membership.evaluate import Threshold, roc

if TYPE_CHECKING:
    from contamination.membership.api import Model

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Validation:
    """Scored snippets of books whose truth is known, and what is fitted to them.

    Attributes
    ----------
    members, non_members : of `score_snippets`: books that the model read, and books that it did
        not, at least one of each.
    score : one of `SCORES`, the one with a threshold.
    fpr : most unread snippets that may be called read; None takes the threshold of best accuracy,
        as Shi does.
    """

    members: pd.DataFrame
    non_members: pd.DataFrame
    score: str = "min_k_20"
    fpr: float | None = None

    def __post_init__(self) -> None:
        """Raise `InputError` for a score or a rate that cannot be."""
        if self.score not in SCORES:
            raise InputError(f"unknown score {self.score!r}: give one of {', '.join(SCORES)}")
        _require_rate(self.fpr)

    @cached_property
    def threshold(self) -> Threshold:
        """Snippets with a score of it or more are called read."""
        scores = np.concatenate([self.members[self.score], self.non_members[self.score]])
        truth = np.repeat([1, 0], [len(self.members), len(self.non_members)])
        if self.fpr is None:
            return Threshold.at_best_accuracy(scores, truth)
        return Threshold.at_fpr(scores, truth, fpr=self.fpr)

    @property
    def tpr(self) -> float:
        """Share of the snippets of read books that the threshold, fitted to them, calls read."""
        return float(self.threshold.apply(self.members[self.score]).mean())

    @property
    def false_positive_rate(self) -> float:
        """Share of the snippets of unread books that the threshold, fitted to them, calls read."""
        return float(self.threshold.apply(self.non_members[self.score]).mean())

    def aucs(self, *, rng: np.random.Generator, resamples: int = 1000) -> pd.DataFrame:
        """AUC of every score over the validation snippets (Shi, figure 3).

        The 95% intervals are percentiles of a bootstrap that draws whole books, read and unread
        apart, since snippets of a book are alike. With few books they are too short still.

        Returns
        -------
        DataFrame
            score, member_books, non_member_books, members, non_members (snippets), auc, auc_low,
            auc_high.

        Raises
        ------
        InputError
            Fewer than 1 resample, or a side without a book.
        """
        if resamples < 1:
            raise InputError(f"{resamples} resamples: a bootstrap needs 1 or more")
        sides = [_books(self.members), _books(self.non_members)]
        draws = [[rng.integers(len(s), size=len(s)) for s in sides] for _ in range(resamples)]
        rows = []
        for column, score in enumerate(SCORES):
            read, unread = ([book[:, column] for book in side] for side in sides)
            again = [_auc((read[i] for i in a), (unread[i] for i in b)) for a, b in draws]
            low, high = np.quantile(again, [0.025, 0.975])
            sizes = (len(read), len(unread), len(self.members), len(self.non_members))
            rows.append((score, *sizes, _auc(read, unread), low, high))
        counts = ["member_books", "non_member_books", "members", "non_members"]
        return pd.DataFrame(rows, columns=["score", *counts, "auc", "auc_low", "auc_high"])

    def rates(self, scored: pd.DataFrame) -> pd.DataFrame:
        """Contamination rate of every book (Shi, figure 4 and table 2).

        The 95% interval (Clopper and Pearson) takes the snippets as independent draws from the book
        and the threshold as given. It says nothing of how the snippets of a book go together, which
        makes it too short, nor of whether the validation books are like this one.

        `p` needs no threshold: it is the rank of the book's mean score among the unread validation
        books, (1 + #{mean >= the book's}) / (1 + books). It is a p-value of "not read" if the book
        and they are exchangeable, and never below 1 / (1 + books).

        Parameters
        ----------
        scored : of `score_snippets`, of other books, drawn in the same way.

        Returns
        -------
        DataFrame
            book, snippets, rate, low, high, mean (of the score), p, log10_p.
        """
        unread = self.non_members.groupby("book")[self.score].mean()
        rows = []
        for book, found in scored.groupby("book", sort=False):
            hits = int(self.threshold.apply(found[self.score]).sum())
            low, high = proportion_confint(hits, len(found), method="beta")
            mean = found[self.score].mean()
            p = (1 + int((unread >= mean).sum())) / (1 + len(unread))
            rows.append((book, len(found), hits / len(found), low, high, mean, p, np.log10(p)))
        names = ["book", "snippets", "rate", "low", "high", "mean", "p", "log10_p"]
        return pd.DataFrame(rows, columns=names)


def audit_books(
    model: "Model",
    books: Mapping[str, str],
    members: Mapping[str, str],
    non_members: Mapping[str, str],
    *,
    rng: np.random.Generator,
    words: int = 512,
    most: int = 100,
    fpr: float | None = None,
) -> tuple[pd.DataFrame, Validation]:
    """Draw snippets of all books, score them, and return the rates of `books` and the validation.

    Parameters
    ----------
    model : what `contamination.membership.api.membership_scores` takes.
    books : to be audited, name -> text.
    members, non_members : that the model is known to have read, and cannot have read.
    rng : draws the snippets.
    words, most : of a snippet, and snippets of a book.
    fpr : as in `Validation`.

    Raises
    ------
    InputError
        A book that stands in two places, one shorter than a snippet, or numbers that cannot be.
    """
    _require_rate(fpr)
    parts = {
        "the audited books": books,
        "the validation books read": members,
        "the validation books not read": non_members,
    }
    require_distinct(parts)
    sampled = [sample_snippets(part, words=words, most=most, rng=rng) for part in parts.values()]
    scored = score_snippets(model, pd.concat(sampled, ignore_index=True))
    ends = np.cumsum([len(part) for part in sampled])
    audited, read, unread = (
        scored.iloc[end - len(part) : end] for end, part in zip(ends, sampled, strict=True)
    )
    validation = Validation(read, unread, fpr=fpr)
    return validation.rates(audited), validation


def _require_rate(fpr: float | None) -> None:
    if fpr is not None and not 0 < fpr < 1:
        raise InputError(f"fpr is {fpr}: give a rate between 0 and 1, such as 0.05")


def _books(scored: pd.DataFrame) -> list[Floats]:
    """Scores (snippets, scores) of every book."""
    groups = scored.groupby("book", sort=False)
    return [found[list(SCORES)].to_numpy(dtype=np.float64) for _, found in groups]


def _auc(members: Iterable[Floats], non_members: Iterable[Floats]) -> float:
    """AUC over the snippets of some books."""
    read, unread = np.concatenate(list(members)), np.concatenate(list(non_members))
    truth = np.repeat([1, 0], [len(read), len(unread)])
    return roc(np.concatenate([read, unread]), truth).auc
