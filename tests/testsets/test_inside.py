"""Documents of others may name files of their own folder, and of no other."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from contamination.scoring.checkpoint import weights_of
from contamination.testsets import fetching
from contamination.testsets.inside import is_inner_name, lies_inside
from contamination.testsets.pages import read_page_folder
from contamination.testsets.registry import Hub
from contamination.testsets.sources import open_test_set
from fakes.hub_server import Repository
from fakes.made_up_registry import QUESTIONS, jsonl, refusal

OUTSIDE = "secret.jsonl"
OWN = {"test.jsonl": jsonl(QUESTIONS)}


def card_of(configs: object) -> bytes:
    return f"---\nconfigs: {json.dumps(configs)}\n---\n".encode()


def card(path: object, **fields: object) -> bytes:
    """Return a card whose data is at a path."""
    data = [{"split": "test", "path": path}]
    return card_of([{"config_name": "default", "data_files": data} | fields])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a data set beside a file that is none of its own."""
    (tmp_path / OUTSIDE).write_bytes(jsonl([{"question": "a secret", "answer": "b"}] * 2))
    made = tmp_path / "clone"
    made.mkdir()
    for name, contents in OWN.items():
        (made / name).write_bytes(contents)
    return made


PARTS = st.sampled_from(["a", "b.c", "..", ".", "", "..a", "a..", "C:", "~", "%2e%2e"])


@given(st.lists(PARTS, min_size=1, max_size=6), st.sampled_from("/\\"))
def test_an_inner_name_stays_in_any_folder(parts: list[str], separator: str) -> None:
    name = separator.join(parts)
    depth = 0
    lowest = 0
    for part in name.replace("\\", "/").split("/"):
        if part not in ("", "."):
            depth += -1 if part == ".." else 1
        lowest = min(lowest, depth)
    leaves = name.startswith(("/", "\\", "C:")) or lowest < 0
    if leaves:
        assert not is_inner_name(name)
    if ".." not in parts and not leaves:
        assert is_inner_name(name)


OUT_OF_THE_REPOSITORY = {
    "above": "../secret.jsonl",
    "above, as a pattern": "../*.jsonl",
    "above a folder": "a/../../secret.jsonl",
    "as Windows writes it": "..\\secret.jsonl",
    "absolute": "{outside}",
    "a drive": "C:\\secret.jsonl",
    "an address": "http://127.0.0.1:9/secret.jsonl",
    "a file system": "file://{outside}",
    "a chain of file systems": "filecache::{outside}",
    "an archive": "zip://secret.jsonl::test.zip",
    "another set of the hub": "hf://datasets/org/other/test.jsonl",
    "no file system": "nosuch://secret.jsonl",
    "half an address": "//[secret",
    "one of several": ["test.jsonl", "../secret.jsonl"],
    "a number": [7],
    "nothing": [None],
}


@pytest.mark.parametrize("path", OUT_OF_THE_REPOSITORY.values(), ids=OUT_OF_THE_REPOSITORY)
def test_a_card_names_files_of_its_repository_alone(folder, server, path: object) -> None:
    outside = str(folder.parent / OUTSIDE)
    if isinstance(path, str):
        path = path.replace("{outside}", outside)
    (folder / "README.md").write_bytes(card(path))
    message = refusal(open_test_set, folder)
    assert "README.md" in message
    server.repositories["org/name"] = repository = Repository()
    repository.push(OWN | {"README.md": card(path)})
    refusal(fetching.download, Hub("org/name"), "test", Path("unused"))
    assert server.downloaded() == {"README.md"}


@pytest.mark.parametrize("data_dir", ["..", "../", "a/../..", "{outside}", "http://x", 7, ["a"]])
def test_the_folder_that_a_card_names_is_one_of_its_repository(folder, data_dir: object) -> None:
    if isinstance(data_dir, str):
        data_dir = data_dir.replace("{outside}", str(folder.parent))
    (folder / "README.md").write_bytes(card(OUTSIDE, data_dir=data_dir))
    assert "README.md" in refusal(open_test_set, folder)


