"""One call from a model and a file to a p-value: what it finds, keeps and refuses."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from contamination.audit import Request, audit
from contamination.audit.battery import DEFAULT_TESTS, OPTION_TEST
from contamination.audit.compressor import compressor_test
from contamination.audit.diagnostics import diagnose_order
from contamination.audit.verdict import audit_until, plan_audit
from contamination.errors import InputError
from contamination.scoring.local import TransformersScorer
from contamination.scoring.score import score
from contamination.scoring.store import Store, open_store
from contamination.statistics import (
    anytime_test,
    centred_successors,
    permutation_test,
    sampled_successor_scores,
    sharded_exact_test,
    sharded_t_test,
)
from contamination.testsets import tokens
from contamination.testsets.example_set import load_test_set
from contamination.testsets.sources import open_test_set
from fakes.made_up_scorer import MadeUpScorer
from fakes.remembering_scorer import Remembers, made_up_set


@pytest.fixture
def test_set(prose, tmp_path):
    path = tmp_path / "prose.jsonl"
    path.write_text("".join(json.dumps({"text": text[:40]}) + "\n" for text in prose[:20]))
    return load_test_set(path)


@pytest.fixture
def scorer(model_directory):
    return TransformersScorer(model_directory)


def score_by_hand(scorer, test_set, directory, *, shards, permutations):
    counts = {"shards": shards, "permutations": permutations}
    return score(test_set, scorer, directory, model="mine", seed=0, **counts)


def test_three_lines_give_the_p_value_of_the_parts(model_directory, test_set, tmp_path):
    request = Request(tests=["sharded_exact"], permutations=6, directory=tmp_path / "stores")
    found = audit(model_directory, test_set, request)
    scorer = TransformersScorer(model_directory)
    store = score_by_hand(scorer, test_set, tmp_path / "by-hand", shards=5, permutations=6)
    (result,) = found.results
    # Other batches round otherwise.
    assert result.p == pytest.approx(sharded_exact_test(store.log_probs(6)).p, rel=1e-9)
    assert (result.test, result.shards, result.permutations) == ("sharded_exact", 5, 6)
    assert found.tokens_scored == 7 * sum(store.header.example_tokens)
    assert f"p = {result.p:.3g}" in found.summary()


def test_every_test_reads_its_own_store(scorer, test_set, tmp_path):
    tests = ["permutation", "sharded_t", "sharded_exact"]
    request = Request(tests, shards=4, permutations=5, directory=tmp_path, name="mine")
    found = audit(scorer, test_set, request)
    expected = []
    for shards, tested in ((1, permutation_test), (4, sharded_t_test), (4, sharded_exact_test)):
        where = tmp_path / "mine" / "prose" / f"orderings-{shards:03d}"
        store = score_by_hand(scorer, test_set, where, shards=shards, permutations=5)
        log_probs = store.log_probs(5)
        expected.append(tested(log_probs[0] if shards == 1 else log_probs).p)
    assert [result.p for result in found.results] == expected
    assert [store.shards for store in found.plan.stores] == [1, 4, 4]


def test_the_successor_test_reads_pairs(scorer, test_set, tmp_path):
    found = audit(scorer, test_set, Request(directory=tmp_path, name="mine"))
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
    rng = np.random.default_rng(1)
    scores = sampled_successor_scores(centred_successors(matrix), resamples=20_000, rng=rng)
    return (scores[0] - scores.mean()) / scores.std()


# --- min-p, small sets, long examples -------------------------------------------------------------


def test_min_p_reads_one_store_of_whole_successors(tokenizer, tmp_path):
    test_set = made_up_set(30, words=8)
    request = Request(["min_p", "successor"], directory=tmp_path, name="m")
    found = audit(Remembers(tokenizer, test_set, 12.0), test_set, request)
    best, default = found.results
    assert best.log10_p < -3
    assert best.names == ("successor_8", "successor_16", "successor_32", "successor_all")
    assert found.stores == tuple(
        tmp_path / "m" / "words" / name for name in ("successors-003-all", "successors-003")
    )
    whole = open_store(found.stores[0])
    assert whole.header.tokens_per_example is None
    assert whole.header.tokens_of(0) == 10 * sum(whole.header.example_tokens)
    told = found.as_dict()["results"]
    assert told[0]["best"] == best.best in best.names
    assert set(told[1]) == {"test", "statistic", "p", "log10_p", "shards", "permutations"}
    # The default is one of the four, up to the orderings that were sampled.
    assert best.marginals[2].log10_p == pytest.approx(default.log10_p, abs=0.4)


def without_ends(test_set):
    """Examples that end in a number: the made-up model heeds the last token before an example."""
    return replace(test_set, examples=tuple(t.removesuffix(".\n") for t in test_set.examples))


@pytest.mark.parametrize(("count", "test"), [(6, "successor"), (12, "successor"), (9, "min_p")])
def test_small_sets_are_one_shard_and_are_found(tokenizer, tmp_path, count, test):
    test_set = made_up_set(count)
    request = Request([test], directory=tmp_path / "seen")
    (seen,) = audit(Remembers(tokenizer, test_set, 40.0), test_set, request).results
    assert seen.shards == 1
    # Of 6! orderings one is as good as the canonical one, of 9! and 12! hardly one is drawn.
    assert seen.p < (0.01 if count == 6 else 0.001)
    request = Request([test], directory=tmp_path / "unseen")
    (unseen,) = audit(MadeUpScorer(tokenizer), without_ends(test_set), request).results
    assert 0.01 < unseen.p < 1


# --- a budget of tokens ---------------------------------------------------------------------------


@pytest.mark.parametrize("test", ["successor", "min_p"])
@pytest.mark.parametrize(("passes", "size"), [(3.9, 3), (9.8, 9), (99, 60)])
def test_a_budget_takes_the_largest_shards_within_it(tokenizer, tmp_path, test, passes, size):
    test_set = made_up_set(60, words=12)
    lengths = [len(tokenizer(text)["input_ids"]) for text in test_set.examples]
    budget = int(passes * sum(lengths))
    request = Request([test], budget=budget, directory=tmp_path)
    plan = plan_audit(MadeUpScorer(tokenizer), test_set, request)
    (store,) = plan.stores
    assert store.shards == -(-60 // size)
    assert plan.work.read <= budget
    if size < 60:  # one example more would have cost too much
        larger = replace(store, shards=60 // (size + 1))
        assert larger.work(lengths, 1, 1000).read > budget


def test_a_budget_that_no_shards_fit_is_told_what_would(tokenizer, tmp_path):
    test_set = made_up_set(5)  # in shards of three at least: one of five
    with pytest.raises(InputError, match="at least") as error:
        plan_audit(MadeUpScorer(tokenizer), test_set, Request(budget=60, directory=tmp_path))
    least = int(re.search(r"at least ([\d,]+)", str(error.value))[1].replace(",", ""))
    plan = plan_audit(MadeUpScorer(tokenizer), test_set, Request(budget=least, directory=tmp_path))
    assert plan.stores[0].shards == 1
    with pytest.raises(InputError, match="at least"):
        plan_audit(MadeUpScorer(tokenizer), test_set, Request(budget=least - 1))


# --- what the order gives away --------------------------------------------------------------------


def test_a_compressor_stands_beside_every_test(scorer, test_set, tmp_path):
    tests = ["successor", "sharded_exact", "sharded_t", "min_p"]
    found = audit(scorer, test_set, Request(tests, permutations=4, directory=tmp_path))
    pairs, whole, whole_again, pairs_again = found.control
    assert whole is whole_again and pairs is pairs_again
    expected = {
        kind: compressor_test(test_set, kind=kind, shards=shards, permutations=4, seed=0)
        for kind, shards in (("successors", 2), ("orderings", 5))
    }
    assert (pairs.p, whole.p) == (expected["successors"].p, expected["orderings"].p)
    told = [control["p"] for control in found.as_dict()["control"]]
    assert told == [pairs.p, whole.p, whole.p, pairs.p]
    assert f"under a compressor, p = {pairs.p:.3g}" in found.summary()


def test_the_diagnosis_permutes_what_the_test_permutes(scorer, tmp_path):
    """Two blocks of a topic each: the permutation test mixes them, the tests on shards do not."""
    rng, path = np.random.default_rng(0), tmp_path / "blocks.txt"
    topics = ("lamp stone orbit", "maple tower river")
    words = [rng.choice(topic.split(), 12) for topic in topics for _ in range(20)]
    path.write_text("".join(f"{' '.join(each)}\n" for each in words))
    request = Request(["permutation", "sharded_exact"], permutations=3, directory=tmp_path)
    found = audit(scorer, path, request)
    assert (
        [each.counts["shards"] for each in found.diagnosis]
        == [r.shards for r in found.results]
        == [1, 10]
    )
    assert [each.verdict for each in found.diagnosis] == ["order carries information", "quiet"]
    assert "order of the records in the whole set: order carries information" in found.summary()
    assert "order of the records within 10 shards: quiet" in found.summary()
    test_set = open_test_set(path)
    for each in found.diagnosis:
        alone = diagnose_order(test_set, seed=0, shards=each.counts["shards"])
        pd.testing.assert_frame_equal(each.table, alone.table)


def test_a_second_audit_scores_nothing(scorer, test_set, tmp_path, monkeypatch):
    request = Request(directory=tmp_path, permutations=4)
    first = audit(scorer, test_set, request)
    assert first.tokens_scored == first.plan.missing == first.plan.work.scored
    assert first.plan.seconds > 0
    monkeypatch.setattr(
        TransformersScorer, "token_logprobs", lambda *_: pytest.fail("scored again")
    )
    again = audit(TransformersScorer(scorer.source), test_set, request)
    assert again.tokens_scored == 0
    assert again.plan.seconds is None
    assert again.results[0].p == first.results[0].p


def test_more_permutations_score_only_what_is_missing(scorer, test_set, tmp_path):
    first, more = (
        audit(scorer, test_set, Request(["sharded_exact"], directory=tmp_path, permutations=m))
        for m in (4, 9)
    )
    assert more.tokens_scored == first.tokens_scored  # 5 orderings stored, 5 more
    assert more.plan.flops == pytest.approx(first.plan.flops)


@pytest.mark.parametrize(
    ("count", "fours", "tens"), [(20, 5, 2), (19, 4, 1), (7, 1, 1), (3, 1, 1), (600, 50, 60)]
)
def test_shards_hold_four_or_ten_and_orderings_make_fifty(
    scorer, test_set, tmp_path, count, fours, tens
):
    resized = replace(test_set, examples=(test_set.examples * 30)[:count])
    plan = plan_audit(scorer, resized, Request(["sharded_exact", "successor"], directory=tmp_path))
    assert [store.shards for store in plan.stores] == [fours, tens]


# --- stopping early -------------------------------------------------------------------------------


@pytest.fixture
def until(tokenizer, tmp_path):
    def run(nats: float, **arguments):
        words = made_up_set(40)
        scorer = Remembers(tokenizer, words, nats)
        alpha = arguments.pop("alpha", 0.01)
        fixed = {"tests": ["sharded_exact"], "directory": tmp_path, "name": "m"}
        found = audit_until(scorer, words, Request(**(fixed | arguments)), alpha=alpha)
        return found, scorer

    return run


def test_strong_evidence_stops_early_and_goes_on_where_it_stopped(until):
    found, scorer = until(40.0, permutations=10)
    (first,) = found.results
    assert first.stopped_at == first.shards < 10
    assert first.p <= 0.01
    assert scorer.scored == 11 * first.shards
    (path,) = found.stores
    assert {unit[0] for unit in open_store(path).done()} == set(range(first.shards))
    again, scorer = until(40.0, permutations=10, alpha=1e-9)
    assert scorer.scored == 11 * (again.results[0].shards - first.shards) > 0
    assert until(40.0, tests=["successor"], shards=8)[0].results[0].stopped_at is not None


def test_without_evidence_all_shards_are_looked_at_and_the_set_is_opened_once(until, monkeypatch):
    calls = []

    def counted(name, function):
        return lambda *arguments: calls.append(name) or function(*arguments)

    monkeypatch.setattr(tokens, "tokenize", counted("tokenize", tokens.tokenize))
    monkeypatch.setattr(Store, "done", counted("done", Store.done))
    found, scorer = until(0.0, permutations=5)
    (result,) = found.results
    assert (result.stopped_at, result.shards, scorer.scored) == (None, 10, 60)
    assert calls == ["tokenize", "done"]
    store = open_store(found.stores[0])
    assert result.log10_p == pytest.approx(anytime_test(store.log_probs(5), alpha=0.01).log10_p)
    assert found.tokens_scored == 6 * sum(store.header.example_tokens)
    assert found.diagnosis[0].counts == {"shards": 10}


# --- what a request asks, and refuses -------------------------------------------------------------


@pytest.mark.parametrize(
    ("axis", "order", "everything"),
    [
        ("order", DEFAULT_TESTS, DEFAULT_TESTS),
        ("options", (), (OPTION_TEST,)),
        ("both", DEFAULT_TESTS, (*DEFAULT_TESTS, OPTION_TEST)),
    ],
)
def test_every_axis_has_its_default_also_where_it_is_changed_later(axis, order, everything):
    for request in (Request(axis=axis), replace(Request(), axis=axis)):
        assert (request.order_tests, request.all_tests) == (order, everything)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"tests": ["exakt"]}, "'exakt'"),
        ({"tests": []}, "unknown test ''"),
        ({"tests": [*DEFAULT_TESTS, OPTION_TEST], "axis": "options"}, "successor"),
        ({"tests": [OPTION_TEST]}, "--axis options"),
        ({"tests": ["min_p", "successor"], "axis": "both"}, "--test once"),
        ({"axis": "sideways"}, "sideways"),
        ({"axis": "options", "arrangements": 1}, "arrangements is 1"),
        ({"axis": "options", "shards": 2}, "--shards"),
        ({"keep_answer": True}, "--keep-answer"),
        ({"permutations": 0}, "permutations is 0"),
        ({"shards": 11, "tests": ["sharded_exact"]}, "at most 10 shards"),
        ({"shards": 7}, "at most 6 shards"),
        ({"budget": 10**6, "shards": 2}, "--shards"),
        ({"budget": 10**6, "tests": ["successor", "sharded_exact"]}, "--budget goes with"),
        ({"budget": 100}, "--budget is 100 tokens"),
    ],
)
def test_bad_requests_are_refused_before_scoring(
    scorer, test_set, tmp_path, monkeypatch, arguments, named
):
    monkeypatch.setattr(TransformersScorer, "token_logprobs", lambda *_: pytest.fail("scored"))
    with pytest.raises(InputError, match=re.escape(named)):
        audit(scorer, test_set, Request(directory=tmp_path / "stores", **arguments))
    assert not (tmp_path / "stores").exists()


@pytest.mark.parametrize(
    "arguments",
    [{"tests": [name]} for name in ("sharded_t", "permutation", "min_p", "min_p_orderings")]
    + [{"tests": ["successor", "boundary"]}, {"axis": "options"}],
)
def test_only_one_test_shard_by_shard_can_stop(until, arguments):
    with pytest.raises(InputError, match="stop"):
        until(0.0, **({"tests": None} | arguments))


def test_successors_longer_than_the_context_are_refused_before_scoring(scorer, prose, tmp_path):
    path = tmp_path / "long.txt"
    path.write_text("".join(text.replace("\n", " ") + "\n" for text in prose[:12]))
    with pytest.raises(InputError, match="the context is 16"):
        audit(scorer, path, Request(directory=tmp_path / "stores"))
    assert not (tmp_path / "stores").exists()
