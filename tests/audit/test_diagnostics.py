import gc

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from contamination.audit.diagnosis import TESTS
from contamination.audit.diagnostics import (
    _rows,
    codes,
    diagnose,
    label_codes,
    number_columns,
    span_lines,
    tf_idf,
)
from contamination.errors import InputError
from contamination.statistics.exchangeability import random_orderings
from contamination.testsets.orderings import shard_bounds
from fakes.diagnosed import rejected, row

TOPICS = [
    ["planet", "orbit", "comet", "telescope", "eclipse", "gravity", "asteroid", "lunar"],
    ["butter", "flour", "oven", "sugar", "recipe", "dough", "vanilla", "whisk"],
    ["senate", "ballot", "treaty", "governor", "election", "statute", "congress", "veto"],
]


@pytest.fixture(autouse=True)
def no_collection(monkeypatch):
    """Statsmodels collects garbage at every call, which takes longer than a whole diagnosis."""
    monkeypatch.setattr(gc, "collect", lambda: 0)


def make_records(rng, n, topics=(0, 1, 2)):
    """Records without an order: topic, words, label and length drawn for each of them alone."""
    records = []
    for _ in range(n):
        topic = int(rng.choice(topics))
        words = rng.choice(TOPICS[topic], size=rng.integers(4, 20))
        label = bool(rng.integers(2))
        records.append({"topic": topic, "text": " ".join(words), "label": label})
    return records


def texts_of(records):
    return [record["text"] for record in records]


def diagnosis(records, *, seed=0, **options):
    return diagnose(texts_of(records), records, rng=np.random.default_rng(seed), **options)


@pytest.fixture(scope="module")
def records():
    return make_records(np.random.default_rng(1), 120)


def test_shuffled_records_are_quiet(records):
    found = diagnosis(records)
    assert found.verdict == "quiet"
    assert rejected(found) == set()
    columns = "diagnostic observed expected z p log10_p holm_p alternative reading"
    assert list(found.table) == columns.split()
    least = found.table.loc[found.table["p"].idxmin()]
    assert found.reasons == (f"the smallest p is {least['p']:.3g} ({least['diagnostic']})",)
    assert len(found.table) == TESTS + 1


@pytest.mark.parametrize("shards", [1, 5])
def test_calibrated_on_exchangeable_records(shards):
    """Every diagnostic alone, and the verdict over all of them, keep their level."""
    rng = np.random.default_rng(shards)
    trials, alpha, n = 500, 0.05, 20
    low, high = scipy.stats.binom.ppf([1e-4, 1 - 1e-4], trials, alpha)
    bounds, alone, together = shard_bounds(n, shards), {}, 0
    for _ in range(trials):
        records = make_records(rng, n - 5)
        records += records[:3]  # duplicates, and two records with a near-duplicate
        records += [{**r, "text": r["text"] + " again"} for r in records[4:6]]
        numbers = rng.permutation(n)
        order = rng.permutation(n)
        records = [{**records[i], "id": int(numbers[i])} for i in order]
        texts = [f"{record['id']} {record['text']}" for record in records]
        orders = (random_orderings(bounds, 159, rng=rng), bounds)
        rows = _rows(texts, records, orders)
        p = {r["diagnostic"]: r["p"] for r in rows if r["p"] == r["p"]}
        for name, value in p.items():
            alone[name] = alone.get(name, 0) + (value <= alpha)
        together += min(p.values()) * len(p) <= alpha
    assert len(alone) >= TESTS - 1
    assert max(alone.values()) <= high, alone
    assert together <= high
    for name in ("similarity", "length_autocorrelation", "length_trend", "sequential_id"):
        assert alone[name] >= low, alone


def taking_turns(records):
    split = [[r for r in records if r["label"] is value] for value in (True, False)]
    return [record for pair in zip(*split, strict=False) for record in pair]


def with_twins(records):
    varied = [{**record, "text": record["text"] + " maybe"} for record in records[:20]]
    beside = [record for pair in zip(records[:20], varied, strict=True) for record in pair]
    return beside + records[20:80]


