"""A set is found where it lies, proved to be whole, and refused once it has changed."""

import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pooch
import pytest

from contamination.testsets.records import read_records
from contamination.testsets.registry import Entry, Hub, Url, lookup, registered
from contamination.testsets.sources import (
    Location,
    cache_directory,
    cache_path,
    checksum,
    expected_checksum,
    fetch,
    locate,
    read_verified,
)
from fakes.hub_server import Repository
from fakes.made_up_registry import CHECKSUM, EXAMPLES, QUESTIONS, jsonl, refusal, registry_of

ENTRY = Entry(
    name="questions",
    title="Questions",
    source=Hub("org/questions"),
    split="test",
    licence="MIT",
    template="question/1",
    records=6,
    checksum=CHECKSUM,
    mirror="questions/test.csv",
)
UNPINNED = replace(ENTRY, checksum=None)


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path) -> Iterator[Path]:
    with registry_of(monkeypatch, tmp_path, {}):
        yield tmp_path / "cache"


@pytest.fixture
def mirror(tmp_path) -> Path:
    path = tmp_path / "mirror" / ENTRY.mirror
    path.parent.mkdir(parents=True)
    pd.DataFrame(QUESTIONS).to_csv(path, index=False)
    return tmp_path / "mirror"


@pytest.fixture
def repository(server) -> Repository:
    server.repositories["org/questions"] = made = Repository()
    made.push({"test.jsonl": jsonl(QUESTIONS)})
    return made


# --- where it lies --------------------------------------------------------------------------------


def test_a_mirror_before_the_cache_and_an_explicit_one_before_the_environments(
    mirror, cache, tmp_path, monkeypatch
) -> None:
    assert locate(ENTRY) is None
    cache_path(ENTRY).parent.mkdir(parents=True)
    cache_path(ENTRY).write_bytes(jsonl(QUESTIONS))
    assert locate(ENTRY) == Location("cache", cache / "questions" / "test.jsonl")
    monkeypatch.setenv("CONTAMINATION_DATA", str(mirror))
    assert locate(ENTRY) == Location("mirror", mirror / ENTRY.mirror)
    other = tmp_path / "other" / "questions"
    other.mkdir(parents=True)
    assert locate(ENTRY, other.parent) == Location("cache", cache_path(ENTRY))
    (other / "test.jsonl").write_bytes(jsonl(QUESTIONS))  # as in the cache
    assert locate(ENTRY, other.parent) == Location("mirror", other / "test.jsonl")


def test_the_data_directory_is_the_mirror_of_last_resort(mirror, tmp_path) -> None:
    mirror.rename(tmp_path / "data")  # the working directory of these tests
    assert locate(ENTRY) == Location("mirror", Path("data") / ENTRY.mirror)


def test_a_mirror_that_is_not_there(tmp_path, monkeypatch) -> None:
    assert "/none: no such directory; give that of a mirror" in refusal(
        locate, ENTRY, tmp_path / "none"
    )
    monkeypatch.setenv("CONTAMINATION_DATA", str(tmp_path / "gone"))
    assert "/gone: no such directory" in refusal(locate, ENTRY)


def test_the_cache_is_where_the_system_keeps_caches(monkeypatch) -> None:
    monkeypatch.delenv("CONTAMINATION_CACHE")
    assert cache_directory() == Path(pooch.os_cache("contamination"))


# --- whole or not ---------------------------------------------------------------------------------


def test_the_checksum_does_not_depend_on_the_kind_of_file(tmp_path) -> None:
    frame = pd.DataFrame(QUESTIONS)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_bytes(jsonl(QUESTIONS))
    (tmp_path / "a.json").write_text(json.dumps(QUESTIONS, indent=2))
    for name in ("a.csv", "a.parquet", "a.jsonl", "a.json"):
        assert len(read_verified(ENTRY, Location("mirror", tmp_path / name))) == 6
    records = read_records(tmp_path / "a.jsonl")
    assert checksum(ENTRY, records[::-1], "f") != CHECKSUM
    assert checksum(replace(ENTRY, template="{question} {answer}\n"), records, "f") != CHECKSUM
    assert checksum(replace(ENTRY, template=None), records, "f") != CHECKSUM


