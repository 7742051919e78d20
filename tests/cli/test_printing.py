"""Tables in a terminal: whole words, whole numbers, whatever the width."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from contamination.cli.printing import json_rows, print_table, say

COLUMNS = ("model", "set", "p", "compressor", "verdict")
ROWS = [
    ("Llama-3.1-8B-Instruct", "mmlu_professional_psychology", "0.000123456", "0.293", "cannot say"),
    ("second", "truthful_qa_generation", "0.82", "0.0534", "no evidence"),
]
TEXT = ("set", "verdict")


def printed(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    print_table(COLUMNS, ROWS, text=TEXT)
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [30, 60, 80, 200])
def test_numbers_and_words_stay_whole(capsys, monkeypatch, width):
    out = printed(capsys, monkeypatch, width)
    whole = set(re.findall(r"[\w.]+", out))
    assert {"0.000123456", "0.293", "0.0534", "compressor", "evidence", "cannot"} <= whole


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_exceeds_the_terminal(capsys, monkeypatch, width):
    lines = printed(capsys, monkeypatch, width).splitlines()
    assert max(map(len, lines)) <= width


def test_names_break_at_their_seams(capsys, monkeypatch):
    out = printed(capsys, monkeypatch, 80)
    pieces = set(re.findall(r"[\w.-]+", out))
    assert {"mmlu_professional_", "psychology"} <= pieces


def test_a_narrow_terminal_gets_row_after_row(capsys, monkeypatch):
    lines = printed(capsys, monkeypatch, 30).splitlines()
    assert "model Llama-3.1-8B-Instruct" in lines
    assert all(line.startswith(("model ", "  ")) for line in lines)


def test_row_after_row_leaves_out_what_is_empty(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "12")
    print_table(("copies", "p", "verdict"), [(1, "", "failed, without any p")])
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "copies 1"
    assert " ".join(out.split()) == "copies 1 verdict failed, without any p"


@pytest.mark.parametrize("width", [20, 50, 80])
def test_a_path_can_be_copied(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    path = "contamination-stores/SmolLM2-135M-Instruct-Q4_1/mmlu-anatomy/successors-003"
    say(f"everything was stored already: {path}")
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].endswith(path)


def test_rows_for_json_keep_every_digit_and_the_kind_of_a_cell():
    columns = {
        "p": [1.49e-15, 2.91234e-12, np.nan, -np.inf],
        "count": [1, 2, 3, 2**60 + 1],
        "text": ["a", None, "", "b"],
        "found": [True, False, True, False],
    }
    rows = json_rows(pd.DataFrame(columns))
    expected = columns | {"p": [1.49e-15, 2.91234e-12, None, None]}
    assert json.loads(json.dumps(rows, allow_nan=False)) == [
        dict(zip(columns, cells, strict=True)) for cells in zip(*expected.values(), strict=True)
    ]
