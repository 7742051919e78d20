"""Documents: docstrings of the sources, in one order, nothing imported; files of the directory."""

import sys
from pathlib import Path

import pytest

from fakes.data_fixtures import make_distribution
from reproduction.run import corpus
from reproduction.run.corpus import (
    MEMBERS,
    NON_MEMBERS,
    build_corpus,
    harvest,
    is_prose,
    read_documents,
    write_comparable,
)

PROSE = "This function computes the mean of the values along an axis and returns it as an array."

ALPHA = {
    "alpha/b.py": f'''
"""Module of b."""
raise RuntimeError("imported, although it must only be read")

class Estimator:
    """A class.

        Indented code. \t


    After blank lines.
    """

    def fit(self, x, /, y=None, *, weights=None):
        """Fit."""
        def inner(a):
            """Nested."""

    async def later(cls, z):
        """Asynchronous."""

def last():
    return "no docstring"

def mean(values):
    """{PROSE}"""
''',
    "alpha/a.py": f'def first(n):\n    """First.   {PROSE}"""\n',
    "alpha/template.py": 'def broken(:\n    """Never parsed."""\n',
    "alpha/nul.py": b'"""Nul."""\n\0\n',
    "alpha/latin.py": b'"""Caf\xe9."""\n',
    "alpha/warns.py": 'X = "\\d"\n"""Not the docstring."""\n',
    "alpha/contest/latest.py": '"""Kept: only looks like a test."""\n',
    "alpha/data.txt": '"""Not Python."""\n',
}
LEFT_OUT = "tests/test_a test/x testing/x _vendor/x externals/x version _version __config__"
ALPHA |= {f"alpha/{name}.py": '"""Left out."""\n' for name in LEFT_OUT.split()}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    site = tmp_path / "site"
    make_distribution(site, "alpha", ALPHA)
    make_distribution(
        site,
        "beta",
        {"beta.py": f'"""{PROSE.upper()}"""\n\ndef g():\n    """{PROSE} And of nothing else."""\n'},
    )
    monkeypatch.syspath_prepend(str(site))
    return site


def test_harvest_finds_every_docstring_in_file_and_line_order(site: Path) -> None:
    before = harvest("alpha")
    assert [(d.path.removeprefix("alpha/"), d.name, d.signature) for d in before] == [
        ("a.py", "first", "(n)"),
        ("b.py", "", ""),
        ("b.py", "Estimator", ""),
        ("b.py", "Estimator.fit", "(x, y, weights)"),
        ("b.py", "Estimator.fit.inner", "(a)"),
        ("b.py", "Estimator.later", "(z)"),
        ("b.py", "mean", "(values)"),
        ("contest/latest.py", "", ""),
        ("latin.py", "", ""),
    ]
    assert not [name for name in sys.modules if name.startswith(("alpha", "beta"))]
    by_name = {(d.path, d.name): d for d in before}
    document = by_name["alpha/b.py", "Estimator"]
    assert document.text == "A class.\n\n    Indented code.\n\nAfter blank lines."
    assert document.package == "alpha"
    assert document.version == "1.5"
    assert by_name["alpha/latin.py", ""].text == "Caf\N{REPLACEMENT CHARACTER}."
    (site / "alpha" / "a.py").unlink()  # after the installation
    assert harvest("alpha") == before[1:]


def test_corpus_keeps_prose_once_in_the_order_of_packages(site: Path) -> None:
    def names(packages: list[str]) -> list[tuple[str, str]]:
        return [(d.package, d.name) for d in build_corpus(packages)]

    # beta's module docstring is alpha's `mean` in capitals.
    assert names(["alpha", "beta"]) == [("alpha", "first"), ("alpha", "mean"), ("beta", "g")]
    assert names(["beta", "alpha"]) == [("beta", ""), ("beta", "g"), ("alpha", "first")]


def test_prose() -> None:
    assert all(map(is_prose, (PROSE, "word " * 16, "Größe und Maß der Änderungen " * 4)))
    assert not any(map(is_prose, ("word " * 15 + "word", "x" * 59 + "1" * 41)))


# Members and non-members are kept by one rule, and no near-copy crosses over.
TAKEN = [("a", "One.\n\nMore."), ("b", "Two."), ("a", "Three.\n\nx"), ("a", "Four.")]
LEFT = [("a", "one. \n\nOther."), ("b", "Five."), ("b", "FIVE.\n\nAgain."), ("a", "Six.")]


def test_a_first_paragraph_that_comes_twice_is_on_neither_side(tmp_path, monkeypatch) -> None:
    """The rule does not know which side is which: else it would tell them apart."""

    def kept(read, unread) -> list[list[tuple[str, str]]]:
        write_comparable(read, unread, tmp_path)
        return [list(read_documents(tmp_path / name)) for name in (MEMBERS, NON_MEMBERS)]

    sides = [[("b", "Two."), ("a", "Three.\n\nx"), ("a", "Four.")], [("a", "Six.")]]
    assert kept(TAKEN, LEFT) == sides
    assert kept(LEFT, TAKEN) == sides[::-1]
    monkeypatch.setattr(corpus, "KEPT", 1)
    assert kept(TAKEN, [("a", "Größe")]) == [TAKEN[:2], [("a", "Größe")]]
    assert "Größe" in (tmp_path / NON_MEMBERS).read_text("utf-8")