@pytest.mark.parametrize(
    ("entry", "damage", "message"),
    [
        (
            ENTRY,
            lambda lines: [line.replace("It is 3.", "It is 4.") for line in lines],
            ": checksum",
        ),
        (
            UNPINNED,
            lambda lines: lines[:-1],
            ": 5 records, questions has 6; it is another version",
        ),
        (ENTRY, lambda lines: lines[:1], ": the test set is empty"),
        (
            ENTRY,
            lambda lines: [lines[0].replace("answer", "anwser"), *lines[1:]],
            ", line 2: field 'answer' is missing, which template question/1 needs",
        ),
        (
            UNPINNED,
            lambda lines: [*lines[:-1], lines[2]],
            ", line 7: id '1' stands at line 3 already; remove the copy",
        ),
    ],
    ids=["changed", "too few", "empty", "a missing field", "a repeated id"],
)
def test_a_damaged_file_of_a_mirror(entry, damage, message, mirror) -> None:
    path = mirror / ENTRY.mirror
    path.write_text("".join(damage(path.read_text().splitlines(keepends=True))))
    refused = refusal(read_verified, entry, Location("mirror", path))
    assert refused.startswith(f"{path}{message}")
    if message == ": checksum ":
        assert f"the registry has {CHECKSUM[:16]}...; it is another version, or was cut" in refused


# --- fetched --------------------------------------------------------------------------------------


def test_what_is_fetched_is_kept_with_its_origin(repository, server) -> None:
    path = fetch(UNPINNED)
    assert [record for _, record in read_verified(UNPINNED, Location("cache", path))] == QUESTIONS
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


def test_the_cache_serves_as_a_mirror(repository, cache, tmp_path, monkeypatch) -> None:
    fetch(UNPINNED)
    cache.rename(tmp_path / "copied")
    found = locate(UNPINNED, tmp_path / "copied")
    assert found == Location("mirror", tmp_path / "copied" / "questions" / "test.jsonl")
    assert len(read_verified(UNPINNED, found)) == 6
    found.path.write_bytes(found.path.read_bytes().replace(b"It is 3", b"It is 4"))
    assert "what was fetched had" in refusal(read_verified, UNPINNED, found)


def test_damage_in_the_cache_is_told_and_mended(repository) -> None:
    path = fetch(UNPINNED)
    path.write_bytes(path.read_bytes().replace(b"It is 3", b"It is 4"))
    message = refusal(read_verified, UNPINNED, Location("cache", path))
    assert f"what was fetched had {CHECKSUM[:16]}...; it was damaged: remove it" in message
    path.unlink()
    assert len(read_verified(UNPINNED, Location("cache", fetch(UNPINNED)))) == 6


def test_a_change_upstream_is_refused_until_it_is_accepted(repository) -> None:
    path, before = fetch(UNPINNED), repository.refs["main"]
    kept = path.read_bytes()
    changed = [*QUESTIONS[:-1], QUESTIONS[-1] | {"answer": "It is seven."}]
    repository.push({"test.jsonl": jsonl(changed)})
    assert fetch(UNPINNED).read_bytes() == kept
    message = refusal(fetch, UNPINNED, again=True)
    note = path.with_suffix(".source.json")
    assert message.startswith("hub org/questions: checksum ")
    assert f"{before} had {CHECKSUM[:16]}...; it changed upstream: keep what is in the" in message
    assert f"or remove {note} and fetch it again" in message
    assert path.read_bytes() == kept
    note.unlink()
    fetch(UNPINNED, again=True)
    assert read_records(path)[-1][1] == changed[-1]


def test_a_commit_that_changes_nothing_is_no_change(repository) -> None:
    before = fetch(UNPINNED).read_bytes()
    repository.push({"test.jsonl": jsonl(QUESTIONS), "train.jsonl": jsonl(QUESTIONS)})
    assert fetch(UNPINNED, again=True).read_bytes() == before
    repository.push({"data/test-00000-of-00001.parquet": pd.DataFrame(QUESTIONS).to_parquet()})
    assert fetch(UNPINNED, again=True).read_bytes() == before