@pytest.mark.parametrize(("path", "data_dir"), [("./test.jsonl", None), ("test*", ".")])
def test_a_card_may_begin_at_its_own_folder(folder, path: str, data_dir: str | None) -> None:
    (folder / "README.md").write_bytes(card(path, data_dir=data_dir))
    assert len(open_test_set(folder).examples) == len(QUESTIONS)


DEFAULT = {"config_name": "a", "data_files": "test.jsonl", "default": True}
MALFORMED = {
    "no pattern": card("**test.jsonl"),
    "a path that is a number": card(7),
    "a path that is an object": card({"a": 1}),
    "a split that is a number": card_of([DEFAULT | {"data_files": [{"split": 3, "path": "a"}]}]),
    "a split twice": card_of([DEFAULT | {"data_files": [{"split": "test", "path": "a"}] * 2}]),
    "texts and objects": card_of([DEFAULT | {"data_files": ["a", {"split": "test", "path": "a"}]}]),
    "a number of files": card_of([DEFAULT | {"data_files": 3}]),
    "two defaults": card_of([DEFAULT, DEFAULT | {"config_name": "b"}]),
    "no name": card_of([{"data_files": "test.jsonl"}]),
    "a name that is a list": card_of([DEFAULT | {"config_name": ["a"]}]),
    "configurations by name": card_of({"a": 1}),
    "texts for configurations": card_of(["a"]),
    "no YAML": b"---\na: [\n---\n",
    "a list": b"---\n- a\n---\n",
    "a program": b"---\na: !!python/object/apply:os.getcwd []\n---\n",
    "no UTF-8": b"---\na: \xe9\n---\n",
    "deeper than Python reads": b"---\na: " + b"[" * 600 + b"]" * 600 + b"\n---\n",
}


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_card_is_named(folder, content: bytes) -> None:
    (folder / "README.md").write_bytes(content)
    assert "README.md" in refusal(open_test_set, folder)


def test_names_of_files_that_tell_no_split_are_named(tmp_path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "te-st-00000-of-00001.jsonl").write_bytes(jsonl(QUESTIONS))
    assert "te-st" in refusal(open_test_set, tmp_path)


def test_a_folder_whose_name_looks_like_a_pattern(tmp_path) -> None:
    folder = tmp_path / "sets [1]*"
    folder.mkdir()
    (folder / "test.jsonl").write_bytes(jsonl(QUESTIONS))
    assert len(open_test_set(folder).examples) == len(QUESTIONS)


def link_a_file(folder: Path) -> None:
    (folder / "test.jsonl").unlink()
    (folder / "test.jsonl").symlink_to(folder.parent / OUTSIDE)


def link_a_folder(folder: Path) -> None:
    (folder / "data").symlink_to(folder.parent)
    (folder / "README.md").write_bytes(card(f"data/{OUTSIDE}"))


def link_the_card(folder: Path) -> None:
    (folder.parent / "notes.md").write_text("Notes.\n")
    (folder / "README.md").symlink_to(folder.parent / "notes.md")


def saved(folder: Path) -> Path:
    """Return a folder of `save_to_disk` beside a data set, in whose place one stands."""
    other = folder.parent / "other"
    Dataset.from_list(QUESTIONS).save_to_disk(other)
    shutil.rmtree(folder)
    folder.mkdir()
    return other


def link_rows(folder: Path) -> None:
    other = saved(folder)
    shutil.copy(other / "state.json", folder)
    for file in other.glob("*.arrow"):
        (folder / file.name).symlink_to(file)


def link_a_split(folder: Path) -> None:
    other = saved(folder)
    (folder / "dataset_dict.json").write_text('{"splits": ["test"]}')
    (folder / "test").symlink_to(other)


@pytest.mark.parametrize(
    "link", [link_a_file, link_a_folder, link_the_card, link_rows, link_a_split]
)
def test_a_link_out_of_the_folder_is_not_followed(
    folder: Path, link: Callable[[Path], None]
) -> None:
    link(folder)
    assert str(folder) in refusal(open_test_set, folder)


