"""`contamination test --axis options` and `both`, as a person types them."""

import json
from pathlib import Path

import numpy as np
import pytest

from contamination.cli.test import CANNOT_SAY
from fakes.remembering_scorer import WORDS


@pytest.fixture(scope="module")
def model(make_model) -> Path:
    return make_model(128)


@pytest.fixture(scope="module")
def other(make_model) -> Path:
    return make_model(64)


@pytest.fixture
def quiz(tmp_path) -> Path:
    """Twelve items of three options, the last of which are numbers."""
    rng = np.random.default_rng(0)
    records = [
        {
            "question": f"Q{i}?",
            "choices": [f"{' '.join(rng.permutation(WORDS)[:2])} {i}" for _ in range(3)],
            "answer": i % 3,
        }
        for i in range(11)
    ]
    records.append({"question": "How many?", "choices": ["1", "2", "3"], "answer": 2})
    path = tmp_path / "quiz.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def run(call, model, quiz, tmp_path, monkeypatch):
    """Return a function that runs a command on the model and the items."""
    monkeypatch.setenv("COLUMNS", "120")

    def command(name: str, *arguments, path: Path = quiz) -> tuple[int, str, str]:
        return call(name, model, path, "--store", tmp_path / "stores", *arguments)

    return command


def test_published_options_alone_reject_nothing(run, other) -> None:
    """How people write options favours their order: it takes a control that does not like it."""
    level = ("--axis", "options", "--alpha")
    status, out, _ = run("test", *level, "1e-12")
    assert (status, "11 of 12" in out, "cannot say" in out) == (0, True, False)
    assert "order of the options of 11 of 12 items, which may move" in out
    assert "a compressor, which has seen nothing: p = " in out
    status, out, _ = run("test", *level, "1")
    assert status == CANNOT_SAY
    assert "cannot say without a control model of like competence (--control)" in out
    assert json.loads(run("test", *level, "1", "--json")[1])["rejected"] == {"options": None}
    assert run("test", *level, "1", "--control", other)[0] == CANNOT_SAY  # it rejects as well
    p, theirs = (
        json.loads(run("test", *level, "0", "--json", "--control", other)[1]) for _ in "ab"
    )
    p, theirs = p["results"][0]["p"], theirs["control_model"]["results"][0]["p"]
    status = run("test", *level, f"{p:.12f}1", "--control", other)[0]
    assert status == (1 if theirs > p else CANNOT_SAY)


def test_options_that_a_seed_has_arranged_need_no_control(run) -> None:
    """Then the law is a fact, so numbers move, too."""
    found = run("test", "--axis", "options", "--drawn", "--alpha", "1", "--json")
    assert found[0] == 1
    assert json.loads(found[1])["results"][0]["shards"] == 12


def test_both_axes_stand_beside_their_combination_which_decides(run) -> None:
    _, out, _ = run("test", "--axis", "both", "--json", "--alpha", "0")
    found = json.loads(out)
    assert [result["test"] for result in found["results"]] == ["successor", "options"]
    assert found["rejected"] == {"joint": False, "successor": False}
    p, order = found["joint"]["p"], found["results"][0]["p"]
    for alpha in (p * 0.99, min(1, p * 1.01), order * 0.99, min(1, order * 1.01)):
        status = run("test", "--axis", "both", "--alpha", f"{alpha:.12f}")[0]
        assert status == (1 if order <= alpha else CANNOT_SAY if p <= alpha else 0)
    assert run("test", "--axis", "both", "--drawn", "--alpha", "1")[0] == 1
    _, out, _ = run("test", "--axis", "both", "--alpha", "0")
    assert f"both axes together (Fisher): p = {p:.3g}" in out
    assert "everything was stored already" in out


def test_fields_of_an_item_may_be_declared(run, tmp_path) -> None:
    rows = [
        {"question": f"Q{i}?", "opa": f"ash {i} b", "opb": f"elm {i} c", "gold": i % 2}
        for i in range(6)
    ]
    path = tmp_path / "medical.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    axis = ("test", "--axis", "options", "--alpha", "0")
    shown = ("--template", "{question} {opa} {opb} {gold}\\n")
    status, _, err = run(*axis, *shown, path=path)
    assert (status, "--answer gold" in err) == (2, True)
    assert run(*axis, *shown, "--answer", "gold", path=path)[0] == 0
    assert run(*axis, "--options", "opa", "--options", "opb", "--answer", "gold", path=path)[0] == 0


def test_a_control_goes_through_the_same_test(run, other) -> None:
    _, out, _ = run("test", "--axis", "options", "--json", "--control", other)
    found = json.loads(out)
    control = found["control_model"]
    assert (found["model"], control["model"]) == ("128", "64") or control["model"] == other.name
    assert control["plan"]["work"] == found["plan"]["work"]
    (theirs,) = control["results"]
    assert theirs["p"] != found["results"][0]["p"]
    _, out, _ = run("test", "--axis", "options", "--control", other, "--alpha", "0")
    assert f"the control, {control['model']}: options p = {theirs['p']:.3g}" in out
    assert "proves nothing" not in out
    _, out, _ = run("test", "--axis", "options", "--control", other, "--alpha", "1")
    assert "it prefers the published order, too: a small p of the model proves nothing" in out


def test_a_dry_run_counts_what_every_model_reads_and_keeps_nothing(run, other, tmp_path) -> None:
    _, out, _ = run("test", "--axis", "options", "--dry-run", "--json")
    plan = json.loads(out)
    assert plan["stores"] == [{"kind": "alternatives", "shards": 11, "tokens_per_example": None}]
    assert plan["work"]["sequences"] == 11 * 6
    assert plan["missing"] == plan["work"]["scored"] < plan["work"]["read"]
    _, out, _ = run("test", "--axis", "options", "--dry-run", "--control", other)
    assert "11 items" in out
    assert out.count("tokens scored") == 2
    assert not (tmp_path / "stores").exists()