@pytest.mark.parametrize("entry", [ENTRY, UNPINNED])
def test_what_is_not_what_the_registry_says_is_not_kept(entry, repository, cache) -> None:
    wrong = QUESTIONS[:-1] + ([QUESTIONS[-1] | {"answer": ""}] if entry.checksum else [])
    repository.push({"test.jsonl": jsonl(wrong)})
    message = refusal(fetch, entry)
    told = f"the registry has {CHECKSUM[:16]}" if entry.checksum else "5 records, questions has 6"
    assert told in message
    assert "changed upstream" in message
    assert not list(cache.rglob("*.json*"))
    repository.push({"test.jsonl": jsonl(QUESTIONS)})
    assert fetch(entry).is_file()


def test_a_file_behind_an_address(server) -> None:
    entry = replace(UNPINNED, source=Url(f"{server.url}/questions.jsonl"))
    server.files["/questions.jsonl"] = jsonl(QUESTIONS)
    note = json.loads(fetch(entry).with_suffix(".source.json").read_text())
    assert (note["source"], note["commit"]) == (f"{server.url}/questions.jsonl", None)
    server.files["/questions.jsonl"] = jsonl(QUESTIONS[::-1])
    assert "what was fetched before had" in refusal(fetch, entry, again=True)


def test_records_of_a_set_without_a_template(repository) -> None:
    """A set of the hub that is not registered: its records are compared, not its examples."""
    entry = replace(UNPINNED, template=None, records=None)
    surrogate = {"id": 9, "text": "half of a pair: \ud83d"}
    repository.push({"test.jsonl": jsonl([*QUESTIONS, surrogate])})
    assert len(read_verified(entry, Location("cache", fetch(entry)))) == 7
    repository.push({"test.jsonl": jsonl([*QUESTIONS, surrogate | {"text": "x"}])})
    assert "changed upstream" in refusal(fetch, entry, again=True)


def test_those_that_start_together_fetch_once(repository, server) -> None:
    ready = threading.Barrier(3)

    def start(_: int) -> Path:
        ready.wait()
        return fetch(UNPINNED)

    with ThreadPoolExecutor(3) as pool:
        assert set(pool.map(start, range(3))) == {cache_path(UNPINNED)}
    assert sum(seen.startswith("GET") and "test.jsonl" in seen for seen in server.seen) == 1


# --- the real thing -------------------------------------------------------------------------------

REAL = os.environ.get("CONTAMINATION_DATA")
real = pytest.mark.skipif(
    REAL is None,
    reason="set CONTAMINATION_DATA to a mirror of the canary sets and MMLU to read the real ones",
)


@pytest.fixture(scope="session")
def known() -> dict[str, Entry]:
    """Return the entries of the real registry that have a checksum."""
    return {name: entry for name in registered() if (entry := lookup(name)).checksum}


@real
def test_real_sets_have_the_published_sizes_and_their_checksums(known, cache) -> None:
    names = [name for name in known if name.startswith(("canaries/", "mmlu/"))]
    assert len(names) == 67
    for name in names:
        found = locate(known[name], REAL)
        assert found is not None, name
        assert len(read_verified(known[name], found)) == known[name].records, name


@real
def test_the_mmlu_canaries_lack_the_first_record_of_their_subsets(known) -> None:
    """Named in data/README.md: a reader that takes the first record for a header loses it."""
    for subset in ("professional_psychology", "professional_law", "high_school_psychology"):
        whole, canary = (known[f"{kind}{subset}"] for kind in ("mmlu/", "canaries/mmlu_"))
        examples = [
            _rendered(entry, read_verified(entry, locate(entry, REAL))) for entry in (whole, canary)
        ]
        assert set(examples[0]) - set(examples[1]) == {examples[0][0]}


def _rendered(entry: Entry, records) -> tuple[str, ...]:
    from contamination.testsets.example_set import render

    return render(records, entry.template, entry.name)


def test_examples_are_what_the_checksum_is_of() -> None:
    assert _rendered(ENTRY, [("", record) for record in QUESTIONS]) == EXAMPLES
