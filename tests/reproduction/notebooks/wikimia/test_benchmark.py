"""WikiMIA from a mirror; and texts of known membership.

The numbers of records are those of the real splits; the texts are made up. That splits of the hub
are found by name is proved with the hub (`testsets/test_fetching.py`).
"""

import itertools
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub.constants
import pytest

from contamination.scoring.status import OK
from fakes.data_fixtures import write_profile
from fakes.made_up_registry import jsonl, registry_of
from reproduction.notebooks.wikimia.dated import ONE_KIND, TWO_KINDS, made_up_baselines
from reproduction.notebooks.wikimia.texts import (
    CONTROL,
    NOT_AT_HAND,
    READ_HERE,
    RECORDS,
    TAKEN_WHOLE,
    Part,
    load_known,
    load_wikimia,
)
from reproduction.run.corpus import MEMBERS, NON_MEMBERS
from reproduction.run.experiment import Experiment


def rows(length: int) -> list[dict[str, object]]:
    text = "word " * (length - 1)
    numbers = range(RECORDS[length])
    return [{"input": f"{text}{i}", "label": int(i % 3 > 0)} for i in numbers]


@pytest.fixture
def mirror(monkeypatch, tmp_path) -> Iterator[Path]:
    """Two splits are there, and no hub is in reach."""
    with registry_of(monkeypatch, tmp_path, {}):
        folder = tmp_path / "mirror" / "wikimia"
        folder.mkdir(parents=True)
        for length in (64, 128):
            (folder / f"WikiMIA_length{length}.jsonl").write_bytes(jsonl(rows(length)))
        monkeypatch.setenv("CONTAMINATION_DATA", str(folder.parent))
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
        yield folder


@pytest.mark.parametrize("network", [False, True])
def test_the_mirror_comes_first_and_the_hub_is_asked_with_leave_alone(mirror, network) -> None:
    parts = load_wikimia([32, 64, 128], network=network)
    found = {(part.variant, part.length): part.status for part in parts}
    asked = [("original", n) for n in (32, 64, 128)] + [("paraphrased", n) for n in (32, 64, 128)]
    assert list(found) == asked
    lost = {status for key, status in found.items() if key not in asked[1:3]}
    assert all((status == NOT_AT_HAND) != network for status in lost)
    assert all(status.startswith("not run here: ") for status in lost)
    for part in parts[1:3]:
        assert part.texts == tuple(row["input"] for row in rows(part.length))
        assert part.members == tuple(row["label"] == 1 for row in rows(part.length))
        assert part.status == OK
        assert part.revision.startswith("sha256:")
    assert parts[1].revision != parts[2].revision


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
    path = mirror / "WikiMIA_length128.jsonl"
    path.write_bytes(jsonl([changed.get(i, row) for i, row in enumerate(rows(128))]))
    good, bad = load_wikimia([64, 128], network=False)[:2]
    assert good.status == OK
    assert bad.status.startswith("failed: ")
    assert f"{path}" in bad.status
    assert named in bad.status


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
    non_members = names(read, members=False)
    others = names(control, members=True)
    assert all(name.startswith("members-") for name in names(read, members=True))
    assert all(name.startswith("non_members-") for name in (*non_members, *others))
    assert names(control, members=False) == non_members
    assert not set(others) & set(non_members)
    for found in (names(read, members=True), non_members, others):
        # c has no non-members, d no members
        assert [name.split("-")[1] for name in found] == ["a"] * 9 + ["b"] * 3
    # A limit is shared by turns, and texts are cut after the last word, line ends kept.
    read = load_known(run, [8, 10], texts=3)[1]
    assert read.length == 10
    assert read.split == "WikiMIA_length10"
    assert names(read, members=True) == ["members-a-1", "members-a-3", "members-b-1"]
    assert read.texts[0] == "members-a-1" + "\n word" * 9


def test_a_corpus_taken_whole_has_no_benchmark(run: Experiment) -> None:
    (run.corpus / NON_MEMBERS).unlink()
    parts = load_known(run, [32, 64], texts=3)
    found = [(part.source, part.length, part.texts, part.status) for part in parts]
    places = itertools.product((READ_HERE, CONTROL), (32, 64))
    wanted = [(source, length, (), TAKEN_WHOLE) for source, length in places]
    assert found == wanted


def test_where_few_are_left_out_no_text_is_on_both_sides_of_the_control(run: Experiment) -> None:
    write_documents(run, {MEMBERS: {"a": 9}, NON_MEMBERS: {"a": 5}})
    for part in load_known(run, [8], texts=100):
        assert len(set(part.texts)) == len(part.texts) == 4
        assert sum(part.members) == 2


def test_of_made_up_pages_words_find_only_those_with_newer_words() -> None:
    table = made_up_baselines(3, a_side=30, lengths=[64])
    words = table[table["baseline"] == "bag_of_words"].set_index("benchmark")
    assert words.loc[TWO_KINDS, "auc_low"] > 0.5
    assert words.loc[ONE_KIND, "auc_low"] <= 0.5
