"""`contamination membership`, `books` and `unlearned`, as a person types them."""

import json
from pathlib import Path

import pandas as pd
import pytest

from contamination.membership.api import membership_scores
from contamination.scoring.loading import ModelSource
from fakes.made_up_registry import jsonl

PRECISION = ("--precision", "float32")


@pytest.fixture
def membership(call, model_directory, prose):
    records = [{"text": text[:60], "seen": i % 2, "one": 1} for i, text in enumerate(prose[:12])]
    Path("texts.jsonl").write_bytes(jsonl(records))
    fixed = (model_directory, "texts.jsonl", "--template", "{text}", *PRECISION)
    return lambda *arguments: call("membership", *fixed, *arguments)


def test_the_table_is_that_of_the_function(membership, model_directory, prose):
    Path("prefix.txt").write_text("lamp")
    options = ("--neighbours", "2", "--reference", model_directory, "--prefix", "prefix.txt")
    assert membership(*options, "--seed", "4", "--csv", "new/scores.csv")[0] == 0
    model = ModelSource(str(model_directory), precision="float32")
    texts = [text[:60] for text in prose[:12]]
    settings = {"reference": model, "neighbours": 2, "prefix": "lamp", "seed": 4}
    wanted = membership_scores(model, texts, **settings)
    pd.testing.assert_frame_equal(pd.read_csv("new/scores.csv", index_col="text"), wanted)


def test_labels_give_an_evaluation(membership):
    output = json.loads(membership("--json", "--label", "seen")[1])
    assert [row["text"] for row in output["texts"]] == list(range(12))
    by_score = {row["score"]: row for row in output["evaluation"]}
    assert by_score["loss"]["members"] == by_score["loss"]["non_members"] == 6
    assert by_score["ppl_200"]["auc"] is output["texts"][0]["ppl_200"] is None  # no NaN in JSON


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--label", "one"), "'one'"),
        (("--label", "text"), "record 0: 'text'"),
        (("--prefix", "x"), "x"),
        (("--neighbours", "100000000"), "1,000"),
    ],
)
def test_bad_input_is_one_line(membership, arguments, named):
    status, out, err = membership(*arguments, "--csv", "scores.csv")
    assert (status, out, Path("scores.csv").exists()) == (2, "", False)
    assert err.splitlines()[-1].startswith("error: ") and named in err.splitlines()[-1]


@pytest.fixture
def books(call, model_directory, prose):
    for name, places in {"books": (0, 1), "members": (2, 3, 4), "unread": (5, 6, 7)}.items():
        Path(name).mkdir()
        for i in places:
            text = " ".join(prose[3 * i : 3 * i + 3])
            Path(name, f"book{i}.txt").write_text(text, encoding="utf-8")
    short = ("--words", "12", "--snippets", "4", *PRECISION)

    def run(*arguments, unread="unread") -> tuple[int, str, str]:
        folders = ("books", "--members", "members", "--non-members", unread)
        return call("books", model_directory, *folders, *short, *arguments)

    return run


def test_books_as_a_table_for_people_a_file_and_json(books) -> None:
    status, out, _ = books()
    assert (status, "book0.txt" in out) == (0, True)
    found = json.loads(books("--json", "--csv", "books.csv")[1])
    assert 0 <= found["validation_fpr"] <= 1
    table = pd.read_csv("books.csv")
    assert (table["rate"].is_monotonic_decreasing, set(table["snippets"])) == (True, {4})
    assert [row["rate"] for row in found["books"]] == table["rate"].tolist()


def test_what_is_wrong_with_books_is_said_in_one_line(books) -> None:
    assert "none" in books(unread="none")[2]
    assert "three folders" in books(unread="members")[2]


@pytest.fixture
def unlearned(call, make_model, model_directory, prose):
    chunks = [{"text": f"{text[:30]} Answer: {text[30:60]}"} for text in prose[:6]]
    Path("chunks.jsonl").write_bytes(jsonl(chunks))
    fixed = (model_directory, make_model(15), "chunks.jsonl", *PRECISION)
    return lambda *arguments: call("unlearned", *fixed, *arguments)


def test_what_is_still_known_as_a_table_and_a_file(unlearned, model_directory) -> None:
    asked = ("--marker", "Answer:", "--control", model_directory)
    status, out, _ = unlearned("--csv", "chunks.csv", *asked)
    table = pd.read_csv("chunks.csv")
    assert (status, f"{table['suspicious'].sum()} of 6 chunks" in out) == (0, True)
    assert table["completion_original"].tolist() == table["completion_control"].tolist()
    assert table["answers_original"].tolist() == table["answers_control"].tolist()


def test_without_a_marker_nothing_is_asked(unlearned) -> None:
    status, out, _ = unlearned("--window", "1000")
    assert (status, "6 of 6 chunks" in out, "Answers" in out) == (0, True, False)
    assert "—" in out  # there are no other chunks
    assert "'Reply:'" in unlearned("--marker", "Reply:")[2]
    assert "--endpoint" in unlearned("--endpoint", "http://localhost:1")[2]
