"""Does the order of records carry information by itself, without a model?

The tests of Oren (section 2) assume that, to a model that never saw the set, every
order of the examples is as likely as the canonical one. Sorted records, topics or
duplicates that sit together and runs of labels break that without any contamination.
Each diagnostic looks for one such habit, by a permutation test that needs no model.

With `shards`, records are permuted within shards, as the sharded test permutes them:
the null hypothesis is then the very one of that test. With a single shard it is that of
the permutation test on the whole set, which asks for more: topics in blocks longer than
a shard break it, and hardly matter to a test that only ever permutes records of one
topic.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contamination.audit.controls.diagnosis import (
    LEVEL,
    Diagnosis,
    DiagnosticRow,
    judge,
    tested_row,
    tf_idf,
)
from contamination.membership.blind import latest_year
from contamination.randomness import random_stream
from contamination.statistics import exchangeability as order
from contamination.statistics.similarity import neighbour_similarity
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.orderings import shard_bounds

Record = Mapping[str, Any]
# The orderings (m+1, n) that all diagnostics of records share, and the shards that they
# permute.
Orders = tuple[NDArray[np.int32], Sequence[tuple[int, int]]]

PERMUTATIONS = 999  # of records; a p near LEVEL / MOST_DIAGNOSTICS depends on the draws
LAGS = (1, 2, 3, 4, 5)
NEAR = 0.8  # cosine above which records share a passage or differ in a few words
# Where data sets keep the label, likeliest first.
LABEL_FIELDS = (
    "label",
    "gold_label",
    "answerKey",
    "answer",
    "target",
    "class",
    "completion",
)
MOST_LABELS = 20
DATED = 0.5  # share of texts with a year, above which their order in time is looked at
_START = re.compile(r"[^\d\n]{0,20}(\d+)")


def diagnose_order(test_set: ExampleSet, *, seed: int, shards: int) -> Diagnosis:
    """Test without a model whether the order of the records is exchangeable, at LEVEL.

    Records are permuted within each of the shards; one shard is the whole set. Fields
    of records are searched for a label and ids. Raises InputError if there are fewer
    than two examples a shard.
    """
    bounds = shard_bounds(len(test_set.examples), shards)
    rng = random_stream(seed, "diagnosis", test_set.revision, shards)
    orderings = order.random_orderings(bounds, PERMUTATIONS, rng=rng)
    rows = record_rows(test_set.examples, test_set.records, (orderings, bounds))
    within = "in the whole set" if shards == 1 else f"within {shards} shards"
    log_orderings = sum(math.lgamma(stop - start + 1) for start, stop in bounds)
    diagnosis = judge(
        rows,
        log_orderings,
        f"order of the records {within}",
        {"shards": shards},
    )
    return replace(diagnosis, remark=remark_on_years(test_set.examples, (orderings, bounds)))


def remark_on_years(texts: Sequence[str], orders: Orders) -> str:
    """Return a line if years in the texts follow the order of the records, else "".

    The order of time says nothing to a compressor, and much to a model that knows the
    events. So this is no statistic of the diagnosis: it asks for an able control.
    """
    years = np.array([latest_year(text) for text in texts])
    if np.mean(years > 0) <= DATED:
        return ""
    correlations = order.trend(years, *orders)
    if order.order_test(correlations, alternative="two-sided").p > LEVEL:
        return ""
    return (
        "years in the texts follow the order of the records "
        f"(rank correlation {correlations[0]:+.2f})"
    )


def record_rows(
    texts: Sequence[str],
    records: Sequence[Record],
    orders: Orders,
) -> Iterator[DiagnosticRow]:
    """Yield the rows of the table of a `Diagnosis` of records, by their texts and their fields."""
    yield from _rows_of_likeness(texts, orders)
    sizes = [len(text) for text in texts]
    yield tested_row(
        "length_autocorrelation",
        "rank correlation of lengths of neighbours",
        "+.3f",
        order.autocorrelation(sizes, *orders),
    )
    yield tested_row(
        "length_trend",
        "rank correlation of length and position",
        "+.3f",
        order.trend(sizes, *orders),
    )
    yield _row_of_labels(records, orders)
    folded = np.array([text.casefold() for text in texts], dtype=object)
    _, rank = np.unique(folded, return_inverse=True)
    yield tested_row(
        "alphabetical",
        "share of neighbours in alphabetical order",
        ".1%",
        order.ascending_neighbours(rank, *orders),
    )
    yield _row_of_ids(texts, records, orders)


def _rows_of_likeness(texts: Sequence[str], orders: Orders) -> Iterator[DiagnosticRow]:
    """Yield rows on records near their likes: duplicates, near-duplicates, topics."""
    copies = codes(texts)
    longest = max(stop - start for start, stop in orders[1])
    lags = [lag for lag in LAGS if lag < longest]
    means, near, has_twin = neighbour_similarity(
        tf_idf(texts), *orders, lags=lags, threshold=NEAR, copies=copies
    )
    repeated = len(copies) - copies.max() - 1
    equal = order.equal_neighbours(copies, *orders)
    yield _row_of_twins(
        "duplicates",
        "repeat an earlier one",
        repeated,
        len(texts),
        equal,
    )
    twins = has_twin.sum()
    yield _row_of_twins(
        "near_duplicates",
        "have a near-duplicate",
        twins,
        len(texts),
        near,
    )
    best = int(np.argmax([order.max_z(values[None])[0] for values in means]))
    yield tested_row(
        "similarity",
        f"mean cosine of records {lags[best]} place(s) apart",
        ".4f",
        means[best],
        order.order_test(order.max_z(means), alternative="greater"),
    )


def _row_of_twins(
    diagnostic: str, what: str, twins: int, records: int, shares: NDArray[np.float64]
) -> DiagnosticRow:
    """Return a row on the shares of neighbours that match, (m+1,), if any records do."""
    if not twins:
        return DiagnosticRow(diagnostic, 0.0, reading=f"no records {what}")
    reading = f"{twins} of {records} records {what}; share of neighbours that match"
    return tested_row(diagnostic, reading, ".2%", shares)


def _row_of_labels(records: Sequence[Record], orders: Orders) -> DiagnosticRow:
    """Return a row on runs of one label."""
    labelled = label_codes(records)
    if labelled is None:
        return DiagnosticRow("label_runs", reading="no field looks like a label")
    field, labels = labelled
    shares = order.equal_neighbours(labels, *orders)
    return tested_row(
        "label_runs",
        f"share of neighbours with equal {field!r}",
        ".1%",
        shares,
    )


def _row_of_ids(texts: Sequence[str], records: Sequence[Record], orders: Orders) -> DiagnosticRow:
    """Return a row on numbers in the texts that rise or fall with the position."""
    columns = shown_numbers(texts, records)
    if not columns:
        return DiagnosticRow("sequential_id", reading="no ids that the texts show")
    trends = np.array([order.trend(column, *orders) for column in columns.values()])
    best = int(np.argmax(np.abs(trends[:, 0])))
    name = list(columns)[best]
    return tested_row(
        "sequential_id",
        f"rank correlation of {name}, shown in the texts, and position",
        "+.3f",
        trends[best],
        order.order_test(np.abs(trends).max(axis=0), alternative="greater"),
    )


def codes(values: Sequence[object]) -> NDArray[np.intp]:
    """Number the distinct values from 0, of any type, (n,); 1, "1" and True differ.

    >>> codes(["b", "a", "b"]).tolist()
    [0, 1, 0]
    """
    number_of: dict[str, int] = {}
    numbers = [number_of.setdefault(repr(value), len(number_of)) for value in values]
    return np.array(numbers, dtype=np.intp)


def label_codes(records: Sequence[Record]) -> tuple[str, NDArray[np.intp]] | None:
    """Return the field that holds the label, and the number of each label, (n,).

    None if there is no such field. It is the first of `LABEL_FIELDS` that every record
    has, with at least two values, at most `MOST_LABELS`, and each of them twice on
    average.
    """
    if not records:
        return None
    for field in LABEL_FIELDS:
        if not all(field in record for record in records):
            continue
        labels = codes([record[field] for record in records])
        if 2 <= labels.max() + 1 <= min(MOST_LABELS, len(records) // 2):
            return field, labels
    return None


def shown_numbers(
    texts: Sequence[str], records: Sequence[Record]
) -> dict[str, NDArray[np.float64]]:
    """Return numbers that every text shows and that could be ids: columns (n,) by name.

    A field counts where it is, or ends in, a number in every record ("test/0012") and
    most records have their own. So does the number that the texts start with, after a
    word or two. What a model is not shown tells it nothing, whatever its order.
    """
    columns = dict[str, list[float]]()
    starts = [_START.match(text) for text in texts]
    if all(starts):
        numbers = [float(start[1]) for start in starts if start]
        columns["the number that the texts start with"] = numbers
    for field in records[0] if records else ():
        values = [str(record.get(field)) for record in records]
        numbers = [_number(value) for value in values]
        if np.isfinite(numbers).all() and _all_shown(values, texts):
            columns[f"field {field!r}"] = numbers
    mostly_own = {}
    for name, numbers in columns.items():
        if len(set(numbers)) > len(numbers) / 2:
            mostly_own[name] = np.array(numbers)
    return mostly_own


def _all_shown(values: Sequence[str], texts: Sequence[str]) -> bool:
    """Return whether every text shows its value as a whole word or number."""
    for value, text in zip(values, texts, strict=True):
        if not re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text):
            return False
    return True


def _number(value: str) -> float:
    """Return a value as a number, or the number at its end; NaN for none."""
    with suppress(ValueError):
        return float(value)
    match = re.fullmatch(r"\S{0,40}?(\d+)", value)
    if match is None:
        return math.nan
    return float(match[1])
