"""Forecasts against runs by a clock that advances with what the network reads alone."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from contamination.audit import Request
from contamination.audit.plan import Work
from contamination.scoring import agreement, prefix, speed
from contamination.scoring import job as scoring_job
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.testsets.item_sets import open_items
from contamination.testsets.sources import open_test_set
from fakes.reading_clock import reading_clock

CONTEXT = 512
PLAIN_TOKEN = 0.003  # seconds, of a token in a sequence
SHARED_TOKEN = 0.001  # of a token that shares its prefix with others


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    """Return a clock, in its only element, that stands still but while the network reads."""
    return reading_clock(monkeypatch, plain=PLAIN_TOKEN, shared=SHARED_TOKEN)


@pytest.fixture
def make_work(make_model, prose, tmp_path):
    """Return a function that makes the work of a request on made-up records."""
    path = tmp_path / "records.jsonl"
    lines = []
    for number, text in enumerate(prose[:32]):
        choices = [f"{name} of {number}" for name in ("house", "river", "cloud", "stone")]
        record = {"question": text[:60], "choices": choices, "answer": 1}
        lines.append(json.dumps(record | {"text": f"{number} {text[:60]}"}) + "\n")
    path.write_text("".join(lines))

    def work(**request) -> Work:
        scorer = TransformersScorer(
            ModelSource(str(make_model(CONTEXT)), precision="float32"), batch_tokens=1_024
        )
        asked = Request(directory=tmp_path / "stores", **request)
        open_set = open_test_set if asked.axis == "order" else open_items
        return Work(scorer, open_set(path), asked)

    return work


REQUESTS = [
    {"tests": ["successor"]},
    {"tests": ["sharded_exact"], "shards": 4, "permutations": 9},
    {"tests": ["sharded_exact"], "shards": 12},  # 26 orderings, of which two are different
    {"tests": ["permutation"], "permutations": 9},  # one sequence over many windows
    {"axis": "options"},
]


@pytest.mark.parametrize("request_", REQUESTS, ids=str)
def test_a_run_takes_as_long_as_forecast(make_work, clock, request_):
    work = make_work(**request_)
    plan = work.plan
    started = clock[0]
    work.fill()
    taken = clock[0] - started
    assert plan.seconds / 1.6 < taken < plan.seconds * 1.6
    assert plan.least_seconds < taken < plan.most_seconds


@pytest.mark.parametrize("request_", REQUESTS, ids=str)
def test_a_bar_is_full_when_everything_is_read(make_work, monkeypatch, request_):
    totals, updates = [], []

    class Bar:
        def __init__(self, *, total, **_):
            totals.append(total)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def update(self, tokens):
            updates.append(tokens)

    monkeypatch.setattr(scoring_job, "tqdm", Bar)
    make_work(**request_).fill()
    assert sum(updates) == totals[0] > 0


def test_a_forecast_of_half_of_the_work_takes_half_as_long(make_work, clock):
    work = make_work(tests=["successor"])
    (part,) = work.distinct_parts
    whole = work.plan.seconds
    half = replace(part, missing_share=0.5)
    assert work._sampled_pace(half, work.scorer).time.seconds == pytest.approx(whole / 2, rel=0.1)


def test_a_forecast_leaves_nothing_behind(make_work):
    """No store, and no size up to which sharing counts as tried: a run tries it as if alone."""
    work = make_work(tests=["successor"])
    assert work.plan.seconds > 0
    assert agreement.agreed_size(work.scorer) == agreement.UNTRIED
    assert not work.request.directory.exists()


def test_a_network_that_cannot_share_is_timed_without(make_work, monkeypatch, clock):
    work = make_work(tests=["successor"])

    def refuse(scorer, pieces):
        raise TypeError("no such keys")

    monkeypatch.setattr(prefix, "_run", refuse)
    plan = work.plan
    started = clock[0]
    work.fill()
    taken = clock[0] - started
    assert plan.seconds / 1.6 < taken < plan.seconds * 1.6


@pytest.mark.parametrize("rate", [100, 10_000, 1e9])  # tokens a second
def test_samples_take_about_a_second_at_most(monkeypatch, rate):
    """A slow model reads one or two small samples, a fast one no more than batches."""
    seconds = [0.0]
    sizes = []

    class Reader:
        @staticmethod
        def tokens_of(place):
            return 50

        @staticmethod
        def read_sample(places, tokens):
            sizes.append(tokens)
            seconds[0] += tokens / rate
            return tokens

    class Model:
        batch_tokens = 2_048

        def load(self):
            return None

    model = Model()
    places = [(0, index) for index in range(100_000)]
    job = SimpleNamespace(
        reader=Reader, places=places, tokens=[50] * len(places), alone=True, scorer=model
    )
    monkeypatch.setattr(speed.time, "perf_counter", lambda: seconds[0])
    predicted = speed.forecast(job, model, 1.0)
    assert predicted.seconds == pytest.approx(5_000_000 / rate)
    slowest_samples = 2 * speed.SMALLEST_SAMPLE / rate
    assert seconds[0] <= max(slowest_samples, 1.8)
    assert max(sizes) <= model.batch_tokens


def test_a_range_of_times_has_one_unit():
    from contamination.cli.report import duration_range

    assert duration_range(40.2, 91.7) == "40 to 92 s"
    assert duration_range(0.123, 4.96) == "0.12 to 5 s"
    assert duration_range(61, 7_100) == "1 to 120 min"
    assert duration_range(3_600, 720_000) == "1 to 200 h"