PLANTED = {
    "shortest first": (
        lambda found: sorted(found, key=lambda record: len(record["text"])),
        {"length_trend": 1, "length_autocorrelation": None},
    ),
    "labels in blocks": (
        lambda found: sorted(found, key=lambda record: record["label"]),
        {"label_runs": 118 / 119},
    ),
    "labels take turns": (taking_turns, {"label_runs": 0}),
    "topics in blocks": (
        lambda found: sorted(found, key=lambda record: record["topic"]),
        {"similarity": None},
    ),
    "rising text": (
        lambda found: sorted(found, key=lambda record: record["text"].casefold()),
        {"alphabetical": 1},
    ),
    "falling text": (
        lambda found: sorted(found, key=lambda record: record["text"].casefold())[::-1],
        {"alphabetical": 0},
    ),
    "twins side by side": (with_twins, {"near_duplicates": None}),
    "a line returns every other time": (
        lambda found: [r for one in found[:40] for r in ({**found[0], "text": "Read:"}, one)],
        {"duplicates": 0},
    ),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_each_kind_of_order_is_found_by_its_diagnostic(records, planted):
    arrange, expected = PLANTED[planted]
    found = diagnosis(arrange(records), permutations=799)  # the fewest that can reject
    assert expected.keys() <= rejected(found)
    assert found.verdict == "order carries information"
    for name, observed in expected.items():
        assert any(reason.startswith(f"{name}: ") for reason in found.reasons)
        if observed is not None:
            assert row(found, name)["observed"] == pytest.approx(observed, abs=0.01)


def test_sharded_null_ignores_blocks_longer_than_a_shard():
    """What a sharded test cannot see is no objection to it."""
    topics = [make_records(np.random.default_rng(3), 40, [t]) for t in range(3)]
    records = [record for block in topics for record in block]
    assert "similarity" in rejected(diagnosis(records))
    assert diagnosis(records, shards=6).verdict == "quiet"
    pairs = [record for r in topics[0] for record in (r, {**r, "text": r["text"] + " ."})]
    assert "near_duplicates" in rejected(diagnosis(pairs, shards=10))


def test_duplicates_that_sit_together(records):
    twice = [record for record in records[:60] for _ in range(1 + (record["topic"] == 0))]
    found = diagnosis(twice)
    assert "duplicates" in rejected(found)
    assert "near_duplicates" not in rejected(found)
    copies = len(twice) - 60
    assert row(found, "duplicates")["observed"] == pytest.approx(copies / (len(twice) - 1))
    assert row(found, "duplicates")["reading"].startswith(f"{copies} of {len(twice)} records")


def test_duplicates_far_apart_are_reported_and_no_reason(records):
    found = diagnosis(records[:60] + records[:60], seed=2)
    assert "duplicates" not in rejected(found)
    assert row(found, "duplicates")["reading"].startswith("60 of 120 records")
    shuffled = [(records[:40] * 2)[i] for i in np.random.default_rng(4).permutation(80)]
    assert "duplicates" not in rejected(diagnosis(shuffled))


def test_ids_matter_only_in_the_text(records):
    numbered = [{**record, "id": f"test/{i}"} for i, record in enumerate(records)]
    hidden = diagnosis(numbered)
    assert hidden.verdict == "quiet"
    assert np.isnan(row(hidden, "sequential_id")["p"])
    assert row(hidden, "sequential_id")["observed"] == pytest.approx(1)
    assert "no text shows it" in row(hidden, "sequential_id")["reading"]
    shown = [{**r, "text": f"({r['id']}) {r['text']}"} for r in numbered]
    found = diagnosis(shown)
    assert "sequential_id" in rejected(found)
    assert "shown in the texts" in row(found, "sequential_id")["reading"]
    falling = diagnosis(shown[::-1])
    assert row(falling, "sequential_id")["observed"] == pytest.approx(-1)
    assert "sequential_id" in rejected(falling)
    shuffled = diagnosis([shown[i] for i in np.random.default_rng(5).permutation(len(shown))])
    assert "sequential_id" not in rejected(shuffled)
    rng = np.random.default_rng(5)
    both = [{**shown[i], "row": k} for k, i in enumerate(rng.permutation(len(shown)))]
    assert row(diagnosis(both), "sequential_id")["p"] > 0.01  # `row` is sorted, and in no text


def test_records_over_several_lines_are_told_and_do_not_decide(records):
    broken = [{**r, "text": f"Read this:\n{r['text']}\nWhich?"} for r in records]
    found = diagnosis(broken)
    assert found.verdict == "quiet"
    assert row(found, "spans_lines")["observed"] == 1
    assert found.reasons[-1].startswith("spans_lines: 120 of 120 records hold line breaks")
    lines = [line for text in texts_of(broken) for line in text.split("\n")]
    by_line = diagnose(lines, rng=np.random.default_rng(0))
    assert by_line.verdict == "order carries information"


def test_suspicious_is_between():
    """One small p among several that Holm's correction does not carry."""
    verdicts = {}
    for seed in range(40):
        records = make_records(np.random.default_rng(seed), 30)
        found = diagnosis(records, alpha=0.05, permutations=199)
        smallest, adjusted = found.table["p"].min(), found.table["holm_p"].min()
        expected = "order carries information" if adjusted <= 0.05 else "suspicious"
        assert found.verdict == (expected if smallest <= 0.05 else "quiet")
        verdicts[found.verdict] = found
    assert {"quiet", "suspicious"} <= set(verdicts)
    told = verdicts["suspicious"]
    small = told.table[told.table["p"] <= 0.05]
    assert len(told.reasons) == len(small)
    assert all(any(r.startswith(f"{d}: ") for r in told.reasons) for d in small["diagnostic"])


@pytest.mark.parametrize(
    "texts",
    [[""] * 12, ["same"] * 12, ["same\n"] * 12, ["", " ", "\n"] * 4],
    ids=["empty", "identical", "identical lines", "blank"],
)
@pytest.mark.parametrize("shards", [1, 4])
def test_records_that_do_not_differ_are_quiet(texts, shards):
    if texts[0] != texts[1]:
        texts = [texts[i] for i in np.random.default_rng(0).permutation(12)]
    found = diagnose(texts, shards=shards, rng=np.random.default_rng(0))
    assert found.verdict == "quiet"
    assert np.isfinite(found.table["p"].dropna()).all()
    if len(set(texts)) == 1:
        assert (found.table["p"].dropna() == 1).all()


def test_too_few_orderings_or_permutations():
    texts = texts_of(make_records(np.random.default_rng(0), 10))
    rng = np.random.default_rng(0)
    for few in (diagnose(texts[:3], rng=rng), diagnose(texts, shards=5, rng=rng)):  # 2^5 orderings
        assert few.verdict == "too few records"
        assert "more records" in few.reasons[0]
    assert diagnose(texts, rng=rng).verdict != "too few records"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"texts": ["a"]}, "1 record"),
        ({"texts": "abc"}, "texts"),
        ({"records": [{}] * 2}, "2 records for 3 texts"),
        ({"records": ["a", "b", "c"]}, "records"),
        ({"shards": 2}, "2 shards"),
        ({"alpha": 1.0}, "alpha is 1.0"),
        ({"permutations": 798}, "at least 799"),
    ],
)
def test_bad_input(change, named):
    arguments = {"texts": ["a", "b", "c"]} | change
    texts = arguments.pop("texts")
    with pytest.raises(InputError, match=named):
        diagnose(texts, rng=np.random.default_rng(0), **arguments)


