"""Examples that are the lines of a file, as it writes them: of a mirror, an address, one's own."""

import json
from pathlib import Path

import pytest

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.testsets.lines import TEMPLATE, open_lines
from contamination.testsets.registry import entries
from contamination.testsets.sources import open_test_set
from fakes.made_up_registry import described, registry_of

RECORDS = [
    {"question": f"What is “{i}”?", "answer": f"é {i}", "parts": {"a": [i, True]}} for i in range(6)
]
STYLES = ({}, {"ensure_ascii": False}, {"separators": (",", ":")})


@pytest.fixture
def lines() -> tuple[str, ...]:
    """Lines of the records, each in one of the ways to write JSON."""
    written = zip(RECORDS, [*STYLES, *STYLES], strict=True)
    return tuple(json.dumps(record, **style) + "\n" for record, style in written)


def registered(**changes: object) -> dict[str, object]:
    return described(mirror="questions/test.jsonl", checksum=None, **changes)


def write(folder: Path, lines: tuple[str, ...]) -> Path:
    path = folder / "questions" / "test.jsonl"
    path.parent.mkdir()
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_the_lines_of_a_mirror_as_they_are(lines, tmp_path, monkeypatch) -> None:
    write(tmp_path, lines)
    with registry_of(monkeypatch, tmp_path, {"questions": registered(lines=sha256_of(*lines))}):
        monkeypatch.setenv("CONTAMINATION_DATA", str(tmp_path))
        found = open_lines("questions")
        assert found.examples == lines
        assert (found.name, found.template) == ("questions", TEMPLATE)
        assert found.records == tuple(RECORDS)
        rendered = open_test_set("questions")
        assert rendered.records == found.records
        assert rendered.revision != found.revision  # other stores, other orderings
        fewer = open_lines("questions", max_records=4)
        assert fewer.examples == found.examples[:4]
        assert fewer.records == found.records[:4]
        assert fewer.revision != found.revision


def test_what_is_fetched_keeps_its_lines(lines, server, tmp_path, monkeypatch) -> None:
    server.files["/questions.jsonl"] = "\n".join(lines).encode()
    entry = registered(url={"url": f"{server.url}/questions.jsonl"})
    del entry["hub"]
    with registry_of(monkeypatch, tmp_path, {"questions": entry}):
        assert open_lines("questions").examples == lines
        assert open_test_set("questions").records == tuple(RECORDS)


def test_other_lines_than_the_registry_knows_are_refused(tmp_path, monkeypatch) -> None:
    path = write(tmp_path, tuple(json.dumps(record) + "\n" for record in RECORDS))
    with registry_of(monkeypatch, tmp_path, {"questions": registered(lines="0" * 64)}):
        monkeypatch.setenv("CONTAMINATION_DATA", str(tmp_path))
        with pytest.raises(InputError) as caught:
            open_lines("questions", max_records=2)
        assert str(path) in str(caught.value)
        assert "its lines are not the registered ones of questions" in str(caught.value)
        with pytest.raises(InputError, match="max_records is 0: give at least 1"):
            open_lines("questions", max_records=0)


def test_the_planted_sets_have_checksums_of_their_lines() -> None:
    known = {name: e.lines for name, e in entries().items() if name.startswith("canaries/")}
    assert len(known) == len(set(known.values()) - {None}) == 10
