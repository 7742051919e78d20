"""One call from a model and a file to a p-value: what it finds, keeps and refuses."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from contamination.audit import Request, run_audit
from contamination.audit.controls.records import diagnose_order
from contamination.audit.controls.zlib import zlib_test
from contamination.audit.plan import Work
from contamination.audit.registry import DEFAULT_TESTS, OPTION_TEST
from contamination.audit.run import with_control
from contamination.errors import InputError
from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import StorePlan
from contamination.scoring.score import score
from contamination.scoring.store import Store, open_store
from contamination.statistics import (
    anytime_test,
    permutation_test,
    sharded_exact_test,
    sharded_t_test,
)
from contamination.testsets import tokens
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.sources import open_test_set
from contamination.testsets.tokens import tokenize
from fakes.items import drawn_items, items_set
from fakes.made_up_scorer import MadeUpScorer
from fakes.remembering_scorer import Remembers, made_up_set


@pytest.fixture
def test_set(prose, tmp_path):
    path = tmp_path / "prose.jsonl"
    path.write_text("".join(json.dumps({"text": text[:40]}) + "\n" for text in prose[:20]))
    return open_test_set(path)


@pytest.fixture
def scorer(model_directory):
    return TransformersScorer(model_directory)


def test_three_lines_give_the_p_values_of_the_parts(model_directory, test_set, tmp_path):
    """Every test reads its own store."""
    tests = {"permutation": permutation_test, "sharded_t": sharded_t_test}
    tests["sharded_exact"] = sharded_exact_test
    request = Request([*tests], permutations=6, directory=tmp_path / "stores")
    found = run_audit(model_directory, test_set, request)
    scorer = TransformersScorer(model_directory)
    assert [(r.test, r.shards) for r in found.results] == [*zip(tests, (1, 5, 5), strict=True)]
    for result in found.results:
        plan = StorePlan("orderings", result.shards)
        place = tmp_path / f"by-hand-{result.shards}"
        store = score(test_set, scorer, place, plan, model="mine", permutations=6, seed=0)
        scores = store.log_probs(6)
        expected = tests[result.test](scores[0] if result.shards == 1 else scores)
        assert result.p == pytest.approx(expected.p, rel=1e-4)  # other batches round otherwise
        assert f"p = {result.p:.3g}" in found.summary()
    assert found.tokens_scored == 2 * 7 * sum(store.header.example_tokens)
    for each in found.findings:  # it permutes what the test permutes
        shards = each.result.shards
        alone = diagnose_order(test_set, seed=0, shards=shards)
        pd.testing.assert_frame_equal(each.diagnosis.table, alone.table)
        of_zlib = zlib_test(test_set, kind="orderings", shards=shards, permutations=6, seed=0)
        assert each.zlib.log10_p == of_zlib.log10_p


def test_a_compressor_stands_beside_every_test(scorer, test_set, tmp_path):
    tests = ["successor", "sharded_exact", "sharded_t", "min_p"]
    found = run_audit(scorer, test_set, Request(tests, permutations=4, directory=tmp_path))
    pairs, whole, whole_again, pairs_again = (each.zlib for each in found.findings)
    assert whole is whole_again and pairs is pairs_again
    for control, kind, shards in ((pairs, "successors", 2), (whole, "orderings", 5)):
        alone = zlib_test(test_set, kind=kind, shards=shards, permutations=4, seed=0)
        assert control.p == alone.p
    told = [control["p"] for control in found.as_dict()["control"]]
    assert told == [pairs.p, whole.p, whole.p, pairs.p]
    whole_pairs = found.findings[3]  # all tokens of each, as far as half of the context holds them
    assert whole_pairs.store.header.tokens_per_example == 8
    assert found.as_dict()["results"][3]["best"] in whole_pairs.result.names
    # of so few shards the t-test alone assumes something
    assert [note.split(":")[0] for note in found.notes() if "normal" in note] == ["sharded_t"]


def test_where_no_ordering_differs_nothing_can_be_said(tokenizer, tmp_path):
    """A model that sees one token back never looks past the newline between two records."""
    words = made_up_set(40)
    found = run_audit(MadeUpScorer(tokenizer), words, Request(["successor"], directory=tmp_path))
    verdict = found.verdict()
    assert verdict.conclusion == "cannot say"
    assert verdict.status == 3
    assert verdict.power == ()
    assert "same probability" in verdict.reason


@pytest.mark.parametrize(("count", "fours", "tens"), [(19, 4, 1), (3, 1, 1), (600, 50, 60)])
def test_shards_hold_four_or_ten_and_orderings_make_fifty(
    scorer, test_set, tmp_path, count, fours, tens
):
    resized = replace(test_set, examples=(test_set.examples * 30)[:count])
    request = Request(["sharded_exact", "successor"], directory=tmp_path)
    stores = Work(scorer, resized, request).plan.stores
    assert [store.shards for store in stores] == [fours, tens]


def test_the_least_p_knows_how_few_orders_a_small_shard_has(scorer, test_set, tmp_path):
    """Two records have two orders, however many are drawn: p of one shard is about a half."""
    two = replace(test_set, examples=test_set.examples[:4])
    request = Request(["sharded_exact"], shards=2, permutations=99, directory=tmp_path)
    found = run_audit(scorer, two, request)
    assert 0.4**2 < found.as_dict()["results"][0]["min_p"] < 0.6**2
    assert found.verdict().conclusion == "cannot say"


@pytest.fixture
def until(tokenizer, tmp_path):
    def run(nats: float, **arguments):
        words = made_up_set(40)
        scorer = Remembers(tokenizer, words, nats)
        alpha = arguments.pop("alpha", 0.01)
        fixed = {"tests": ["sharded_exact"], "directory": tmp_path, "name": "m"}
        request = Request(**(fixed | arguments))
        found = run_audit(scorer, words, request, stop_at=alpha)
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
        return lambda *a, **named: calls.append(name) or function(*a, **named)

    monkeypatch.setattr(tokens, "tokenize", counted("tokenize", tokens.tokenize))
    monkeypatch.setattr(Store, "done", counted("done", Store.done))
    found, scorer = until(0.0, permutations=5)
    (result,) = found.results
    assert result.stopped_at is None
    assert result.shards == 10
    assert scorer.scored == 60
    assert calls == ["tokenize", "done"]
    store = open_store(found.stores[0])
    assert result.log10_p == pytest.approx(anytime_test(store.log_probs(5), alpha=0.01).log10_p)
    assert found.tokens_scored == 6 * sum(store.header.example_tokens)
    assert found.findings[0].diagnosis.counts == {"shards": 10}


def test_a_control_model_that_rejects_is_named_where_the_suspect_shows_nothing(tokenizer, tmp_path):
    words = made_up_set(40)
    shuffled = np.random.default_rng(1).permutation(40)  # its numbers count up otherwise
    words = replace(words, examples=tuple(words.examples[i] for i in shuffled))
    request = Request(["successor", "sharded_exact"], permutations=10, directory=tmp_path)
    suspect = run_audit(MadeUpScorer(tokenizer), words, replace(request, name="suspect"))
    control = run_audit(Remembers(tokenizer, words, 40.0), words, replace(request, name="old"))
    verdict = with_control(suspect, control).verdict()
    assert verdict.conclusion == "no evidence"
    assert verdict.status == 0
    assert verdict.power == ()
    assert "the control old prefers the order" in verdict.reason


class Less(MadeUpScorer):
    """Gives every token 2 nats less than `MadeUpScorer`."""

    def token_logprobs(self, sequences, firsts=None):
        for index, values in super().token_logprobs(sequences, firsts):
            yield index, values - np.float32(2)


@pytest.mark.parametrize("test", ["sharded_exact", "successor"])
def test_the_nats_a_character_of_a_control_stand_beside_those_of_the_model(
    tokenizer, tmp_path, test
):
    words = made_up_set(40)
    request = Request([test], permutations=4, directory=tmp_path, name="new")
    suspect = run_audit(MadeUpScorer(tokenizer), words, request)
    weaker = Less(tokenizer, revision="less")
    control = run_audit(weaker, words, replace(request, name="old"))
    told = with_control(suspect, control).as_dict()["nats_per_character"]
    tokens = sum(len(ids) for ids in tokenize(tokenizer, words.examples))
    characters = sum(len(text) for text in words.examples)
    assert told["control"] - told["model"] == pytest.approx(2 * tokens / characters, rel=1e-4)
    if test == "sharded_exact":
        (store,) = suspect.stores
        nats = open_store(store).log_probs(0).sum()
        assert told["model"] == pytest.approx(-nats / characters, rel=1e-12)
    assert "nats_per_character" not in suspect.as_dict()


def test_a_set_that_was_read_in_reverse_is_told(tokenizer, tmp_path):
    words = made_up_set(120)
    backwards = replace(words, examples=words.examples[::-1])
    request = Request(["successor"], directory=tmp_path)
    model = Remembers(tokenizer, words, 40.0)
    of_reverse = run_audit(model, backwards, replace(request, name="reverse"))
    assert of_reverse.results[0].p >= 0.99
    assert any("in reverse" in note for note in of_reverse.notes())
    assert of_reverse.verdict().status != 1
    read = run_audit(model, words, replace(request, name="as read"))
    assert not any("in reverse" in note for note in read.notes())


def test_a_set_in_the_order_of_time_asks_for_an_able_control(tokenizer, prose, tmp_path):
    texts = tuple(f"{prose[i][:60].strip()} of {1800 + i}\n" for i in range(40))
    dated = ExampleSet("dated", texts, "text/1", "data")
    request = Request(["successor"], name="model", directory=tmp_path)
    reader = Remembers(tokenizer, dated, 40.0)
    published = run_audit(reader, dated, request).as_dict()["verdict"]
    assert published["conclusion"] == "proven"
    assert "rank correlation" in published["reason"]
    declared = run_audit(reader, dated, replace(request, order_drawn=True))
    assert "rank correlation" not in declared.verdict().reason


def test_a_declared_order_makes_diagnosis_and_compressor_remarks(tokenizer, tmp_path):
    """Numbers that count up carry information; whoever states a draw answers for it."""
    words = made_up_set(40)
    request = Request(["successor"], name="model", directory=tmp_path)
    reader = Remembers(tokenizer, words, 40.0)
    published = run_audit(reader, words, request)
    declared = run_audit(reader, words, replace(request, order_drawn=True))
    assert published.verdict().conclusion == "order is no evidence here"
    assert declared.verdict().conclusion == "proven"
    assert "the author states" in declared.verdict().reason
    assert declared.as_dict()["order_drawn"] is True
    assert "order_drawn" not in published.as_dict()
    assert declared.findings[0].diagnosis.verdict == published.findings[0].diagnosis.verdict


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"order_drawn": True, "axis": "options"}, "order of records that was drawn"),
        ({"tests": ["exakt"]}, "'exakt'"),
        ({"tests": []}, "tests is empty"),
        ({"tests": "successor"}, "tests is the text 'successor'"),
        ({"tests": ["successor", "successor"]}, "'successor' is named twice"),
        ({"tests": ["sharded_t"], "shards": 1}, "needs at least 2"),
        ({"tests": [*DEFAULT_TESTS, OPTION_TEST], "axis": "options"}, "successor"),
        ({"tests": [OPTION_TEST]}, "axis='options'"),
        ({"tests": ["min_p", "successor"], "axis": "both"}, "give one"),
        ({"axis": "sideways"}, "sideways"),
        ({"axis": "options", "arrangements": 1}, "arrangements is 1"),
        ({"axis": "options", "shards": 2}, "shards cut"),
        ({"keep_answer": True}, "keep_answer"),
        ({"permutations": 0}, "permutations is 0"),
        ({"shards": 11, "tests": ["sharded_exact"]}, "at most 10 shards"),
        ({"shards": 7}, "at most 6 shards"),
    ],
)
def test_bad_requests_are_refused_before_scoring(
    scorer, test_set, tmp_path, monkeypatch, arguments, named
):
    monkeypatch.setattr(TransformersScorer, "token_logprobs", lambda *_: pytest.fail("scored"))
    with pytest.raises(InputError, match=re.escape(named)):
        run_audit(scorer, test_set, Request(directory=tmp_path / "stores", **arguments))
    assert not (tmp_path / "stores").exists()


def test_only_one_test_shard_by_shard_can_stop(until):
    several = [[name] for name in ("sharded_t", "permutation", "min_p")]
    for tests in (*several, ["successor", "boundary"]):
        with pytest.raises(InputError, match="stop"):
            until(0.0, tests=tests)
    with pytest.raises(InputError, match="stop"):
        until(0.0, tests=None, axis="options")


def test_what_is_longer_than_the_context_is_refused_before_scoring(scorer, prose, tmp_path):
    path = tmp_path / "long.txt"
    request = Request(directory=tmp_path / "stores")
    path.write_text("".join(text.replace("\n", " ") + "\n" for text in prose[:12]))
    with pytest.raises(InputError, match="the context is 16"):
        run_audit(scorer, path, request)
    with pytest.raises(InputError, match=r"takes \d+ tokens, over context=16"):
        run_audit(scorer, items_set(drawn_items(8, 4)), replace(request, axis="options"))
    assert not (tmp_path / "stores").exists()
