"""WikiMIA from the hub's own files, a mirror, a cache, a directory; and texts of known membership.

The numbers of records are those of the real splits; the texts are made up.
"""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from contamination.scoring.status import OK
from fakes.data_fixtures import write_profile
from fakes.hub_server import HubServer, Repository
from fakes.made_up_registry import hub_at, jsonl, refusal, registry_of
from reproduction.notebooks.wikimia.measure import (
    CONTROL,
    LENGTHS,
    NOT_AT_HAND,
    ORIGINAL_HUB,
    PARAPHRASED_HUB,
    READ_HERE,
    RECORDS,
    TAKEN_WHOLE,
    Part,
    load_directory,
    load_known,
    load_wikimia,
    split_name,
)
from reproduction.run.corpus import MEMBERS, NON_MEMBERS
from reproduction.run.experiment import Experiment

CARD = "---\nlicense: mit\ndataset_info:\n  features:\n  - name: input\n    dtype: string\n---\n"


def rows(length: int, variant: str = "original") -> list[dict[str, object]]:
    count = RECORDS.get(length, 82)
    text = " ".join([f"{variant}{length}"] * (length - 1))
    return [{"input": f"{text} {i}", "label": int(i % 3 > 0)} for i in range(count)]


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
    names = [split_name(length, kind) for length in (32, 64, 128) for kind in kinds]
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


def mirror_of(root: Path, *lengths: int) -> str:
    (root / "wikimia").mkdir(parents=True)
    for length in lengths:
        (root / "wikimia" / f"{split_name(length)}.jsonl").write_bytes(jsonl(rows(length)))
    return str(root)


def test_splits_of_the_hub(hub) -> None:
    parts = load_wikimia([32, 256])
    found = [(part.variant, part.length) for part in parts]
    assert found == [("original", 32), ("original", 256), ("paraphrased", 32)]
    assert {part.status for part in parts} == {OK}
    for part in parts[:2]:
        wanted = rows(part.length)
        assert part.texts == tuple(row["input"] for row in wanted)
        assert part.members == tuple(row["label"] == 1 for row in wanted)
        assert part.revision == hub.repositories[ORIGINAL_HUB.id].refs["main"]
    assert parts[2].texts[0].startswith("WikiMIA_length32_paraphrased32 ")
    assert parts[2].revision == hub.repositories[PARAPHRASED_HUB.id].refs["main"]
    assert "WikiMIA.py" not in hub.downloaded()


def test_without_leave_to_fetch_the_mirror_alone_is_asked(hub, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("CONTAMINATION_DATA", mirror_of(tmp_path / "mirror", 64, 128))
    parts = load_wikimia([32, 64, 128], network=False)
    assert [part.status for part in parts] == [NOT_AT_HAND, OK, OK, *[NOT_AT_HAND] * 3]
    assert [len(part.texts) for part in parts[:3]] == [0, 542, 250]
    assert parts[1].revision.startswith("sha256:")
    assert parts[1].revision != parts[2].revision
    assert hub.seen == []


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


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"input": "a", "label": 2}', "line 2: label is 2; write 1 for a member, else 0"),
        ('{"input": "  ", "label": 1}', "line 2: no text"),
        ('{"text": "a", "label": 1}', "line 2: no text"),
        ('{"input": "a", "label": 0}', "members or non-members alone"),
    ],
)
def test_a_malformed_record_is_named(tmp_path, line, message) -> None:
    path = tmp_path / "WikiMIA_length32.jsonl"
    path.write_text('{"input": "x", "label": 0}\n' + line + "\n")
    assert f"{path}" in (found := refusal(load_directory, tmp_path))
    assert message in found


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
    limited, _ = load_known(run, [8], texts=7)
    found = [name.split("-")[1] for name in names(limited, members=True)]
    assert found == ["a"] * 4 + ["b"] * 3


def test_texts_are_cut_after_the_last_word_and_keep_their_line_ends(run: Experiment) -> None:
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
