"""A test set is found by name, file, directory or hub id, proved to be whole, or refused."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import huggingface_hub.constants
import pandas as pd
import pytest
from datasets import Dataset, DatasetDict

from contamination.files import sha256_of
from contamination.testsets import registry
from contamination.testsets.records import read_records
from contamination.testsets.sources import (
    available,
    cache_path,
    fetch,
    locate,
    open_test_set,
)
from contamination.testsets.verified import expected_checksum, read_verified
from fakes.hub_server import Repository
from fakes.made_up_registry import (
    CHECKSUM,
    EXAMPLES,
    QUESTIONS,
    described,
    jsonl,
    refusal,
    registry_of,
)

MANY = [{"text": f"text {i}"} for i in range(5003)]
SETS = {
    "questions": described(),
    "unpinned": described(checksum=None, hub={"id": "org/unpinned"}, mirror="unpinned/test.jsonl"),
    "many": described(template="text/1", records=5003, checksum=None, mirror="many.jsonl"),
}
ENTRY = registry._entry("questions", described(), "registry.yaml")
UNPINNED = replace(ENTRY, checksum=None)


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path) -> Iterator[Path]:
    """Return the cache that fetched sets go to, beside a registry of made-up sets."""
    with registry_of(monkeypatch, tmp_path, SETS):
        yield tmp_path / "cache"


@pytest.fixture
def mirror(tmp_path) -> Path:
    path = tmp_path / "mirror"
    (path / "questions").mkdir(parents=True)
    pd.DataFrame(QUESTIONS).to_csv(path / ENTRY.mirror, index=False)
    (path / "many.jsonl").write_bytes(jsonl(MANY))
    return path


@pytest.fixture
def repository(server) -> Repository:
    server.repositories["org/questions"] = made = Repository()
    made.push({"test.jsonl": jsonl(QUESTIONS), "train.jsonl": jsonl(QUESTIONS[:2])})
    return made


def test_a_registered_set_is_the_same_from_a_mirror_and_from_the_hub(
    mirror, repository, monkeypatch
) -> None:
    from_hub = open_test_set("questions")
    found = open_test_set("questions", mirror=mirror)
    assert found.name == "questions"
    assert found.template == "question/1"
    assert found.examples == EXAMPLES
    assert [record["question"] for record in found.records] == [r["question"] for r in QUESTIONS]
    assert from_hub.examples == EXAMPLES
    assert from_hub.revision == found.revision
    monkeypatch.setenv("CONTAMINATION_DATA", str(mirror))
    assert open_test_set("questions") == found


def test_the_first_5000_as_in_the_paper(mirror) -> None:
    assert len(open_test_set("many", mirror=mirror).examples) == 5000
    assert len(open_test_set("many", max_records=3, mirror=mirror).examples) == 3
    assert len(open_test_set("many", max_records=10**6, mirror=mirror).examples) == 5003
    assert len(open_test_set(mirror / "many.jsonl").examples) == 5003
    assert "max_records is 0" in refusal(open_test_set, "many", max_records=0)


def test_a_directory(tmp_path) -> None:
    for config, records in (("one", QUESTIONS), ("two", QUESTIONS[:2])):
        (tmp_path / "clone" / config).mkdir(parents=True)
        (tmp_path / "clone" / config / "dev.jsonl").write_bytes(jsonl(records))
    found = open_test_set(tmp_path / "clone" / "two", template="question/1", split="validation")
    assert found.name == "two"
    assert found.examples == EXAMPLES[:2]


@pytest.mark.parametrize(("place", "name"), [("", "."), ("data", ".."), ("other", "../data/..")])
def test_a_directory_by_a_name_within_it(tmp_path, monkeypatch, place, name) -> None:
    for folder in ("data", "other"):
        (tmp_path / folder).mkdir()
    (tmp_path / "data" / "test.jsonl").write_bytes(jsonl(QUESTIONS))
    monkeypatch.chdir(tmp_path / place)
    found = open_test_set(name, template="question/1")
    assert found.name == tmp_path.name
    assert found.examples == EXAMPLES


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_file_whose_name_is_not_utf_8(tmp_path, suffix) -> None:
    path = Path(os.fsdecode(bytes(tmp_path) + b"/quiz\xff" + suffix.encode()))
    if suffix == ".jsonl":
        path.write_bytes(jsonl(QUESTIONS))
    else:
        with path.open("wb") as handle:
            pd.DataFrame(QUESTIONS).to_parquet(handle)
    found = open_test_set(path, template="question/1")
    assert found.name == "quiz?"
    assert found.examples == EXAMPLES


def saved(tmp_path: Path) -> Path:
    """Return a folder with a data set as `save_to_disk` writes it."""
    folder = tmp_path / "saved"
    Dataset.from_list(QUESTIONS).select([2, 0, 1]).save_to_disk(folder)
    return folder


def test_a_folder_of_save_to_disk_is_opened_in_its_order(tmp_path) -> None:
    found = open_test_set(saved(tmp_path), template="question/1")
    assert found.examples == (EXAMPLES[2], EXAMPLES[0], EXAMPLES[1])


def test_a_split_of_a_folder_of_save_to_disk(tmp_path) -> None:
    folder = tmp_path / "splits"
    first = Dataset.from_list(QUESTIONS[:2])
    DatasetDict({"train": first, "test": Dataset.from_list(QUESTIONS)}).save_to_disk(folder)
    assert open_test_set(folder, template="question/1").examples == EXAMPLES
    train = open_test_set(folder, template="question/1", split="train")
    assert train.examples == EXAMPLES[:2]
    assert "train, test" in refusal(open_test_set, folder, split="validation")


@pytest.mark.parametrize(
    ("file", "contents"),
    [
        ("data-00000-of-00001.arrow", b"no arrow"),
        ("data-00000-of-00001.arrow", None),
        ("state.json", b"{}"),
        ("state.json", b"[" * 100_000),
        ("state.json", b'{"_data_files": [], "_indices_data_files": [{"filename": "i"}]}'),
    ],
)
def test_a_damaged_folder_of_save_to_disk_is_refused(tmp_path, file, contents) -> None:
    folder = saved(tmp_path)
    path = folder / file
    path.unlink()
    if contents is not None:
        path.write_bytes(contents)
    assert "save_to_disk" in refusal(open_test_set, folder)


def test_a_set_of_the_hub_then_needs_no_network(repository, server, cache, monkeypatch) -> None:
    found = open_test_set("org/questions", template="question/1")
    assert found.name == "org/questions"
    assert found.examples == EXAMPLES
    other = open_test_set("org/questions", template="question/1", split="train")
    assert other.name == "org/questions/train"
    assert other.examples == EXAMPLES[:2]
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    server.seen.clear()
    assert open_test_set("org/questions", template="question/1") == found
    mirror = cache.rename(cache.with_name("mirror"))  # as on a machine without a network
    assert open_test_set("org/questions", template="question/1", mirror=mirror) == found
    assert not server.seen
    message = refusal(open_test_set, "org/questions", revision="v2")
    assert "where there is a network" in message


def test_a_mirror_before_the_cache_and_an_explicit_one_before_the_environments(
    mirror, cache, tmp_path, monkeypatch
) -> None:
    assert locate(ENTRY) is None
    kept = cache / "questions" / "test.jsonl"
    assert cache_path(ENTRY) == kept
    kept.parent.mkdir(parents=True)
    kept.write_bytes(jsonl(QUESTIONS))
    assert locate(ENTRY) == kept
    monkeypatch.setenv("CONTAMINATION_DATA", str(mirror))
    assert locate(ENTRY) == mirror / ENTRY.mirror
    other = tmp_path / "other" / "questions"
    other.mkdir(parents=True)
    assert locate(ENTRY, other.parent) == kept
    (other / "test.jsonl").write_bytes(jsonl(QUESTIONS))  # as in the cache
    assert locate(ENTRY, other.parent) == other / "test.jsonl"


def test_what_is_fetched_is_kept_with_its_origin(repository, server) -> None:
    path = fetch(UNPINNED)
    assert [record for _, record in read_verified(UNPINNED, path)] == QUESTIONS
    assert json.loads(path.with_suffix(".source.json").read_text()) == {
        "source": "hub org/questions",
        "split": "test",
        "commit": repository.refs["main"],
        "records": 6,
        "checksum": CHECKSUM,
    }
    assert expected_checksum(UNPINNED, path) == CHECKSUM
    server.seen.clear()
    assert fetch(UNPINNED) == path
    assert not server.seen  # from the cache


@pytest.mark.parametrize(
    "entry", [UNPINNED, replace(UNPINNED, template=None, records=None)], ids=["registered", "hub"]
)
def test_a_change_upstream_is_refused_until_it_is_accepted(entry, repository) -> None:
    path = fetch(entry)
    kept = path.read_bytes()
    changed = [*QUESTIONS[:-1], QUESTIONS[-1] | {"answer": "It is seven."}]
    repository.push({"test.jsonl": jsonl(changed)})
    assert fetch(entry).read_bytes() == kept
    message = refusal(fetch, entry, again=True)
    note = path.with_suffix(".source.json")
    assert message.startswith("hub org/questions: checksum ")
    assert "; damaged or another version" in message
    assert f"or accept it: remove {note}" in message
    assert path.read_bytes() == kept
    note.unlink()
    fetch(entry, again=True)
    assert read_records(path)[-1][1] == changed[-1]


@pytest.mark.parametrize("entry", [ENTRY, UNPINNED])
def test_what_is_not_what_the_registry_says_is_not_kept(entry, repository, cache) -> None:
    wrong = QUESTIONS[:-1] + ([QUESTIONS[-1] | {"answer": ""}] if entry.checksum else [])
    repository.push({"test.jsonl": jsonl(wrong)})
    message = refusal(fetch, entry)
    told = f"questions has {CHECKSUM[:16]}" if entry.checksum else "5 records, questions has 6"
    assert told in message
    assert not list(cache.rglob("*.json*"))
    repository.push({"test.jsonl": jsonl(QUESTIONS)})
    assert fetch(entry).is_file()


def test_no_test_set(server) -> None:
    assert "did you mean questions? " in refusal(open_test_set, "question")
    assert "questions: no such file or dir" in refusal(open_test_set, Path("org/questions"))
    assert "text/9" in refusal(open_test_set, "org/questions", template="text/9")
    for name in ("", " "):
        assert "the test set has no name" in refusal(open_test_set, name)
    assert not server.seen  # none of these is fetched first


@pytest.mark.parametrize(
    ("entry", "damage", "named"),
    [
        (ENTRY, lambda lines: [line.replace("is 3.", "is 4.") for line in lines], "checksum "),
        (UNPINNED, lambda lines: [*lines[:-1], lines[2]], "line 7: the record of id '1'"),
    ],
)
def test_a_damaged_file_of_a_mirror(entry, damage, named, mirror) -> None:
    path = mirror / ENTRY.mirror
    path.write_text("".join(damage(path.read_text().splitlines(keepends=True))))
    found = refusal(read_verified, entry, path)
    assert found.startswith(str(path)) and named in found
    if entry is ENTRY:  # whatever the template, the registered one is verified
        assert refusal(open_test_set, "questions", template="question", mirror=mirror) == found


def test_without_a_network_a_set_has_to_be_somewhere(mirror, monkeypatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert refusal(open_test_set, "unpinned", mirror=mirror).startswith("hub org/unpinned: ")
    assert not available("unpinned") and available("questions") is False
    monkeypatch.setenv("CONTAMINATION_DATA", str(mirror))
    assert available("many")


def test_lines_are_kept_as_a_mirror_or_an_address_writes_them(
    server, tmp_path, monkeypatch
) -> None:
    records = [
        {"question": f"What is “{i}”?", "answer": f"é {i}", "parts": {"a": [i, True]}}
        for i in range(6)
    ]
    styles = [{}, {"ensure_ascii": False}, {"separators": (",", ":")}] * 2
    lines = tuple(json.dumps(r, **style) + "\n" for r, style in zip(records, styles, strict=True))
    path = tmp_path / "mirror.jsonl"
    path.write_text("".join(lines), encoding="utf-8")
    server.files["/questions.jsonl"] = "\n".join(lines).encode()
    known = described(mirror=path.name, checksum=None, lines=sha256_of(*lines))
    away = {n: v for n, v in known.items() if n != "hub"} | {"mirror": "away.jsonl"}
    away["url"] = {"url": f"{server.url}/questions.jsonl"}
    monkeypatch.setenv("CONTAMINATION_DATA", str(tmp_path))
    other = known | {"lines": "0" * 64}
    with registry_of(monkeypatch, tmp_path, {"here": known, "away": away, "other": other}):
        monkeypatch.setenv("CONTAMINATION_DATA", str(tmp_path))
        for name in ("here", "away"):
            found = open_test_set(name, template="line/1")
            rendered = open_test_set(name)
            assert found.name == name
            assert found.template == "line/1"
            assert found.examples == lines
            assert found.revision == sha256_of("line/1", *lines) != rendered.revision
            pairs = zip(rendered.records, lines, strict=True)
            assert found.records == tuple(r | {"line": line.strip()} for r, line in pairs)
            fewer = open_test_set(name, template="line/1", max_records=4)
            assert fewer.examples == lines[:4] and fewer.revision != found.revision
        told = refusal(open_test_set, "other", template="line/1", max_records=2)
        assert told.startswith(f"{path}: its lines are not those regist")
