"""Which books has a model read? (Shi, section 5.)

A book is scored by snippets of a fixed number of words, since a score of a short text cannot be
compared with that of a long one. Snippets of books that the model is known to have read, and of
books that it cannot have read, give a threshold of Min-20% Prob. The contamination rate of any
other book is the share of its snippets above it. It means something beside the rates of unread
books, and only where those are books like the audited one.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from contamination.errors import InputError
from contamination.membership.evaluate import Threshold, evaluate
from contamination.membership.scores import score_named
from contamination.testsets.records import read_text

if TYPE_CHECKING:
    from contamination.membership.api import Model

SUFFIXES = (".txt", ".md")
# Of Shi's figure 3 all but Neighbor, which costs many passes. Larger is more likely read.
SCORES = {name: score_named(name).label for name in ("min_k_20", "loss", "zlib", "lowercase")}
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


def sample_snippets(
    books: Mapping[str, str], *, words: int = 512, most: int = 100, rng: np.random.Generator
) -> pd.DataFrame:
    """Cut every book into snippets of `words` words, and draw at most `most`, without replacement.

    A word is what stands between blanks, which stay as they are inside a snippet; a rest of fewer
    words is left out. Returns book, snippet (its number in the book, from 0) and text, in the order
    of books and numbers. Raises InputError for a book shorter than a snippet, or numbers below 1.
    """
    if min(words, most) < 1:
        raise InputError(f"{most} snippets of {words} words: give 1 or more of both")
    rows = []
    for name, text in books.items():
        found = list(WORD.finditer(text))
        count = len(found) // words
        if not count:
            raise InputError(
                f"{name}: {len(found)} words, and a snippet has {words}: take the book out, or "
                "make snippets shorter"
            )
        for i in np.sort(rng.choice(count, size=min(most, count), replace=False)):
            first, last = found[i * words], found[(i + 1) * words - 1]
            rows.append((name, int(i), text[first.start() : last.end()]))
    return pd.DataFrame(rows, columns=["book", "snippet", "text"])


@dataclass(frozen=True, eq=False)
class Validation:
    """Scored snippets of books whose truth is known, and what is fitted to them.

    Attributes
    ----------
    members, non_members : book, snippet, and a column for each of `SCORES`: of books that the model
        read, and of books that it did not, at least one of each.
    """

    members: pd.DataFrame
    non_members: pd.DataFrame

    @cached_property
    def _scored(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Snippets of both sides, and whether they are of members."""
        both = pd.concat([self.members, self.non_members])
        return both, np.arange(len(both)) < len(self.members)

    @cached_property
    def threshold(self) -> Threshold:
        """Snippets whose score is the threshold or more are called read: best accuracy, as Shi."""
        both, members = self._scored
        return Threshold.at_best_accuracy(both[SCORE], members)

    @property
    def tpr(self) -> float:
        """Share of the snippets of members that the threshold, fitted to them, calls read."""
        return self.threshold.detect(self.members[SCORE]).share

    @property
    def false_positive_rate(self) -> float:
        """Share of the snippets of non-members that the threshold, fitted to them, calls read."""
        return self.threshold.detect(self.non_members[SCORE]).share

    def aucs(self, *, rng: np.random.Generator, resamples: int = 1000) -> pd.DataFrame:
        """AUC of every score over the validation snippets (Shi, figure 3).

        Returns score, member_books, non_member_books, members, non_members (snippets), auc,
        auc_low, auc_high. The 95% intervals are percentiles of a bootstrap that draws whole books,
        members and non-members apart, since snippets of a book are alike. With few books they are
        still too short.
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

        Takes the scored snippets of other books, drawn in the same way. Returns book, snippets,
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
) -> tuple[pd.DataFrame, Validation]:
    """Draw snippets of all books, score them, and return the rates of `books` and the validation.

    Books are name -> text: those to be audited, those that the model is known to have read, and
    those that it cannot have read; `rng`, `words` and `most` as in `sample_snippets`. `open_model`
    returns what `contamination.membership.api.membership_scores` takes, once the books were
    checked. Raises InputError for a book that stands in two places (texts are compared without
    their case and blanks, so that another edition is not found), and as `sample_snippets`.
    """
    from contamination.membership.api import membership_scores  # here: it costs the import of torch

    parts = {"audited books": books, "members": members, "non-members": non_members}
    known: dict[str, str] = {}
    for part, texts in parts.items():
        for name, text in texts.items():
            place = f"{name} of the {part}"
            same = known.setdefault(" ".join(text.lower().split()), place)
            if same != place:
                raise InputError(f"{place} is the same book as {same}; take one of the two out")
    sampled = pd.concat(
        [sample_snippets(part, words=words, most=most, rng=rng) for part in parts.values()],
        keys=parts,
    )
    scores = membership_scores(open_model(), sampled["text"].tolist(), columns=tuple(SCORES))
    scored = sampled.drop(columns="text").assign(**{name: scores[name].array for name in SCORES})
    audited, read, unread = (scored.loc[part] for part in parts)
    validation = Validation(read, unread)
    return validation.rates(audited), validation
