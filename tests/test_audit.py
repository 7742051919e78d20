"""One call from a model and a file to a p-value: what it finds, keeps and refuses."""

import json
from dataclasses import replace

import numpy as np
import pytest

from contamination.audit import audit, label
from contamination.audit_plan import plan_audit
from contamination.engine.local import TransformersScorer
from contamination.errors import InputError
from contamination.scoring import score
from contamination.statistics import (
    centred_successors,
    permutation_test,
    recombination_test,
    sharded_t_test,
    successor_moments,
    successor_scores,
)
from contamination.store import open_store
from contamination.test_set import load_test_set


@pytest.fixture
def test_set(prose, tmp_path):
    path = tmp_path / "prose.jsonl"
    path.write_text("".join(json.dumps({"text": text[:40]}) + "\n" for text in prose[:20]))
    return load_test_set(path)


@pytest.fixture
def scorer(model_directory):
    return TransformersScorer(model_directory)


def test_the_default_is_the_successor_test(scorer, test_set, tmp_path):
    found = audit(scorer, test_set, directory=tmp_path)
    assert [result.test for result in found.results] == ["successor"]


def test_three_lines_give_the_p_value_of_the_parts(model_directory, test_set, tmp_path):
    found = audit(
        model_directory, test_set, tests=["exact"], permutations=6, directory=tmp_path / "stores"
    )
    store = score(
        test_set,
        TransformersScorer(model_directory),
        tmp_path / "by-hand",
        model="x",
        shards=5,
        permutations=6,
        seed=0,
    )
    (result,) = found.results
    assert result.p == recombination_test(store.log_probs(6)).p
    assert (result.test, result.shards, result.permutations) == ("exact", 5, 6)
    assert found.tokens_scored == 7 * sum(store.header.example_tokens)
    assert f"p = {result.p:.3g}" in found.summary()


def test_every_test_reads_its_own_store(scorer, test_set, tmp_path):
    found = audit(
        scorer,
        test_set,
        tests=["permutation", "sharded_t", "exact"],
        shards=4,
        permutations=5,
        directory=tmp_path,
        name="mine",
    )
    by_hand = {
        shards: score(
            test_set,
            scorer,
            tmp_path / "mine" / "prose" / f"orderings-{shards:03d}",
            model="mine",
            shards=shards,
            permutations=5,
            seed=0,
        ).log_probs(5)
        for shards in (1, 4)
    }
    expected = [
        permutation_test(by_hand[1][0]).p,
        sharded_t_test(by_hand[4]).p,
        recombination_test(by_hand[4]).p,
    ]
    assert [result.p for result in found.results] == expected
    assert [store.shards for store in found.plan.stores] == [1, 4, 4]


def test_the_successor_test_reads_pairs(scorer, test_set, tmp_path):
    found = audit(scorer, test_set, tests=["successor"], directory=tmp_path, name="mine")
    store = open_store(tmp_path / "mine" / "prose" / "successors-002")
    matrices = [store.successors(shard, 32) for shard in range(2)]
    assert all(matrix.shape == (10, 10) for matrix in matrices)
    # Ten thousand of the 10! orderings of each shard stand for all of them.
    z = [successor_test_z(matrix) for matrix in matrices]
    (result,) = found.results
    assert result.test == "successor"
    assert result.permutations == 10_000
    assert result.statistic == pytest.approx(sum(z), abs=0.1)
    assert found.tokens_scored == found.plan.work.scored


def successor_test_z(matrix):
    centred = centred_successors(matrix)
    mean, variance = successor_moments(centred)
    return (successor_scores(centred, [range(10)])[0] - mean) / variance**0.5


def test_the_verdict_on_the_order_stands_beside_the_p_value(scorer, tmp_path):
    path = tmp_path / "sorted.txt"
    path.write_text("".join(f"{'word ' * n}\n" for n in range(1, 41)))
    found = audit(scorer, path, tests=["exact"], permutations=2, directory=tmp_path)
    assert found.diagnosis.verdict == "order carries information"
    assert "order of the records: order carries information" in found.summary()
    assert found.as_dict()["diagnosis"]["verdict"] == "order carries information"


