"""WikiMIA from the hub's own files, a mirror, a cache, a directory; and texts of known membership.

The numbers of records are those of the real splits; the texts are made up.
"""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from contamination.errors import InputError
from contamination.scoring.status import OK
from fakes.data_fixtures import write_profile
from fakes.hub_server import HubServer, Repository
from fakes.made_up_registry import hub_at, jsonl, registry_of
from reproduction.notebooks.wikimia.benchmark import (
    CONTROL,
    LENGTHS,
    NOT_AT_HAND,
    ORIGINAL_HUB,
    PARAPHRASED_HUB,
    READ_HERE,
    RECORDS,
    Part,
    load_directory,
    load_known,
    load_wikimia,
    split_name,
)
from reproduction.run.experiment import Experiment
from reproduction.run.members import MEMBERS, NON_MEMBERS

CARD = "---\nlicense: mit\ndataset_info:\n  features:\n  - name: input\n    dtype: string\n---\n"


def rows(length: int, variant: str = "original") -> list[dict[str, object]]:
    count = RECORDS.get(length, 82)
    text = " ".join([f"{variant}{length}"] * (length - 1))
    return [{"input": f"{text} {i}", "label": int(i % 3 > 0)} for i in range(count)]


def parquet(records: list[dict[str, object]]) -> bytes:
    return pd.DataFrame(records).to_parquet()


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
    kinds = ("paraphrased", "perturbed")
    names = [split_name(length, kind) for length in (32, 64, 128) for kind in kinds]
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
    found = [(part.variant, part.length) for part in parts]
    assert found == [("original", 32), ("original", 256), ("paraphrased", 32)]
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


def test_without_leave_to_fetch_the_hub_is_not_asked(hub, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("CONTAMINATION_DATA", str(mirror_of(tmp_path / "mirror", [64])))
    parts = load_wikimia([32, 64], network=False)
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


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"input": "a", "label": 2}', "line 2: label is 2; write 1 for a member, else 0"),
        ('{"input": "a"}', "line 2: label is None"),
        ('{"text": "a", "label": 1}', "line 2: no text"),
        ('{"input": "  ", "label": 1}', "line 2: no text"),
        ('{"input": "a", "label": 0}', "non-members alone"),
        ("[1]", "line 2: write a JSON object"),
    ],
)
def test_a_malformed_record_is_named(tmp_path, line, message) -> None:
    path = tmp_path / "WikiMIA_length32.jsonl"
    path.write_text('{"input": "x", "label": 0}\n' + line + "\n")
    with pytest.raises(InputError) as caught:
        load_directory(tmp_path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


# --- texts of known membership --------------------------------------------------------------------

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


def test_as_many_of_each_package_on_every_side(run: Experiment) -> None:
    read, control = load_known(run, [8], texts=100)
    for part in (read, control):
        for members in (True, False):
            found = [name.split("-")[1] for name in names(part, members=members)]
            assert found == ["a"] * 9 + ["b"] * 3  # c has no non-members, d no members
    limited, again = (load_known(run, [8], texts=7) for _ in range(2))
    found = [name.split("-")[1] for name in names(limited[0], members=True)]
    assert found == ["a"] * 4 + ["b"] * 3
    assert limited == again
    assert limited[0].revision != limited[1].revision


def test_texts_are_cut_after_the_last_word_and_keep_their_line_ends(run: Experiment) -> None:
    read = load_known(run, [8, 10], texts=3)[1]
    assert (read.length, read.split) == (10, "WikiMIA_length10")
    assert names(read, members=True) == ["members-a-1", "members-a-3", "members-b-1"]
    assert read.texts[0] == "members-a-1" + "\n word" * 9


def test_a_corpus_taken_whole_has_no_benchmark(run: Experiment) -> None:
    (run.corpus / NON_MEMBERS).unlink()
    parts = load_known(run, [32, 64], texts=3)
    found = [(part.source, part.length) for part in parts]
    assert found == [(READ_HERE, 32), (READ_HERE, 64), (CONTROL, 32), (CONTROL, 64)]
    assert all(p.status.startswith("not run here: the corpus was taken whole") for p in parts)
    assert not any(p.texts for p in parts)


def test_where_few_are_left_out_no_text_is_on_both_sides_of_the_control(run: Experiment) -> None:
    write_documents(run, {MEMBERS: {"a": 9}, NON_MEMBERS: {"a": 5}})
    for part in load_known(run, [8], texts=100):
        assert len(set(part.texts)) == len(part.texts) == 4
        assert sum(part.members) == 2


def test_what_cannot_be_cut(run: Experiment) -> None:
    for lengths, texts in (([], 5), ([0], 5), ([8], 0)):
        with pytest.raises(InputError, match="give positive numbers"):
            load_known(run, lengths, texts=texts)
    (run.corpus / "corpus.json").unlink()
    with pytest.raises(InputError, match="run `make reproduce` or the corpus stage first"):
        load_known(run, texts=5)
