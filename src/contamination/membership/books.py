"""Which books has a model read? (Shi, section 5.)

A book is a text with a name, and is scored by snippets of a fixed number of words, since a score of
a short text cannot be compared with that of a long one. Snippets of books that the model is known
to have read, and of books that it cannot have read, give a threshold of Min-20% Prob. The
contamination rate of any other book is the share of its snippets above it. Nothing bounds how often
that accuses an unread book: a rate means something beside the rates of unread books, and only where
those are books like the audited one.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from contamination.errors import InputError
from contamination.membership.evaluate import Threshold, evaluate
from contamination.membership.scores import label_of
from contamination.testsets.records import read_text

if TYPE_CHECKING:
    from contamination.membership.api import Model

SUFFIXES = (".txt", ".md")
# Of Shi's figure 3 all but Neighbor, which costs many passes. Larger is more likely read.
SCORES = {name: label_of(name) for name in ("min_k_20", "loss", "zlib", "lowercase")}
SCORE = "min_k_20"  # the one with a threshold
WORD = re.compile(r"\S+")


def read_books(folder: Path) -> dict[str, str]:
    """Read the .txt and .md files of a folder, a book each, by file name and sorted by it.

    Raises InputError without the folder, without such a file, and for one that is not UTF-8.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give one with a .txt or .md file of each book")
    paths = [p for p in sorted(folder.iterdir()) if p.suffix.lower() in SUFFIXES and p.is_file()]
    if not paths:
        raise InputError(f"{folder}: there is no book; put a .txt or .md file of each book there")
    return {path.name: read_text(path) for path in paths}


def cut_snippets(text: str, words: int = 512) -> list[str]:
    """Cut a text into snippets of `words` words, one after the other.

    A word is what stands between blanks; blanks inside a snippet stay as they are. The rest, of
    fewer words, is left out. Raises InputError for `words` below 1.
    """
    if words < 1:
        raise InputError(f"snippets of {words} words: give 1 or more")
    found = list(WORD.finditer(text))
    firsts = range(0, len(found) - words + 1, words)
    return [text[found[i].start() : found[i + words - 1].end()] for i in firsts]


def sample_snippets(
    books: Mapping[str, str], *, words: int = 512, most: int = 100, rng: np.random.Generator
) -> pd.DataFrame:
    """Draw at most `most` snippets of every book, without replacement.

    Returns book, snippet (its number in the book, from 0) and text, in the order of books and
    numbers. Raises InputError for a book shorter than a snippet, or numbers below 1.
    """
    if most < 1:
        raise InputError(f"{most} snippets of a book: give 1 or more")
    rows = []
    for name, text in books.items():
        pieces = cut_snippets(text, words)
        if not pieces:
            raise InputError(
                f"{name}: {len(text.split())} words, and a snippet has {words}: take the book out, "
                "or make snippets shorter"
            )
        drawn = rng.choice(len(pieces), size=min(most, len(pieces)), replace=False)
        rows += [(name, int(i), pieces[i]) for i in np.sort(drawn)]
    return pd.DataFrame(rows, columns=["book", "snippet", "text"])


def score_snippets(model: "Model", sampled: pd.DataFrame) -> pd.DataFrame:
    """Score the snippets of `sample_snippets`: book, snippet, and a column for each of `SCORES`.

    A snippet longer than the context of the model is read in overlapping windows. `model` and what
    is raised are those of `contamination.membership.api.membership_scores`.
    """
    from contamination.membership.api import membership_scores  # here: it costs the import of torch

    scores = membership_scores(model, sampled["text"].tolist(), columns=tuple(SCORES))
    return pd.concat([sampled[["book", "snippet"]].reset_index(drop=True), scores], axis=1)


