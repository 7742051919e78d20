"""Stopping early pays for no more shards than it needs, and gives the p-value of the whole path."""

import json

import pytest

from contamination.audit import verdict
from contamination.audit.request import Request
from contamination.audit.verdict import audit_until
from contamination.errors import InputError
from contamination.scoring.processes import processes
from contamination.scoring.store import Store, open_store
from contamination.statistics import anytime_test
from contamination.testsets import tokens
from fakes.remembering_scorer import Remembers, made_up_set


@pytest.fixture
def until(tokenizer, tmp_path):
    def run(nats: float, **arguments):
        test_set = made_up_set(40)
        scorer = Remembers(tokenizer, test_set, nats)
        alpha = arguments.pop("alpha", 0.01)
        fixed = {"tests": ["sharded_exact"], "directory": tmp_path, "name": "m"}
        found = audit_until(scorer, test_set, Request(**(fixed | arguments)), alpha=alpha)
        return found.results[0], scorer

    return run


def test_strong_evidence_stops_early_and_the_rest_is_not_scored(until, tmp_path):
    found, scorer = until(40.0, permutations=10)
    assert found.stopped_at == found.shards < 10
    assert found.p <= 0.01
    assert scorer.scored == 11 * found.shards
    store = open_store(tmp_path / "m" / "words" / "orderings-010")
    assert {unit[0] for unit in store.done()} == set(range(found.shards))


def test_without_evidence_all_shards_are_looked_at(until, tmp_path):
    found, scorer = until(0.0, permutations=5)
    assert found.stopped_at is None
    assert found.shards == 10
    assert scorer.scored == 60
    store = open_store(tmp_path / "m" / "words" / "orderings-010")
    assert found.log10_p == pytest.approx(anytime_test(store.log_probs(5), alpha=0.01).log10_p)


def test_the_set_is_tokenised_and_the_store_checked_once(until, monkeypatch):
    calls = []

    def counted(name, function):
        return lambda *arguments: calls.append(name) or function(*arguments)

    monkeypatch.setattr(tokens, "tokenize", counted("tokenize", tokens.tokenize))
    monkeypatch.setattr(Store, "done", counted("done", Store.done))
    found, _ = until(0.0, permutations=5)
    assert (found.shards, calls) == (10, ["tokenize", "done"])


def test_it_goes_on_where_it_stopped(until):
    first, _ = until(40.0, permutations=10)
    again, scorer = until(40.0, permutations=10, alpha=1e-9)
    assert again.shards > first.shards
    assert scorer.scored == 11 * (again.shards - first.shards)


def test_successors_can_stop_too(until):
    found, _ = until(40.0, tests=["successor"], shards=8)
    assert found.stopped_at is not None


@pytest.mark.parametrize("test", ["sharded_t", "permutation", "min_p", "min_p_orderings"])
def test_tests_of_all_shards_are_refused(until, test):
    with pytest.raises(InputError, match="stopping early needs one of sharded_exact, token_"):
        until(0.0, tests=[test])


@pytest.fixture
def stop(call, model_directory, tmp_path):
    """Return a function that runs `contamination test --stop` on a file of made-up records."""

    def run(*options, examples=None):
        path = tmp_path / "words.txt"
        path.write_text("".join(examples or made_up_set(20).examples))
        return call("test", model_directory, path, "--stop", f"--store={tmp_path / 's'}", *options)

    return run


def test_the_command(stop):
    arguments = ("--test=sharded_exact", "--permutations=3", "--json", "--alpha=1e-6")
    status, out, _ = stop(*arguments)
    (told,) = json.loads(out)["results"]
    assert (status, told["stopped_at"], told["shards"]) == (0, None, 5)
    status, _, err = stop(*arguments, "--test=boundary")
    assert status == 2
    assert "give --test once" in err
    status, _, err = stop("--dry-run")
    assert status == 2
    assert "--stop has no --dry-run" in err


def test_the_order_of_the_records_is_reported_beside_the_evidence(stop, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    examples = [f"{'word ' * n}\n" for n in range(1, 41)]
    arguments = ("--test=sharded_exact", "--permutations=3")
    _, out, _ = stop(*arguments, examples=examples)
    assert "order of the records within 10 shards: order carries information" in out
    assert "a compressor, which has seen nothing: p = " in out
    _, out, _ = stop(*arguments, "--json", examples=examples)
    told = json.loads(out)
    assert told["diagnosis"][0]["verdict"] == "order carries information"
    assert told["diagnosis"][0]["shards"] == 10
    assert 0 < told["control"][0]["p"] <= 1


def test_one_of_several_processes_reports(stop, monkeypatch):
    """The others leave the output and the status to process 0."""
    arguments = ("--test=sharded_exact", "--alpha=0.99", "--shards=20")
    examples = made_up_set(40).examples
    status, out, _ = stop(*arguments, examples=examples)
    assert status == 1
    assert "anytime-valid p" in out
    monkeypatch.setattr(type(processes()), "is_main_process", False)
    assert stop(*arguments, examples=examples)[:2] == (0, "")


def test_an_interrupt_is_no_rejection(stop, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(verdict, "fill_store", interrupted)
    status, out, err = stop("--test=sharded_exact")
    assert (status, out) == (130, "")
    assert err.splitlines()[-1].endswith("run the same command again to go on")