def test_a_second_audit_scores_nothing(scorer, test_set, tmp_path, monkeypatch):
    first = audit(scorer, test_set, directory=tmp_path, permutations=4)
    assert first.tokens_scored == first.plan.missing == first.plan.work.scored
    assert first.plan.seconds > 0
    monkeypatch.setattr(
        TransformersScorer, "token_logprobs", lambda *_: pytest.fail("scored again")
    )
    again = audit(TransformersScorer(scorer.source), test_set, directory=tmp_path, permutations=4)
    assert again.tokens_scored == 0
    assert again.plan.seconds is None
    assert again.results[0].p == first.results[0].p


def test_more_permutations_score_only_what_is_missing(scorer, test_set, tmp_path):
    first = audit(scorer, test_set, tests=["exact"], directory=tmp_path, permutations=4)
    more = audit(scorer, test_set, tests=["exact"], directory=tmp_path, permutations=9)
    assert more.tokens_scored == first.tokens_scored  # 5 orderings stored, 5 more
    assert more.plan.flops == pytest.approx(first.plan.flops)


@pytest.mark.parametrize(
    ("examples", "fours", "tens"), [(20, 5, 2), (19, 4, 1), (7, 1, 1), (3, 1, 1)]
)
def test_shards_are_chosen_to_hold_four_or_ten(scorer, test_set, tmp_path, examples, fours, tens):
    smaller = replace(test_set, examples=test_set.examples[:examples])
    tests = ["exact", "successor"]
    plan = plan_audit(scorer, smaller, tests=tests, directory=tmp_path, name="m")
    assert [store.shards for store in plan.stores] == [fours, tens]


def test_many_examples_make_fifty_shards_of_whole_orderings(scorer, test_set, tmp_path):
    larger = replace(test_set, examples=test_set.examples * 30)
    tests = ["exact", "successor"]
    plan = plan_audit(scorer, larger, tests=tests, directory=tmp_path, name="m")
    assert [store.shards for store in plan.stores] == [50, 60]


def test_json_holds_what_a_reader_needs(scorer, test_set, tmp_path):
    found = audit(scorer, test_set, permutations=3, directory=tmp_path, name="org/model:v1")
    told = json.loads(json.dumps(found.as_dict()))
    assert told["results"][0]["log10_p"] == pytest.approx(np.log10(told["results"][0]["p"]))
    assert told["model_revision"] == scorer.revision
    assert told["dataset_revision"] == test_set.revision
    assert told["plan"]["work"]["scored"] == found.tokens_scored
    assert told["stores"] == [str(tmp_path / "org-model-v1" / "prose" / "successors-002")]


def test_labels_are_short_and_hub_ids_stay(model_directory):
    assert label(str(model_directory)) == model_directory.name
    assert label("org/model") == "org/model"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tests": ["exakt"]}, "unknown test 'exakt': choose from successor, exact"),
        ({"permutations": 0}, "permutations is 0: give at least 1"),
        ({"shards": 11, "tests": ["exact"]}, "use at most 10 shards"),
        ({"shards": 7}, "fewer than 3 per shard for 7 .* at most 6 shards"),
    ],
)
def test_bad_requests_are_refused_before_scoring(
    scorer, test_set, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.setattr(TransformersScorer, "token_logprobs", lambda *_: pytest.fail("scored"))
    with pytest.raises(InputError, match=message):
        audit(scorer, test_set, directory=tmp_path / "stores", **arguments)
    assert not (tmp_path / "stores").exists()


def test_successors_longer_than_the_context_are_refused_before_scoring(scorer, prose, tmp_path):
    path = tmp_path / "long.txt"
    path.write_text("".join(text.replace("\n", " ") + "\n" for text in prose[:12]))
    message = "reads up to 32 tokens of an example at once, and the context is 16"
    with pytest.raises(InputError, match=message):
        audit(scorer, path, directory=tmp_path / "stores")
    assert not (tmp_path / "stores").exists()
