"""Errors are one line, whatever they quote, and a name stays a name wherever it is shown."""

import pickle

import pytest

from contamination.errors import InputError, brief, csv_text


@pytest.mark.parametrize(
    ("quoted", "told"),
    [
        ("two\nlines", r"two\nlines"),
        ("\r\x1b[2Ja clean terminal", r"\r\x1b[2Ja clean terminal"),
        ("half a pair \ud800", r"half a pair \ud800"),
        ("\u2028", r"\u2028"),
        ("naïve 数 'as it is' \\n", "naïve 数 'as it is' \\n"),
    ],
)
def test_what_cannot_be_printed_is_told_by_its_escape(quoted: str, told: str) -> None:
    message = str(InputError(f"set.csv, line 2: field {quoted} is missing"))
    assert message == f"set.csv, line 2: field {told} is missing"
    assert message.encode().splitlines() == [message.encode()]


def test_an_error_names_its_parameter_also_in_another_process() -> None:
    error = pickle.loads(pickle.dumps(InputError("shards is 0: give more", parameter="shards")))
    assert str(error) == "shards is 0: give more"
    assert error.parameter == "shards"


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        (" =1", "' =1"),
        ("\n=1", "'\n=1"),
        ("\t=1", r"\t=1"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("-1.5e-3", "-1.5e-3"),
        ("org/model-1", "org/model-1"),
        ("{text}\n", "{text}\n"),
    ],
)
def test_no_cell_of_a_table_is_a_formula_or_an_escape(text: str, cell: str) -> None:
    assert csv_text(text) == cell


@pytest.mark.parametrize(
    ("text", "most", "line"),
    [
        ("One. Two.\nThree.", 40, "One. Two. Three."),
        ("One. Two is longer.", 10, "One."),
        ("No sentence ends here", 14, "No ..."),
        ("x" * 30, 10, f"{'x' * 6} ..."),
    ],
)
def test_a_message_is_cut_after_a_sentence_or_a_word(text: str, most: int, line: str) -> None:
    assert brief(text, most) == line
