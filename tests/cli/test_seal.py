"""`contamination seal`, `verify` and `test --seal`, as an author and an auditor type them."""

import json
import re
from pathlib import Path

import pytest

from contamination.seal import beacon, files
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
def _directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("quiz.jsonl").write_text("".join(json.dumps(each) + "\n" for each in ITEMS))


@pytest.fixture
def sealed(call) -> str:
    """Seal the items; what is printed."""
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


# --- the author's side ----------------------------------------------------------------------------


def test_a_seal_says_what_it_drew_what_to_publish_and_how_much_that_finds(sealed):
    told = " ".join(sealed.split())
    assert "the options of 12 items, the wording of 12 records; dated " in told
    assert f"publish {PUBLISHED} and {SEALED[1]}, where a date can be proved" in told
    assert f"keep {SEALED[3]} to yourself" in told
    assert "sealed in one step" in told
    assert re.search(r"│ 1\.0 +│ +7 │ +\d+ │", sealed), sealed  # sd, options, wordings
    assert len(secrets()) == 13
    assert not [secret for secret in secrets() if secret in sealed]


def test_two_steps_end_with_a_set_that_nobody_chose(call, refused, model, monkeypatch):
    monkeypatch.setattr(beacon, "GENESIS", beacon.GENESIS + 10**10)
    status, out, _ = call(*SEAL, "--commit", "--round", ROUND)
    told = " ".join(out.split())
    assert status == 0
    assert f"publish sealed/commitment.json before {beacon.time_of(ROUND):%Y-%m-%d %H:%M}" in told
    assert f"https://api.drand.sh/{beacon.CHAIN}/public/1000" in told
    assert not Path("sealed/public").exists()
    assert "is not the beacon's of round 1,000" in refused("seal", "sealed", "--signature", "00")
    status, out, _ = call("seal", "sealed", "--signature", SIGNATURE)
    assert (status, "nobody could choose this arrangement" in out) == (0, True)
    status, out, _ = call("verify", PUBLISHED, *SEALED)
    assert (status, "nobody could choose this arrangement" in out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("seal", "none.jsonl", "--out", "new"), "none.jsonl: no such file"),
        (("seal", "quiz.jsonl"), "--out is missing"),
        ((*SEAL, "--out", "."), ".: a directory that cannot be replaced"),
        ((*SEAL, "--out", "quiz.jsonl"), "quiz.jsonl: there is something already"),
        ((*SEAL, "--date", "today"), "Invalid value for '--date'"),
        ((*SEAL, "--axis", "options"), "Invalid value for '--axis'"),
        ((*SEAL, "--template", "{text"), "template '{text': "),
        ((*SEAL, "--test", "options"), "options is a test of options"),
        ((*SEAL, "--arrangements", "1"), "arrangements: "),
        ((*SEAL, "--round", "7"), "--round goes with --commit"),
        ((*SEAL, "--commit", "--round", "7"), "round 7 is over"),
        ((*SEAL, "--commit", "--round", str(10**30)), "beacon_round: "),
        ((*SEAL, "--signature", "00"), "--signature ends what --commit began"),
        (("seal", "no[/b]ne", "--signature", "00"), "no[/b]ne/private/key.json: cannot be read"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(refused, tmp_path, arguments, named):
    assert refused(*arguments).startswith(named)
    assert [path.name for path in tmp_path.iterdir()] == ["quiz.jsonl"]


def test_an_interrupt_ends_it_without_a_trace(call, tmp_path, monkeypatch):
    def interrupted(*_) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "draw_again", interrupted)
    assert call(*SEAL) == (130, "", "")
    assert [path.name for path in tmp_path.iterdir()] == ["quiz.jsonl"]


# --- the auditor's side ---------------------------------------------------------------------------


def test_it_is_verified_without_a_model(sealed, call, refused):
    status, out, _ = call("verify", PUBLISHED, *SEALED)
    assert (status, "of 12 items" in out) == (0, True)
    assert not [secret for secret in secrets() if secret in out]
    Path(PUBLISHED).write_bytes(Path(PUBLISHED).read_bytes().replace(b"elm", b"yew", 1))
    assert refused("verify", PUBLISHED, *SEALED).startswith(
        f"{PUBLISHED}: not the set that the key"
    )


def test_each_part_is_tested_and_all_together_decide(sealed, call, model):
    status, out, err = call("test", model, PUBLISHED, *SEALED)
    assert status in (0, 1)
    assert err == ""
    for name, of in (
        ("successor", "1 shards"),
        ("options", "12 items"),
        ("wordings", "12 records"),
    ):
        assert re.search(rf"│ {name} +│ +{of} │", out), out
    told = " ".join(out.split())
    assert "verified: the key drew the order of 12 records, " in told
    assert "sealed in one step" in told
    assert "not claimed: how the model came by the set" in told
    assert "compressor" not in told
    status, out, _ = call("test", model, PUBLISHED, *SEALED, "--json")
    found = json.loads(out)
    assert [each["test"] for each in found["results"]] == ["successor", "options", "wordings"]
    assert found["rejected"]["joint"] == (found["joint"]["p"] <= found["alpha"]) == bool(status)
    assert found["seal"]["commitment"] == json.loads(Path(SEALED[1]).read_bytes())["commitment"]
    assert not [secret for secret in secrets() if secret in out + told]


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (("--seal", SEALED[1]), "--seal sealed/public/seal.json alone proves nothing of the order"),
        (("--key", SEALED[3]), "--key goes with --seal: give the seal.json that was published"),
        ((*SEALED, "--stop"), "--stop and --control: all that --seal names is tested; leave them"),
        ((*SEALED, "--axis", "both"), "--axis: the seal states how the set is tested"),
        ((*SEALED, "--template", "text/1"), "--template: the seal states how the set is tested"),
        ((*SEALED, "--test", "permutation"), "--test: the seal states how the set is tested"),
        ((*SEALED, "--seed", "7"), "--seed: the seal states how the set is tested"),
        ((*SEALED, "--alpha", "0.5"), "--alpha: the seal states the level 0.05; leave it out"),
    ],
)
def test_what_the_seal_states_is_refused_before_a_model_is_loaded(sealed, refused, more, line):
    assert refused("test", "no-such-model", PUBLISHED, *more).startswith(line)
