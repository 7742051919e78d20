"""What the order of records could follow: labels, ids, line breaks, words, copies.

Features are taken from the texts as a model sees them, and from the fields of the records where
they are given. Nothing here knows the order.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer

Record = Mapping[str, Any]
Columns = dict[str, NDArray[np.float64]]

# Where data sets keep the label, likeliest first.
LABEL_FIELDS = ("label", "gold_label", "answerKey", "answer", "target", "class", "completion")
MOST_LABELS = 20


def codes(values: Sequence[object]) -> NDArray[np.intp]:
    """Number the distinct values from 0, of any type; 1, "1" and True differ."""
    seen: dict[str, int] = {}
    return np.array([seen.setdefault(repr(value), len(seen)) for value in values])


def label_codes(records: Sequence[Record] | None) -> tuple[str, NDArray[np.intp]] | None:
    """Find the field that holds the label, and number its values, (n,); None if there is none.

    It is the first of `LABEL_FIELDS` that every record has, with at least two values, at most
    `MOST_LABELS`, and each of them twice on average.
    """
    for field in LABEL_FIELDS:
        if records is not None and all(field in record for record in records):
            found = codes([record[field] for record in records])
            if 2 <= found.max() + 1 <= min(MOST_LABELS, len(records) // 2):
                return field, found
    return None


def span_lines(texts: Sequence[str], records: Sequence[Record] | None) -> NDArray[np.bool_]:
    """Whether each record holds a line break of its own, (n,): in a field, else inside its text."""
    if records is None:
        return np.array(["\n" in text.strip("\n") for text in texts])
    return np.array([any("\n" in s for s in _strings(record)) for record in records])


def number_columns(
    texts: Sequence[str], records: Sequence[Record] | None
) -> tuple[Columns, Columns]:
    """Numbers that could be ids, as columns (n,): those that the texts show, those they do not.

    A field counts where it is, or ends in, a number in every record ("test/0012") and most records
    have their own. So does the number that the texts start with, after a word or two.
    """
    shown: dict[str, list[float]] = {}
    hidden: dict[str, list[float]] = {}
    starts = [re.match(r"[^\d\n]{0,20}(\d+)", text) for text in texts]
    if all(starts):
        shown["the number that the texts start with"] = [float(m[1]) for m in starts if m]
    for field in records[0] if records else ():
        values = [record.get(field) for record in records or ()]
        numbers = [number for number in map(_number, values) if number is not None]
        if len(numbers) == len(values):
            pairs = zip(values, texts, strict=True)
            in_text = all(re.search(rf"(?<!\w){re.escape(str(v))}(?!\w)", t) for v, t in pairs)
            (shown if in_text else hidden)[f"field {field!r}"] = numbers
    return _mostly_distinct(shown), _mostly_distinct(hidden)


def tf_idf(texts: Sequence[str]) -> csr_matrix:
    """Rows of length 1 with the weights of character 4-grams within words; 0 for a blank text.

    Characters need no notion of what a word is in the language at hand.
    """
    if not any(text.strip() for text in texts):
        return csr_matrix((len(texts), 1))
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(4, 4), sublinear_tf=True)
    return vectorizer.fit_transform(texts)


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    inner = value if isinstance(value, list | tuple) else ()
    return [string for each in inner for string in _strings(each)]


def _number(value: object) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        match = re.fullmatch(r"\S{0,40}?(\d+)", str(value))
        number = float(match[1]) if match else math.nan
    return number if math.isfinite(number) else None


def _mostly_distinct(columns: Mapping[str, list[float]]) -> Columns:
    return {
        name: np.array(column)
        for name, column in columns.items()
        if len(set(column)) > len(column) / 2
    }
