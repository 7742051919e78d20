"""Before a p-value is called contamination: does an order carry information by itself?

The tests of Oren (section 2) assume that, to a model that never saw the set, every order of the
examples is as likely as the canonical one. Sorted records, topics or duplicates that sit together
and runs of labels break that without any contamination. The test on options assumes the same of
every permitted arrangement of an item, and authors who sort their options, put the longest last or
like one letter for the right answer break it. Each diagnostic looks for one such habit, by a
permutation test that needs no model.

With `shards`, records are permuted within shards, as the sharded test permutes them: the null
hypothesis is then the very one of that test. With a single shard it is that of the permutation test
on the whole set, which asks for more: topics in blocks longer than a shard break it, and hardly
matter to a test that only ever permutes records of one topic.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer

from contamination.randomness import random_stream
from contamination.statistics import PValue, adjust, option_order, successor_scores
from contamination.statistics import exchangeability as order
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.orderings import shard_bounds

if TYPE_CHECKING:  # the axis of options is loaded where it is asked for
    from contamination.testsets.options import Item
    from contamination.testsets.variants import FixedOptions

OrderState = Literal["quiet", "suspicious", "order carries information", "too few records"]
Record = Mapping[str, Any]
# The orderings (m+1, n) that all diagnostics of records share, and the shards that they permute.
Orders = tuple[NDArray[np.int32], Sequence[tuple[int, int]]]
# Items whose options may move, with their arrangements (N, k), the published one first.
Moving = Sequence[tuple["Item", option_order.Arrangements]]

TESTS = 9  # rows that can have a p-value, at most
LEVEL = 0.01  # of the verdict
PERMUTATIONS = 999  # of records; a p near LEVEL / TESTS depends on the draws
ARRANGEMENTS = 24  # of an item: all arrangements of up to four options
LAGS = (1, 2, 3, 4, 5)
NEAR = 0.8  # cosine above which records share a passage or differ in a few words
PERCENT = 100  # cosines of options are compared in whole hundredths
# Where data sets keep the label, likeliest first.
LABEL_FIELDS = ("label", "gold_label", "answerKey", "answer", "target", "class", "completion")
MOST_LABELS = 20
_NUMBER = re.compile(r"((?<!\w)[-−–])?\s?\$?(\d[\d,]*(?:\.\d+)?|\.\d+)")  # "−3.5", "$1,200"
_DENIAL = re.compile(
    r"(?i)\b(no|not|never|neither|nor|none|nothing|without|except|cannot)\b|n['’]t\b"
)


class Row(NamedTuple):
    """A row of the table of a `Diagnosis`; one that does not apply has no p.

    `observed` and `expected` (mean over the orderings) are in the units that the reading names, `z`
    is that of the statistic behind p, `holm_p` is after Holm's correction over the rows.
    """

    diagnostic: str
    observed: float = math.nan
    expected: float = math.nan
    z: float = math.nan
    p: float = math.nan
    holm_p: float = math.nan
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
    remark : how many items do not move, and why; "" of records.
    """

    table: pd.DataFrame
    verdict: OrderState
    reasons: tuple[str, ...]
    what: str
    counts: Mapping[str, int]
    remark: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        return {**self.counts, "verdict": self.verdict, "reasons": list(self.reasons)}


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


def diagnose_arrangements(test_set: ExampleSet, *, seed: int, keep: "FixedOptions") -> Diagnosis:
    """Test without a model whether the order of the options is exchangeable.

    All p-values are exact and two-sided, given the arrangements that may be drawn: all that are
    permitted of items with up to four options that move, a choice of 24 by the seed of others.
    `keep` is what does not move, as in the test. Raises InputError as `items_of`.
    """
    from contamination.testsets import variants

    _, items = variants.shown_items(test_set)
    free = variants.permitted_places(items, keep)
    orders = variants.option_orders(items, free, permutations=ARRANGEMENTS - 1, seed=seed)
    pairs = zip(items, orders, strict=True)
    moving = [(item, np.array(rows)) for item, rows in pairs if len({*rows}) > 1]
    what = f"order of the options of {len(moving)} of {len(items)} items, which may move"
    counts = {"items": len(items), "moving": len(moving)}
    orderings = sum(math.log(len({*rows})) for rows in orders)
    diagnosis = judge(option_rows(moving), orderings, what, counts)
    return replace(diagnosis, remark=variants.items_that_stay(items, keep))


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
    verdict: OrderState = "order carries information"
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
    return Diagnosis(table, verdict, tuple(reasons), what, counts)


