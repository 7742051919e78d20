"""Before a p-value is called contamination: does the order of the records carry information?

The tests of Oren (section 2) assume that, to a model that never saw the set, every order of the
examples is as likely as the canonical one. Sorted records, topics or duplicates that sit together
and runs of labels break that without any contamination. Each diagnostic looks for one of them, by a
permutation test that needs no model.

With `shards`, records are permuted within shards, as the sharded test permutes them: the null
hypothesis is then the very one of that test. With a single shard it is that of the permutation test
on the whole set, which asks for more: topics in blocks longer than a shard break it, and hardly
matter to a test that only ever permutes records of one topic.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer

from contamination.audit.diagnosis import TESTS, Diagnosis, Row, judge, only_inform, tested
from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.statistics.exchangeability import (
    Alternative,
    ascending_neighbours,
    autocorrelation,
    equal_neighbours,
    max_z,
    neighbour_similarity,
    order_test,
    random_orderings,
    trend,
)
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.orderings import shard_bounds

Record = Mapping[str, Any]
Columns = dict[str, NDArray[np.float64]]

LAGS = (1, 2, 3, 4, 5)
NEAR = 0.8  # cosine above which records share a passage or differ in a few words
# Where data sets keep the label, likeliest first.
LABEL_FIELDS = ("label", "gold_label", "answerKey", "answer", "target", "class", "completion")
MOST_LABELS = 20


def diagnose(
    texts: Sequence[str],
    records: Sequence[Record] | None = None,
    *,
    shards: int = 1,
    alpha: float = 0.01,
    permutations: int = 999,
    rng: np.random.Generator,
) -> Diagnosis:
    """Test without a model whether the order of the records is exchangeable.

    Raises InputError for fewer than two texts or two per shard, something that is no text or
    record, another number of records, alpha outside (0, 1), or so few permutations that no
    diagnostic could be rejected at alpha.

    Parameters
    ----------
    texts : the examples as a model is shown them, in canonical order.
    records : behind them; their fields are searched for a label, ids and line breaks.
    shards : contiguous ones, within which records are permuted: the number of the test that the
        diagnosis is for, 1 for the test on the whole set.
    alpha : level of the verdict.
    permutations : m, the number of random orderings, which all diagnostics share. A Holm-adjusted p
        near alpha depends on the draws: settle it with more.
    rng : draws the orderings.
    """
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise InputError("texts is not a list of strings: give one rendered text for each record")
    if len(texts) < 2:
        raise InputError(f"{len(texts)} record(s) have no order: give at least two")
    if records is not None and len(records) != len(texts):
        raise InputError(f"{len(records)} records for {len(texts)} texts: give one for each text")
    if not all(isinstance(record, Mapping) for record in records or ()):
        raise InputError("records are not mappings of fields to values: leave them out")
    if not 0 < alpha < 1:
        raise InputError(f"alpha is {alpha}: give a level between 0 and 1, such as 0.01")
    needed = math.ceil(TESTS / alpha) - 1
    if permutations < needed:
        raise InputError(
            f"permutations is {permutations}: give at least {needed} to reject at {alpha:g}"
        )
    bounds = shard_bounds(len(texts), shards)
    rows = _rows(texts, records, (random_orderings(bounds, permutations, rng=rng), bounds))
    within = "in the whole set" if shards == 1 else f"within {shards} shards"
    return judge(
        rows,
        alpha=alpha,
        log_orderings=sum(math.lgamma(stop - start + 1) for start, stop in bounds),
        what=f"order of the records {within}",
        counts={"shards": shards},
        notes=("spans_lines",),
    )


def diagnose_order(test_set: ExampleSet, *, seed: int, shards: int) -> Diagnosis:
    """Diagnose a test set within the shards of a test, at the level and numbers of `diagnose`."""
    rng = random_stream(seed, "diagnosis", test_set.revision, shards)
    return diagnose(test_set.examples, test_set.records or None, shards=shards, rng=rng)


# --- one row of the table for each diagnostic -----------------------------------------------------


# The orderings (m+1, n) that all diagnostics share, and the shards that they permute.
Orders = tuple[NDArray[np.int32], Sequence[tuple[int, int]]]


def _rows(texts: Sequence[str], records: Sequence[Record] | None, orders: Orders) -> list[Row]:
    """Rows of the table of a `Diagnosis`, but for `holm_p`."""
    spans = span_lines(texts, records)
    reading = f"{spans.sum()} of {len(spans)} records hold line breaks"
    if spans.any():
        reading += "; read by physical line, they fall apart into pieces whose order matters"
    return [
        only_inform("spans_lines", reading, float(spans.mean())),
        *_likeness(texts, orders),
        *_ordered_values(texts, records, orders),
        _sequential_id(*number_columns(texts, records), orders),
    ]


def _test(
    diagnostic: str,
    values: NDArray[np.float64],
    alternative: Alternative,
    reading: tuple[str, str],
    natural: NDArray[np.float64] | None = None,
) -> Row:
    """Test `values` (m+1,); `natural` is what to show for them, `reading` its name and format."""
    result = order_test(values, alternative=alternative)
    shown = values if natural is None else natural
    return tested(diagnostic, *reading, float(shown[0]), float(shown.mean()), result, alternative)


def _likeness(texts: Sequence[str], orders: Orders) -> Iterator[Row]:
    copies = codes(texts)
    longest = max(stop - start for start, stop in orders[1])
    lags = [lag for lag in LAGS if lag < longest]
    found = neighbour_similarity(tf_idf(texts), *orders, lags=lags, threshold=NEAR, copies=copies)
    adjacent = equal_neighbours(copies, *orders)
    for name, what, count, share in (
        ("duplicates", "repeat an earlier one", len(copies) - copies.max() - 1, adjacent),
        ("near_duplicates", "have a near-duplicate", found.has_twin.sum(), found.close),
    ):
        if count:
            reading = f"{count} of {len(texts)} records {what}; share of neighbours that match"
            yield _test(name, share, "two-sided", (reading, ".2%"))
        else:
            yield only_inform(name, f"no records {what}", 0.0)
    best = int(np.argmax([max_z(means[None])[0] for means in found.means]))
    reading = f"mean cosine of records {lags[best]} place(s) apart"
    highest = max_z(found.means)  # over the lags
    yield _test("similarity", highest, "greater", (reading, ".4f"), found.means[best])


def _ordered_values(
    texts: Sequence[str], records: Sequence[Record] | None, orders: Orders
) -> Iterator[Row]:
    """Rows for what every record has one value of: length, label, place in the alphabet."""
    sizes = [len(text) for text in texts]
    reading = ("rank correlation of lengths of neighbours", "+.3f")
    yield _test("length_autocorrelation", autocorrelation(sizes, *orders), "two-sided", reading)
    reading = ("rank correlation of length and position", "+.3f")
    yield _test("length_trend", trend(sizes, *orders), "two-sided", reading)
    if found := label_codes(records):
        reading = (f"share of neighbours with equal {found[0]!r}", ".1%")
        yield _test("label_runs", equal_neighbours(found[1], *orders), "two-sided", reading)
    else:
        yield only_inform("label_runs", "no field looks like a label")
    ranks = np.unique([text.casefold() for text in texts], return_inverse=True)[1]
    reading = ("share of neighbours in alphabetical order", ".1%")
    yield _test("alphabetical", ascending_neighbours(ranks, *orders), "two-sided", reading)


def _sequential_id(shown: Columns, hidden: Columns, orders: Orders) -> Row:
    columns = shown or hidden
    if not columns:
        return only_inform("sequential_id", "no ids")
    values = np.array([trend(c, *orders) for c in columns.values()])
    best = int(np.argmax(np.abs(values[:, 0])))
    name, strongest = list(columns)[best], np.abs(values).max(axis=0)
    if not shown:  # what a model is not shown tells it nothing, whatever its order
        observed = float(values[best, 0])
        reading = f"rank correlation of {name} and position: {observed:+.3f}; no text shows it"
        return only_inform("sequential_id", reading, observed)
    what = f"rank correlation of {name}, shown in the texts, and position"
    row = _test("sequential_id", strongest, "greater", (what, "+.3f"), values[best])
    return row | {"alternative": "two-sided"}  # by its absolute value


# --- what the order could follow; nothing below knows it ------------------------------------------


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