@dataclass(frozen=True, eq=False)
class Validation:
    """Scored snippets of books whose truth is known, and what is fitted to them.

    Raises InputError for an `fpr` that is not between 0 and 1.

    Attributes
    ----------
    members, non_members : of `score_snippets`: books that the model read, and books that it did
        not, at least one of each.
    fpr : most snippets of non-members that may be called read; None takes the threshold of best
        accuracy, as Shi does.
    """

    members: pd.DataFrame
    non_members: pd.DataFrame
    fpr: float | None = None

    def __post_init__(self) -> None:
        """Refuse a rate that cannot be."""
        _require_rate(self.fpr)

    @cached_property
    def _scored(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Snippets of both sides, and whether they are of members."""
        both = pd.concat([self.members, self.non_members])
        return both, np.arange(len(both)) < len(self.members)

    @cached_property
    def threshold(self) -> Threshold:
        """Snippets whose score is the threshold or more are called read."""
        both, members = self._scored
        if self.fpr is None:
            return Threshold.at_best_accuracy(both[SCORE], members)
        return Threshold.at_fpr(both[SCORE], members, fpr=self.fpr)

    @property
    def tpr(self) -> float:
        """Share of the snippets of members that the threshold, fitted to them, calls read."""
        return float(self.threshold.apply(self.members[SCORE]).mean())

    @property
    def false_positive_rate(self) -> float:
        """Share of the snippets of non-members that the threshold, fitted to them, calls read."""
        return float(self.threshold.apply(self.non_members[SCORE]).mean())

    def aucs(self, *, rng: np.random.Generator, resamples: int = 1000) -> pd.DataFrame:
        """AUC of every score over the validation snippets (Shi, figure 3).

        Returns score, member_books, non_member_books, members, non_members (snippets), auc,
        auc_low, auc_high. The 95% intervals are percentiles of a bootstrap that draws whole books,
        members and non-members apart, since snippets of a book are alike. With few books they are
        still too short. Raises InputError for fewer than 1 resample, or a side without a book.
        """
        both, members = self._scored
        table = both[list(SCORES)]
        found = evaluate(table, members, rng=rng, resamples=resamples, groups=both["book"])
        found["member_books"] = self.members["book"].nunique()
        found["non_member_books"] = self.non_members["book"].nunique()
        counts = ["member_books", "non_member_books", "members", "non_members"]
        return found[["score", *counts, "auc", "auc_low", "auc_high"]]

    def rates(self, scored: pd.DataFrame) -> pd.DataFrame:
        """Contamination rate of every book (Shi, figure 4 and table 2).

        Takes the `score_snippets` of other books, drawn in the same way. Returns book, snippets,
        rate, low, high, mean (of the score), p, log10_p.

        The 95% interval (Clopper and Pearson) takes the snippets as independent draws from the book
        and the threshold as given. It says nothing of how the snippets of a book go together, which
        makes it too short, nor of whether the validation books are like this one.

        `p` needs no threshold: it is the rank of the book's mean score among the validation books
        that are non-members, (1 + #{mean >= the book's}) / (1 + books). It is a p-value of "not
        read" if the book and they are exchangeable, and never below 1 / (1 + books).
        """
        unread = self.non_members.groupby("book")[SCORE].mean()
        rows = []
        for book, scores in scored.groupby("book", sort=False)[SCORE]:
            found, mean = self.threshold.detect(scores), scores.mean()
            p = (1 + int((unread >= mean).sum())) / (1 + len(unread))
            rows.append((book, len(scores), *found[1:], mean, p, np.log10(p)))
        names = ["book", "snippets", "rate", "low", "high", "mean", "p", "log10_p"]
        return pd.DataFrame(rows, columns=names)


def audit_books(
    open_model: Callable[[], "Model"],
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

    Raises InputError for a book that stands in two places (texts are compared without their case
    and blanks, so that another edition is not found), one shorter than a snippet, or numbers that
    cannot be.

    Parameters
    ----------
    open_model : returns what `contamination.membership.api.membership_scores` takes; called after
        the books were checked.
    books : to be audited, name -> text.
    members, non_members : that the model is known to have read, and cannot have read.
    rng : draws the snippets.
    words, most : of a snippet, and snippets of a book.
    fpr : as in `Validation`.
    """
    _require_rate(fpr)
    parts = {"audited books": books, "members": members, "non-members": non_members}
    known: dict[str, str] = {}
    for part, texts in parts.items():
        for name, text in texts.items():
            place = f"{name} of the {part}"
            same = known.setdefault(" ".join(text.lower().split()), place)
            if same != place:
                raise InputError(
                    f"{place} is the same book as {same}: audited books and validation books are "
                    "different books; take one of the two out"
                )
    sampled = [sample_snippets(part, words=words, most=most, rng=rng) for part in parts.values()]
    scored = score_snippets(open_model(), pd.concat(sampled, ignore_index=True))
    ends = np.cumsum([0, *map(len, sampled)])
    audited, read, unread = (scored.iloc[start:end] for start, end in pairwise(ends))
    validation = Validation(read, unread, fpr=fpr)
    return validation.rates(audited), validation


def _require_rate(fpr: float | None) -> None:
    if fpr is not None and not 0 < fpr < 1:
        raise InputError(f"fpr is {fpr}: give a rate between 0 and 1, such as 0.05")
