"""`contamination membership`, as a person types it."""

import json
from pathlib import Path

import pandas as pd
import pytest

from contamination.membership.api import membership_scores
from contamination.scoring.loading import ModelSource
from fakes.made_up_registry import jsonl

PRECISION = ("--precision", "float32")


@pytest.fixture
def long_model(make_model) -> Path:
    return make_model(128)


@pytest.fixture
def membership(call, model_directory, prose):
    records = [{"text": text[:60], "seen": i % 2, "one": 1} for i, text in enumerate(prose[:12])]
    Path("texts.jsonl").write_bytes(jsonl(records))
    fixed = (model_directory, "texts.jsonl", "--template", "{text}", *PRECISION)
    return lambda *arguments: call("membership", *fixed, *arguments)


def test_the_table_is_that_of_the_function(membership, model_directory, prose):
    options = ("--neighbours", "2", "--reference", model_directory)
    assert membership(*options, "--seed", "4", "--csv", "new/scores.csv")[0] == 0
    model = ModelSource(str(model_directory), precision="float32")
    texts = [text[:60] for text in prose[:12]]
    wanted = membership_scores(model, texts, reference=model, neighbours=2, seed=4)
    pd.testing.assert_frame_equal(pd.read_csv("new/scores.csv", index_col="text"), wanted)


def test_labels_give_an_evaluation(membership):
    output = json.loads(membership("--json", "--label", "seen")[1])
    assert [row["text"] for row in output["texts"]] == list(range(12))
    by_score = {row["score"]: row for row in output["evaluation"]}
    assert by_score["loss"]["members"] == by_score["loss"]["non_members"] == 6
    assert by_score["ppl_200"]["auc"] is output["texts"][0]["ppl_200"] is None  # no NaN in JSON


def test_scores_by_name_stand_beside_the_others(call, long_model):
    words = ("apples", "towers", "clouds")
    records = [{"question": word, "choices": ["a", "b"], "answer": 0} for word in words]
    Path("items.jsonl").write_bytes(jsonl(records))
    names = ("--score", "cloze", "--score", "slot", "--score", "choice")
    arguments = (long_model, "items.jsonl", "--template", "It is about {question}")
    status, out, _ = call("membership", *arguments, *names, "--json", *PRECISION)
    assert status == 0
    (row, *_) = json.loads(out)["texts"]
    assert {"loss", "cloze", "cloze_first", "slot", "slot_rouge_l", "choice"} <= row.keys()
    assert "verbatim" not in row


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--score", "poetry"), "poetry"),
        (("--score", "slot"), "options"),
        (("--label", "one"), "'one'"),
        (("--label", "text"), "record 1: 'text'"),
        (("--label", "absent"), "record 1 has no field 'absent' (--label)"),
        (("--neighbours", "100000000"), "1000"),
    ],
)
def test_bad_input_is_one_line(membership, arguments, named):
    status, out, err = membership(*arguments, "--csv", "scores.csv")
    assert status == 2
    assert out == ""
    assert not Path("scores.csv").exists()
    assert err.splitlines()[-1].startswith("error: ") and named in err.splitlines()[-1]
