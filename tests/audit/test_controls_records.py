import itertools
from operator import itemgetter

import numpy as np
import pytest
from scipy.stats import spearmanr

from contamination.audit.controls.diagnosis import MOST_DIAGNOSTICS, DiagnosticRow, judge
from contamination.audit.controls.records import (
    codes,
    diagnose_order,
    label_codes,
    record_rows,
    shown_numbers,
)
from contamination.errors import InputError
from contamination.statistics.exchangeability import random_orderings
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.orderings import shard_bounds
from fakes.diagnosed import rejected, row
from fakes.level import check_level

TOPICS = [
    ["planet", "orbit", "comet", "telescope", "eclipse", "gravity", "asteroid", "lunar"],
    ["butter", "flour", "oven", "sugar", "recipe", "dough", "vanilla", "whisk"],
    ["senate", "ballot", "treaty", "governor", "election", "statute", "congress", "veto"],
]


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


def diagnose(texts, records=(), *, seed=0, shards=1):
    test_set = ExampleSet("made up", tuple(texts), "text/1", "r", tuple(records))
    return diagnose_order(test_set, seed=seed, shards=shards)


def diagnosis(records, **options):
    return diagnose(texts_of(records), records, **options)


@pytest.fixture(scope="module")
def records():
    return make_records(np.random.default_rng(1), 120)


def test_shuffled_records_are_quiet(records):
    found = diagnosis(records)
    assert found.verdict == "quiet"
    assert rejected(found) == set()
    assert len(found.table) == MOST_DIAGNOSTICS - 1


@pytest.mark.parametrize("shards", [1, 5])
def test_calibrated_on_exchangeable_records(shards):
    """Every diagnostic alone, and the verdict over all of them, keep their level."""
    rng = np.random.default_rng(shards)
    n = 20
    bounds = shard_bounds(n, shards)
    alone = {}
    together = []
    for _ in range(150):
        records = make_records(rng, n - 5)
        records += records[:3]  # duplicates, and two records with a near-duplicate
        records += [{**r, "text": r["text"] + " again"} for r in records[4:6]]
        numbers = rng.permutation(n)
        order = rng.permutation(n)
        records = [{**records[i], "id": int(numbers[i])} for i in order]
        texts = [f"{record['id']} {record['text']}" for record in records]
        orders = (random_orderings(bounds, 159, rng=rng), bounds)
        rows = record_rows(texts, records, orders)
        p = {r.diagnostic: r.p for r in rows if r.p == r.p}
        for name, value in p.items():
            alone.setdefault(name, []).append(value)
        together.append(min(p.values()) * len(p))
    assert len(alone) >= MOST_DIAGNOSTICS - 2
    check_level(together, 0.05, reached=False)
    continuous = ("similarity", "length_autocorrelation", "length_trend", "sequential_id")
    for name, p in alone.items():
        check_level(p, 0.05, reached=name in continuous)


def taking_turns(records):
    right = [record for record in records if record["label"]]
    wrong = [record for record in records if not record["label"]]
    return list(itertools.chain.from_iterable(zip(right, wrong, strict=False)))


def with_twins(records):
    varied = [{**record, "text": record["text"] + " maybe"} for record in records[:20]]
    pairs = zip(records[:20], varied, strict=True)
    return [*itertools.chain.from_iterable(pairs), *records[20:80]]


def with_a_line_between(records):
    line = {**records[0], "text": "Read:"}
    arranged = []
    for record in records[:40]:
        arranged += [line, record]
    return arranged


def by(key):
    return lambda found: sorted(found, key=key)


