"""`contamination data`, and a test set by name, as a person types them."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from contamination.cli.choices import SetChoice, open_set
from fakes.hub_server import HubServer, Repository
from fakes.made_up_registry import EXAMPLES, QUESTIONS, described, hub_at, jsonl, registry_of

SETS = {
    "questions": described(),
    "unpinned": described(checksum=None, hub={"id": "org/unpinned"}, mirror="unpinned/test.jsonl"),
}
FAMILY = described(
    url={"url": "URL/sets.zip", "member": "{name}.jsonl"}, mirror="all/{name}.jsonl"
) | {"members": {"one": {}, "two": {"records": 7}}}
del FAMILY["hub"]


@pytest.fixture(autouse=True)
def server(monkeypatch, tmp_path) -> Iterator[HubServer]:
    with hub_at(monkeypatch, tmp_path) as running:
        for name in ("questions", "unpinned"):
            running.repositories[f"org/{name}"] = made = Repository()
            made.push({"test.jsonl": jsonl(QUESTIONS)})
        with registry_of(monkeypatch, tmp_path, SETS, all=FAMILY):
            yield running


@pytest.fixture
def mirror(tmp_path) -> Path:
    path = tmp_path / "mirror"
    (path / "questions").mkdir(parents=True)
    pd.DataFrame(QUESTIONS).to_csv(path / "questions" / "test.csv", index=False)
    (path / "unpinned").mkdir()
    (path / "unpinned" / "test.jsonl").write_bytes(jsonl(QUESTIONS))
    return path


def rows(out: str) -> dict[str, list[str]]:
    """Cells of a printed table by the name in the first."""
    table = {}
    for line in out.splitlines():
        cells = [cell.strip() for cell in line.split("│")[1:-1]]
        if cells:
            table[cells[0]] = cells[1:]
    return table


def test_list(call, mirror) -> None:
    call("data", "fetch", "unpinned")
    listed = rows(call("data", "list")[1])
    assert [listed[name][2] for name in ("questions", "unpinned")] == ["network", "cache"]
    assert listed["all/two"] == ["7", "MIT", "network"]
    listed = rows(call("data", "list", "questions", "--mirror", mirror)[1])
    assert list(listed) == ["questions"]
    assert listed["questions"][2] == "mirror"


def test_fetch_and_again(call, server, tmp_path) -> None:
    status, out, _ = call("data", "fetch", "questions", "org/unpinned")
    assert status == 0
    assert out.split()[1] == f"{tmp_path}/cache/questions/test.jsonl"
    assert (tmp_path / "cache" / "hub" / "org--unpinned" / "default" / "test.jsonl").is_file()
    server.repositories["org/questions"].push({"test.jsonl": jsonl(QUESTIONS[::-1])})
    assert call("data", "fetch", "questions")[0] == 0
    status, _, err = call("data", "fetch", "questions", "--again")
    assert status == 2
    assert "damaged or another version" in err.splitlines()[-1]


def test_check_what_is_here(call, mirror) -> None:
    status, out, err = call("data", "check", "--mirror", mirror)
    assert status == 0
    assert err == ""
    assert rows(out) == {
        "questions": ["6", "mirror", "checksum agrees"],
        "unpinned": ["6", "mirror", "counted; no checksum is known"],
    }
    call("data", "fetch", "unpinned")
    assert rows(call("data", "check")[1]) == {"unpinned": ["6", "cache", "checksum agrees"]}

    for path in (mirror / "questions" / "test.csv", mirror / "unpinned" / "test.jsonl"):
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    status, out, err = call("data", "check", "--mirror", mirror)
    assert status == 2
    assert {cells[-1] for cells in rows(out).values()} == {"wrong"}
    assert [line.split(": ")[2] for line in err.splitlines()] == [
        "5 records, questions has 6; damaged or another version",
        "5 records, unpinned has 6; damaged or another version",
    ]


def test_options_reach_the_test_set(mirror, server) -> None:
    server.repositories["org/questions"].push({"dev.jsonl": jsonl(QUESTIONS[:2])}, "v2")
    of_the_hub = SetChoice(
        "org/questions", template="question/1", split="validation", data_revision="v2"
    )
    assert open_set(of_the_hub).examples == EXAMPLES[:2]
    first = SetChoice("questions", mirror=mirror, max_records=3)
    assert open_set(first).examples == EXAMPLES[:3]
    by_field = SetChoice("questions", mirror=mirror, field="answer")
    assert open_set(by_field).examples[0] == "It is 0.\n"
