"""A benchmark from dated pages: who is a member, what is left out, and what words alone find."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contamination.errors import InputError
from contamination.files import read_json
from contamination.membership.dated import (
    COPY,
    FEWEST,
    GAP,
    SHORT,
    TITLE,
    DatedSet,
    Rules,
    build_dated_set,
    cut_pages,
    split_name,
)
from contamination.testsets.pages import Page
from fakes.made_up_registry import jsonl

CUTOFF = date(2023, 1, 1)
OLD = "2010-01-01"
NEW = "2023-02-01"
RULES = Rules(CUTOFF, lengths=(4, 8))
COMMON = ["rain", "wind", "sun", "snow", "hail", "fog", "ice", "heat", "storm", "cloud"]


def page(name: str, day: date | str, words: int = 10, **more: Any) -> dict[str, Any]:
    text = "  ".join([name, *(f"w{i}" for i in range(1, words))]) + "\n"
    return {"title": f"Page {name}", "text": text, "date": str(day)} | more


def build(folder: Path, pages: list[dict[str, Any]], rules: Rules = RULES) -> DatedSet:
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "pages.jsonl"
    source.write_bytes(jsonl(pages))
    return build_dated_set(source, folder / "out", rules)


def rows(folder: Path, name: str) -> list[tuple[str, int]]:
    lines = (folder / "out" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return [(record["input"], record["label"]) for record in records]


def both_sides(count: int) -> list[dict[str, Any]]:
    """Return pages of the same words on both sides."""
    pages = []
    for number in range(count):
        for side, day in (("m", OLD), ("n", NEW)):
            words = [COMMON[(number + place) % len(COMMON)] for place in range(9)]
            pages.append(page(f"{side}{number}", day, text=" ".join([f"{side}{number}", *words])))
    return pages


def test_the_day_of_creation_decides_the_side(tmp_path: Path) -> None:
    pages = [page("a", "2022-12-31"), page("b", CUTOFF), page("c", OLD), page("d", NEW)]
    build(tmp_path, pages)
    labels = {text.split()[0]: label for text, label in rows(tmp_path, "WikiMIA_length8")}
    assert labels == {"a": 1, "b": 0, "c": 1, "d": 0}
    assert rows(tmp_path, "WikiMIA_length4")[0][0] == "a w1 w2 w3"


def test_what_is_left_out_is_counted_by_its_reason(tmp_path: Path) -> None:
    """The oldest of pages that begin alike stays, even in the gap: a copy is no non-member."""
    pages = [page(name, OLD) for name in "ab"] + [page(name, NEW) for name in "cd"]
    pages += [page("GAP", "2019-01-01"), page("gap", NEW), page("short", NEW, 3)]
    pages += [page("x", OLD, title=" LIST of X"), page("y", OLD, title="Listing of Y")]
    made = build(tmp_path, pages, Rules(CUTOFF, date(2017, 1, 1), lengths=(4,)))
    assert made.left_out == {TITLE: 1, SHORT: 1, COPY: 1, GAP: 1}
    assert made.pages == len(pages)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 9)), max_size=20), st.integers(0, 9))
def test_both_sides_of_a_length_have_as_many_texts(drawn, seed) -> None:
    pages = []
    for is_member, words in drawn:
        created = date(2010, 1, 1) if is_member else CUTOFF
        pages.append(Page("", " ".join(["word"] * words), created))
    splits = cut_pages(pages, Rules(CUTOFF, lengths=(4, 8), seed=seed))
    for length in (4, 8):
        long_enough = [is_member for is_member, words in drawn if words >= length]
        fewer = min(sum(long_enough), len(long_enough) - sum(long_enough))
        labels = [row["label"] for row in splits.get(split_name(length), [])]
        assert len(labels) == (2 * fewer if fewer >= FEWEST else 0)
        assert sum(labels) == len(labels) / 2


def test_paraphrases_are_splits_of_their_own(tmp_path: Path) -> None:
    pages = [page(name, OLD, paraphrase=f"{name} in other  words") for name in "abc"]
    pages += [page(name, NEW, paraphrase=f"{name} said quite otherwise") for name in "de"]
    pages += [page("f", NEW)]
    build(tmp_path, pages)
    found = rows(tmp_path, "WikiMIA_length4_paraphrased")
    assert [label for _, label in found] == [1, 1, 0, 0]
    assert found[-1][0] == "e said quite otherwise"
    assert not (tmp_path / "out" / "WikiMIA_length8_paraphrased.jsonl").exists()


def test_a_bag_of_words_that_solves_the_set_is_named(tmp_path: Path) -> None:
    pages = [page(f"{i}", OLD, text=f"{i} old news of the day and week here") for i in range(20)]
    pages += [page(f"{i}", NEW, text=f"{i} x young post on a phone app") for i in range(20, 40)]
    assert build(tmp_path / "a", pages, Rules(CUTOFF, lengths=(6,))).solved == ["WikiMIA_length6"]
    assert build(tmp_path / "b", both_sides(20), Rules(CUTOFF, lengths=(9,))).solved == []
    assert (tmp_path / "b" / "out" / "blind.csv").is_file()


def test_the_same_pages_give_the_same_bytes_wherever_they_lie(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        build(tmp_path / folder, both_sides(5))
    files = sorted(path.name for path in (tmp_path / "one" / "out").iterdir())
    assert "provenance.json" in files
    for name in files:
        contents = [(tmp_path / folder / "out" / name).read_bytes() for folder in ("one", "two")]
        assert contents[0] == contents[1]
    written = read_json(tmp_path / "one" / "out" / "provenance.json")
    assert written["texts_of_each_side"] == {"WikiMIA_length4": 5, "WikiMIA_length8": 5}


@pytest.mark.parametrize(
    ("pages", "wrong", "named"),
    [
        (both_sides(2), {"members_before": date(2024, 1, 1)}, "2024-01-01.*2023-01-01"),
        (both_sides(2), {"lengths": (8, 8)}, "8, 8"),
        (both_sides(2), {"lengths": ()}, "none"),
        (both_sides(2), {"lengths": (0,)}, "0"),
        (both_sides(2), {"cutoff": date(2030, 1, 1)}, "4 are members.*0 non-members"),
        (both_sides(2), {"lengths": (50,)}, f"4 left out: {SHORT}"),
        (both_sides(1), {}, "1 are members"),
    ],
)
def test_rules_that_cannot_be_followed_leave_nothing(tmp_path, pages, wrong, named) -> None:
    settings = {"cutoff": CUTOFF, "lengths": (4, 8)} | wrong
    with pytest.raises(InputError, match=named):
        build(tmp_path, pages, Rules(**settings))
    assert not (tmp_path / "out").exists()


def test_a_length_without_texts_on_a_side_is_left_out(tmp_path: Path) -> None:
    pages = [page("a", OLD), page("b", OLD), page("c", NEW, 4), page("d", NEW, 4)]
    build(tmp_path, pages, Rules(cutoff=CUTOFF, lengths=(4, 8)))
    assert not (tmp_path / "out" / "WikiMIA_length8.jsonl").exists()


def test_a_benchmark_that_is_there_stays(tmp_path: Path) -> None:
    build(tmp_path, both_sides(2))
    with pytest.raises(InputError, match="out"):
        build(tmp_path, both_sides(3))
    assert len(rows(tmp_path, "WikiMIA_length4")) == 4