def test_a_link_within_the_folder_is_followed(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "test.jsonl").rename(folder / "data" / "questions.jsonl")
    (folder / "test.jsonl").symlink_to("data/questions.jsonl")
    (folder / "README.md").write_bytes(card("test.jsonl"))
    assert len(open_test_set(folder).examples) == len(QUESTIONS)


@pytest.mark.parametrize("config", ["", "one"])
def test_links_of_the_cache_of_the_hub_are_followed(tmp_path: Path, config: str) -> None:
    """There a snapshot has links to the files of all commits, which lie beside it."""
    repository = tmp_path / "datasets--org--name"
    folder = repository / "snapshots" / "0123" / config
    folder.mkdir(parents=True)
    (repository / "blobs").mkdir()
    (repository / "blobs" / "4567").write_bytes(jsonl(QUESTIONS))
    (folder / "test.jsonl").symlink_to(repository / "blobs" / "4567")
    assert len(open_test_set(folder).examples) == len(QUESTIONS)
    (folder / "test.jsonl").unlink()
    (folder / "test.jsonl").symlink_to(tmp_path / OUTSIDE)
    (tmp_path / OUTSIDE).write_bytes(jsonl(QUESTIONS))
    assert not lies_inside(folder / "test.jsonl", folder)


@pytest.mark.parametrize("name", ["..", ".", "", "a/../..", "\0", "/"])
def test_a_split_of_save_to_disk_is_a_folder_below(folder: Path, name: str) -> None:
    saved(folder)
    Dataset.from_list(QUESTIONS).save_to_disk(folder.parent)
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": [name]}))
    assert str(folder) in refusal(open_test_set, folder)


@pytest.mark.parametrize("name", ["..", "", "\0", "/dev/null"])
def test_rows_of_save_to_disk_are_in_a_file_below(folder: Path, name: str) -> None:
    saved(folder)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name}]}))
    assert str(folder) in refusal(open_test_set, folder)


@pytest.mark.parametrize("name", ["../secret.jsonl", "{outside}", "\0", "a" * 300, ".", "linked"])
def test_the_index_of_pages_names_files_of_its_folder_alone(folder: Path, name: str) -> None:
    name = name.replace("{outside}", str(folder.parent / OUTSIDE))
    (folder / "linked").symlink_to(folder.parent / OUTSIDE)
    (folder / "pages.csv").write_text(f"file,title,date\n{name},A,2020-01-01\n")
    assert "line 2" in refusal(read_page_folder, folder)


@pytest.mark.parametrize("named", ["../a.safetensors", "/a.safetensors", "C:\\a", "\0", 3, None])
@pytest.mark.parametrize("file", ["model.safetensors.index.json", "config.json"])
def test_weights_lie_below_the_folder_of_their_model(folder: Path, file: str, named) -> None:
    content = {"weight_map": {"a": named}, "transformers_weights": named or 3}
    (folder / file).write_text(json.dumps(content))
    (folder.parent / "a.safetensors").touch()
    assert file in refusal(weights_of, folder)


@pytest.mark.parametrize("named", [["a"], "a", 3])
def test_an_index_of_weights_is_an_object(folder: Path, named) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": named}))
    assert "index.json" in refusal(weights_of, folder)


def test_a_name_that_no_file_can_have_is_no_file_of_weights(folder: Path) -> None:
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "b" * 300}}))
    assert weights_of(folder) == [index]


@pytest.mark.parametrize("split", ["../test", "..", ".", "/test", "a/b", "a\\..\\b", "\0"])
def test_a_split_of_the_hub_is_one_name(server, split: str) -> None:
    """It becomes a part of the path in the cache."""
    assert "split" in refusal(open_test_set, "org/name", split=split)
    assert not server.seen


@pytest.mark.parametrize("config", ["..", "."])
def test_a_configuration_of_the_hub_is_one_name(server, config: str) -> None:
    assert "configuration" in refusal(open_test_set, f"org/name:{config}")
    assert not server.seen
