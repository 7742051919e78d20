"""`contamination membership`, as a person types it."""

import json

import pandas as pd
import pytest

from contamination.membership.api import membership_scores
from contamination.scoring.loading import ModelSource


@pytest.fixture
def data(prose, tmp_path):
    path = tmp_path / "texts.jsonl"
    records = [{"text": text[:60], "seen": i % 2, "one": 1} for i, text in enumerate(prose[:12])]
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return path


@pytest.fixture
def command(call, monkeypatch, model_directory, data):
    """Return a function that runs the command here: (status, stdout, stderr)."""
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments, model=model_directory, file=data) -> tuple[int, str, str]:
        fixed = ("--template", "{text}", "--precision", "float32")
        return call("membership", model, file, *fixed, *arguments)

    return run


def test_the_table_is_that_of_the_function(command, model_directory, data, prose, tmp_path):
    prefix = tmp_path / "prefix.txt"
    prefix.write_text("lamp")
    out = tmp_path / "new" / "scores.csv"
    options = ("--neighbours", "2", "--reference", model_directory, "--prefix", prefix)
    status, shown, _ = command(*options, "--seed", "4", "--csv", out)
    assert status == 0 and str(out) in shown.replace("\n", "")
    wanted = membership_scores(
        ModelSource(str(model_directory), precision="float32"),
        [text[:60] for text in prose[:12]],
        reference=ModelSource(str(model_directory), precision="float32"),
        neighbours=2,
        prefix="lamp",
        seed=4,
    )
    found = pd.read_csv(out, index_col="text")
    pd.testing.assert_frame_equal(found, wanted)


def test_labels_give_an_evaluation_for_people_and_for_programs(command):
    status, out, _ = command("--label", "seen")
    assert status == 0
    assert "AUC" in out and "TPR at 5%" in out and "95% interval" in out
    status, out, _ = command("--json", "--label", "seen")
    output = json.loads(out)
    assert status == 0
    assert output["dataset"] == "texts" and output["template"] == "{text}"
    assert [row["text"] for row in output["texts"]] == list(range(12))
    assert output["texts"][0]["ppl_200"] is None
    by_score = {row["score"]: row for row in output["evaluation"]}
    assert by_score["loss"]["members"] == by_score["loss"]["non_members"] == 6
    assert 0 <= by_score["loss"]["auc_low"] <= by_score["loss"]["auc"] <= 1
    assert by_score["ppl_200"]["auc"] is None


def test_bad_input_is_one_line(command, tmp_path):
    cases = [
        (("--label", "one"), {}, "'one'"),
        (("--label", "text"), {}, "record 0: 'text'"),
        (("--reference-per", "word"), {}, "'word'"),
        (("--prefix", tmp_path / "x"), {}, "x"),
        (("--neighbours", "100000000"), {}, "1,000"),
        (("--reference", tmp_path / "x"), {}, "x"),
        (("--masked-lm", tmp_path / "x"), {}, "x"),
        (("--change", "case"), {}, "'case'"),
        (("--score", "frequent_0"), {}, "0 most frequent"),
    ]
    for arguments, changes, named in cases:
        status, out, err = command(*arguments, "--csv", tmp_path / "scores.csv", **changes)
        assert status == 2 and out == "", named
        line = err.splitlines()[-1]
        assert line.startswith("error: ") and named in line
    assert not (tmp_path / "scores.csv").exists()
