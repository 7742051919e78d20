"""`contamination test --seal`, as an auditor types it."""

import json
import re
from pathlib import Path

import pytest

from contamination.testsets.sealed import to_json
from contamination.testsets.sealing import seal_file

ITEMS = [
    {
        "choices": [f"{w} {i}" for w in ("ash", "elm", "fir", "oak")],
        "answer": "ABCD"[i % 4],
        "wordings": [f"{i}th?", f"{i}, eh?"],
    }
    for i in range(12)
]
SEALED = ("--seal", "sealed/public/seal.json", "--key", "sealed/private/key.json")
PUBLISHED = "sealed/public/quiz.jsonl"


@pytest.fixture(autouse=True)
def _directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("quiz.jsonl").write_text("".join(json.dumps(each) + "\n" for each in ITEMS))
    seal_file(
        Path("quiz.jsonl"),
        Path("sealed"),
        template="{question} {choices:, } {answer}\n",
        wordings_of="question",
        date="2026-01-31",
    )


@pytest.fixture(scope="module")
def model(make_model) -> Path:
    return make_model(64, width=16, layers=1)


def secrets() -> list[str]:
    key = json.loads(Path("sealed/private/key.json").read_bytes())
    return [key["seed"], *(text for texts in key["wordings"].values() for text in texts)]


def test_it_prints_each_part_and_all_and_what_that_rests_on(call, model):
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
    assert "verified: 12 records, sealed 2026-01-31, commitment " in told
    assert "no assumption about the set, which needs no diagnosis and no control" in told
    assert "not claimed: how the model came by the set" in told
    assert "compressor" not in told
    assert "quiet" not in told
    assert not [secret for secret in secrets() if secret in out]


def test_its_status_is_that_of_all_parts_together(call, model):
    status, out, _ = call("test", model, PUBLISHED, *SEALED, "--json")
    found = json.loads(out)
    assert [each["test"] for each in found["results"]] == ["successor", "options", "wordings"]
    assert found["rejected"] == (found["combined"]["p"] <= 0.05) == bool(status)
    assert found["seal"]["commitment"] == json.loads(Path(SEALED[1]).read_bytes())["commitment"]
    assert "private" not in out
    assert not [secret for secret in secrets() if secret in out]
    p = found["combined"]["p"]
    for alpha, expected in ((p / 2, 0), (min(1.0, p * 1.5), 1)):
        assert call("test", model, PUBLISHED, *SEALED, "--alpha", str(alpha))[0] == expected


def test_the_whole_set_is_redrawn_where_that_is_asked_for(call, model):
    _, out, _ = call(
        *("test", model, PUBLISHED, *SEALED, "--json", "--test", "permutation"),
        *("--permutations", "19", "--test", "successor"),
    )
    first, *_ = json.loads(out)["results"]
    assert (first["test"], first["shards"], first["permutations"]) == ("permutation", 1, 19)


def test_a_dry_run_counts_all_of_it(call, model, tmp_path):
    status, out, _ = call("test", model, PUBLISHED, *SEALED, "--dry-run", "--json")
    assert status == 0
    assert json.loads(out)["missing"] > 0
    assert not (tmp_path / "contamination-stores").exists()
    _, out, _ = call("test", model, PUBLISHED, *SEALED, "--json")
    _, again, _ = call("test", model, PUBLISHED, *SEALED, "--dry-run", "--json")
    assert json.loads(out)["tokens_scored"] > 0
    assert json.loads(again)["missing"] == 0


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (("--seal", SEALED[1]), "--seal sealed/public/seal.json alone proves nothing of the order"),
        (("--key", SEALED[3]), "--key goes with --seal: give the seal.json that was published"),
        ((*SEALED, "--stop"), "--stop and --control: all that --seal names is tested; leave them"),
        ((*SEALED, "--control", "other"), "--stop and --control: all that --seal names"),
        ((*SEALED, "--axis", "both"), "--axis and --keep-answer: all that the key drew is tested"),
        (
            (*SEALED, "--template", "text/1"),
            "--template: the seal says what a sealed set is; leave",
        ),
        ((*SEALED, "--max-records", "10"), "--max-records: the seal says what a sealed set is"),
    ],
)
def test_what_goes_without_a_seal_is_refused_before_a_model_is_loaded(refused, more, line):
    assert refused("test", "no-such-model", PUBLISHED, *more).startswith(line)


def test_what_is_not_as_it_was_sealed_is_refused_before_a_model_is_loaded(refused):
    def line() -> str:
        found = refused("test", "no-such-model", PUBLISHED, *SEALED)
        for path, data in kept.items():
            path.write_bytes(data)
        return found

    published, seal, key = map(Path, (PUBLISHED, SEALED[1], SEALED[3]))
    kept = {path: path.read_bytes() for path in (published, seal, key)}
    published.write_bytes(kept[published].replace(b"elm", b"yew", 1))
    assert line().startswith(f"{PUBLISHED}: not the set that {SEALED[1]} seals")
    published.write_bytes(b"".join(reversed(kept[published].splitlines(keepends=True))))
    assert line().startswith(f"{PUBLISHED}: its records were re-ordered since they were sealed")
    seal.write_bytes(kept[seal].replace(b"2026", b"2025"))
    assert line().startswith(f"{SEALED[1]}: it or {SEALED[3]} was changed since sealing")
    seal.write_bytes(to_json(json.loads(kept[seal]) | {"version": 9}))
    assert line().startswith(f"{SEALED[1]}: sealed by version '9' of the algorithm")
    seal_file(Path("quiz.jsonl"), Path("other"), template="question", wordings_of="question")
    key.write_bytes(Path("other/private/key.json").read_bytes())
    assert line().startswith(f"{SEALED[3]}: the key of another seal than {SEALED[1]}")
    published.unlink()
    assert line() == f"{PUBLISHED}: cannot be read (No such file or directory); with --seal, " + (
        "give the sealed file"
    )
    assert "no-such-model" in refused("test", "no-such-model", PUBLISHED, *SEALED)
