"""WikiMIA from the hub's own files, a mirror or a cache; and texts of known membership.

The numbers of records are those of the real splits; the texts are made up.
"""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from contamination.scoring.status import OK
from fakes.data_fixtures import write_profile
from fakes.hub_server import HubServer, Repository
from fakes.made_up_registry import hub_at, jsonl, registry_of
from reproduction.notebooks.wikimia.measure import (
    CONTROL,
    LENGTHS,
    NOT_AT_HAND,
    ORIGINAL_HUB,
    PARAPHRASED_HUB,
    PARAPHRASED_LENGTHS,
    READ_HERE,
    RECORDS,
    TAKEN_WHOLE,
    Part,
    load_known,
    load_wikimia,
)
from reproduction.run.corpus import MEMBERS, NON_MEMBERS
from reproduction.run.experiment import Experiment

CARD = "---\nlicense: mit\ndataset_info:\n  features:\n  - name: input\n    dtype: string\n---\n"


def rows(length: int, variant: str = "original") -> list[dict[str, object]]:
    text = " ".join([f"{variant}{length}"] * (length - 1))
    count = RECORDS.get(length, 82)
    return [{"input": f"{text} {i}", "label": int(i % 3 > 0)} for i in range(count)]


def split_name(length: int, variant: str = "original") -> str:
    return Part("", variant, length).split


@pytest.fixture(autouse=True)
def nothing_at_hand(monkeypatch, tmp_path) -> Iterator[None]:
    with registry_of(monkeypatch, tmp_path, {}):
        yield


@pytest.fixture
def hub(monkeypatch, tmp_path) -> Iterator[HubServer]:
    """Both repositories as they are laid out: shards in `data/`, and a script that must not run."""
    files = {"README.md": CARD.encode(), "WikiMIA.py": b"raise SystemExit('a script was run')"}
    for length in LENGTHS:
        name = f"data/{split_name(length)}-00000-of-00001-6d31a92f6d59bcdc.parquet"
        files[name] = pd.DataFrame(rows(length)).to_parquet()
    kinds = ("paraphrased", "perturbed")
    names = [split_name(length, kind) for length in PARAPHRASED_LENGTHS for kind in kinds]
    listed = "".join(f"  - split: {n}\n    path: data/{n}-*\n" for n in names)
    card = f"---\nconfigs:\n- config_name: default\n  data_files:\n{listed}---\n"
    others = {"README.md": card.encode()}
    for n in names:
        others[f"data/{n}-00000-of-00001.parquet"] = pd.DataFrame(rows(32, n)).to_parquet()
    with hub_at(monkeypatch, tmp_path) as server:
        for repository, held in ((ORIGINAL_HUB, files), (PARAPHRASED_HUB, others)):
            server.repositories[repository.id] = Repository()
            server.repositories[repository.id].push(held)
        yield server


@pytest.fixture
def mirror(monkeypatch, tmp_path) -> Path:
    folder = tmp_path / "mirror" / "wikimia"
    folder.mkdir(parents=True)
    for length in (64, 128):
        (folder / f"{split_name(length)}.jsonl").write_bytes(jsonl(rows(length)))
    monkeypatch.setenv("CONTAMINATION_DATA", str(folder.parent))
    return folder


def test_splits_of_the_hub(hub) -> None:
    parts = load_wikimia([32, 256])
    found = [(part.variant, part.length, part.status) for part in parts]
    assert found == [("original", 32, OK), ("original", 256, OK), ("paraphrased", 32, OK)]
    for part in parts[:2]:
        wanted = rows(part.length)
        assert part.texts == tuple(row["input"] for row in wanted)
        assert part.members == tuple(row["label"] == 1 for row in wanted)
        assert part.revision == hub.repositories[ORIGINAL_HUB.id].refs["main"]
    assert parts[2].texts[0].startswith("WikiMIA_length32_paraphrased32 ")
    assert parts[2].revision == hub.repositories[PARAPHRASED_HUB.id].refs["main"]
    assert "WikiMIA.py" not in hub.downloaded()


