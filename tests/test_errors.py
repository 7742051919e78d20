"""Errors are one line, whatever they quote, and a name stays a name wherever it is shown."""

import pickle

import pytest

from contamination import ModelSource, membership_scores, open_store, open_test_set, run_audit
from contamination.errors import InputError, brief, csv_text
from contamination.scoring.store import create_store
from fakes.made_up_registry import refusal


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


FACE = {
    "run_audit of a model": lambda value: run_audit(value, "set.jsonl"),
    "run_audit of a set": lambda value: run_audit(Fake(), value),
    "open_test_set": open_test_set,
    "open_store": open_store,
    "create_store": lambda value: create_store(value, None),
    "ModelSource": ModelSource,
    "membership_scores": lambda value: membership_scores(value, ["a text"]),
}


class Fake:
    """A model that is never asked."""

    token_logprobs = print


@pytest.mark.parametrize("value", [None, 5, b"set", ["a"], {}])
@pytest.mark.parametrize("call", FACE.values(), ids=FACE)
def test_what_is_no_path_is_named(call, value: object) -> None:
    assert repr(value) in refusal(call, value)
