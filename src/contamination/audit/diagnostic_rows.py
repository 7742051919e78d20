"""The diagnostics of `contamination.audit.diagnostics`, one row of its table each."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contamination.audit.record_features import (
    Columns,
    Record,
    codes,
    label_codes,
    number_columns,
    span_lines,
    tf_idf,
)
from contamination.statistics.exchangeability import (
    Alternative,
    ascending_neighbours,
    autocorrelation,
    equal_neighbours,
    max_z,
    neighbour_similarity,
    order_test,
    trend,
)

Row = dict[str, Any]

TESTS = 8  # rows that can have a p-value
LAGS = (1, 2, 3, 4, 5)
NEAR = 0.8  # cosine above which records share a passage or differ in a few words


@dataclass(frozen=True, eq=False)
class Orders:
    """The orderings (m+1, n) that all diagnostics share, and the shards they permute within."""

    orderings: NDArray[np.int32]
    bounds: list[tuple[int, int]]


def diagnostic_rows(
    texts: Sequence[str], records: Sequence[Record] | None, label: str | None, orders: Orders
) -> list[Row]:
    """Rows of the table of `contamination.audit.diagnostics.Diagnosis`, but for `holm_p`."""
    return [
        _spans_lines(texts, records),
        *_likeness(texts, orders),
        *_lengths(texts, orders),
        _label_runs(label_codes(records, label), orders),
        _alphabetical(texts, orders),
        _sequential_id(*number_columns(texts, records), orders),
    ]


def _only_inform(diagnostic: str, reading: str, observed: float = math.nan) -> Row:
    return {
        "diagnostic": diagnostic,
        "observed": observed,
        **dict.fromkeys(("expected", "z", "p", "log10_p"), math.nan),
        "alternative": "",
        "reading": reading,
    }


def _test(
    diagnostic: str,
    values: NDArray[np.float64],
    alternative: Alternative,
    orders: Orders,
    reading: tuple[str, str],
    natural: NDArray[np.float64] | None = None,
) -> Row:
    """Test `values` (m+1,); `natural` is what to show for them, `reading` its name and format."""
    shards = len(orders.bounds)
    result = order_test(values, test=diagnostic, shards=shards, alternative=alternative)
    shown = values if natural is None else natural
    observed, expected = float(shown[0]), float(shown.mean())
    what, form = reading
    reading_text = f"{what}: {observed:{form}}, {expected:{form}} expected"
    return _only_inform(diagnostic, reading_text, observed) | {
        "expected": expected,
        "z": result.z,
        "p": result.p,
        "log10_p": result.log10_p,
        "alternative": alternative,
    }


def _spans_lines(texts: Sequence[str], records: Sequence[Record] | None) -> Row:
    spans = span_lines(texts, records)
    reading = f"{spans.sum()} of {len(spans)} records hold line breaks"
    if spans.any():
        reading += "; read by physical line, they fall apart into pieces whose order matters"
    return _only_inform("spans_lines", reading, float(spans.mean()))


def _likeness(texts: Sequence[str], orders: Orders) -> Iterator[Row]:
    copies = codes(texts)
    longest = max(stop - start for start, stop in orders.bounds)
    lags = [lag for lag in LAGS if lag < longest]
    found = neighbour_similarity(
        tf_idf(texts), orders.orderings, orders.bounds, lags=lags, threshold=NEAR, copies=copies
    )
    adjacent = equal_neighbours(copies, orders.orderings, orders.bounds)
    for name, what, count, share in (
        ("duplicates", "repeat an earlier one", len(copies) - copies.max() - 1, adjacent),
        ("near_duplicates", "have a near-duplicate", found.has_twin.sum(), found.close),
    ):
        if count:
            reading = f"{count} of {len(texts)} records {what}; share of neighbours that match"
            yield _test(name, share, "two-sided", orders, (reading, ".2%"))
        else:
            yield _only_inform(name, f"no records {what}", 0.0)
    best = int(np.argmax([max_z(means[None])[0] for means in found.means]))
    reading = f"mean cosine of records {lags[best]} place(s) apart"
    highest = max_z(found.means)  # over the lags
    yield _test("similarity", highest, "greater", orders, (reading, ".4f"), found.means[best])


def _lengths(texts: Sequence[str], orders: Orders) -> Iterator[Row]:
    sizes = [len(text) for text in texts]
    for name, statistic, what in (
        ("length_autocorrelation", autocorrelation, "lengths of neighbours"),
        ("length_trend", trend, "length and position"),
    ):
        values = statistic(sizes, orders.orderings, orders.bounds)
        reading = (f"rank correlation of {what}", "+.3f")
        yield _test(name, values, "two-sided", orders, reading)


def _label_runs(found: tuple[str, NDArray[np.intp]] | None, orders: Orders) -> Row:
    if found is None:
        return _only_inform("label_runs", "no field looks like a label")
    field, labels = found
    values = equal_neighbours(labels, orders.orderings, orders.bounds)
    reading = (f"share of neighbours with equal {field!r}", ".1%")
    return _test("label_runs", values, "two-sided", orders, reading)


def _alphabetical(texts: Sequence[str], orders: Orders) -> Row:
    ranks = np.unique([text.casefold() for text in texts], return_inverse=True)[1]
    values = ascending_neighbours(ranks, orders.orderings, orders.bounds)
    reading = ("share of neighbours in alphabetical order", ".1%")
    return _test("alphabetical", values, "two-sided", orders, reading)


def _sequential_id(shown: Columns, hidden: Columns, orders: Orders) -> Row:
    columns = shown or hidden
    if not columns:
        return _only_inform("sequential_id", "no ids")
    values = np.array([trend(c, orders.orderings, orders.bounds) for c in columns.values()])
    best = int(np.argmax(np.abs(values[:, 0])))
    name, strongest = list(columns)[best], np.abs(values).max(axis=0)
    if not shown:  # what a model is not shown tells it nothing, whatever its order
        reading = (
            f"rank correlation of {name} and position: {values[best, 0]:+.3f}; no text shows it"
        )
        return _only_inform("sequential_id", reading, float(values[best, 0]))
    told = (f"rank correlation of {name}, shown in the texts, and position", "+.3f")
    row = _test("sequential_id", strongest, "greater", orders, told, values[best])
    return row | {"alternative": "two-sided"}  # by its absolute value
