import gc

import numpy as np
import pytest
import scipy.stats

from contamination.audit.diagnosis import TESTS
from contamination.audit.diagnostics import _Orders, _rows, diagnose
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


def test_same_generator_same_table(records):
    first, second, other = (diagnosis(records, seed=seed).table for seed in (0, 0, 1))
    assert first.equals(second) and not first.equals(other)


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
        orders = _Orders(random_orderings(bounds, 159, rng=rng), bounds)
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


def test_sorted_by_length(records):
    """With the fewest permutations that can reject."""
    found = diagnosis(sorted(records, key=lambda record: len(record["text"])), permutations=799)
    assert {"length_trend", "length_autocorrelation"} <= rejected(found)
    assert found.verdict == "order carries information"
    assert row(found, "length_trend")["observed"] == pytest.approx(1, abs=0.01)
    assert any(reason.startswith("length_trend: rank corr") for reason in found.reasons)


@pytest.mark.parametrize("kinds", [[False, True], [["é", 1], ["é", "1"]]], ids=["bool", "list"])
def test_blocks_of_labels_of_any_type(records, kinds):
    labelled = [record | {"label": kinds[record["label"]]} for record in records]
    found = diagnosis(sorted(labelled, key=lambda record: kinds.index(record["label"])))
    assert rejected(found) == {"label_runs"}
    assert row(found, "label_runs")["observed"] == pytest.approx(118 / 119)
    assert "'label'" in row(found, "label_runs")["reading"]


def test_alternating_labels(records):
    """A model can learn that labels take turns, too."""
    split = [[r for r in records if r["label"] is value] for value in (True, False)]
    turns = [record for pair in zip(*split, strict=False) for record in pair]
    found = diagnosis(turns)
    assert rejected(found) == {"label_runs"}
    assert row(found, "label_runs")["z"] < -5


def test_blocks_of_topics(records):
    found = diagnosis(sorted(records, key=lambda record: record["topic"]))
    assert "similarity" in rejected(found)
    assert row(found, "similarity")["observed"] > 2 * row(found, "similarity")["expected"]


def test_topics_that_take_turns():
    """Neighbours are less alike than by chance, and records three apart more."""
    topics = [make_records(np.random.default_rng(2), 30, [t]) for t in range(3)]
    found = diagnosis([record for three in zip(*topics, strict=True) for record in three])
    assert "similarity" in rejected(found)
    assert "3 place(s) apart" in row(found, "similarity")["reading"]


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


def test_duplicates_that_are_kept_apart(records):
    """A line that returns every other time, as where records are read by line."""
    found = diagnose(
        [line for text in texts_of(records[:40]) for line in ("Read this:", text)],
        rng=np.random.default_rng(0),
    )
    assert "duplicates" in rejected(found)
    assert row(found, "duplicates")["observed"] == 0


def test_near_duplicates_that_sit_together(records):
    varied = [{**record, "text": record["text"] + " maybe"} for record in records[:20]]
    beside = [record for pair in zip(records[:20], varied, strict=True) for record in pair]
    found = diagnosis(beside + records[20:80])
    assert "near_duplicates" in rejected(found)
    assert np.isnan(row(found, "duplicates")["p"])


def test_sorted_text(records):
    rising = sorted(records, key=lambda record: record["text"].casefold())
    for ordered, observed in ((rising, 1), (rising[::-1], 0)):
        found = diagnosis(ordered)
        assert "alphabetical" in rejected(found)
        assert row(found, "alphabetical")["observed"] == pytest.approx(observed)


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


@pytest.mark.parametrize("n", [2, 3, 6])
def test_too_few_records(n):
    found = diagnose([f"{'x' * i} y" for i in range(n)], rng=np.random.default_rng(0))
    assert found.verdict == "too few records"
    assert "more records" in found.reasons[0]


def test_few_orderings_in_short_shards():
    texts = texts_of(make_records(np.random.default_rng(0), 10))
    few = diagnose(texts, shards=5, rng=np.random.default_rng(0))  # 2^5 orderings
    assert few.verdict == "too few records"
    assert diagnose(texts, rng=np.random.default_rng(0)).verdict != "too few records"


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


def test_braces_and_unicode_in_readings():
    records = [{"text": "日本{}語" * (1 + i % 8), "{é}": i} for i in range(20)]
    assert "'{é}'" in row(diagnosis(records), "sequential_id")["reading"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"texts": ["a"]}, "1 record"),
        ({"texts": []}, "0 record"),
        ({"texts": "abc"}, "not a list of strings"),
        ({"texts": ["a", 1, "c"]}, "not a list of strings"),
        ({"records": [{}] * 2}, "2 records for 3 texts"),
        ({"records": ["a", "b", "c"]}, "not mappings"),
        ({"shards": 2}, "fewer than two per shard"),
        ({"alpha": 0.0}, "alpha is 0.0"),
        ({"alpha": 1.0}, "alpha is 1.0"),
        ({"permutations": 798}, "at least 799"),
        ({"permutations": 158, "alpha": 0.05}, "at least 159"),
    ],
)
def test_bad_input(change, message):
    arguments = {"texts": ["a", "b", "c"]} | change
    texts = arguments.pop("texts")
    with pytest.raises(InputError, match=message):
        diagnose(texts, rng=np.random.default_rng(0), **arguments)
