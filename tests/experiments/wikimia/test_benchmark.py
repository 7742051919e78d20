"""WikiMIA from the hub's own files, a mirror, a cache and a directory; and what it says if absent.

The numbers of records are those of the real splits; the texts are made up.
"""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from contamination.errors import InputError
from contamination.experiments.wikimia import benchmark as wikimia
from contamination.experiments.wikimia.benchmark import (
    LENGTHS,
    NOT_AT_HAND,
    ORIGINAL_HUB,
    PARAPHRASED_HUB,
    RECORDS,
    load_directory,
    load_wikimia,
    make_part,
    split_name,
)
from contamination.files import read_json
from contamination.scoring.status import OK
from contamination.testsets.cache import cache_directory
from fakes.hub_server import HubServer, Repository
from fakes.made_up_registry import hub_at, jsonl, registry_of

CARD = "---\nlicense: mit\ndataset_info:\n  features:\n  - name: input\n    dtype: string\n---\n"


def rows(length: int, variant: str = "original") -> list[dict[str, object]]:
    count = RECORDS.get(length, 82)
    text = " ".join([f"{variant}{length}"] * (length - 1))
    return [{"input": f"{text} {i}", "label": int(i % 3 > 0)} for i in range(count)]


def parquet(records: list[dict[str, object]]) -> bytes:
    buffer = io.BytesIO()
    pd.DataFrame(records).to_parquet(buffer)
    return buffer.getvalue()


@pytest.fixture(autouse=True)
def nothing_at_hand(monkeypatch, tmp_path) -> Iterator[None]:
    with registry_of(monkeypatch, tmp_path, {}):
        yield


@pytest.fixture
def server(monkeypatch, tmp_path) -> Iterator[HubServer]:
    with hub_at(monkeypatch, tmp_path) as running:
        yield running


@pytest.fixture
def hub(server) -> HubServer:
    """Both repositories as they are laid out: shards in `data/`, and a script that must not run."""
    files = {"README.md": CARD.encode(), "WikiMIA.py": b"raise SystemExit('a script was run')"}
    for length in LENGTHS:
        name = f"data/{split_name(length)}-00000-of-00001-6d31a92f6d59bcdc.parquet"
        files[name] = parquet(rows(length))
    server.repositories[ORIGINAL_HUB.id] = Repository()
    server.repositories[ORIGINAL_HUB.id].push(files)
    names = [split_name(length, kind) for length in (32, 64, 128) for kind in ("p", "q")]
    names = [n.replace("_p", "_paraphrased").replace("_q", "_perturbed") for n in names]
    listed = "".join(f"  - split: {n}\n    path: data/{n}-*\n" for n in names)
    card = f"---\nconfigs:\n- config_name: default\n  data_files:\n{listed}---\n"
    files = {f"data/{n}-00000-of-00001.parquet": parquet(rows(32, n)) for n in names}
    server.repositories[PARAPHRASED_HUB.id] = Repository()
    server.repositories[PARAPHRASED_HUB.id].push(files | {"README.md": card.encode()})
    return server


def mirror_of(root: Path, lengths=(32,), variant: str = "original") -> Path:
    for length in lengths:
        path = root / "wikimia" / f"{split_name(length, variant)}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jsonl(rows(length, variant)))
    return root


# --- the hub --------------------------------------------------------------------------------------


def test_splits_of_the_hub(hub) -> None:
    parts = load_wikimia([32, 256])
    assert [(part.variant, part.length) for part in parts] == [
        ("original", 32),
        ("original", 256),
        ("paraphrased", 32),
    ]
    assert {part.status for part in parts} == {OK}
    for part in parts[:2]:
        wanted = rows(part.length)
        assert part.texts == tuple(row["input"] for row in wanted)
        assert part.members == tuple(row["label"] == 1 for row in wanted)
        assert part.revision == hub.repositories[ORIGINAL_HUB.id].refs["main"]
    assert parts[2].split == "WikiMIA_length32_paraphrased"
    assert parts[2].texts[0].startswith("WikiMIA_length32_paraphrased32 ")
    assert parts[2].revision == hub.repositories[PARAPHRASED_HUB.id].refs["main"]
    assert "WikiMIA.py" not in hub.downloaded()


def test_what_was_fetched_is_recorded_and_not_fetched_again(hub) -> None:
    (first,) = load_wikimia([256])
    note = read_json(cache_directory() / "wikimia" / "WikiMIA_length256.source.json")
    assert note["commit"] == first.revision
    assert note["records"] == 82
    assert len(note["checksum"]) == 64
    hub.seen.clear()
    assert load_wikimia([256], network=False) == [first]
    assert hub.seen == []


def test_a_split_that_was_cut_is_told(hub) -> None:
    name = "data/WikiMIA_length32-00000-of-00001-6d31a92f6d59bcdc.parquet"
    files = dict(hub.repositories[ORIGINAL_HUB.id].commits.popitem()[1])
    hub.repositories[ORIGINAL_HUB.id].push(files | {name: parquet(rows(32)[:700])})
    cut, whole = load_wikimia([32, 64])[:2]
    assert cut.status.startswith("failed: hub swj0419/WikiMIA: 700 records, ")
    assert cut.texts == ()
    assert whole.status == OK


