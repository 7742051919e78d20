"""`contamination seal`, `verify`, `test --seal` and `audit-logs`, as people type them."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from contamination.scoring.generation import LocalGenerator
from contamination.scoring.local import TransformersScorer
from contamination.seal import beacon, files
from fakes.completions_server import serving
from fakes.made_up_registry import jsonl
from fakes.results import result_of
from seal.test_beacon import ROUND, SIGNATURE

ITEMS = [
    {
        "choices": [f"ash {i}", f"elm {i}", f"fir {i}", f"oak {i}"],
        "answer": "ABCD"[i % 4],
        "wordings": [f"{i}th?", f"{i}, eh?"],
    }
    for i in range(12)
]
TEMPLATE = ("--template", r"{question} {choices:, } {answer}\n")
SEAL = ("seal", "quiz.jsonl", "--out", "sealed", *TEMPLATE, "--wordings-of", "question")
PUBLISHED = "sealed/public/quiz.jsonl"
SEALED = ("--seal", "sealed/public/seal.json", "--key", "sealed/private/key.json")


@pytest.fixture(autouse=True)
def _directory(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    Path("quiz.jsonl").write_text("".join(json.dumps(each) + "\n" for each in ITEMS))


@pytest.fixture
def sealed(call) -> str:
    status, out, err = call(*SEAL)
    assert status == 0
    assert err == ""
    return out


@pytest.fixture(scope="module")
def model(make_model) -> Path:
    return make_model(64, width=16, layers=1)


def secrets() -> list[str]:
    """Texts that only the author may see."""
    key = json.loads(Path(SEALED[3]).read_bytes())
    asked = {json.loads(line)["question"] for line in Path(PUBLISHED).read_text().splitlines()}
    wordings = set()
    for record in key["records"]:
        wordings.update(record["wordings"])
    return [key["secret"], *(wordings - asked)]


def test_a_seal_says_what_it_drew_what_to_publish_and_how_much_that_finds(sealed):
    assert "the options of 12 items, the wording of 12 records; dated " in sealed
    assert re.search(r"│ 1\.0 +│ +7 │ +\d+ │", sealed), sealed  # sd, options, wordings
    assert len(secrets()) == 13
    assert not [secret for secret in secrets() if secret in sealed]


def test_two_steps_end_with_a_set_that_nobody_chose(call, refused, model, monkeypatch):
    monkeypatch.setattr(beacon, "GENESIS", beacon.GENESIS + 10**10)
    status, out, _ = call(*SEAL, "--commit", "--round", ROUND)
    assert status == 0
    assert f"api.drand.sh/{beacon.CHAIN}/public/1000" in out
    assert f"{beacon.time_of(ROUND):%Y-%m-%d %H:%M}" in out
    assert not Path("sealed/public").exists()
    assert "is not the beacon's of round 1,000" in refused("seal", "sealed", "--signature", "00")
    status, out, _ = call("seal", "sealed", "--signature", SIGNATURE)
    assert status == 0
    assert "nobody could choose this arrangement" in out
    status, out, _ = call("verify", PUBLISHED, *SEALED)
    assert status == 0
    assert "nobody could choose this arrangement" in out
    assert not [secret for secret in secrets() if secret in out]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("seal", "quiz.jsonl"), "--out names a new directory"),
        ((*SEAL, "--out", "."), ".: a directory that cannot be replaced"),
        ((*SEAL, "--arrangements", "1"), "arrangements is 1"),
        ((*SEAL, "--round", "7"), "round 7 is over"),
        ((*SEAL, "--signature", "00"), "--out names a new directory"),
        (("seal", "no[/b]ne", "--signature", "00"), "no[/b]ne/private/key.json: cannot be read"),
        ((*SEAL, "--hold-out", "0"), "(--hold-out)"),
        ((*SEAL, "--hold-out", "3"), "quiz.jsonl: 3 of 12 records held back leave 9"),
        ((*SEAL, "--score", "loss"), "scores compare"),
        ((*SEAL, "--test", "poetry"), "unknown test 'poetry'"),
        ((*SEAL, "--alpha", "1e-13"), "--alpha"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(refused, tmp_path, arguments, named):
    assert named in refused(*arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["quiz.jsonl"]


def test_a_file_whose_name_is_no_name_of_a_set_is_to_be_renamed(refused):
    named = Path("quiz.jsonl").rename("my quiz (1).jsonl")
    line = refused("seal", named, *SEAL[2:])
    assert line.startswith(f"{named}: ")
    assert "rename" in line
    assert not Path("sealed").exists()


def test_each_part_is_tested_and_all_together_decide(sealed, call, model):
    told = call("test", model, PUBLISHED, *SEALED)[1]
    assert re.search(r"│ wordings +│ +12 │", told), told
    assert "contamination compare" not in told
    assert "--axis" not in told
    status, out, _ = call("test", model, PUBLISHED, *SEALED, "--json")
    found = result_of(out)
    assert [each["test"] for each in found["results"]] == ["successor", "options", "wordings"]
    assert found["verdict"]["p"] == found["joint"]["p"]
    is_positive = found["joint"]["p"] <= found["alpha"]
    assert status == found["verdict"]["status"]
    assert status == 1 if is_positive else 3  # a large p of such texts says nothing
    assert found["seal"]["commitment"] == json.loads(Path(SEALED[1]).read_bytes())["commitment"]
    assert not [secret for secret in secrets() if secret in out + told]


def test_text_alone_tests_order_and_options_with_a_bound_on_what_is_known(sealed, call, model):
    asked = ("test", model, PUBLISHED, *SEALED, "--access", "generate")
    planned = json.loads(call(*asked, "--quiz", "--dry-run", "--json")[1])
    assert [each["requests, of one text each"] for each in planned.values()] == [2, 12]
    status, out, _ = call(*asked, "--quiz", "--json")
    found = json.loads(out)
    assert [each["test"] for each in found["results"]] == ["record_quiz", "arrangement_quiz"]
    assert (found["written"]["texts"], found["written"]["options"]["texts"]) == (2, 12)
    assert call(*asked, "--quiz")[1].count("tokens at temperature") == 2
    assert found["verdict"]["p"] == found["joint"]["p"]
    is_positive = found["joint"]["p"] <= found["alpha"]
    assert status == found["verdict"]["status"]
    assert status == 1 if is_positive else 3  # a large p of such texts says nothing
    with serving(None, "chat", LocalGenerator(TransformersScorer(model), "tiny")) as server:
        status, told, err = call(*asked, "--quiz", "--endpoint", server.url)
    assert status in (1, 3)
    assert "requests" in err
    assert not [secret for secret in secrets() if secret in told + err]
    told = call(*asked, "--samples", "2", "--tokens", "4")[1]
    assert "generated_suc" in told
    assert re.search(r"arrangement_quiz: \d+ or more of 12 are known", told), told
    assert not [secret for secret in secrets() if secret in out + told]


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (("--seal", SEALED[1]), "--seal and --key go together"),
        ((*SEALED, "--stop"), "--stop and --control: all that --seal names is tested; leave them"),
        ((*SEALED, "--axis", "both"), "--axis: the seal states how the set is tested"),
        ((*SEALED, "--test", "permutation"), "--test: the seal states how the set is tested"),
        ((*SEALED, "--order", "drawn"), "--order: the seal states how the set is tested"),
        ((*SEALED, "--alpha", "0.5"), "--alpha: the seal states how the set is tested"),
        (("--held-out", "quiz.jsonl"), "--held-out goes with --seal and --key"),
        ((*SEALED, "--held-out", "quiz.jsonl"), "quiz.jsonl: sealed/public/seal.json holds no"),
        (
            (*SEALED, "--held-out", "quiz.jsonl", "--access", "generate"),
            "--held-out needs log-probabilities",
        ),
    ],
)
def test_what_the_seal_states_is_refused_before_a_model_is_loaded(sealed, refused, more, line):
    assert refused("test", "no-such-model", PUBLISHED, *more).startswith(line)


# --- records that are held back ------------------------------------------------------------

TEXTS = [{"text": f"{i} {'abcdefghij'[i % 10] * (i // 10 + 3)} stone."} for i in range(40)]
FACTS = (
    "facts/public/facts.jsonl",
    "--seal",
    "facts/public/seal.json",
    "--key",
    "facts/private/key.json",
)
HELD_OUT = ("--held-out", "facts/private/held_out.jsonl")


@pytest.fixture
def divided(call) -> str:
    Path("facts.jsonl").write_bytes(jsonl(TEXTS))
    template = ("--template", r"{text}\n")
    status, out, _ = call(
        "seal", "facts.jsonl", "--out", "facts", "--axis", "order", "--hold-out", "15", *template
    )
    assert status == 0
    return out


def test_a_seal_names_the_file_to_keep_and_the_least_p(divided):
    assert "which 15 of 40 records are held back" in divided
    assert "keep facts/private/held_out.jsonl with the key" in divided
    assert "no p below 1e-05, and 2e-05 together" in divided


def test_both_sides_are_compared_where_their_file_is_named(divided, call, model):
    status, out, _ = call("test", model, *FACTS, *HELD_OUT, "--json")
    found = result_of(out)
    order, sides = found["results"]
    assert [order["test"], sides["test"]] == ["successor", "held_out"]
    assert found["joint"]["p"] == pytest.approx(min(1.0, 2 * min(order["p"], sides["p"])))
    assert found["held_out"]["p"] == sides["p"]
    assert found["held_out"]["published"] == 25
    assert status == found["verdict"]["status"]
    told = call("test", model, *FACTS, *HELD_OUT)[1]
    for record in map(json.loads, Path(HELD_OUT[1]).read_text().splitlines()):
        assert record["text"] not in out + told


def test_a_dry_run_shows_the_stated_permutations(call, model):
    """The command states none, and its own would be 25."""
    stated = ("--test", "sharded_exact", "--permutations", "5", "--arrangements", "6")
    assert call(*SEAL, *stated)[0] == 0
    printed = " ".join(call("test", model, PUBLISHED, *SEALED, "--dry-run")[1].split())
    assert "permutations │ 5 │" in printed


def test_a_dry_run_counts_both_sides(divided, call, model):
    asked = ("test", model, *FACTS, *HELD_OUT)
    planned = json.loads(call(*asked, "--dry-run", "--json")[1])["held_out"]
    assert (planned["published"], planned["held_out"]) == (25, 15)
    assert planned["missing"] == planned["work"]["scored"] > 25 + 15
    assert 0 < planned["least_seconds"] < planned["seconds"] < planned["most_seconds"]
    assert not list(Path().glob("**/held-out-*"))
    printed = " ".join(call(*asked, "--dry-run")[1].split())
    assert f"tokens read │ {planned['work']['read']:,} │" in printed
    call(*asked)
    stored = json.loads(call(*asked, "--dry-run", "--json")[1])["held_out"]
    assert (stored["missing"], stored["seconds"]) == (0, None)


def test_without_their_file_the_result_says_what_was_not_compared(divided, call, model):
    found = result_of(call("test", model, *FACTS, "--json")[1])
    (order,) = found["results"]
    assert found["joint"]["p"] == pytest.approx(min(1.0, 2 * order["p"]))
    assert any("held back" in limit for limit in found["not_claimed"])


def test_verify_says_whether_it_has_read_the_held_out_records(divided, call, refused):
    assert "not verified: the file of the records that were held" in call("verify", *FACTS)[1]
    status, out, _ = call("verify", *FACTS, *HELD_OUT)
    assert status == 0
    assert "and facts/private/held_out.jsonl are what" in out
    Path(HELD_OUT[1]).write_text("")
    assert refused("verify", *FACTS, *HELD_OUT).startswith(f"{HELD_OUT[1]}: not what")
    assert "SEALED, --seal and --key" in refused("verify", FACTS[0], *HELD_OUT)
    assert "--key is missing" in refused("verify", *FACTS[:3])


# --- audit-logs -----------------------------------------------------------------------------------

TREES = [
    {
        "id": f"r{i}",
        "question": f"Name a tree of group {i}!",
        "answers": [f"ash {i}", f"elm {i}", f"fir {i}"],
    }
    for i in range(24)
]
TREES_ARE = ("--axis", "order", "--answers", "answer", "--template", r"{question} {answer}\n")


@pytest.fixture
def logs(call, monkeypatch) -> tuple[str, ...]:
    """Seal trees, write logs of a model that has read 18 of them and of two that have not."""
    monkeypatch.setattr(files.secrets, "token_bytes", bytes)
    Path("trees.jsonl").write_bytes(jsonl(TREES))
    assert call("seal", "trees.jsonl", "--out", "trees", *TREES_ARE)[0] == 0
    published = map(json.loads, Path("trees/public/trees.jsonl").read_text().splitlines())
    read = {one["id"]: one["answer"] for one in list(published)[:18]}
    clean = [
        {"model": "clean", "id": one["id"], "answer": f"It is the {one['answers'][i % 3]}."}
        for i, one in enumerate(TREES)
    ]
    reader = [each | {"model": "reader"} for each in clean]
    reader = [each | {"answer": read.get(each["id"], each["answer"])} for each in reader]
    for name, rows in {"reader": reader, "clean": clean, "brief": clean[:2]}.items():
        Path(f"{name}.jsonl").write_bytes(jsonl(rows))
    return ("audit-logs", "--seal", "trees/public/seal.json", "--key", "trees/private/key.json")


def test_the_model_that_knows_the_published_answers_is_told_from_the_one_that_does_not(logs, call):
    status, out, _ = call(*logs, "reader.jsonl", "clean.jsonl", "--json", "--csv", "found.csv")
    told = json.loads(out)
    assert status == 1
    assert [each["model"] for each in told["models"]] == ["reader", "clean"]
    assert [each["conclusion"] for each in told["models"]] == ["proven", "no evidence"]
    assert told["seal"] == json.loads(Path(logs[2]).read_bytes())
    table = pd.read_csv("found.csv", keep_default_na=False)
    pd.testing.assert_frame_equal(table, pd.DataFrame(told["models"]))


@pytest.mark.parametrize(
    ("name", "row", "wanted"),
    [
        ("reader", r"reader .*│ proven", 1),
        ("clean", r"clean .*│ no evidence", 0),
        ("brief", r"clean +│ +2 │ +2 │.*│ cannot say", 3),
    ],
)
def test_the_exit_status_follows_the_table(logs, call, monkeypatch, name, row, wanted):
    monkeypatch.setenv("COLUMNS", "160")
    status, out, _ = call(*logs, f"{name}.jsonl")
    assert status == wanted, out
    assert re.search(row, out), out
    assert json.loads(Path(logs[4]).read_bytes())["secret"] not in out


def test_hits_that_were_picked_and_answers_that_differ_need_a_stated_rule(logs, call):
    """The status, and what is printed of the records: how many are missing, or differ."""
    read = Path("reader.jsonl").read_text().splitlines()
    clean = Path("clean.jsonl").read_text().replace('"clean"', '"reader", "epoch": 2').splitlines()
    Path("picked.jsonl").write_text("\n".join(read[:15]))
    Path("both.jsonl").write_text("\n".join(read + clean))
    differing = sum(json.loads(x)["answer"] not in y for x, y in zip(read, clean, strict=True))
    for arguments, status, printed in [
        (("picked.jsonl",), 3, "9 of its records are missing"),
        (("both.jsonl",), 3, f"{differing} of its records have several different answers"),
        (("both.jsonl", "--epochs", "first"), 1, f"24 .* {differing} have different ones"),
        (("clean.jsonl", "reader.jsonl"), 1, "in this order: clean.jsonl, reader.jsonl"),
    ]:
        found, out, _ = call(*logs, *arguments)
        assert found == status, out
        assert re.search(printed, out), out


def test_the_table_of_logs_replaces_no_part_of_the_seal(logs, call):
    for name in ("trees/public/trees.jsonl", "trees/private/key.json", "clean.jsonl"):
        before = Path(name).read_bytes()
        assert call(*logs, "clean.jsonl", "--csv", name)[0] == 2
        assert Path(name).read_bytes() == before


def test_no_number_is_printed_of_a_model_of_which_nothing_can_be_said(logs, call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    read = Path("reader.jsonl").read_text().splitlines()
    Path("picked.jsonl").write_text("\n".join(read[:15]))
    _, out, _ = call(*logs, "picked.jsonl")
    assert re.search(r"reader +│ +15 │ +15 │ +\d+ │ +– │ +– │ +– │ cannot say", out), out


def test_a_limit_is_the_first_published_records(logs, call):
    rows = {json.loads(line)["id"]: line for line in Path("reader.jsonl").read_text().splitlines()}
    published = Path("trees/public/trees.jsonl").read_text().splitlines()
    first = [rows[json.loads(line)["id"]] for line in published[:12]]
    Path("limited.jsonl").write_text("\n".join(first))
    assert call(*logs, "limited.jsonl")[0] == 3
    assert call(*logs, "limited.jsonl", "--limit", "12")[0] == 1
    assert call(*logs, "limited.jsonl", "--limit", "13")[0] == 3
    assert call(*logs, "limited.jsonl", "--limit", "11")[0] == 2
    assert "trees has 24 records" in call(*logs, "reader.jsonl", "--limit", "25")[2]
