"""Documents of the data directory, and of the registry where the directory lacks a file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contamination.errors import InputError
from contamination.pretraining.documents import data_file, read_file
from fakes.hub_server import HubServer, Repository
from fakes.made_up_registry import described, hub_at, jsonl, registry_of

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


@pytest.fixture(autouse=True)
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
    assert data_file("wiki/valid.txt") == path
    documents = list(read_file("wiki/valid.txt"))
    assert documents == [
        ("wiki/valid.txt", "= One = \n \n Text . \n = = Part = ="),
        ("wiki/valid.txt", "= Two = \n More ."),
    ]
    assert not server.seen
    path.unlink()
    assert data_file("wiki/valid.txt") == tmp_path / "cache" / "wiki" / "valid.jsonl"
    assert list(read_file("wiki/valid.txt")) == documents


def test_a_file_that_nobody_knows(server) -> None:
    with pytest.raises(InputError) as caught:
        data_file("mine.jsonl")
    told = f"{Path('data', 'mine.jsonl')}: no such file; set CONTAMINATION_DATA to the directory"
    assert str(caught.value).startswith(told)
    assert not server.seen


def test_a_line_that_is_no_document(tmp_path, monkeypatch) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n{"text": 3}\n')
    monkeypatch.setenv("CONTAMINATION_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"a\.jsonl, line 2: write "):
        list(read_file("a.jsonl"))
