"""Errors are one line, whatever they quote."""

import pytest

from contamination.errors import InputError


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
