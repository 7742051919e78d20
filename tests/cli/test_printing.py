"""What `contamination test` says beside its p-values, and what it leaves to one process."""

import json
from dataclasses import replace

import pytest

from contamination.audit import verdict as audit
from contamination.scoring.processes import processes
from contamination.statistics import sharded_exact_test
from fakes.remembering_scorer import made_up_set

ANY = sharded_exact_test([[0.0, 1.0]])
READING = "the order carries information by itself"


@pytest.fixture
def run(call, make_model, tmp_path, monkeypatch):
    """Return a function that tests a set of made-up words under a model of 64 tokens."""
    monkeypatch.setenv("COLUMNS", "140")
    path = tmp_path / "words.txt"
    path.write_text("".join(made_up_set(30).examples))
    model = make_model(64)

    def test(*arguments, verb="test", data=path):
        fixed = ("--store", tmp_path / "stores", "--permutations", "3")
        return call(verb, model, data, *fixed, *arguments)

    return test


def test_min_p_tells_which_number_of_tokens_was_best(run):
    status, out, _ = run("--test", "min_p", "--test", "min_p_orderings", "--alpha", "1e-9")
    assert status == 0
    assert "min_p: the smallest p was that of successor_" in out
    assert any(
        f"min_p_orderings: the smallest p was that of {name}" in out
        for name in ("token_standardised", "clipped", "boundary_")
    )
    _, out, _ = run("--test", "min_p", "--json")
    (result,) = json.loads(out)["results"]
    assert result["best"].startswith("successor_")
    assert result["statistic"] > -5 and 0 < result["p"] <= 1 and result["log10_p"] <= 0


def test_the_compressor_stands_beside_the_verdict(run, tmp_path):
    _, out, _ = run("--alpha", "1e-9")
    assert "\na compressor, which has seen nothing: p = " in out
    assert READING not in out
    _, out, _ = run(
        "--alpha", "1e-9", "--test", "successor", "--test", "sharded_exact", "--test", "boundary"
    )
    assert "which has seen nothing (successor): p = " in out
    assert "which has seen nothing (exact, boundary): p = " in out
    _, out, _ = run("--json")
    (control,) = json.loads(out)["control"]
    assert control["test"] == "compressor"
    assert 0 < control["p"] <= 1


def test_a_control_that_rejects_takes_the_evidence_away(run, tmp_path):
    path = tmp_path / "pairs.txt"
    texts = [text.removesuffix(".\n") for text in made_up_set(20, words=6).examples]
    path.write_text("".join(f"{text}\n{text} again\n" for text in texts))
    _, out, _ = run("--alpha", "0.001", data=path)
    assert READING in out
    _, out, _ = run("--alpha", "1e-300", data=path)
    assert READING not in out


def test_each_control_is_read_at_the_level_asked_for(run, monkeypatch):
    p = {"successors": 0.2, "orderings": 0.04}
    monkeypatch.setattr(audit, "compressor_test", lambda *_, kind, **__: replace(ANY, p=p[kind]))
    _, out, _ = run("--test", "successor", "--test", "sharded_exact")
    lines = out.splitlines()
    (quiet,) = (i for i, line in enumerate(lines) if line.endswith("(successor): p = 0.2"))
    assert READING not in lines[quiet + 1]
    (loud,) = (i for i, line in enumerate(lines) if line.endswith("(exact): p = 0.04"))
    assert READING in lines[loud + 1]


def test_a_budget_is_kept_and_told(run):
    status, out, _ = run("--budget", "2500", "--dry-run", "--json")
    plan = json.loads(out)
    assert status == 0
    assert plan["work"]["read"] <= 2500
    assert plan["stores"][0]["shards"] > 3  # what the test takes by itself reads more
    _, out, _ = run("--budget", "2500", "--json", "--alpha", "1e-9")
    assert json.loads(out)["results"][0]["shards"] == plan["stores"][0]["shards"]
    status, _, err = run("--budget", "2500", "--test", "sharded_exact")
    assert status == 2
    assert "is set by --permutations" in err


@pytest.mark.parametrize("options", [("--dry-run",), (), ("--json",)])
@pytest.mark.parametrize("verb", ["test", "score"])
def test_process_0_alone_tells(run, monkeypatch, options, verb):
    assert run(*options, verb=verb)[1] != ""
    monkeypatch.setattr(processes(), "process_index", 1)
    assert run(*options, verb=verb)[:2] == (0, "")
