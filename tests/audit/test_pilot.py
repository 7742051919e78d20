"""Planning from a pilot: what it scores, what it predicts, what it refuses."""

import json

import numpy as np
import pytest

from contamination.audit.pilot import plan_from_pilot
from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.scoring.store import open_store
from contamination.statistics import plan
from contamination.testsets.example_set import load_test_set


@pytest.fixture
def test_set(prose, tmp_path):
    path = tmp_path / "prose.jsonl"
    path.write_text("".join(json.dumps({"text": text[:30]}) + "\n" for text in prose[:24]))
    return load_test_set(path)


@pytest.fixture
def planned(model_directory, test_set, tmp_path):
    def run(**arguments):
        fixed = {"alpha": 0.05, "power": 0.8, "seed": 1, "directory": tmp_path, "name": "m"}
        return plan_from_pilot(TransformersScorer(model_directory), test_set, **fixed, **arguments)

    return run


def test_whole_orderings(planned, tmp_path):
    found = planned(test="sharded_exact", shards=4)
    store = open_store(tmp_path / "m" / "prose-pilot" / "orderings-004")
    assert len(store.header.example_tokens) == 16
    settings = {"tokens_per_shard": sum(store.header.example_tokens) / 4, "alpha": 0.05}
    rng = random_stream(1, "power plan", store.header.dataset_revision)
    assert found == plan(store.log_probs(10), **settings, power=0.8, rng=rng)
    assert found.pilot_shards == 4


def test_successors_cost_a_matrix_for_each_shard(planned, tmp_path):
    found = planned(test="successor", shards=2)
    store = open_store(tmp_path / "m" / "prose-pilot" / "successors-002")
    (design,) = found.designs
    if np.isfinite(design.shards):
        assert design.tokens == pytest.approx(design.shards * store.header.tokens_of(0) / 2)
    else:
        assert design.tokens == np.inf
    assert design.permutations == 10_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"test": "permutation", "shards": 4}, "a pilot needs one of sharded_t, sharded_exact"),
        ({"test": "min_p", "shards": 4}, "a pilot needs one of sharded_t, sharded_exact"),
        ({"test": "nothing", "shards": 4}, "test is 'nothing'"),
        ({"test": "successor", "shards": 3}, "fewer than 30 records"),
    ],
)
def test_bad_requests(planned, arguments, message):
    with pytest.raises(InputError, match=message):
        planned(**arguments)
