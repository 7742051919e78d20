"""`contamination test` and `contamination score`, as a person types them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from contamination.scoring.local import TransformersScorer


@pytest.fixture
def data(prose, tmp_path) -> Path:
    path = tmp_path / "prose.csv"
    rows = [f'"{text[:30]}",{i % 3}\n' for i, text in enumerate(prose[:20])]
    path.write_text("question,answer\n" + "".join(rows), encoding="utf-8")
    return path


@pytest.fixture
def audit(call, model_directory, data, tmp_path, monkeypatch):
    """Return a function that runs a verb on the model and the data."""
    monkeypatch.setenv("COLUMNS", "120")

    def run(verb: str, *arguments: str, model=model_directory) -> tuple[int, str, str]:
        fixed = ("--template", "{question} {answer}\n", "--permutations", "5")
        return call(verb, model, data, *fixed, "--store", tmp_path / "stores", *arguments)

    return run


def test_help_lists_the_verbs(call):
    status, out, _ = call("--help")
    assert status == 0
    assert all(verb in out for verb in ("test", "score", "stage"))


def test_help_names_every_test(call):
    from contamination.audit.battery import TESTS

    _, out, _ = call("test", "--help")
    assert all(name in out for name in TESTS)


def test_a_table_for_people(audit):
    status, out, err = audit(
        "test", "--test", "sharded_exact", "--test", "sharded_t", "--alpha", "1e-9"
    )
    assert status == 0
    assert "sharded_exact" in out and "sharded_t" in out and "log10 p" in out
    assert "tokens/s" in out and "predicted" in out
    assert "order of the records: " in out
    assert "tok/s" in err  # the bar, where it does not disturb the output


def test_json_for_programs_is_all_of_the_output(audit):
    status, out, _ = audit("test", "--json", "--alpha", "1e-9")
    told = json.loads(out)
    assert status == 0
    assert told["rejected"] == {"successor": False}
    assert told["template"] == "{question} {answer}\n"
    assert told["plan"]["examples"] == 20


def test_the_status_tells_a_rejection(audit):
    status, out, _ = audit("test", "--json", "--alpha", "1")
    assert status == 1
    assert json.loads(out)["rejected"] == {"successor": True}


def test_several_tests_are_corrected_before_the_status(audit):
    _, out, _ = audit("test", "--json", "--test", "sharded_exact", "--test", "permutation")
    p = [result["p"] for result in json.loads(out)["results"]]
    between = (min(p) + min(2 * min(p), max(p))) / 2
    assert min(p) < between
    status, *_ = audit(
        "test", "--test", "sharded_exact", "--test", "permutation", "--alpha", str(between)
    )
    assert status == 0


def test_score_then_test_scores_once(audit, monkeypatch):
    status, out, _ = audit("score", "--json")
    assert status == 0
    assert "results" not in json.loads(out)
    monkeypatch.setattr(TransformersScorer, "token_logprobs", lambda *_: pytest.fail("again"))
    status, out, _ = audit("test", "--alpha", "1e-9")
    assert status == 0
    assert "everything was stored already" in out


def test_a_dry_run_tells_the_cost_and_keeps_nothing(audit, tmp_path):
    status, out, _ = audit("test", "--dry-run")
    assert status == 0
    assert all(word in out for word in ("tokens scored", "FLOPs", "time, about"))
    status, out, _ = audit("score", "--dry-run", "--json")
    plan = json.loads(out)
    assert plan["missing"] == plan["work"]["scored"] > 0
    assert plan["seconds"] > 0
    assert not (tmp_path / "stores").exists()
    _, out, _ = audit("score", "--json")
    assert json.loads(out)["tokens_scored"] == plan["missing"]


def test_bad_input_is_one_line(refused, model_directory, data, tmp_path):
    where = ("--store", tmp_path / "stores")
    assert "no such file" in refused("test", model_directory, tmp_path / "x.jsonl", *where)
    assert "field 'text' is missing" in refused("test", model_directory, data, *where)
    assert "no such directory" in refused("test", tmp_path / "x", data, "--template", "{question}")
    wrong = ("--template", "{question", *where)
    assert "template '{question'" in refused("test", model_directory, data, *wrong)
    wrong = ("--template", "{question}", "--precision", "int7", *where)
    assert "precision is 'int7'" in refused("test", model_directory, data, *wrong)
    wrong = ("--template", "{question}", "--tokenizer", "gpt2", *where)
    assert "--tokenizer goes with --endpoint" in refused("score", model_directory, data, *wrong)
    wrong = ("--template", "{question}", "--endpoint", "http://127.0.0.1:1/v1", *where)
    assert "--endpoint needs --tokenizer" in refused("score", "name", data, *wrong)
    assert not (tmp_path / "stores").exists()


def test_an_interrupt_is_told_and_keeps_what_is_stored(audit, monkeypatch, tmp_path):
    from contamination.scoring.score import score as scoring

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(scoring.Store, "append", interrupted)
    status, out, err = audit("test")
    assert (status, out) == (130, "")
    assert err.splitlines()[-1].endswith("run the same command again to go on")


def test_help_comes_without_torch():
    code = (
        "import sys, contamination.cli.options, contamination.cli.main;"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