def _tested(
    diagnostic: str,
    what: str,
    form: str,
    values: NDArray[np.float64],
    result: PValue | None = None,
) -> Row:
    """Return a row with the p of `result`, by default that of `values` (m+1,), which it shows."""
    result = result or order.order_test(values, alternative="two-sided")
    observed, expected = float(values[0]), float(values.mean())
    reading = f"{what}: {observed:{form}}, {expected:{form}} expected"
    return Row(diagnostic, observed, expected, result.statistic, result.p, reading=reading)


# --- the order of records -------------------------------------------------------------------------


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
            yield _tested(name, told, ".2%", share)
        else:
            yield Row(name, 0.0, reading=f"no records {what}")
    best = int(np.argmax([order.max_z(each[None])[0] for each in means]))
    told = f"mean cosine of records {lags[best]} place(s) apart"
    result = order.order_test(order.max_z(means), alternative="greater")
    yield _tested("similarity", told, ".4f", means[best], result)
    # What every record has one value of: length, label, place in the alphabet.
    sizes = [len(text) for text in texts]
    told = "rank correlation of lengths of neighbours"
    values = order.autocorrelation(sizes, *orders)
    yield _tested("length_autocorrelation", told, "+.3f", values)
    told = "rank correlation of length and position"
    yield _tested("length_trend", told, "+.3f", order.trend(sizes, *orders))
    if found := label_codes(records):
        told = f"share of neighbours with equal {found[0]!r}"
        yield _tested("label_runs", told, ".1%", order.equal_neighbours(found[1], *orders))
    else:
        yield Row("label_runs", reading="no field looks like a label")
    ranks = pd.Series([text.casefold() for text in texts], dtype=object).rank(method="dense")
    told = "share of neighbours in alphabetical order"
    yield _tested("alphabetical", told, ".1%", order.ascending_neighbours(ranks, *orders))
    if columns := shown_numbers(texts, records):
        trends = np.array([order.trend(column, *orders) for column in columns.values()])
        best = int(np.argmax(np.abs(trends[:, 0])))
        told = f"rank correlation of {list(columns)[best]}, shown in the texts, and position"
        result = order.order_test(np.abs(trends).max(axis=0), alternative="greater")
        yield _tested("sequential_id", told, "+.3f", trends[best], result)
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


def tf_idf(texts: Sequence[str]) -> csr_matrix:
    """Rows of length 1 with the weights of character 4-grams within words; 0 for a blank text.

    Characters need no notion of what a word is in the language at hand.
    """
    if not any(text.strip() for text in texts):
        return csr_matrix((len(texts), 1))
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(4, 4), sublinear_tf=True)
    return vectorizer.fit_transform(texts)


def _number(value: str) -> float:
    with suppress(ValueError):
        return float(value)
    match = re.fullmatch(r"\S{0,40}?(\d+)", value)
    return float(match[1]) if match else math.nan


# --- the order of options -------------------------------------------------------------------------


