"""`contamination membership`, as a person types it."""

import json

import pandas as pd
import pytest

from contamination.membership.api import membership_scores
from contamination.membership.neighbours import blank_neighbours, character_neighbours
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


def test_a_summary_for_people(command):
    status, out, _ = command()
    assert status == 0
    assert "12 texts of texts" in out
    for name in ("loss", "min_k_20", "min_k_pp_20", "mem_5", "mem_off_by_one_5", "zlib"):
        assert name in out
    assert "Larger is more likely a member" in out
    assert "recall" not in out and "reference" not in out and "neighbour" not in out


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


@pytest.mark.parametrize("change", ["letters", "blanks"])
def test_neighbours_of_letters_and_blanks_and_more_scores(
    command, model_directory, prose, tmp_path, change
):
    out = tmp_path / "scores.csv"
    options = ("--neighbours", "2", "--change", change, "--score", "frequent_20")
    status, _, _ = command(*options, "--score", "min_prob_20", "--csv", out)
    assert status == 0
    found = pd.read_csv(out, index_col="text")
    ways = {"letters": character_neighbours, "blanks": blank_neighbours}
    wanted = membership_scores(
        ModelSource(str(model_directory), precision="float32"),
        [text[:60] for text in prose[:12]],
        neighbours=2,
        perturbation=ways[change],
        columns=["frequent_20", "min_prob_20"],
    )
    pd.testing.assert_frame_equal(found[list(wanted)], wanted)


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
    empty = tmp_path / "short.txt"
    empty.write_text("lamp stone river\nl\n")
    cases = [
        ((), {"file": empty}, "text 1 has 1 token(s), and a score needs 2"),
        (("--label", "one"), {}, "field 'one' has one class; give members and others"),
        (("--label", "text"), {}, "texts, record 0: field 'text' is"),
        (("--label", "nothing"), {}, "field 'nothing' is None; give 1 for a member"),
        (("--reference-per", "word"), {}, "--reference-per is 'word'"),
        (("--prefix", tmp_path / "x"), {}, "x: no such file; give a text"),
        (("--neighbours", "-1"), {}, "-1 neighbours"),
        (("--neighbours", "100000000"), {}, "or up to 1,000 of each text"),
        ((), {"model": tmp_path / "x"}, "no such directory"),
        (("--reference", tmp_path / "x"), {}, "no such directory"),
        (("--masked-lm", tmp_path / "x"), {}, "cannot be loaded"),
        (("--change", "case"), {}, "--change is 'case': give words, letters or blanks"),
        (("--score", "frequent_0"), {}, "the 0 most frequent tokens"),
    ]
    for arguments, changes, message in cases:
        status, out, err = command(*arguments, "--csv", tmp_path / "scores.csv", **changes)
        assert status == 2 and out == "", message
        line = err.splitlines()[-1]
        assert line.startswith("error: ") and message in line
    assert not (tmp_path / "scores.csv").exists()
