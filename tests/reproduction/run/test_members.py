"""Documents read and documents left out are kept by one rule, and no near-copy crosses over."""

import json
from pathlib import Path

import pytest

from reproduction.run.members import (
    MEMBERS,
    NON_MEMBERS,
    first_paragraph,
    read_documents,
    write_comparable,
)

TAKEN = [("a", "One.\n\nMore."), ("b", "Two."), ("a", "Three.\n\nx"), ("a", "Four.")]
LEFT = [("a", "one. \n\nOther."), ("b", "Five."), ("b", "FIVE.\n\nAgain."), ("a", "Six.")]


@pytest.fixture
def kept(tmp_path: Path) -> dict[str, list[tuple[str, str]]]:
    write_comparable(TAKEN, LEFT, tmp_path)
    return {name: list(read_documents(tmp_path / name)) for name in (MEMBERS, NON_MEMBERS)}


def test_a_first_paragraph_that_comes_twice_is_on_neither_side(kept) -> None:
    assert kept[MEMBERS] == [("b", "Two."), ("a", "Three.\n\nx"), ("a", "Four.")]
    assert kept[NON_MEMBERS] == [("a", "Six.")]


def test_the_sides_may_be_exchanged(kept, tmp_path: Path) -> None:
    """The rule does not know which side is which: else it would tell them apart."""
    write_comparable(LEFT, TAKEN, tmp_path)
    assert list(read_documents(tmp_path / MEMBERS)) == kept[NON_MEMBERS]
    assert list(read_documents(tmp_path / NON_MEMBERS)) == kept[MEMBERS]


def test_no_more_than_wanted_of_each_source_and_text_stays_readable(tmp_path: Path) -> None:
    write_comparable(TAKEN, [], tmp_path, kept=1)
    assert list(read_documents(tmp_path / MEMBERS)) == [("a", "One.\n\nMore."), ("b", "Two.")]
    assert (tmp_path / NON_MEMBERS).read_text() == ""
    write_comparable([("ü", "Über\nalles")], [], tmp_path)
    line = (tmp_path / MEMBERS).read_text(encoding="utf-8")
    assert json.loads(line) == {"source": "ü", "text": "Über\nalles"}
    assert "Über" in line


@pytest.mark.parametrize(
    ("text", "key"), [("A  b\nC\n\nd", "a b c"), ("Only one", "only one"), ("", "")]
)
def test_first_paragraph(text: str, key: str) -> None:
    assert first_paragraph(text) == key
