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


def test_a_table_for_people(audit):
    status, out, err = audit(
        "test", "--test", "sharded_exact", "--test", "sharded_t", "--alpha", "1e-9"
    )
    assert status == 0
    assert "sharded_exact" in out and "sharded_t" in out and "log10 p" in out
    assert "tokens/s" in out and "predicted" in out
    assert "order of the records within " in out
    assert "tok/s" not in err  # bars are for terminals


@pytest.mark.parametrize(("alpha", "rejected"), [("1e-9", False), ("1", True)])
def test_json_is_all_of_the_output_and_the_status_that_of_a_rejection(audit, alpha, rejected):
    status, out, _ = audit("test", "--json", "--alpha", alpha)
    output = json.loads(out)
    assert status == rejected
    assert output["rejected"] == {"successor": rejected}
    assert output["template"] == "{question} {answer}\n"
    assert output["plan"]["examples"] == 20


def test_several_tests_are_corrected_before_the_status(audit):
    _, out, _ = audit("test", "--json", "--test", "sharded_exact", "--test", "permutation")
    p = [result["p"] for result in json.loads(out)["results"]]
    between = (min(p) + min(2 * min(p), max(p))) / 2
    assert min(p) < between
    tests = ("--test", "sharded_exact", "--test", "permutation")
    assert audit("test", *tests, "--alpha", str(between))[0] == 0


def test_score_then_test_scores_once(audit, monkeypatch):
    status, out, _ = audit("score", "--json")
    assert status == 0
    assert "results" not in json.loads(out)
    monkeypatch.setattr(TransformersScorer, "token_logprobs", lambda *_: pytest.fail("again"))
    status, out, _ = audit("test", "--alpha", "1e-9")
    assert status == 0
    assert "everything was stored already" in out


def test_a_dry_run_prints_the_cost_and_keeps_nothing(audit, tmp_path):
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


@pytest.mark.parametrize(
    ("command", "changes", "options", "message"),
    [
        ("test", {"data": "x.jsonl"}, [], "no such file"),
        ("test", {}, [], "field 'text' is missing"),
        ("test", {"model": "x"}, ["--template", "{question}"], "no such directory"),
        ("test", {}, ["--template", "{question"], "template '{question'"),
        ("test", {}, ["--template", "{answer}", "--precision", "int7"], "precision is 'int7'"),
        ("test", {}, ["--template", "{answer}", "--device-map", "all"], "device_map is 'all'"),
        ("test", {}, ["--template", "{answer}", "--revision", "r" * 9_000], "200 characters at"),
        ("score", {}, ["--template", "{answer}", "--tokenizer", "gpt2"], "goes with --endpoint"),
        (
            *("score", {"model": "name"}),
            ["--template", "{answer}", "--endpoint", "http://127.0.0.1:1/v1"],
            "--endpoint needs --tokenizer",
        ),
    ],
)
def test_bad_input_is_one_line(
    command, changes, options, message, refused, model_directory, data, tmp_path
):
    paths = {"model": model_directory, "data": data}
    paths |= {name: tmp_path / changed for name, changed in changes.items()}
    stores = tmp_path / "stores"
    assert message in refused(command, *paths.values(), "--store", stores, *options)
    assert not stores.exists()


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


def test_min_p_says_which_number_of_tokens_was_best(run):
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
    assert UNRELIABLE not in out
    _, out, _ = run(
        "--alpha", "1e-9", "--test", "successor", "--test", "sharded_exact", "--test", "boundary"
    )
    assert "which has seen nothing (successor): p = " in out
    assert "which has seen nothing (sharded_exact, boundary): p = " in out
    _, out, _ = run("--json")
    (control,) = json.loads(out)["control"]
    assert control["test"] == "compressor"
    assert 0 < control["p"] <= 1


def test_a_control_that_rejects_takes_the_evidence_away(run, tmp_path):
    path = tmp_path / "pairs.txt"
    texts = [text.removesuffix(".\n") for text in made_up_set(20, words=6).examples]
    path.write_text("".join(f"{text}\n{text} again\n" for text in texts))
    _, out, _ = run("--alpha", "0.001", data=path)
    assert UNRELIABLE in out
    _, out, _ = run("--alpha", "1e-300", data=path)
    assert UNRELIABLE not in out


def test_each_control_is_read_at_the_level_asked_for(run, monkeypatch):
    p = {"successors": 0.2, "orderings": 0.04}
    monkeypatch.setattr(verdict, "compressor_test", lambda *_, kind, **__: replace(ANY, p=p[kind]))
    _, out, _ = run("--test", "successor", "--test", "sharded_exact")
    lines = out.splitlines()
    (quiet,) = (i for i, line in enumerate(lines) if line.endswith("(successor): p = 0.2"))
    assert UNRELIABLE not in lines[quiet + 1]
    (loud,) = (i for i, line in enumerate(lines) if line.endswith("(sharded_exact): p = 0.04"))
    assert UNRELIABLE in lines[loud + 1]


def test_a_budget_is_kept_and_printed(run):
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
@pytest.mark.parametrize("command", ["test", "score"])
def test_process_0_alone_prints(run, monkeypatch, options, command):
    assert run(*options, command=command)[1] != ""
    monkeypatch.setattr(type(processes()), "is_main_process", False)
    assert run(*options, command=command)[:2] == (0, "")


@pytest.mark.parametrize("where", ["/dev/null", "/proc/version/x", "prose.csv", "x" * 300, "loop"])
@pytest.mark.parametrize("command", ["test", "score"])
def test_a_place_where_no_store_can_be_is_refused_before_anything_is_loaded(
    refused, data, tmp_path, command, where
):
    (tmp_path / "loop").symlink_to("loop")
    before = data.read_bytes()
    message = refused(command, "no-model", data, "--field", "question", "--store", tmp_path / where)
    assert message.startswith(f"{tmp_path / where}: no directory")
    assert data.read_bytes() == before


@pytest.mark.parametrize("harm", [b"", b"PAR1 half", None])
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