def test_no_network_is_told_once_for_all(monkeypatch, server) -> None:
    server.shutdown()
    server.server_close()
    asked = []
    monkeypatch.setattr(wikimia, "fetch", remembering(wikimia.fetch, asked))
    parts = load_wikimia()
    assert len(parts) == 7
    assert all(part.status.startswith("not run here: hub swj0419/WikiMIA") for part in parts)
    assert all(len(part.status.splitlines()) == 1 and not part.texts for part in parts)
    assert len(asked) == 1


def remembering(function, calls: list[object]):
    def wrapped(*arguments, **options):
        calls.append(arguments)
        return function(*arguments, **options)

    return wrapped


def test_without_leave_to_fetch_the_hub_is_not_asked(hub, tmp_path) -> None:
    mirror_of(tmp_path / "mirror", [64])
    parts = load_wikimia([32, 64], mirror=tmp_path / "mirror", network=False)
    assert [part.status for part in parts] == [NOT_AT_HAND, OK, NOT_AT_HAND, NOT_AT_HAND]
    assert hub.seen == []


# --- mirror and directory -------------------------------------------------------------------------


def test_the_mirror_of_the_environment(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("CONTAMINATION_DATA", str(mirror_of(tmp_path / "mirror", [32, 64])))
    parts = load_wikimia([32, 64], network=False)
    assert [len(part.texts) for part in parts] == [776, 542, 0, 0]
    assert parts[0].revision.startswith("sha256:")
    assert parts[0].revision != parts[1].revision
    with pytest.raises(InputError, match=r"lengths of WikiMIA are 32, 64, 128, 256.*not 33"):
        load_wikimia([32, 33])
    with pytest.raises(InputError, match="not none"):
        load_wikimia([])


def test_a_directory_of_ones_own(tmp_path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    made = [{"input": "a b", "label": 1}, {"input": "c d", "label": 0}]
    (folder / "WikiMIA_length64.jsonl").write_bytes(jsonl(made))
    pd.DataFrame(made[::-1]).to_csv(folder / "WikiMIA_length32_paraphrased.csv", index=False)
    first, second = load_directory(folder)
    assert (first.source, first.variant, first.length) == ("mine", "original", 64)
    assert (first.texts, first.members) == (("a b", "c d"), (True, False))
    assert (second.variant, second.length, second.members) == ("paraphrased", 32, (False, True))
    assert [part.length for part in load_directory(folder, [64])] == [64]


def test_a_clone_of_the_hubs_repository(tmp_path) -> None:
    folder = tmp_path / "WikiMIA"
    for split in ("WikiMIA_length32", "WikiMIA_length32_paraphrased"):
        for shard in (0, 1):
            path = folder / "data" / f"{split}-0000{shard}-of-00002-abc.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            made = [{"input": f"{split} {shard} {i}", "label": i} for i in (1, 0)]
            path.write_bytes(parquet(made))
    parts = load_directory(folder)
    assert [part.split for part in parts] == ["WikiMIA_length32", "WikiMIA_length32_paraphrased"]
    assert parts[0].texts == tuple(f"WikiMIA_length32 {s} {i}" for s in (0, 1) for i in (1, 0))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"input": "a", "label": 2}', "line 2: label is 2; write 1 for a member, else 0"),
        ('{"input": "a"}', "line 2: label is None"),
        ('{"text": "a", "label": 1}', "line 2: no text"),
        ('{"input": "  ", "label": 1}', "line 2: no text"),
        ('{"input": "a", "label": 0}', "non-members alone"),
        ("[1]", "line 2: write a JSON object"),
    ],
)
def test_a_malformed_record_is_named(tmp_path, line, told) -> None:
    path = tmp_path / "WikiMIA_length32.jsonl"
    path.write_text('{"input": "x", "label": 0}\n' + line + "\n")
    with pytest.raises(InputError) as caught:
        load_directory(tmp_path)
    assert str(path) in str(caught.value)
    assert told in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_malformed_mirror_is_a_status(tmp_path) -> None:
    root = mirror_of(tmp_path / "mirror")
    path = root / "wikimia" / "WikiMIA_length32.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_bytes(jsonl([{**row, "label": "yes"} for row in records]))
    part = load_wikimia([32], mirror=root, network=False)[0]
    assert part.status.startswith("failed: ")
    assert "line 1: label is yes" in part.status


def test_what_is_no_such_directory(tmp_path) -> None:
    with pytest.raises(InputError, match="no such directory; give one that holds WikiMIA_length32"):
        load_directory(tmp_path / "none")
    with pytest.raises(InputError, match=r"none of the splits WikiMIA_length32, WikiMIA_length64,"):
        load_directory(tmp_path)


def test_the_revision_changes_with_texts_and_labels() -> None:
    made = [
        make_part("s", "original", 32, texts, members).revision
        for texts in (["a", "b"], ["a", "c"])
        for members in ([True, False], [False, True])
    ]
    assert len(set(made)) == 4
    assert make_part("s", "original", 32, ["a"], [True], "abc").revision == "abc"
