"""`contamination test` and `contamination score`, as a person types them."""

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from contamination.cli.audit import _sets_of
from contamination.scoring import loading
from contamination.scoring.local import TransformersScorer
from contamination.scoring.processes import processes
from fakes.items import drawn_items
from fakes.made_up_registry import jsonl
from fakes.results import result_of


@pytest.fixture
def audit(call, model_directory, prose):
    rows = [f'"{text[:30]}",{i % 3}\n' for i, text in enumerate(prose[:20])]
    Path("prose.csv").write_text("question,answer\n" + "".join(rows), encoding="utf-8")
    fixed = ("--template", "{question} {answer}\n", "--store", "stores")

    def run(command, *more):
        of_orderings = any("sharded_exact" in word for word in more)
        few = ("--permutations", "5") if of_orderings else ()
        return call(command, model_directory, "prose.csv", *fixed, *few, *more)

    return run


def test_json_for_programs_holds_what_the_status_says(audit):
    tests = ("--test", "sharded_exact", "--test", "permutation")
    status, _, err = audit("test", *tests, "--alpha", "1e-3")
    assert status == 0
    assert "tok/s" not in err  # bars are for terminals
    status, out, _ = audit("test", *tests, "--json", "--alpha", "0.999")
    found = result_of(out)
    assert status == found["verdict"]["status"] == 0
    assert found["verdict"]["conclusion"] == "no evidence"
    assert found["template"] == "{question} {answer}\n"
    assert found["plan"]["examples"] == 20
    assert [result["min_p"] for result in found["results"]] == pytest.approx([6**-5, 1 / 6])
    # Several tests are corrected before the status.
    p = [result["p"] for result in found["results"]]
    between = (min(p) + min(2 * min(p), max(p))) / 2
    assert min(p) < between
    status, out, _ = audit("test", *tests, "--alpha", str(between))
    assert status == 0
    printed = " ".join(out.split())
    assert "no evidence: p (Holm) = " in printed
    advice = printed.partition("no evidence: p (Holm) = ")[2]
    assert "contamination compare" in advice
    assert "--axis options" in advice


def test_without_evidence_a_table_says_how_likely_copies_are_found(audit):
    _, out, _ = audit("test", "--test", "sharded_exact", "--alpha", "1e-3")
    printed = " ".join(out.split())
    assert "set of your size (20 records)" in printed and "records for 80%" in printed
    verdict = printed.partition("verdict at 0.001: ")[2]
    assert verdict.startswith("no evidence: p = ") and "%" not in verdict


def test_files_hold_what_is_printed(audit):
    outputs = ["--output", "a.json", "--output", "b.eee.json"]
    outputs += ["--output", "c.conda.csv", "--output", "d.md"]
    status, out, _ = audit("test", "--json", *outputs, "--test", "sharded_exact", "--alpha", "1e-3")
    found = result_of(out)
    assert status == 0
    assert json.loads(Path("a.json").read_bytes()) == found
    assert {each["test"] for each in found["verdict"]["power"]} == {"sharded_exact"}
    assert json.loads(Path("b.eee.json").read_bytes())["model_info"]["name"] == found["model"]
    assert len(Path("c.conda.csv").read_text().splitlines()) == 1
    assert found["verdict"]["reason"] in Path("d.md").read_text(encoding="utf-8")


def test_a_dry_run_keeps_nothing_and_what_was_scored_is_not_scored_again(audit, monkeypatch):
    assert audit("test", "--dry-run")[0] == 0
    plan = json.loads(audit("score", "--dry-run", "--json")[1])
    assert plan["missing"] == plan["work"]["scored"] > 0 < plan["seconds"]
    assert not Path("stores").exists()
    scored = json.loads(audit("score", "--json")[1])
    assert scored["tokens_scored"] == plan["missing"]
    assert not {"verdict", "results", "diagnosis", "control"} & scored.keys()
    monkeypatch.setattr(TransformersScorer, "token_logprobs", lambda *_: pytest.fail("again"))
    status, out, _ = audit("test")
    assert status == 0
    assert "everything was stored already" in out


def test_scoring_makes_no_test_that_a_later_one_has_to_pay_for(audit):
    assert audit("score", "--test", "sharded_exact", "--permutations", "5")[0] == 0
    assert list(Path("stores").rglob("*.parquet"))
    assert not list(Path("stores").rglob("test-*"))
    out = audit("test", "--test", "sharded_t", "--permutations", "5", "--json")[1]
    assert result_of(out)["other_tests"] == []


def test_a_second_dry_run_names_the_day_of_the_first(audit):
    plan = ("test", "--dry-run", "--batch-tokens", "99", "--test", "successor")
    measured = audit(*plan)[1]
    assert "run of" not in measured
    assert audit(*plan)[1].count("run of 20") == 1