def option_rows(moving: Moving) -> Iterator[Row]:
    """Rows of the table of a `Diagnosis` of options; a p where any item that moves has one."""
    items = [item for item, _ in moving]
    yield _place("gold_letters", "right answers", moving, [item.answer for item in items])
    sizes = [[*map(len, item.options)] for item in items]
    longest = [s.index(max(s)) if s.count(max(s)) == 1 else None for s in sizes]
    yield _place("longest", "longest options", moving, longest)
    yield _sorted("length_trend", "length and place", moving, sizes)
    yield _sorted("length_sorted", "length and place, either way", moving, sizes, either_way=True)
    texts = [[option.casefold().strip() for option in item.options] for item in items]
    yield _sorted("alphabetical", "alphabet and place", moving, texts)
    known = map(numbers, items)
    yield _sorted("numbers", "number and place, either way", moving, known, either_way=True)
    yield _sorted("denials", "denials and place", moving, map(denials, items))
    # Whether options that share words stand side by side, or apart; words of the set weigh.
    features = tf_idf([option for item in items for option in item.options])
    alike, longer, start = [], [], 0
    for item, arrangements in moving:
        own = features[start : start + len(item.options)]
        hundredths = np.rint(PERCENT * (own @ own.T).toarray()).astype(np.int64)
        alike.append(successor_scores(hundredths, arrangements))
        start += len(item.options)
    scale = PERCENT * sum(len(item.options) - 1 for item in items)
    what, nothing = "mean cosine of options side by side", "no options that are alike"
    yield _summed("similarity", what, ".3f", alike, scale, nothing)
    # Whether an option comes before those that say the same and more.
    pairs = 0
    for item, arrangements in moving:
        words = [set(re.findall(r"\w+", option.casefold())) for option in item.options]
        parts = np.array([[bool(a) and a < b for b in words] for a in words])
        longer.append(option_order.in_turn(parts, arrangements))
        pairs += int(parts.sum())
    what = f"of {pairs} pairs in which one option has all words of the other, the shorter one first"
    yield _summed("builds", what, ".1%", longer, pairs, "no option has all words of another")


def _summed(
    diagnostic: str, what: str, form: str, values: Sequence[ArrayLike], scale: float, nothing: str
) -> Row:
    """Test sums of `values`, n times (N,); what is shown of them is divided by `scale`."""
    array = np.array(values)
    if not len(values) or not np.ptp(array, axis=1).any():
        return Row(diagnostic, reading=nothing)
    return _tested(diagnostic, what, form, array.sum(axis=0) / scale, option_order.sum_test(array))


def _place(diagnostic: str, what: str, moving: Moving, options: Sequence[int | None]) -> Row:
    """Whether one option of each item, where there is one, stands at some letter too often."""
    chosen = [(a, i) for (_, a), i in zip(moving, options, strict=True) if i is not None]
    most = max((arrangements.shape[1] for arrangements, _ in chosen), default=0)
    places = np.arange(most)[:, None]
    values = np.array([places == (a == i).argmax(axis=1) for a, i in chosen], dtype=int)
    if not len(values) or not np.ptp(values, axis=2).any():
        return Row(diagnostic, reading=f"no {what} that move")
    which, result = option_order.largest_test(values.transpose(1, 0, 2))
    where = f"{what} that stand at {chr(ord('A') + which)}"
    return _tested(diagnostic, where, ".1%", values[:, which].mean(axis=0), result)


def _sorted(
    diagnostic: str,
    what: str,
    moving: Moving,
    values: Iterable[Sequence[Any] | None],
    *,
    either_way: bool = False,
) -> Row:
    """Kendall's rank correlation of place and a value of each option; its size for either way."""
    sums, pairs = [], 0
    for (_, arrangements), each in zip(moving, values, strict=True):
        if each is not None:
            found = option_order.ascents(each, arrangements)
            sums.append(np.abs(found) if either_way else found)
            pairs += sum(a != b for a, b in combinations(each, 2))
    nothing = f"no items whose options could be sorted by {what.split()[0]}"
    return _summed(diagnostic, f"rank correlation of {what}", "+z.3f", sums, pairs, nothing)


def numbers(item: "Item") -> list[float] | None:
    """The first number of each option, (k,); None if one has none, or all are equal."""
    found = [number_in(option) for option in item.options]
    known = [number for number in found if number is not None]
    return known if len(known) == len(found) and len(set(known)) > 1 else None


def number_in(option: str) -> float | None:
    """The first number in a text, in digits."""
    if match := _NUMBER.search(option):
        return float(match[2].replace(",", "")) * (-1 if match[1] else 1)
    return None


def denials(item: "Item") -> list[int] | None:
    """How many words of each option deny, (k,); None if all options have as many."""
    found = [len(_DENIAL.findall(option)) for option in item.options]
    return found if len(set(found)) > 1 else None
