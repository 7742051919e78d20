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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer

from contamination.randomness import random_stream
from contamination.statistics import PValue, adjust
from contamination.statistics import exchangeability as order
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.orderings import shard_bounds

Verdict = Literal["quiet", "suspicious", "order carries information", "too few records"]
Record = Mapping[str, Any]
Columns = dict[str, NDArray[np.float64]]
# The orderings (m+1, n) that all diagnostics of records share, and the shards that they permute.
Orders = tuple[NDArray[np.int32], Sequence[tuple[int, int]]]

TESTS = 9  # rows that can have a p-value, at most
LEVEL = 0.01  # of the verdict
PERMUTATIONS = 999  # of records; a p near LEVEL / TESTS depends on the draws
LAGS = (1, 2, 3, 4, 5)
NEAR = 0.8  # cosine above which records share a passage or differ in a few words
# Where data sets keep the label, likeliest first.
LABEL_FIELDS = ("label", "gold_label", "answerKey", "answer", "target", "class", "completion")
MOST_LABELS = 20


class Row(NamedTuple):
    """A row of the table of a `Diagnosis`; one that only informs, or does not apply, has no p.

    `observed` and `expected` (mean over the orderings) are in the units that the reading names, `z`
    is that of the statistic behind p, `holm_p` is after Holm's correction over the rows.
    """

    diagnostic: str
    observed: float = math.nan
    expected: float = math.nan
    z: float = math.nan
    p: float = math.nan
    log10_p: float = math.nan
    holm_p: float = math.nan
    alternative: str = ""
    reading: str = ""


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What the order of a set's records, or of their options, gives away.

    Attributes
    ----------
    table : one `Row` per diagnostic.
    verdict : "order carries information": a diagnostic rejects at LEVEL after Holm's correction.
        "suspicious": one would alone. "quiet": none would. "too few records": so few orderings
        exist that none could ever stand out.
    reasons : the readings behind the verdict.
    what : was diagnosed, for people: "order of the records within 4 shards".
    counts : what `--json` prints of that: {"shards": 4}.
    """

    table: pd.DataFrame
    verdict: Verdict
    reasons: tuple[str, ...]
    what: str
    counts: Mapping[str, int]

    def as_dict(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        return {**self.counts, "verdict": self.verdict, "reasons": list(self.reasons)}


def diagnose_order(test_set: ExampleSet, *, seed: int, shards: int) -> Diagnosis:
    """Test without a model whether the order of the records is exchangeable, at LEVEL.

    Raises InputError for fewer than two examples a shard.

    Fields of records are searched for a label, ids and line breaks. `shards` is the number of those
    within which records are permuted, 1 for the whole set; `seed` is that of the orderings.
    """
    texts, records = test_set.examples, test_set.records or None
    bounds = shard_bounds(len(texts), shards)
    rng = random_stream(seed, "diagnosis", test_set.revision, shards)
    rows = _rows(texts, records, (order.random_orderings(bounds, PERMUTATIONS, rng=rng), bounds))
    within = "in the whole set" if shards == 1 else f"within {shards} shards"
    orderings = sum(math.lgamma(stop - start + 1) for start, stop in bounds)
    return judge(rows, orderings, f"order of the records {within}", {"shards": shards})


def judge(
    rows: Iterable[Row], log_orderings: float, what: str, counts: Mapping[str, int]
) -> Diagnosis:
    """Correct the p-values of the rows, `TESTS` at most, and say what they amount to at LEVEL.

    `log_orderings` is the natural logarithm of how many orderings are possible.
    """
    table = pd.DataFrame(rows)
    tested = table["p"].notna()
    if tested.any():
        table.loc[tested, "holm_p"] = adjust(np.log10(table.loc[tested, "p"]), method="holm").p
    verdict: Verdict = "order carries information"
    chosen, reasons = table[table["holm_p"] <= LEVEL], list[str]()
    if log_orderings < math.log(TESTS / LEVEL) or not tested.any():
        verdict, chosen = "too few records", table.iloc[:0]
        reasons = ["too few orderings are possible for any to stand out: give more records"]
    elif chosen.empty:
        verdict, chosen = "suspicious", table[table["p"] <= LEVEL]
        if chosen.empty:
            verdict, least = "quiet", table.loc[table["p"].idxmin()]
            reasons = [f"the smallest p is {least['p']:.3g} ({least['diagnostic']})"]
    reasons += [
        f"{row.diagnostic}: {row.reading} (p = {row.p:.3g})"
        for row in chosen.sort_values("p", kind="stable").itertuples()
    ]
    noted = table[(table["diagnostic"] == "spans_lines") & (table["observed"] > 0)]
    reasons += [f"{row.diagnostic}: {row.reading}" for row in noted.itertuples()]
    return Diagnosis(table, verdict, tuple(reasons), what, counts)


def tested(
    diagnostic: str,
    reading: tuple[str, str],
    observed: float,
    expected: float,
    result: PValue,
    alternative: order.Alternative = "two-sided",
) -> Row:
    """Return a row with the p of a test; `reading` is what was observed, and its format."""
    what, form = reading
    told = f"{what}: {observed:{form}}, {expected:{form}} expected"
    numbers = (observed, expected, result.statistic, result.p, result.log10_p)
    return Row(diagnostic, *numbers, alternative=alternative, reading=told)


# --- one row of the table for each diagnostic -----------------------------------------------------


def _rows(texts: Sequence[str], records: Sequence[Record] | None, orders: Orders) -> Iterator[Row]:
    """Rows of the table of a `Diagnosis`."""
    spans = span_lines(texts, records)
    held = f"{spans.sum()} of {len(spans)} records hold line breaks"
    if spans.any():
        held += "; read by physical line, they fall apart into pieces whose order matters"
    yield Row("spans_lines", float(spans.mean()), reading=held)
    yield from _likeness(texts, orders)
    # What every record has one value of: length, label, place in the alphabet.
    sizes = [len(text) for text in texts]
    reading = ("rank correlation of lengths of neighbours", "+.3f")
    yield _test("length_autocorrelation", order.autocorrelation(sizes, *orders), reading)
    reading = ("rank correlation of length and position", "+.3f")
    yield _test("length_trend", order.trend(sizes, *orders), reading)
    if found := label_codes(records):
        reading = (f"share of neighbours with equal {found[0]!r}", ".1%")
        yield _test("label_runs", order.equal_neighbours(found[1], *orders), reading)
    else:
        yield Row("label_runs", reading="no field looks like a label")
    ranks = np.unique([text.casefold() for text in texts], return_inverse=True)[1]
    reading = ("share of neighbours in alphabetical order", ".1%")
    yield _test("alphabetical", order.ascending_neighbours(ranks, *orders), reading)
    yield _sequential_id(*number_columns(texts, records), orders)


def _test(
    diagnostic: str,
    values: NDArray[np.float64],
    reading: tuple[str, str],
    *,
    largest: NDArray[np.float64] | None = None,
) -> Row:
    """Test `values` (m+1,) either way, or the `largest` of several of which they are shown."""
    alternative: order.Alternative = "two-sided" if largest is None else "greater"
    result = order.order_test(values if largest is None else largest, alternative=alternative)
    return tested(diagnostic, reading, float(values[0]), float(values.mean()), result, alternative)


def _likeness(texts: Sequence[str], orders: Orders) -> Iterator[Row]:
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
            reading = f"{count} of {len(texts)} records {what}; share of neighbours that match"
            yield _test(name, share, (reading, ".2%"))
        else:
            yield Row(name, 0.0, reading=f"no records {what}")
    best = int(np.argmax([order.max_z(each[None])[0] for each in means]))
    reading = f"mean cosine of records {lags[best]} place(s) apart"
    yield _test("similarity", means[best], (reading, ".4f"), largest=order.max_z(means))


def _sequential_id(shown: Columns, hidden: Columns, orders: Orders) -> Row:
    columns = shown or hidden
    if not columns:
        return Row("sequential_id", reading="no ids")
    values = np.array([order.trend(c, *orders) for c in columns.values()])
    best = int(np.argmax(np.abs(values[:, 0])))
    name, strongest = list(columns)[best], np.abs(values).max(axis=0)
    if not shown:  # what a model is not shown tells it nothing, whatever its order
        observed = float(values[best, 0])
        reading = f"rank correlation of {name} and position: {observed:+.3f}; no text shows it"
        return Row("sequential_id", observed, reading=reading)
    what = f"rank correlation of {name}, shown in the texts, and position"
    row = _test("sequential_id", values[best], (what, "+.3f"), largest=strongest)
    return row._replace(alternative="two-sided")  # by its absolute value


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
    shown, hidden = dict[str, list[float]](), dict[str, list[float]]()
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

    def distinct(columns: dict[str, list[float]]) -> Columns:
        return {name: np.array(c) for name, c in columns.items() if len(set(c)) > len(c) / 2}

    return distinct(shown), distinct(hidden)


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