PLANTED = {
    "shortest first": (
        by(lambda record: len(record["text"])),
        {"length_trend": 1, "length_autocorrelation": None},
    ),
    "labels in blocks": (by(itemgetter("label")), {"label_runs": 118 / 119}),
    "labels take turns": (taking_turns, {"label_runs": 0}),
    "topics in blocks": (by(itemgetter("topic")), {"similarity": None}),
    "rising text": (by(lambda record: record["text"].casefold()), {"alphabetical": 1}),
    "twins side by side": (with_twins, {"near_duplicates": None}),
    "a line returns every other time": (with_a_line_between, {"duplicates": 0}),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_each_kind_of_order_is_found_by_its_diagnostic(records, planted):
    arrange, expected = PLANTED[planted]
    found = diagnosis(arrange(records))
    assert expected.keys() <= rejected(found)
    assert found.verdict == "order carries information"
    for name, observed in expected.items():
        assert any(reason.startswith(f"{name}: ") for reason in found.reasons)
        if observed is not None:
            assert row(found, name)["observed"] == pytest.approx(observed, abs=0.01)


def test_sharded_null_ignores_blocks_longer_than_a_shard():
    """What a sharded test cannot see is no objection to it."""
    topics = [make_records(np.random.default_rng(3), 40, [t]) for t in range(3)]
    records = list(itertools.chain.from_iterable(topics))
    assert "similarity" in rejected(diagnosis(records))
    assert diagnosis(records, shards=6).verdict == "quiet"
    pairs = []
    for record in topics[0]:
        pairs += [record, {**record, "text": record["text"] + " ."}]
    assert "near_duplicates" in rejected(diagnosis(pairs, shards=10))


def test_duplicates_that_sit_together(records):
    twice = []
    for record in records[:60]:
        twice += [record] * (2 if record["topic"] == 0 else 1)
    found = diagnosis(twice)
    assert rejected(found) & {"duplicates", "near_duplicates"} == {"duplicates"}
    far = diagnosis(records[:60] + records[:60], seed=2)
    assert "duplicates" not in rejected(far)  # reported, and no reason
    assert row(far, "duplicates")["reading"].startswith("60 of 120 records")
    share = (len(twice) - 60) / (len(twice) - 1)
    assert row(found, "duplicates")["observed"] == pytest.approx(share)


def test_ids_matter_only_in_the_text(records):
    numbered = [{**record, "id": f"test/{i}"} for i, record in enumerate(records)]
    hidden = diagnosis(numbered)
    assert hidden.verdict == "quiet"
    assert np.isnan(row(hidden, "sequential_id")["p"])
    shown = [{**r, "text": f"({r['id']}) {r['text']}"} for r in numbered]
    for found, observed in ((diagnosis(shown), 1), (diagnosis(shown[::-1]), -1)):
        assert "sequential_id" in rejected(found)
        assert row(found, "sequential_id")["observed"] == pytest.approx(observed)


@pytest.mark.parametrize("shards", [1, 12])
def test_years_that_follow_the_order_are_told_and_judge_nothing(records, shards):
    rng = np.random.default_rng(0)
    in_order = [f"{r['text']} of {1800 + i}" for i, r in enumerate(records)]
    told = diagnose(in_order, shards=shards)
    assert "rank correlation +1.00" in told.remark
    assert told.verdict == diagnosis(records, shards=shards).verdict
    assert "rank correlation -1.00" in diagnose(in_order[::-1], shards=shards).remark
    assert diagnose(rng.permutation(in_order).tolist(), shards=shards).remark == ""
    few = [text if i % 2 else "no year" for i, text in enumerate(in_order)]
    assert diagnose(few, shards=shards).remark == ""


@pytest.mark.parametrize(
    ("p", "log_orderings", "verdict", "named"),
    [
        ((0.2, 0.011, 1.0), 99, "quiet", {"b"}),
        ((0.006, 0.004, 1.0), 99, "suspicious", {"a", "b"}),  # 0.012 after Holm's correction
        ((0.2, 0.003, 1.0), 99, "order carries information", {"b"}),
        ((0.0045, 0.003, 1.0), 99, "order carries information", {"a", "b"}),
        ((0.2, 0.003, 1.0), 6, "too few records", set()),  # of 403 orderings
        ((), 99, "too few records", set()),
    ],
)
def test_the_verdict_follows_the_corrected_p_values(p, log_orderings, verdict, named):
    rows = [DiagnosticRow("silent", reading="it does not apply")]
    rows += [DiagnosticRow(name, p=each) for name, each in zip("abc", p, strict=False)]
    found = judge(rows, log_orderings, "order", {})
    assert found.verdict == verdict
    reasons = "\n".join(found.reasons)
    mentioned = {name for name in "abc" if f"{name}:" in reasons or f"({name})" in reasons}
    assert mentioned == named
    standing_out = {name for name in "abc" if f"{name}, p = " in found.standing_out}
    assert standing_out == {name for name, each in zip("abc", p, strict=False) if each <= 0.01}


@pytest.mark.parametrize("text", ["", "same\n"])
@pytest.mark.parametrize("shards", [1, 4])
def test_records_that_do_not_differ_are_quiet(text, shards):
    found = diagnose([text] * 12, shards=shards)
    assert found.verdict == "quiet"
    assert (found.table["p"].dropna() == 1).all()


def test_too_few_orderings():
    texts = texts_of(make_records(np.random.default_rng(0), 10))
    for few in (diagnose(texts[:3]), diagnose(texts, shards=5)):  # 2^5 orderings
        assert few.verdict == "too few records"
        assert "more records" in few.reasons[0]
    assert diagnose(texts).verdict != "too few records"
    with pytest.raises(InputError, match="2 shards"):
        diagnose(texts[:3], shards=2)


def test_codes_tell_types_apart_and_take_any_value():
    values = [1, "1", True, [1, "a"], 1, [1, "a"], None, float("nan"), float("nan")]
    np.testing.assert_array_equal(codes(values), [0, 1, 2, 3, 0, 3, 4, 5, 5])


def test_a_label_has_a_few_values_that_recur_in_every_record():
    recurs = [[True, False, True, True], [["a"], ["b"], ["a"], ["b"]], list(range(20)) * 2]
    others = [[0, 0, 0, 0], [0, 1, 2, 1], list(range(21)) * 2]  # one value, own answers, too many
    for values in recurs + others:
        labelled = [{"answer": value, "topic": i % 2} for i, value in enumerate(values)]
        assert (label_codes(labelled) is not None) == (values in recurs)
        assert label_codes([*labelled, {"topic": 0}]) is None


def test_ids_that_the_texts_show():
    numbered = [
        {"id": 7, "key": "test/0030", "word": "six", "year": 1990, "note": "by 12"},
        {"id": 8, "key": "test/0020", "word": "two3", "year": 1990, "note": "by 13"},
        {"id": 9, "key": "test/0010", "word": "ten4", "year": 1990, "note": "by 14"},
    ]
    texts = ["Question in test/0030: 7?", "Question in test/0020: 70?", "Question (test/0010): 9?"]
    found = shown_numbers(texts, numbered)
    assert [*found] == ["the number that the texts start with", "field 'key'"]
    assert all(column.tolist() == [30, 20, 10] for column in found.values())
    for value in (None, "", "nan", "inf", "a 5", "5 a", [1]):  # no number in every record
        numbered = [{"id": 1}, {"id": 2}, {"id": value}]
        assert shown_numbers([f"{value}", "1 2", f"{'x' * 21}3"], numbered) == {}


def test_of_several_ids_the_choice_is_paid_for():
    """Over all orders of four records, the larger of two trends is compared with the larger."""
    ids = np.array([[10, 20, 30, 40], [21, 11, 41, 31]])
    records = [{"first": one, "second": f"b/{other}"} for one, other in ids.T.tolist()]
    texts = [f"See {each['first']} and {each['second']}." for each in records]
    orders = np.array(list(itertools.permutations(range(4))), dtype=np.int32)
    rows = record_rows(texts, records, (orders, [(0, 4)]))
    (found,) = [each for each in rows if each.diagnostic == "sequential_id"]
    trends = []
    for column in ids:
        trends.append([spearmanr(range(4), column[order])[0] for order in orders])
    largest = np.abs(trends).max(axis=0)
    assert found.p == np.mean(largest >= largest[0] - 1e-9)
    assert found.p > np.mean(np.abs(trends[0]) >= 1 - 1e-9)