def test_stopping_early_is_the_evidence_of_one_test(audit):
    arguments = ("test", "--stop", "--test=sharded_exact", "--alpha=1e-6")
    found = result_of(audit(*arguments, "--json")[1])
    assert found["results"][0]["stopped_at"] is None
    assert found["diagnosis"][0]["shards"] == 5
    status, out, _ = audit(*arguments)
    assert status == 0
    assert "not enough evidence after 5 shards" in out


@pytest.mark.parametrize(
    ("model", "data", "options", "named"),
    [
        ("", "list.jsonl", ("--axis", "options"), "no options found"),
        ("./x", "", ("--field", "question"), "x: no model"),
        ("", "", ("--template", "{answer}", "--field", "question"), "--field and --template"),
        ("", "", ("--field", "answer", "--precision", "int7"), "precision is 'int7'"),
        ("", "", ("--field", "answer", "--tokenizer", "gpt2"), "--tokenizer goes with --endpoint"),
        ("", "", ("--field", "answer", "--endpoint", "http://127.0.0.1:1/v1"), "--tokenizer"),
        ("", "", ("--stop", "--dry-run"), "--dry-run"),
        ("", "", ("--output", "x.txt"), ".eee.json"),
        ("", "", ("--output", "./prose.csv"), "prose.csv is what is read"),
        ("", "", ("--stop", "--control", "x"), "--control"),
        ("", "", ("--field", "answer", "--store", "/dev/null"), "/dev/null: no directory"),
        (
            "model",
            "",
            ("--control", "model"),
            "the control is the model itself: name one that cannot have read the set (--control)",
        ),
    ],
)
def test_bad_input_is_one_line(model, data, options, named, refused, model_directory, audit):
    Path("list.jsonl").write_text('{"text": "a"}\n{"text": "b"}\n')
    before = set(Path().iterdir())
    arguments = (model or model_directory, data or "prose.csv", "--store", "stores", *options)
    assert named in refused("test", *arguments)
    assert set(Path().iterdir()) == before


def test_process_0_alone_prints(audit, monkeypatch):
    audit("test")  # process 0 fills the store that the others then open
    monkeypatch.setattr(type(processes()), "is_main_process", False)
    for options in (("--dry-run",), ("--json",)):
        assert audit("test", *options)[:2] == (0, "")


@pytest.fixture(scope="module")
def model(make_model) -> Path:
    return make_model(128)


@pytest.fixture
def quiz(call, model):
    """Return a function that tests items; of twelve with three options, the last has numbers."""
    last = {"question": "Q?", "choices": ["1", "2", "3"], "answer": 0}
    Path("quiz.jsonl").write_bytes(jsonl([*drawn_items(11, 3), last]))

    def command(*arguments, axis="options", path="quiz.jsonl") -> tuple[int, str, str]:
        return call("test", model, path, "--store", "stores", "--axis", axis, *arguments)

    return command


def test_published_options_alone_reject_nothing(quiz, make_model, call) -> None:
    """Habits of writing favour the order of options: evidence takes a control that is silent."""
    other = make_model(120)
    assert quiz("--alpha", "1e-8")[0] == 0
    assert quiz("--alpha", "1e-9")[0] == 3  # three options have six orders: 6^-11 is the least p
    assert quiz("--alpha", "0.999")[0] == 3  # the compressor rejects at this level, too
    found = result_of(quiz("--json", "--control", other)[1])
    assert found["results"][0]["shards"] == 11
    status, out, _ = call("verify", "stores")
    assert status == 0
    assert f"{found['results'][0]['p']:.3g}" in out
    p, theirs = (one["results"][0]["p"] for one in (found, found["control_model"]))
    compressor = found["control"][0]["p"]
    quiet = found["diagnosis"][0]["verdict"] == "quiet"
    alpha = min(0.999, p * 1.0001)
    status, out, _ = quiz("--alpha", str(alpha))
    assert status == 3
    assert ("by --control" in out) == (quiet and compressor > alpha)
    status = quiz("--alpha", str(alpha), "--control", other)[0]
    assert status == (1 if min(theirs, compressor) > alpha and quiet else 3)
    # What a seed has arranged needs no control: the law is a fact, so numbers move, too.
    found = result_of(quiz("--drawn", "--json", "--alpha", "0.999")[1])
    assert found["results"][0]["shards"] == 12
    p, compressor = found["results"][0]["p"], found["control"][0]["p"]
    quiet = found["diagnosis"][0]["verdict"] == "quiet"
    status = quiz("--drawn", "--alpha", str(min(0.999, p * 1.0001)))[0]
    assert status == (1 if quiet and compressor > p else 3)


def test_the_axis_of_options_says_what_it_asks_and_which_items_do_not_move(quiz) -> None:
    _, out, _ = quiz("--alpha", "1e-12")
    printed = " ".join(out.split())
    assert "with its options in this order?" in printed
    assert "1 of 12 items do not move: they have numbers" in printed