def test_without_leave_to_fetch_the_mirror_alone_is_asked(hub, mirror) -> None:
    parts = load_wikimia([32, 64, 128], network=False)
    assert [part.status for part in parts] == [NOT_AT_HAND, OK, OK, *[NOT_AT_HAND] * 3]
    assert [len(part.texts) for part in parts[:3]] == [0, 542, 250]
    assert parts[1].revision.startswith("sha256:")
    assert parts[1].revision != parts[2].revision
    assert hub.seen == []


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({7: {"input": "a", "label": 2}}, 'line 8: write {"input"'),
        ({7: {"input": "  ", "label": 1}}, 'line 8: write {"input"'),
        ({7: {"text": "a", "label": 1}}, 'line 8: write {"input"'),
        ({i: {"input": f"a {i}", "label": 0} for i in range(250)}, "members or non-members alone"),
    ],
)
def test_a_malformed_split_says_so_and_the_others_are_loaded(mirror, changed, named) -> None:
    path = mirror / f"{split_name(128)}.jsonl"
    path.write_bytes(jsonl([changed.get(i, row) for i, row in enumerate(rows(128))]))
    good, bad = load_wikimia([64, 128], network=False)[:2]
    assert good.status == OK
    assert bad.status.startswith("failed: ") and f"{path}" in bad.status and named in bad.status


HELD = {MEMBERS: {"a": 9, "b": 3, "c": 4}, NON_MEMBERS: {"a": 20, "b": 20, "d": 9}}


def write_documents(run: Experiment, held: dict[str, dict[str, int]]) -> None:
    """Documents of 8 words and of 12 in turn, with line ends between them."""
    for name, packages in held.items():
        lines = []
        for package, count in packages.items():
            for i in range(count):
                words = [f"{Path(name).stem}-{package}-{i}", *["word"] * (11 if i % 2 else 7)]
                lines.append({"source": package, "text": "\n ".join(words) + "\n"})
        (run.corpus / name).write_bytes(jsonl(lines))


@pytest.fixture
def run(tmp_path: Path) -> Experiment:
    found = Experiment(write_profile(tmp_path / "tiny.yaml"), tmp_path / "build")
    found.corpus.mkdir(parents=True)
    (found.corpus / "corpus.json").write_text("{}")
    write_documents(found, HELD)
    return found


def names(part: Part, *, members: bool) -> list[str]:
    pairs = zip(part.texts, part.members, strict=True)
    return [text.split()[0] for text, member in pairs if member == members]


def test_members_were_read_and_the_others_not(run: Experiment) -> None:
    read, control = load_known(run, [8], texts=100)
    assert [(p.source, p.status) for p in (read, control)] == [(READ_HERE, OK), (CONTROL, OK)]
    non_members, others = names(read, members=False), names(control, members=True)
    assert all(name.startswith("members-") for name in names(read, members=True))
    assert all(name.startswith("non_members-") for name in (*non_members, *others))
    assert names(control, members=False) == non_members
    assert not set(others) & set(non_members)
    for found in (names(read, members=True), non_members, others):
        # c has no non-members, d no members
        assert [name.split("-")[1] for name in found] == ["a"] * 9 + ["b"] * 3
    # A limit is shared by turns, and texts are cut after the last word, line ends kept.
    read = load_known(run, [8, 10], texts=3)[1]
    assert (read.length, read.split) == (10, "WikiMIA_length10")
    assert names(read, members=True) == ["members-a-1", "members-a-3", "members-b-1"]
    assert read.texts[0] == "members-a-1" + "\n word" * 9


def test_a_corpus_taken_whole_has_no_benchmark(run: Experiment) -> None:
    (run.corpus / NON_MEMBERS).unlink()
    parts = load_known(run, [32, 64], texts=3)
    found = [(part.source, part.length, part.texts, part.status) for part in parts]
    wanted = [(source, n, (), TAKEN_WHOLE) for source in (READ_HERE, CONTROL) for n in (32, 64)]
    assert found == wanted


def test_where_few_are_left_out_no_text_is_on_both_sides_of_the_control(run: Experiment) -> None:
    write_documents(run, {MEMBERS: {"a": 9}, NON_MEMBERS: {"a": 5}})
    for part in load_known(run, [8], texts=100):
        assert len(set(part.texts)) == len(part.texts) == 4
        assert sum(part.members) == 2
