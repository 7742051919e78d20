"""Texts of known membership: who has read what, as many of each package, words as they stand."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from contamination.errors import InputError
from contamination.experiments.wikimia.benchmark import Part, make_part
from contamination.experiments.wikimia.made_here import (
    CONTROL,
    READ_HERE,
    first_words,
    parts_here,
    unread,
)
from contamination.pretraining.experiment import Experiment
from contamination.pretraining.members import MEMBERS, NON_MEMBERS
from contamination.scoring.status import OK
from fakes.data_fixtures import write_profile

HELD = {MEMBERS: {"a": 9, "b": 3, "c": 4}, NON_MEMBERS: {"a": 20, "b": 20, "d": 9}}


@dataclass
class Run:
    experiment: Experiment

    def write(self, held: dict[str, dict[str, int]], words: int = 12) -> None:
        """Documents of 8 words and of `words` in turn, with line ends between them."""
        for name, sources in held.items():
            lines = []
            for source, count in sources.items():
                for i in range(count):
                    length = words if i % 2 else 8
                    text = "\n ".join([f"{name[:-6]}-{source}-{i}", *["word"] * (length - 1)])
                    lines.append(json.dumps({"source": source, "text": text + "\n"}) + "\n")
            (self.experiment.corpus / name).write_text("".join(lines))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    experiment = Experiment(write_profile(tmp_path / "tiny.yaml"), tmp_path / "build")
    experiment.corpus.mkdir(parents=True)
    (experiment.corpus / "corpus.json").write_text("{}")
    found = Run(experiment)
    found.write(HELD)
    return found


def names(part: Part, *, members: bool) -> list[str]:
    pairs = zip(part.texts, part.members, strict=True)
    return [text.split()[0] for text, member in pairs if member == members]


def test_members_were_read_and_the_others_not(run: Run) -> None:
    read, control = parts_here(run.experiment, [8], texts=100)
    assert (read.source, control.source, read.status, control.status) == (
        *(READ_HERE, CONTROL),
        *(OK, OK),
    )
    assert all(name.startswith("members-") for name in names(read, members=True))
    assert all(name.startswith("non_members-") for name in names(read, members=False))
    assert names(control, members=False) == names(read, members=False)
    others = names(control, members=True)
    assert all(name.startswith("non_members-") for name in others)
    assert not set(others) & set(names(control, members=False))


def test_as_many_of_each_package_on_every_side(run: Run) -> None:
    read, control = parts_here(run.experiment, [8], texts=100)
    for part in (read, control):
        for members in (True, False):
            found = [name.split("-")[1] for name in names(part, members=members)]
            assert found == ["a"] * 9 + ["b"] * 3  # c has no non-member, d no member
    (limited, _) = parts_here(run.experiment, [8], texts=7)
    found = [name.split("-")[1] for name in names(limited, members=True)]
    assert found == ["a"] * 4 + ["b"] * 3


def test_texts_are_cut_after_the_last_word_and_keep_their_line_ends(run: Run) -> None:
    read = parts_here(run.experiment, [8, 10], texts=3)[1]
    assert (read.length, read.split) == (10, "WikiMIA_length10")
    assert names(read, members=True) == ["members-a-1", "members-a-3", "members-b-1"]
    assert read.texts[0] == "members-a-1" + "\n word" * 9


@pytest.mark.parametrize(
    ("text", "count", "wanted"),
    [
        (" a  b\n\tc d ", 3, " a  b\n\tc"),
        ("a b", 2, "a b"),
        ("a b", 3, None),
        ("a b c", 1, "a"),
        ("", 1, None),
        (" \n ", 1, None),
    ],
)
def test_first_words(text: str, count: int, wanted: str | None) -> None:
    assert first_words(text, count) == wanted
    assert wanted is None or len(wanted.split()) == count


def test_a_corpus_taken_whole_has_no_benchmark(run: Run) -> None:
    (run.experiment.corpus / NON_MEMBERS).unlink()
    parts = parts_here(run.experiment, [32, 64], texts=3)
    assert [(p.source, p.length) for p in parts] == [
        *((READ_HERE, 32), (READ_HERE, 64)),
        *((CONTROL, 32), (CONTROL, 64)),
    ]
    assert all(p.status.startswith("not run here: the corpus was taken whole") for p in parts)
    assert not any(p.texts for p in parts)


def test_too_few_documents_of_a_length_are_a_status(run: Run) -> None:
    parts = parts_here(run.experiment, [8, 500], texts=3)
    assert [part.status == OK for part in parts] == [True, False, True, False]
    assert parts[1].status.startswith("failed: too few documents of 500 words on both sides")
    run.write({MEMBERS: {}, NON_MEMBERS: {"a": 3}})
    assert not any(part.texts for part in parts_here(run.experiment, [8], texts=3))


def test_the_same_documents_give_the_same_revision(run: Run) -> None:
    before = [part.revision for part in parts_here(run.experiment, [8], texts=5)]
    assert before == [part.revision for part in parts_here(run.experiment, [8], texts=5)]
    assert len(set(before)) == 2


@pytest.mark.parametrize(("lengths", "texts"), [([], 5), ([0], 5), ([8], 0)])
def test_bad_arguments(run: Run, lengths: list[int], texts: int) -> None:
    with pytest.raises(InputError, match="give positive numbers"):
        parts_here(run.experiment, lengths, texts=texts)


def test_no_corpus(run: Run) -> None:
    (run.experiment.corpus / "corpus.json").unlink()
    with pytest.raises(InputError, match="run `make reproduce` or the corpus stage first"):
        parts_here(run.experiment, texts=5)


def test_unread_parts_are_controls_with_the_same_texts() -> None:
    part = make_part("wikimia", "paraphrased", 32, ["a", "b"], [True, False])
    (control,) = unread([part])
    assert control.source == "control (wikimia)"
    assert (control.texts, control.split) == (part.texts, part.split)


def test_no_text_is_on_both_sides_of_the_control_where_few_were_left_out(run: Run) -> None:
    run.write({MEMBERS: {"a": 9}, NON_MEMBERS: {"a": 5}})
    read, control = parts_here(run.experiment, [8], texts=100)
    for part in (read, control):
        assert len(set(part.texts)) == len(part.texts) == 4
        assert sum(part.members) == 2
