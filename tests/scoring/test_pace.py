"""Dry runs that follow from earlier runs, by a clock that advances with what is read alone."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contamination.audit import Request
from contamination.audit.plan import Work
from contamination.scoring import pace
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.testsets.sources import open_test_set
from fakes.reading_clock import reading_clock

CONTEXT = 512
TOKEN = 0.002  # seconds of the clock
REQUESTS = [
    {"tests": ["successor"]},
    {"tests": ["sharded_exact"], "shards": 4, "permutations": 9},
    {"tests": ["successor", "permutation"], "permutations": 9},
]


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path) -> Path:
    """Return the folder of paces, which is empty at first."""
    monkeypatch.setenv("CONTAMINATION_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "paces"


@pytest.fixture(autouse=True)
def clock(monkeypatch) -> list[float]:
    """Return a clock, in its only element, that stands still but while the network reads."""
    return reading_clock(monkeypatch, plain=TOKEN, shared=TOKEN)


@pytest.fixture
def make_work(make_model, prose, tmp_path):
    """Return a function that makes the work of a request on some records, a dry run by default."""

    def work(records: int = 32, *, dry: bool = True, batch_tokens: int = 512, **request) -> Work:
        path = tmp_path / f"{records}.jsonl"
        lines = []
        for number in range(records):
            text = f"{number} {prose[number % len(prose)][:60]}"
            lines.append(json.dumps({"text": text}) + "\n")
        path.write_text("".join(lines))
        source = ModelSource(str(make_model(CONTEXT)), precision="float32")
        scorer = TransformersScorer(source, batch_tokens=batch_tokens)
        asked = Request(directory=tmp_path / "stores", **request)
        return Work(scorer, open_test_set(path), asked, dry=dry)

    return work


def is_open(work: Work) -> bool:
    """Say whether the network of a work was loaded."""
    return "model" in vars(work.scorer)


def test_of_one_day_the_pace_of_most_work_is_kept(make_work, cache):
    def kept_after(records: int) -> float:
        make_work(records, dry=False, tests=["successor"]).fill()
        (file,) = cache.iterdir()
        return json.loads(file.read_text())["flops"]

    much = kept_after(32)
    assert kept_after(24) == much
    assert kept_after(40) > much
    (file,) = cache.iterdir()
    file.write_text(json.dumps(json.loads(file.read_text()) | {"date": "2000-01-01"}))
    assert kept_after(20) < much


@pytest.mark.parametrize("request_", REQUESTS, ids=str)
def test_a_second_dry_run_says_what_the_first_said_without_opening_the_network(make_work, request_):
    first = make_work(**request_)
    second = make_work(**request_)
    measured = first.plan
    today = datetime.now(UTC).date().isoformat()
    assert replace(measured, measured=today) == second.plan
    assert not is_open(second)


@pytest.mark.parametrize(
    ("of_24", "of_48"),
    [
        ({"tests": ["successor"]}, {"tests": ["successor"]}),
        ({"tests": ["sharded_exact"], "shards": 4}, {"tests": ["sharded_exact"], "shards": 8}),
    ],
    ids=str,
)
def test_a_dry_run_follows_from_a_run_of_another_set(make_work, clock, of_24, of_48):
    make_work(24, dry=False, **of_24).fill()
    dry = make_work(48, **of_48)
    plan = dry.plan
    assert not is_open(dry)
    started = clock[0]
    make_work(48, dry=False, **of_48).fill()
    taken = clock[0] - started
    assert plan.seconds / 1.6 < taken < plan.seconds * 1.6


@pytest.mark.parametrize(
    "other",
    [
        {"tests": ["permutation"], "permutations": 9},
        {"tests": ["sharded_exact"], "shards": 16},  # windows of another width
        {"tests": ["sharded_exact"], "shards": 4, "batch_tokens": 600},
    ],
    ids=str,
)
def test_work_of_another_kind_is_measured(make_work, other):
    _ = make_work(tests=["successor"]).plan
    _ = make_work(tests=["sharded_exact"], shards=4).plan
    work = make_work(**other)
    assert work.plan.measured is None
    assert is_open(work)


def test_a_run_measures_anew(make_work):
    _ = make_work(tests=["successor"]).plan
    assert make_work(tests=["successor"], dry=False).plan.measured is None


def test_less_than_a_batch_leaves_no_pace(make_work, cache):
    _ = make_work(tests=["successor"], batch_tokens=100_000).plan
    assert not cache.exists()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"flops": "many"}', "\0"])
def test_a_damaged_pace_is_measured_again(make_work, cache, content):
    _ = make_work(tests=["successor"]).plan
    (file,) = cache.iterdir()
    whole = file.read_text()
    file.write_text(content)
    assert make_work(tests=["successor"]).plan.measured is None
    assert json.loads(file.read_text()).keys() == json.loads(whole).keys()


def test_a_cache_that_is_no_folder_keeps_nothing_and_hinders_nothing(make_work, cache):
    cache.parent.write_text("a file")
    assert make_work(tests=["successor"]).plan.seconds > 0
    assert make_work(tests=["successor"]).plan.measured is None


def test_another_machine_has_a_pace_of_its_own(make_work, monkeypatch):
    _ = make_work(tests=["successor"]).plan
    monkeypatch.setattr(pace, "describe", str)
    assert make_work(tests=["successor"]).plan.measured is None
