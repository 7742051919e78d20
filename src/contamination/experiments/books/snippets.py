"""Books as snippets of a fixed number of words, drawn at random and scored (Shi, section 5).

A book is a text with a name. Snippets are as long as each other, since a score of a short text
cannot be compared with that of a long one.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from contamination.errors import InputError
from contamination.testsets.records import read_text

if TYPE_CHECKING:
    from contamination.membership.api import Model

SUFFIXES = (".txt", ".md")
# Of Shi's figure 3 all but Neighbor, which costs many passes. Larger is more likely read.
SCORES = {"min_k_20": "Min-20%", "loss": "PPL", "zlib": "Zlib", "lowercase": "Lowercase"}
WORD = re.compile(r"\S+")


def read_books(folder: Path) -> dict[str, str]:
    """Read the .txt and .md files of a folder, a book each, by file name and sorted by it.

    Raises
    ------
    InputError
        No such folder, one without such a file, or a file that is not UTF-8.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give one with a .txt or .md file of each book")
    paths = [p for p in sorted(folder.iterdir()) if p.suffix.lower() in SUFFIXES and p.is_file()]
    if not paths:
        raise InputError(f"{folder}: there is no book; put a .txt or .md file of each book there")
    return {path.name: read_text(path) for path in paths}


def require_distinct(collections: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse a book that stands twice, in two collections of books or in one of them.

    Texts are compared without their case and blanks, so that another edition is not found.

    Parameters
    ----------
    collections : name -> books; the message tells that name.

    Raises
    ------
    InputError
        Two books with the same text.
    """
    known: dict[str, str] = {}
    for collection, books in collections.items():
        for name, text in books.items():
            key = " ".join(text.lower().split())
            if key in known:
                raise InputError(
                    f"{name} in {collection} is the same book as {known[key]}: validation books "
                    "and audited books are different books; take one of the two out"
                )
            known[key] = f"{name} in {collection}"


def snippets(text: str, words: int = 512) -> list[str]:
    """Cut a text into snippets of `words` words, one after the other.

    A word is what stands between blanks; blanks inside a snippet stay as they are. The rest, of
    fewer words, is left out.

    Raises
    ------
    InputError
        `words` below 1.
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

    Returns
    -------
    DataFrame
        book, snippet (its number in the book, from 0) and text, in the order of books and numbers.

    Raises
    ------
    InputError
        A book shorter than a snippet, or numbers below 1.
    """
    if most < 1:
        raise InputError(f"{most} snippets of a book: give 1 or more")
    rows = []
    for name, text in books.items():
        pieces = snippets(text, words)
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
    from contamination.membership.api import membership_scores

    scores = membership_scores(model, sampled["text"].tolist(), columns=tuple(SCORES))
    keys = sampled[["book", "snippet"]].reset_index(drop=True)
    return pd.concat([keys, scores], axis=1)
