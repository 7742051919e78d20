"""`contamination unlearned`, as a person types it."""

import json

import pandas as pd
import pytest


@pytest.fixture
def command(call, monkeypatch, make_model, model_directory, prose, tmp_path):
    """Return a function that runs the command here: (status, stdout, stderr)."""
    monkeypatch.setenv("COLUMNS", "120")
    texts = tmp_path / "chunks.jsonl"
    lines = [json.dumps({"text": f"{text[:30]} Answer: {text[30:60]}"}) for text in prose[:6]]
    texts.write_text("\n".join(lines) + "\n", encoding="utf-8")
    fixed = (model_directory, make_model(15), texts, "--precision", "float32")

    return lambda *arguments: call("unlearned", *fixed, *arguments)


def test_a_table_for_people_and_a_file(command, tmp_path, model_directory) -> None:
    path = tmp_path / "chunks.csv"
    status, out, _ = command("--csv", path, "--marker", "Answer:", "--control", model_directory)
    assert status == 0
    table = pd.read_csv(path)
    assert len(table) == 6
    models = ("original", "unlearned", "control")
    probes = ("completion", "exact", "answers")
    assert {f"{p}_{m}" for p in probes for m in models} <= set(table)
    assert table["completion_original"].tolist() == table["completion_control"].tolist()
    assert f"{table['suspicious'].sum()} of 6 chunks" in out
    assert "Answers" in out and "Control" in out
    assert "easy to guess" not in out


def test_without_a_marker_nothing_is_asked(command) -> None:
    status, out, _ = command("--window", "1000")
    assert status == 0
    assert "6 of 6 chunks" in out
    assert "Answers" not in out and "Control" not in out
    assert "easy to guess" in out
    assert "—" in out  # there are no other chunks


def test_what_is_wrong_is_said(command) -> None:
    assert "'Reply:'" in command("--marker", "Reply:")[2]
    assert "--endpoint" in command("--endpoint", "http://localhost:1")[2]
