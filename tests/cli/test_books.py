"""`contamination books`, as a person types it."""

import json

import pandas as pd
import pytest


@pytest.fixture
def folders(prose, tmp_path):
    parts = {"books": (0, 2), "members": (2, 5), "unread": (5, 8)}
    for name, (first, last) in parts.items():
        (tmp_path / name).mkdir()
        for i in range(first, last):
            text = " ".join(prose[3 * i : 3 * i + 3])
            (tmp_path / name / f"book{i}.txt").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def command(call, monkeypatch, model_directory, folders):
    """Return a function that runs the command here: (status, stdout, stderr)."""
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments, members="members", unread="unread") -> tuple[int, str, str]:
        fixed = (folders / "books", "--members", folders / members)
        fixed += ("--non-members", folders / unread, "--words", "12", "--snippets", "4")
        return call("books", model_directory, *fixed, "--precision", "float32", *arguments)

    return run


def test_a_table_for_people_and_a_file(command, tmp_path) -> None:
    path = tmp_path / "new" / "books.csv"
    status, out, _ = command("--csv", path)
    assert status == 0
    for text in ("book0.txt", "book1.txt", "Validation: AUC", "A rate is no proof", "books.csv"):
        assert text in out
    table = pd.read_csv(path)
    assert sorted(table["book"]) == ["book0.txt", "book1.txt"]
    assert table["rate"].is_monotonic_decreasing
    assert (table["snippets"] == 4).all()


def test_json_says_the_same(command, tmp_path) -> None:
    status, out, _ = command("--json", "--csv", tmp_path / "books.csv", "--fpr", "0.2")
    assert status == 0
    found = json.loads(out)
    assert found["validation_fpr"] <= 0.2
    assert [row["score"] for row in found["validation"]][:2] == ["min_k_20", "loss"]
    table = pd.read_csv(tmp_path / "books.csv")
    assert [row["rate"] for row in found["books"]] == table["rate"].tolist()


def test_what_is_wrong_is_said_in_one_line(command, folders) -> None:
    assert "none" in command(unread="none")[2]
    assert "three folders" in command(unread="members")[2]
    assert "fpr is 1" in command("--fpr", "1")[2]
    (folders / "books" / "short.md").write_text("two words")
    assert "short.md: 2 words" in command()[2]
