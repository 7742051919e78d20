"""Before a p-value is called contamination: does the order of records carry information by itself?

The tests of Oren (section 2) assume that, to a model that never saw the set, every order of the
examples is as likely as the canonical one. Sorted records, topics or duplicates that sit together
and runs of labels break that without any contamination. Each diagnostic looks for one such habit,
by a permutation test that needs no model.

With `shards`, records are permuted within shards, as the sharded test permutes them: the null
hypothesis is then the very one of that test. With a single shard it is that of the permutation test
on the whole set, which asks for more: topics in blocks longer than a shard break it, and hardly
matter to a test that only ever permutes records of one topic.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from contamination.audit.controls.diagnosis import Diagnosis, Row, judge, tested_row, tf_idf
from contamination.randomness import random_stream
from contamination.statistics import exchangeability as order
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.orderings import shard_bounds

Record = Mapping[str, Any]
# The orderings (m+1, n) that all diagnostics of records share, and the shards that they permute.
Orders = tuple[NDArray[np.int32], Sequence[tuple[int, int]]]

PERMUTATIONS = 999  # of records; a p near LEVEL / MOST_DIAGNOSTICS depends on the draws
LAGS = (1, 2, 3, 4, 5)
NEAR = 0.8  # cosine above which records share a passage or differ in a few words
# Where data sets keep the label, likeliest first.
LABEL_FIELDS = ("label", "gold_label", "answerKey", "answer", "target", "class", "completion")
MOST_LABELS = 20


def diagnose_order(test_set: ExampleSet, *, seed: int, shards: int) -> Diagnosis:
    """Test without a model whether the order of the records is exchangeable, at LEVEL.

    Raises InputError for fewer than two examples a shard.

    Fields of records are searched for a label and ids. `shards` is the number of those within which
    records are permuted, 1 for the whole set; `seed` is that of the orderings.
    """
    bounds = shard_bounds(len(test_set.examples), shards)
    rng = random_stream(seed, "diagnosis", test_set.revision, shards)
    orders = order.random_orderings(bounds, PERMUTATIONS, rng=rng), bounds
    rows = record_rows(test_set.examples, test_set.records, orders)
    within = "in the whole set" if shards == 1 else f"within {shards} shards"
    orderings = sum(math.lgamma(stop - start + 1) for start, stop in bounds)
    return judge(rows, orderings, f"order of the records {within}", {"shards": shards})


def record_rows(texts: Sequence[str], records: Sequence[Record], orders: Orders) -> Iterator[Row]:
    """Rows of the table of a `Diagnosis` of records."""
    copies = codes(texts)
    longest = max(stop - start for start, stop in orders[1])
    lags = [lag for lag in LAGS if lag < longest]
    means, close, has_twin = order.neighbour_similarity(
        tf_idf(texts), *orders, lags=lags, threshold=NEAR, copies=copies
    )
    adjacent = order.equal_neighbours(copies, *orders)
    for name, what, count, share in (
        ("duplicates", "repeat an earlier one", len(copies) - copies.max() - 1, adjacent),
        ("near_duplicates", "have a near-duplicate", has_twin.sum(), close),
    ):
        if count:
            told = f"{count} of {len(texts)} records {what}; share of neighbours that match"
            yield tested_row(name, told, ".2%", share)
        else:
            yield Row(name, 0.0, reading=f"no records {what}")
    best = int(np.argmax([order.max_z(each[None])[0] for each in means]))
    told = f"mean cosine of records {lags[best]} place(s) apart"
    result = order.order_test(order.max_z(means), alternative="greater")
    yield tested_row("similarity", told, ".4f", means[best], result)
    # What every record has one value of: length, label, place in the alphabet.
    sizes = [len(text) for text in texts]
    told = "rank correlation of lengths of neighbours"
    values = order.autocorrelation(sizes, *orders)
    yield tested_row("length_autocorrelation", told, "+.3f", values)
    told = "rank correlation of length and position"
    yield tested_row("length_trend", told, "+.3f", order.trend(sizes, *orders))
    if found := label_codes(records):
        told = f"share of neighbours with equal {found[0]!r}"
        yield tested_row("label_runs", told, ".1%", order.equal_neighbours(found[1], *orders))
    else:
        yield Row("label_runs", reading="no field looks like a label")
    ranks = pd.Series([text.casefold() for text in texts], dtype=object).rank(method="dense")
    told = "share of neighbours in alphabetical order"
    yield tested_row("alphabetical", told, ".1%", order.ascending_neighbours(ranks, *orders))
    if columns := shown_numbers(texts, records):
        trends = np.array([order.trend(column, *orders) for column in columns.values()])
        best = int(np.argmax(np.abs(trends[:, 0])))
        told = f"rank correlation of {list(columns)[best]}, shown in the texts, and position"
        result = order.order_test(np.abs(trends).max(axis=0), alternative="greater")
        yield tested_row("sequential_id", told, "+.3f", trends[best], result)
    else:
        yield Row("sequential_id", reading="no ids that the texts show")


def codes(values: Sequence[object]) -> NDArray[np.intp]:
    """Number the distinct values from 0, of any type; 1, "1" and True differ."""
    return np.asarray(pd.factorize(np.array([*map(repr, values)], dtype=object))[0])


def label_codes(records: Sequence[Record]) -> tuple[str, NDArray[np.intp]] | None:
    """Find the field that holds the label, and number its values, (n,); None if there is none.

    It is the first of `LABEL_FIELDS` that every record has, with at least two values, at most
    `MOST_LABELS`, and each of them twice on average.
    """
    for field in LABEL_FIELDS:
        if records and all(field in record for record in records):
            found = codes([record[field] for record in records])
            if 2 <= found.max() + 1 <= min(MOST_LABELS, len(records) // 2):
                return field, found
    return None


def shown_numbers(
    texts: Sequence[str], records: Sequence[Record]
) -> dict[str, NDArray[np.float64]]:
    """Numbers that could be ids and that every text shows, as columns (n,).

    A field counts where it is, or ends in, a number in every record ("test/0012") and most records
    have their own. So does the number that the texts start with, after a word or two. What a model
    is not shown tells it nothing, whatever its order.
    """
    columns = dict[str, list[float]]()
    starts = [re.match(r"[^\d\n]{0,20}(\d+)", text) for text in texts]
    if all(starts):
        columns["the number that the texts start with"] = [float(m[1]) for m in starts if m]
    for field in records[0] if records else ():
        values = [str(record.get(field)) for record in records]
        numbers, pairs = [*map(_number, values)], zip(values, texts, strict=True)
        if np.isfinite(numbers).all() and all(
            re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) for value, text in pairs
        ):
            columns[f"field {field!r}"] = numbers
    return {name: np.array(c) for name, c in columns.items() if len(set(c)) > len(c) / 2}


def _number(value: str) -> float:
    with suppress(ValueError):
        return float(value)
    match = re.fullmatch(r"\S{0,40}?(\d+)", value)
    return float(match[1]) if match else math.nan