# --- what the order could follow ------------------------------------------------------------------


def test_codes_tell_types_apart_and_take_any_value():
    values = [1, "1", True, [1, "a"], 1, [1, "a"], None, float("nan"), float("nan")]
    np.testing.assert_array_equal(codes(values), [0, 1, 2, 3, 0, 3, 4, 5, 5])


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([True, False, True, True], True),
        ([["a"], ["b"], ["a"], ["b"]], True),
        ([0, 0, 0, 0], False),  # one value tells nothing
        ([0, 1, 2, 1], False),  # an answer of one's own rather than a class
        (list(range(20)) * 2, True),
        (list(range(21)) * 2, False),
    ],
)
def test_a_label_has_a_few_values_that_recur_in_every_record(values, found):
    labelled = [{"answer": value} for value in values]
    assert (label_codes(labelled) is not None) == found
    assert label_codes([*labelled, {}]) is None
    assert label_codes([{"topic": value} for value in values]) is None


def test_the_label_is_the_likeliest_field():
    labelled = [{"answer": a, "gold_label": g} for a, g in zip("xyxy", "ABBA", strict=True)]
    field, found = label_codes(labelled)
    assert field == "gold_label"
    np.testing.assert_array_equal(found, [0, 1, 1, 0])


def test_line_breaks_count_in_fields_else_inside_the_text():
    texts = ["Question: a\nAnswer: b\n"] * 4
    held = [{"q": "a\nb"}, {"q": "a"}, {"q": {"stem": ["x", "a\n"]}}, {"q": 3, "r": ("\n",)}]
    np.testing.assert_array_equal(span_lines(texts, held), [True, False, True, True])
    np.testing.assert_array_equal(span_lines(["a\n", "a\nb", "\na\n\n", ""], None), [0, 1, 0, 0])


def test_ids_shown_and_hidden():
    numbered = [
        {"id": 7, "key": "test/0030", "word": "six", "year": 1990, "note": "by 12"},
        {"id": 8, "key": "test/0020", "word": "two3", "year": 1990, "note": "by 13"},
        {"id": 9, "key": "test/0010", "word": "ten4", "year": 1990, "note": "by 14"},
    ]
    texts = ["Question in test/0030: 7?", "Question in test/0020: 70?", "Question (test/0010): 9?"]
    shown, hidden = number_columns(texts, numbered)
    assert {name: list(column) for name, column in shown.items()} == {
        "the number that the texts start with": [30, 20, 10],
        "field 'key'": [30, 20, 10],
    }
    assert {name: list(column) for name, column in hidden.items()} == {"field 'id'": [7, 8, 9]}


@pytest.mark.parametrize("value", [None, "", "nan", "inf", "a 5", "5 a", [1]])
def test_a_field_without_a_number_in_every_record_is_no_id(value):
    numbered = [{"id": 1}, {"id": 2}, {"id": value}]
    assert number_columns(["a", "b", f"{'x' * 21}3"], numbered) == ({}, {})


@given(st.lists(st.text(), min_size=1, max_size=5))
def test_any_text_has_features_of_length_one_or_none(texts):
    rows = tf_idf(texts)
    norms = np.sqrt(rows.multiply(rows).sum(axis=1)).ravel()
    assert np.isclose(norms, 1).astype(int).tolist() == np.asarray(norms > 0).astype(int).tolist()
    assert rows.shape[0] == len(texts)
