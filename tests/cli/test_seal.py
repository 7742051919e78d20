"""`contamination seal`, `verify` and `test --seal`, as an author and an auditor type them."""

import json
import re
from pathlib import Path

import pytest

from contamination.seal import beacon
from seal.test_beacon import ROUND, SIGNATURE

ITEMS = [
    {
        "choices": [f"{w} {i}" for w in ("ash", "elm", "fir", "oak")],
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
    assert (status, err) == (0, "")
    return out


@pytest.fixture(scope="module")
def model(make_model) -> Path:
    return make_model(64, width=16, layers=1)


def secrets() -> list[str]:
    """What nobody but the author may see."""
    key = json.loads(Path(SEALED[3]).read_bytes())
    asked = {json.loads(line)["question"] for line in Path(PUBLISHED).read_text().splitlines()}
    wordings = {text for one in key["records"] for text in one["wordings"]}
    return [key["secret"], *(wordings - asked)]


def test_a_seal_says_what_it_drew_what_to_publish_and_how_much_that_finds(sealed):
    assert "the options of 12 items, the wording of 12 records; dated " in sealed
    assert re.search(r"│ 1\.0 +│ +7 │ +\d+ │", sealed), sealed  # sd, options, wordings
    assert len(secrets()) == 13
    assert not [secret for secret in secrets() if secret in sealed]


def test_two_steps_end_with_a_set_that_nobody_chose(call, refused, model, monkeypatch):
    monkeypatch.setattr(beacon, "GENESIS", beacon.GENESIS + 10**10)
    status, out, _ = call(*SEAL, "--commit", "--round", ROUND)
    assert (status, f"api.drand.sh/{beacon.CHAIN}/public/1000" in out) == (0, True)
    assert f"{beacon.time_of(ROUND):%Y-%m-%d %H:%M}" in out
    assert not Path("sealed/public").exists()
    assert "is not the beacon's of round 1,000" in refused("seal", "sealed", "--signature", "00")
    status, out, _ = call("seal", "sealed", "--signature", SIGNATURE)
    assert (status, "nobody could choose this arrangement" in out) == (0, True)
    status, out, _ = call("verify", PUBLISHED, *SEALED)
    assert (status, "nobody could choose this arrangement" in out) == (0, True)
    assert not [secret for secret in secrets() if secret in out]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("seal", "quiz.jsonl"), "--out is missing"),
        ((*SEAL, "--out", "."), ".: a directory that cannot be replaced"),
        ((*SEAL, "--arrangements", "1"), "arrangements is 1"),
        ((*SEAL, "--round", "7"), "--round goes with --commit"),
        ((*SEAL, "--signature", "00"), "--signature ends what --commit began"),
        (("seal", "no[/b]ne", "--signature", "00"), "no[/b]ne/private/key.json: no file"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(refused, tmp_path, arguments, named):
    assert refused(*arguments).startswith(named)
    assert [path.name for path in tmp_path.iterdir()] == ["quiz.jsonl"]


def test_each_part_is_tested_and_all_together_decide(sealed, call, model):
    told = call("test", model, PUBLISHED, *SEALED)[1]
    assert re.search(r"│ wordings +│ +12 records │", told), told
    status, out, _ = call("test", model, PUBLISHED, *SEALED, "--json")
    found = json.loads(out)
    assert [each["test"] for each in found["results"]] == ["successor", "options", "wordings"]
    assert found["verdict"]["p"] == found["joint"]["p"]
    assert found["verdict"]["status"] == status == (found["joint"]["p"] <= found["alpha"])
    assert found["seal"]["commitment"] == json.loads(Path(SEALED[1]).read_bytes())["commitment"]
    assert not [secret for secret in secrets() if secret in out + told]


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (("--seal", SEALED[1]), "--seal sealed/public/seal.json alone proves nothing of the order"),
        (("--key", SEALED[3]), "--key goes with --seal: give the seal.json that was published"),
        ((*SEALED, "--stop"), "--stop and --control: all that --seal names is tested; leave them"),
        ((*SEALED, "--axis", "both"), "--axis: the seal states how the set is tested"),
        ((*SEALED, "--test", "permutation"), "--test: the seal states how the set is tested"),
        ((*SEALED, "--alpha", "0.5"), "--alpha: the seal states the level 0.05; leave it out"),
    ],
)
def test_what_the_seal_states_is_refused_before_a_model_is_loaded(sealed, refused, more, line):
    assert refused("test", "no-such-model", PUBLISHED, *more).startswith(line)
