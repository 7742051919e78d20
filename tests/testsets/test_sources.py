"""A test set is opened by name, file, directory or hub id, and by nothing that looks like one."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import datasets
import huggingface_hub.constants
import pandas as pd
import pytest

from contamination.errors import InputError
from contamination.testsets.registry import registered
from contamination.testsets.sources import available, open_test_set
from fakes import made_up_registry
from fakes.hub_server import HubServer, Repository
from fakes.made_up_registry import EXAMPLES, QUESTIONS, described, hub_at, jsonl, registry_of

MANY = [{"text": f"text {i}"} for i in range(5003)]
SETS = {
    "questions": described(),
    "unpinned": described(checksum=None, hub={"id": "org/unpinned"}, mirror="unpinned/test.jsonl"),
    "many": described(template="text/1", records=5003, checksum=None, mirror="many.jsonl"),
}
SUBSETS = described(
    hub={"id": "org/mmlu", "config": "{name}"},
    normalise="mmlu",
    template="mmlu/2",
    mirror="mmlu/{name}_test.csv",
    checksum=None,
) | {"members": {"first": {"records": 2}, "second": {"records": 2}}}


@pytest.fixture(autouse=True)
def sets(monkeypatch, tmp_path) -> Iterator[None]:
    with registry_of(monkeypatch, tmp_path, SETS, mmlu=SUBSETS):
        yield


@pytest.fixture
def mirror(tmp_path) -> Path:
    path = tmp_path / "mirror"
    (path / "questions").mkdir(parents=True)
    pd.DataFrame(QUESTIONS).to_csv(path / "questions" / "test.csv", index=False)
    (path / "many.jsonl").write_bytes(jsonl(MANY))
    return path


@pytest.fixture
def server(monkeypatch, tmp_path) -> Iterator[HubServer]:
    with hub_at(monkeypatch, tmp_path) as running:
        running.repositories["org/questions"] = made = Repository()
        made.push({"test.jsonl": jsonl(QUESTIONS), "train.jsonl": jsonl(QUESTIONS[:2])})
        yield running


def refusal(*arguments, **options) -> str:
    return made_up_registry.refusal(open_test_set, *arguments, **options)


# --- registered sets ------------------------------------------------------------------------------


def test_a_registered_set_from_a_mirror(mirror, monkeypatch) -> None:
    found = open_test_set("questions", mirror=mirror)
    assert (found.name, found.template, found.examples) == ("questions", "question/1", EXAMPLES)
    assert [record["question"] for record in found.records] == [r["question"] for r in QUESTIONS]
    monkeypatch.setenv("CONTAMINATION_DATA", str(mirror))
    assert open_test_set("questions") == found


def test_mirror_and_hub_give_the_same_set(mirror, server) -> None:
    from_mirror, from_hub = open_test_set("questions", mirror=mirror), open_test_set("questions")
    assert from_hub.examples == from_mirror.examples
    assert from_hub.revision == from_mirror.revision


def test_a_csv_and_the_parquet_of_the_hub_give_the_same_subset(mirror, server) -> None:
    choices, questions = [["a", "b", "c", "d"], ["1", "2", "3", "4"]], ["one\ntwo", 'say "q"']
    rows = [
        {"question": q, **{f"choice{i}": c for i, c in enumerate(cs)}, "answer": a}
        for q, cs, a in zip(questions, choices, [2, 0], strict=True)
    ]
    (mirror / "mmlu").mkdir()
    pd.DataFrame(rows).to_csv(mirror / "mmlu" / "first_test.csv", index=False)
    columns = {"question": questions, "subject": ["s", "s"], "choices": choices, "answer": [2, 0]}
    data = pd.DataFrame(columns).to_parquet()
    server.repositories["org/mmlu"] = made = Repository()
    made.push({"first/test-00000-of-00001.parquet": data})
    from_mirror, from_hub = open_test_set("mmlu/first", mirror=mirror), open_test_set("mmlu/first")
    assert from_hub == from_mirror
    assert from_hub.examples[0] == "one\ntwo\nA. a\nB. b\nC. c\nD. d\nAnswer: C\n"
    assert from_hub.records[0] == {"question": "one\ntwo", "choices": choices[0], "answer": "C"}


def test_another_template_does_not_change_what_is_verified(mirror) -> None:
    found = open_test_set("questions", template="question", mirror=mirror)
    assert found.examples == tuple(f"{record['question']}\n" for record in QUESTIONS)
    path = mirror / "questions" / "test.csv"
    path.write_text(path.read_text().replace("It is 3", "It is 4"))
    assert "the registry has" in refusal("questions", template="question", mirror=mirror)


def test_the_first_5000_as_in_the_paper(mirror) -> None:
    assert len(open_test_set("many", mirror=mirror).examples) == 5000
    assert len(open_test_set("many", max_records=3, mirror=mirror).examples) == 3
    assert len(open_test_set("many", max_records=10**6, mirror=mirror).examples) == 5003
    assert len(open_test_set(mirror / "many.jsonl").examples) == 5003
    assert refusal("many", max_records=0, mirror=mirror) == "max_records is 0: give at least 1"


def test_what_is_available(mirror, server) -> None:
    assert registered() == ("questions", "unpinned", "many", "mmlu/first", "mmlu/second")
    assert registered("mmlu/") == ("mmlu/first", "mmlu/second")
    assert available("questions", mirror)
    assert not available("questions")
    open_test_set("questions")
    assert available("questions")
    with pytest.raises(InputError, match="did you mean questions"):
        available("question")


def test_a_set_that_is_nowhere(mirror, monkeypatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    message = refusal("unpinned", mirror=mirror)
    assert message.startswith(
        "unpinned: neither mirror (as unpinned/test.jsonl) nor cache has it; hub org/unpinned: "
        "cannot be had (LocalEntryNotFoundError: "
    )
    assert message.endswith("fetch it where there is a network, or use a local mirror (--mirror)")


def test_a_registered_name_is_no_path(mirror, tmp_path) -> None:
    (tmp_path / "questions").mkdir()  # in the working directory
    assert open_test_set("questions", mirror=mirror).examples == EXAMPLES
    assert "no data files" in refusal(Path("questions"))


# --- files and directories ------------------------------------------------------------------------


def test_a_file(tmp_path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(QUESTIONS))
    for what in (tmp_path / "a.jsonl", str(tmp_path / "a.jsonl"), "a.jsonl"):
        assert open_test_set(what, template="question/1").examples == EXAMPLES


def test_a_directory(tmp_path) -> None:
    datasets.disable_progress_bars()
    datasets.Dataset.from_list(QUESTIONS).save_to_disk(tmp_path / "saved")
    found = open_test_set(str(tmp_path / "saved"), template="question/1")
    assert (found.name, found.examples) == ("saved", EXAMPLES)
    for config, records in (("one", QUESTIONS), ("two", QUESTIONS[:2])):
        (tmp_path / "clone" / config).mkdir(parents=True)
        (tmp_path / "clone" / config / "dev.jsonl").write_bytes(jsonl(records))
    found = open_test_set(
        f"{tmp_path / 'clone'}:two", template="question/1", split="validation", max_records=9
    )
    assert found.examples == EXAMPLES[:2]


def test_what_is_wrong_with_a_file_is_told(tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(jsonl([{"text": "t"}] * 16 + [{"id": 16, "txt": "t"}]))
    assert refusal(path) == (
        f"{path}, line 17: field 'text' is missing, which template text/1 needs; "
        "the record has id, txt"
    )
    path.rename(tmp_path / "a.xlsx")
    assert "unknown kind of file" in refusal(tmp_path / "a.xlsx")


# --- the hub --------------------------------------------------------------------------------------


def test_a_data_set_of_the_hub(server) -> None:
    found = open_test_set("org/questions", template="question/1")
    assert (found.name, found.examples) == ("org/questions", EXAMPLES)
    other = open_test_set("org/questions", template="question/1", split="train")
    assert (other.name, other.examples) == ("org/questions/train", EXAMPLES[:2])


def test_what_was_fetched_needs_no_network(server, monkeypatch) -> None:
    open_test_set("org/questions", template="question")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    server.seen.clear()
    assert open_test_set("org/questions", template="question/1").examples == EXAMPLES
    assert not server.seen
    assert "fetch it where there is a network" in refusal("org/questions", revision="v2")


def test_a_revision_is_kept_beside_others(server) -> None:
    repository = server.repositories["org/questions"]
    before = repository.refs["main"]
    assert len(open_test_set("org/questions", template="question").examples) == 6
    repository.push({"test.jsonl": jsonl(QUESTIONS[:3])}, "refs/pr/1")
    found = open_test_set("org/questions", template="question", revision="refs/pr/1")
    assert len(found.examples) == 3
    assert len(open_test_set("org/questions", template="question", revision=before).examples) == 6
    assert len(open_test_set("org/questions", template="question").examples) == 6


# --- what is none of these ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("question", "question: no such file, directory or test set: did you mean questions? "),
        ("mmlu", "no such file, directory or test set: it has 2 sets, each tested by itself: mmlu"),
        ("mmlu/frist", "no such file, directory or test set: did you mean mmlu/first"),
        ("./org/questions", "./org/questions: no such file, directory or test set: "),
        ("a/b/c", "a/b/c: no such file, directory or test set: "),
        (Path("org/questions"), "org/questions: no such file or directory; give the path"),
        ("none.csv", "none.csv: no such file; give the path of a test set"),
    ],
)
def test_no_test_set(what: str | Path, message: str, server) -> None:
    assert message in refusal(what)
    assert not server.seen


def test_options_that_do_not_apply(mirror) -> None:
    told = ": --split and --data-revision go with ORG/NAME of the hub"
    assert refusal("questions", split="train", mirror=mirror) == f"questions is registered{told}"
    assert refusal("questions", revision="v1", mirror=mirror) == f"questions is registered{told}"
    path = mirror / "many.jsonl"
    assert refusal(path, split="train") == f"{path} is a file{told}"
    assert refusal(str(mirror), revision="v1") == f"{mirror} is a directory{told}"


def test_a_wrong_template_is_told_before_anything_is_fetched(server) -> None:
    assert "unknown template 'text/9'" in refusal("org/questions", template="text/9")
    assert not server.seen


# --- the real registry ----------------------------------------------------------------------------


REAL = os.environ.get("CONTAMINATION_DATA")


@pytest.mark.skipif(
    REAL is None,
    reason="set CONTAMINATION_DATA to a mirror of the canary sets and MMLU to read the real ones",
)
def test_real_sets_open_by_name() -> None:
    code = (
        "from contamination.testsets.sources import *; "
        "names = [n for n in registered() if n.startswith(('canaries/', 'mmlu/'))]; "
        "print(len(names), sum(len(open_test_set(n).examples) for n in names))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "CONTAMINATION_DATA": str(REAL)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.split() == ["67", str(9188 + 14042)]
