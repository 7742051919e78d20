"""`contamination test` and `contamination score`, as a person types them.

What they say beside the p-values, and what they leave to one process.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from contamination.audit import verdict
from contamination.scoring.local import TransformersScorer
from contamination.scoring.processes import processes
from contamination.scoring.store import Store
from contamination.statistics import sharded_exact_test
from fakes.remembering_scorer import made_up_set

ANY = sharded_exact_test([[0.0, 1.0]])
UNRELIABLE = "the order carries information by itself"


@pytest.fixture
def data(prose, tmp_path) -> Path:
    path = tmp_path / "prose.csv"
    rows = [f'"{text[:30]}",{i % 3}\n' for i, text in enumerate(prose[:20])]
    path.write_text("question,answer\n" + "".join(rows), encoding="utf-8")
    return path


@pytest.fixture
def audit(call, model_directory, data, tmp_path, monkeypatch):
    """Return a function that runs a command on the model and the data."""
    monkeypatch.setenv("COLUMNS", "120")

    def run(command: str, *arguments: str, model=model_directory) -> tuple[int, str, str]:
        fixed = ("--template", "{question} {answer}\n", "--permutations", "5")
        return call(command, model, data, *fixed, "--store", tmp_path / "stores", *arguments)

    return run


def test_a_table_for_people_and_json_for_programs(audit):
    tests = ("--test", "sharded_exact", "--test", "permutation")
    status, out, err = audit("test", *tests, "--alpha", "1e-9")
    assert status == 0
    assert "sharded_exact" in out and "permutation" in out and "log10 p" in out
    assert "tokens/s" in out and "predicted" in out
    assert "order of the records within " in out
    assert "which has seen nothing (sharded_exact): p = " in out
    assert "tok/s" not in err  # bars are for terminals
    status, out, _ = audit("test", *tests, "--json", "--alpha", "1")
    found = json.loads(out)
    assert (status, found["rejected"]) == (1, {"sharded_exact": True, "permutation": True})
    assert found["template"] == "{question} {answer}\n"
    assert found["plan"]["examples"] == 20
    # Several tests are corrected before the status.
    p = [result["p"] for result in found["results"]]
    between = (min(p) + min(2 * min(p), max(p))) / 2
    assert min(p) < between
    assert audit("test", *tests, "--alpha", str(between))[0] == 0


def test_a_dry_run_keeps_nothing_and_what_was_scored_is_not_scored_again(
    audit, tmp_path, monkeypatch
):
    status, out, _ = audit("test", "--dry-run")
    assert status == 0
    assert all(word in out for word in ("tokens scored", "FLOPs", "time, about"))
    plan = json.loads(audit("score", "--dry-run", "--json")[1])
    assert plan["missing"] == plan["work"]["scored"] > 0 < plan["seconds"]
    assert not (tmp_path / "stores").exists()
    scored = json.loads(audit("score", "--json")[1])
    assert scored["tokens_scored"] == plan["missing"]
    assert "results" not in scored
    monkeypatch.setattr(TransformersScorer, "token_logprobs", lambda *_: pytest.fail("again"))
    status, out, _ = audit("test", "--alpha", "1e-9")
    assert status == 0
    assert "everything was stored already" in out


def test_stopping_early_is_the_evidence_of_one_test(audit):
    arguments = ("test", "--stop", "--test=sharded_exact", "--alpha=1e-6")
    status, out, _ = audit(*arguments, "--json")
    (found,) = json.loads(out)["results"]
    assert (status, found["stopped_at"], found["shards"]) == (0, None, 5)
    assert json.loads(out)["diagnosis"][0]["shards"] == 5
    _, out, _ = audit(*arguments)
    assert "anytime-valid p = " in out and "not enough evidence after 5 shards" in out
    assert "a compressor, which has seen nothing: p = " in out


@pytest.mark.parametrize(
    ("changes", "options", "named"),
    [
        ({"data": "x.jsonl"}, (), "x.jsonl: no such file"),
        ({"data": "list.jsonl"}, ("--axis", "options"), "no options found"),
        ({}, (), "field 'text' is missing"),
        ({"model": "x"}, ("--field", "question"), "x: no such directory"),
        ({}, ("--template", "{question"), "template '{question'"),
        ({}, ("--template", "{answer}", "--field", "question"), "--field and --template"),
        ({}, ("--field", "answer", "--precision", "int7"), "precision is 'int7'"),
        ({}, ("--field", "answer", "--device-map", "all"), "device_map is 'all'"),
        ({}, ("--field", "answer", "--tokenizer", "gpt2"), "--tokenizer goes with --endpoint"),
        ({}, ("--field", "answer", "--endpoint", "http://127.0.0.1:1/v1"), "--tokenizer"),
        ({}, ("--stop", "--test", "permutation"), "test is 'permutation'"),
        ({}, ("--stop", "--dry-run"), "--dry-run"),
        ({}, ("--stop", "--control", "x"), "--control"),
        ({}, ("--axis", "options", "--stop"), "--axis"),
        ({}, ("--field", "answer", "--store", "/dev/null"), "/dev/null: no directory"),
    ],
)
def test_bad_input_is_one_line(changes, options, named, refused, model_directory, data, tmp_path):
    (tmp_path / "list.jsonl").write_text('{"text": "a"}\n{"text": "b"}\n')
    paths = {"model": model_directory, "data": data}
    paths |= {name: tmp_path / changed for name, changed in changes.items()}
    stores = tmp_path / "stores"
    assert named in refused("test", *paths.values(), "--store", stores, *options)
    assert not stores.exists()


def test_a_model_is_no_control_of_itself(refused, model_directory, data) -> None:
    line = refused("test", model_directory, data, "--control", model_directory)
    assert "--control is the model itself" in line


def test_an_interrupt_says_how_to_go_on(audit, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "append", interrupted)
    status, out, err = audit("test")
    assert (status, out) == (130, "")
    assert err.splitlines()[-1].endswith("run the same command again to go on")


# --- beside the p-values --------------------------------------------------------------------------


@pytest.fixture
def run(call, make_model, tmp_path, monkeypatch):
    """Return a function that tests a set of made-up words under a model of 64 tokens."""
    monkeypatch.setenv("COLUMNS", "140")
    path = tmp_path / "words.txt"
    path.write_text("".join(made_up_set(30).examples))
    model = make_model(64)

    def test(*arguments, command="test", data=path):
        fixed = ("--store", tmp_path / "stores", "--permutations", "3")
        return call(command, model, data, *fixed, *arguments)

    return test


def test_each_control_is_read_at_the_level_asked_for(run, monkeypatch):
    p = {"successors": 0.2, "orderings": 0.04}
    monkeypatch.setattr(verdict, "compressor_test", lambda *_, kind, **__: replace(ANY, p=p[kind]))
    _, out, _ = run("--test", "successor", "--test", "sharded_exact")
    lines = out.splitlines()
    (quiet,) = (i for i, line in enumerate(lines) if line.endswith("(successor): p = 0.2"))
    assert UNRELIABLE not in lines[quiet + 1]
    (loud,) = (i for i, line in enumerate(lines) if line.endswith("(sharded_exact): p = 0.04"))
    assert UNRELIABLE in lines[loud + 1]


def test_process_0_alone_prints(run, monkeypatch):
    assert run("--json")[1] != ""
    monkeypatch.setattr(type(processes()), "is_main_process", False)
    for options in (("--dry-run",), (), ("--json",)):
        assert run(*options)[:2] == (0, "")


@pytest.mark.parametrize("harm", [b"PAR1 half", None])
def test_a_damaged_store_is_scored_again_to_the_same_p(audit, tmp_path, harm):
    """Planning, which reads footers alone, scoring, and testing."""
    first = json.loads(audit("test", "--json", "--alpha", "1e-9")[1])
    (part,) = (tmp_path / "stores").rglob("part-*.parquet")
    bytes_before = part.read_bytes()
    for path in (part, part.with_name("store.json")):
        path.unlink()
        path.mkdir() if harm is None else path.write_bytes(harm)
    again = json.loads(audit("test", "--json", "--alpha", "1e-9")[1])
    assert again["results"] == first["results"]
    assert again["tokens_scored"] == first["tokens_scored"] > 0
    assert part.read_bytes() == bytes_before