def test_both_axes_stand_beside_their_combination_which_decides(quiz) -> None:
    found = result_of(quiz("--json", "--alpha", "1e-4", axis="both")[1])
    assert [result["test"] for result in found["results"]] == ["successor", "options"]
    assert found["verdict"]["conclusion"] == "no evidence"
    p, order = found["joint"]["p"], found["results"][0]["p"]
    believed = found["diagnosis"][0]["verdict"] == "quiet", found["control"][0]["p"]
    for alpha in (p * 0.99, min(1, order * 1.01)):
        status = quiz("--alpha", f"{alpha:.12f}", axis="both")[0]
        proven = order <= alpha and believed[0] and believed[1] > alpha
        if proven:
            assert status == 1
        elif min(p, order) <= alpha:
            assert status == 3
        else:
            assert status == 0


def test_an_axis_that_was_tested_is_not_advised(quiz) -> None:
    printed = " ".join(quiz("--alpha", "1e-4", axis="both")[1].split())
    assert "contamination compare" in printed
    assert "--axis options" not in printed


def test_fields_of_an_item_may_be_declared(quiz) -> None:
    names = ("question", "opa", "opb", "gold")
    rows = [(f"Q{i}?", f"ash {i} b", f"elm {i} c", i % 2) for i in range(6)]
    Path("own.jsonl").write_bytes(jsonl([dict(zip(names, row, strict=True)) for row in rows]))
    shown = ("--template", "{question} {opa} {opb} {gold}\\n")
    status, _, err = quiz(*shown, path="own.jsonl")
    assert status == 2
    assert "--answer gold," in err
    for declared in (("--answer", "gold"), ("--options", "opa", "--options", "opb")):
        assert quiz(*shown, "--answer", "gold", *declared, path="own.jsonl")[0] in (0, 3)


def test_a_copy_of_the_model_is_no_control(quiz, model) -> None:
    shutil.copytree(model, "copy")
    status, _, err = quiz("--control", "copy")
    assert status == 2
    assert "--control copy" in err


def test_a_control_that_is_replaced_while_the_model_is_scored_is_refused(
    audit, model_directory, make_model, monkeypatch
) -> None:
    """Its weights are read last, hours after they were hashed."""
    control = shutil.copytree(make_model(120), Path("control"))
    weights = control / "model.safetensors"
    later = {name: 1.5 * value for name, value in load_file(weights).items()}
    load = loading.load_network

    def load_and_train(source: loading.ModelSource, *how):
        if source.name != "control":
            save_file(later, weights, {"format": "pt"})
        return load(source, *how)

    monkeypatch.setattr(loading, "load_network", load_and_train)
    status, out, err = audit("test", "--test", "sharded_exact", "--control", "control")
    assert status == 2
    assert out == ""
    assert err.splitlines()[-1].startswith("error: control: ")
    assert [path.name for path in Path("stores").iterdir()] == [model_directory.name]


TEST = ("--test", "sharded_exact")


def test_a_known_layout_is_taken_and_said(call, model_directory, prose) -> None:
    rows = [{"question": text[:30], "answer": str(i)} for i, text in enumerate(prose[:20])]
    Path("asked.jsonl").write_bytes(jsonl(rows))
    plan = ("score", model_directory, "asked.jsonl", "--dry-run", "--json", *TEST)
    status, out, err = call(*plan)
    assert status == 0
    assert json.loads(out)["examples"] == 20
    (line,) = err.splitlines()
    assert "question/1" in line and "--template" in line
    assert call(*plan, "--field", "answer")[2] == ""


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("lr=0.1/a.jsonl", [("lr=0.1/a.jsonl", None)]),
        (r"lr=0.1/a.jsonl={q}={a}\n", [("lr=0.1/a.jsonl", "{q}={a}\n")]),
        ("b*.jsonl", [("b*.jsonl", None)]),
        ("b*.jsonl={q}", [("b*.jsonl", "{q}")]),
        ("gsm8k={question}", [("gsm8k", "{question}")]),
        ("none.jsonl={q}", [("none.jsonl", "{q}")]),
        ("mmlu/anat*", [("mmlu/anatomy", None)]),
    ],
)
def test_a_path_may_hold_an_equal_sign_or_a_star(typed, names) -> None:
    for name in ("lr=0.1/a.jsonl", "b*.jsonl"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).touch()
    assert _sets_of(typed) == names


def test_a_table_of_odd_names_is_verified_against_its_stores(call, model_directory, prose) -> None:
    odd = Path("=1+1\x1b[31m")
    shutil.copytree(model_directory, odd)
    Path("@set.txt").write_text("\n".join(text[:30] for text in prose[:20]), encoding="utf-8")
    told = ("--model", odd, "--permutations", "5", "--test", "sharded_exact", "--store", "stores")
    call("audit", "@set.txt", *told, "--csv", "table.csv")
    (row,) = csv.DictReader(io.StringIO(Path("table.csv").read_text()))
    assert row["model"] == r"'=1+1\x1b[31m"
    assert row["set"] == "'@set"
    assert call("verify", "stores", "--against", "table.csv")[0] == 0
