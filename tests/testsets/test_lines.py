"""Examples that are the lines of a file: rebuilt from the records, and proved by a checksum."""

import json
from pathlib import Path

import pytest

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.testsets import lines as module
from contamination.testsets.lines import STYLES, TEMPLATE, open_lines
from contamination.testsets.sources import open_test_set
from fakes.made_up_registry import described, registry_of

RECORDS = [
    {"question": f"What is “{i}”?", "answer": f"é {i}", "parts": {"a": [i, True]}} for i in range(6)
]


def written(style: dict) -> list[str]:
    return [json.dumps(record, **style) + "\n" for record in RECORDS]


@pytest.fixture(params=STYLES, ids=["python", "unicode", "compact"])
def file(request, tmp_path: Path) -> Path:
    """A file of records in one of the ways to write JSON, with every field in its order."""
    path = tmp_path / "questions" / "test.jsonl"
    path.parent.mkdir()
    path.write_text("".join(written(request.param)), encoding="utf-8")
    return path


def registered(**changes: object) -> dict[str, object]:
    return described(mirror="questions/test.jsonl", checksum=None, **changes)


def test_the_lines_of_a_registered_file_come_back_byte_by_byte(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    entry = registered(lines=sha256_of(*lines))
    with registry_of(monkeypatch, tmp_path, {"questions": entry}):
        monkeypatch.setenv("CONTAMINATION_DATA", str(tmp_path))
        found = open_lines("questions")
        assert found.examples == tuple(lines)
        assert (found.name, found.template) == ("questions", TEMPLATE)
        assert found.records == tuple(RECORDS)
        rendered = open_test_set("questions")
        assert rendered.records == found.records
        assert rendered.revision != found.revision  # other stores, other orderings
        fewer = open_lines("questions", max_records=4)
        assert fewer.examples == found.examples[:4]
        assert fewer.records == found.records[:4]
        assert fewer.revision != found.revision


def test_other_lines_than_the_registry_knows_are_refused(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with registry_of(monkeypatch, tmp_path, {"questions": registered(lines="0" * 64)}):
        monkeypatch.setenv("CONTAMINATION_DATA", str(tmp_path))
        with pytest.raises(InputError, match="do not give the lines that the registry knows"):
            open_lines("questions")
        with pytest.raises(InputError, match="max_records is 0: give at least 1"):
            open_lines("questions", max_records=0)


def test_a_file_of_ones_own_is_written_as_python_does(tmp_path: Path) -> None:
    (tmp_path / "own.jsonl").write_text('{"a":1,"b":[2]}\n', encoding="utf-8")
    assert open_lines(tmp_path / "own.jsonl").examples == ('{"a": 1, "b": [2]}\n',)
    path = tmp_path / "own.txt"
    path.write_text("one\ntwo “2”\n", encoding="utf-8")
    found = open_lines(path)
    assert found.examples == ('{"text": "one"}\n', '{"text": "two \\u201c2\\u201d"}\n')
    assert open_lines(str(path), max_records=1).examples == found.examples[:1]


def test_the_planted_sets_have_checksums_of_their_lines() -> None:
    known = {name: e.lines for name, e in module.entries().items() if name.startswith("canaries/")}
    assert len(known) == len(set(known.values()) - {None}) == 10
