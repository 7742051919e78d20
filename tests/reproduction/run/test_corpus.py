"""Documents: docstrings of the sources, in one order, nothing imported; files of the directory."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.data_fixtures import make_distribution
from fakes.hub_server import HubServer, Repository
from fakes.made_up_registry import described, hub_at, jsonl, registry_of
from reproduction.run.corpus import build_corpus, harvest, is_prose, read_file

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
    "alpha/tests/test_a.py": '"""A test."""\n',
    "alpha/test/x.py": '"""A test."""\n',
    "alpha/testing/x.py": '"""Testing."""\n',
    "alpha/_vendor/x.py": '"""Vendored."""\n',
    "alpha/externals/x.py": '"""External."""\n',
    "alpha/version.py": '"""Generated."""\n',
    "alpha/_version.py": '"""Generated."""\n',
    "alpha/__config__.py": '"""Generated."""\n',
    "alpha/contest/latest.py": '"""Kept: only looks like a test."""\n',
    "alpha/data.txt": '"""Not Python."""\n',
}


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
    found = [(d.path.removeprefix("alpha/"), d.name, d.signature) for d in harvest("alpha")]
    assert found == [
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


def test_docstrings_are_dedented_and_trimmed(site: Path) -> None:
    by_name = {(d.path, d.name): d for d in harvest("alpha")}
    document = by_name["alpha/b.py", "Estimator"]
    assert document.text == "A class.\n\n    Indented code.\n\nAfter blank lines."
    assert (document.package, document.version) == ("alpha", "1.5")
    assert by_name["alpha/latin.py", ""].text == "Caf\N{REPLACEMENT CHARACTER}."


def test_a_file_removed_after_installation_is_left_out(site: Path) -> None:
    before = harvest("alpha")
    (site / "alpha" / "a.py").unlink()
    assert harvest("alpha") == before[1:]


def test_corpus_keeps_prose_once_in_the_order_of_packages(site: Path) -> None:
    def names(packages: list[str]) -> list[tuple[str, str]]:
        return [(d.package, d.name) for d in build_corpus(packages)]

    # beta's module docstring is alpha's `mean` in capitals.
    assert names(["alpha", "beta"]) == [("alpha", "first"), ("alpha", "mean"), ("beta", "g")]
    assert names(["beta", "alpha"]) == [("beta", ""), ("beta", "g"), ("alpha", "first")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PROSE, True),
        ("word " * 16, True),  # 80 characters
        ("word " * 15 + "word", False),  # 79
        ("x" * 59 + "1" * 41, False),
        ("Größe und Maß der Überprüfung von Änderungen in jeder möglichen Länge " * 2, True),
    ],
)
def test_prose(text: str, expected: bool) -> None:
    assert is_prose(text) is expected


# --- files of the data directory, and of the registry where it lacks a file -----------------------

LINES = [" \n", " = One = \n", " \n", " Text . \n", " = = Part = = \n", " = Two = \n", " More .\n"]
WIKI = described(
    hub={"id": "org/wiki"},
    template="text/1",
    normalise="wikitext",
    mirror="wiki/valid.txt",
    split="validation",
    records=2,
    checksum=None,
)


@pytest.fixture
def server(monkeypatch, tmp_path) -> Iterator[HubServer]:
    with hub_at(monkeypatch, tmp_path) as running:
        running.repositories["org/wiki"] = made = Repository()
        rows = [{"text": line if line.strip() else ""} for line in LINES]
        made.push({"validation.jsonl": jsonl(rows)})
        with registry_of(monkeypatch, tmp_path, {"wiki/validation": WIKI}):
            yield running


def test_the_directory_and_the_registry_give_the_same_documents(
    server, tmp_path, monkeypatch
) -> None:
    path = tmp_path / "mirror" / "wiki" / "valid.txt"
    path.parent.mkdir(parents=True)
    path.write_text("".join(LINES))
    monkeypatch.setenv("CONTAMINATION_DATA", str(tmp_path / "mirror"))
    documents = list(read_file("wiki/valid.txt"))
    assert documents == [
        ("wiki/valid.txt", "= One = \n \n Text . \n = = Part = ="),
        ("wiki/valid.txt", "= Two = \n More ."),
    ]
    assert not server.seen
    path.unlink()
    assert list(read_file("wiki/valid.txt")) == documents
