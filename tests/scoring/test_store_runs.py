import json
from datetime import datetime
from importlib.metadata import version

import pytest
import torch

from contamination.scoring.queue import WorkQueue
from contamination.scoring.store import Store
from contamination.scoring.store_runs import device_of, recorded
from fakes.made_up_scorer import Breakdown, MadeUpScorer
from fakes.made_up_store import HEADER, contents, units


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "store", HEADER)


@pytest.fixture
def scorer(tokenizer) -> MadeUpScorer:
    scorer = MadeUpScorer(tokenizer)
    scorer.device, scorer.dtype = torch.device("cpu"), torch.bfloat16
    return scorer


def records(store) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(store.directory.glob("run-*.json"))]


def test_a_record_says_what_ran_and_what_came_of_it(store, scorer):
    store.append(units(2)[:1])
    with recorded(store, scorer, WorkQueue()):
        added = store.append(units(2)[1:4])
    (record,) = records(store)
    assert record.pop("seconds") > 0
    started = datetime.fromisoformat(record.pop("started"))
    assert started.utcoffset().total_seconds() == 0
    assert record.pop("packages")["torch"] == version("torch")
    assert record.pop("python")
    assert record == {
        "processes": 1,
        "lost": [],
        "devices": [device_of(scorer)],
        "precision": "bfloat16",
        "parts": [added.name],
        "tokens": 6 + 6 + 6,
    }


def test_a_run_that_breaks_down_says_what_it_had_finished(store, scorer):
    with pytest.raises(Breakdown), recorded(store, scorer, WorkQueue()):
        store.append(units(2)[:1])
        raise Breakdown
    (record,) = records(store)
    assert record["tokens"] == 6
    assert record["seconds"] > 0


def test_a_run_that_is_killed_has_left_its_beginning(store, scorer):
    with recorded(store, scorer, WorkQueue()):
        (record,) = records(store)
    assert record["seconds"] is None
    assert record["devices"] == [device_of(scorer)]


def test_every_run_has_a_record_of_its_own(store, scorer):
    for _ in range(3):
        with recorded(store, scorer, WorkQueue()):
            pass
    assert len(records(store)) == 3


def test_several_processes_write_one(store, scorer):
    others = WorkQueue()
    others.rank = 1
    with recorded(store, scorer, others):
        pass
    assert records(store) == []
    first = WorkQueue()
    first.size = 3
    with recorded(store, scorer, first):
        first.lost, first.notes = {2}, {0: device_of(scorer), 1: "1 x another"}
    (record,) = records(store)
    assert (record["processes"], record["lost"]) == (3, [2])
    assert record["devices"] == sorted(["1 x another", device_of(scorer)])


def test_neither_parts_nor_header_depend_on_it(store, scorer, tmp_path):
    with recorded(store, scorer, WorkQueue()):
        store.append(units(2))
    other = Store(tmp_path / "other", HEADER)
    other.append(units(2))
    assert contents(store.directory) == contents(other.directory)
    assert store.done() == other.done()


def test_it_names_no_path_of_the_machine(store, scorer):
    with recorded(store, scorer, WorkQueue()):
        store.append(units(2))
    (path,) = store.directory.glob("run-*.json")
    assert str(store.directory.parent) not in path.read_text()
    assert "/" not in json.dumps(json.loads(path.read_text()) | {"devices": []})


def test_a_model_that_runs_elsewhere_has_no_device_here(tokenizer):
    assert device_of(MadeUpScorer(tokenizer)) == "elsewhere"
