"""The builder: who is a member, what is left out and why; the forms of pages, and what is wrong."""

import json
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from contamination.errors import InputError
from contamination.files import read_json
from contamination.membership.dated_pages import (
    CHANGED,
    DUPLICATE,
    GAP,
    PROVENANCE,
    SHORT,
    SURPLUS,
    TITLE,
    Rules,
    build_wikimia,
    read_pages,
)
from fakes.made_up_registry import jsonl

BEFORE, FROM = date(2017, 1, 1), date(2023, 1, 1)
OLD, NEW = "2010-01-01", "2023-02-01"  # of a member, and of a non-member
RULES = Rules(BEFORE, FROM, lengths=(4, 8))


def page(name: str, day: date | str, words: int = 10, **more: Any) -> dict[str, Any]:
    text = "  ".join([name, *(f"w{i}" for i in range(1, words))]) + "\n"
    return {"title": f"Page {name}", "text": text, "date": str(day), **more}


def write(folder: Path, pages: list[dict[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pages.jsonl").write_bytes(jsonl(pages))
    return folder / "pages.jsonl"


def build(folder: Path, pages: list[dict[str, Any]], rules: Rules = RULES) -> dict[str, Any]:
    return build_wikimia(write(folder, pages), folder / "out", rules)


def rows(folder: Path, name: str) -> list[tuple[str, int]]:
    lines = (folder / "out" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [(row["input"], row["label"]) for row in map(json.loads, lines)]


def why(made: dict[str, Any]) -> dict[str, str]:
    return {one["title"].removeprefix("Page "): one["why"] for one in made["dropped_pages"]}


def test_who_is_a_member_what_is_left_out_and_why(tmp_path: Path) -> None:
    """The oldest of pages that begin alike stays, even in the gap: a copy is no non-member."""
    day = timedelta(days=1)
    pages = [
        page("last", BEFORE - day, 8, paraphrase="in other  words than before"),
        page("none", BEFORE),
        page("nor", FROM - day),
        page("first", FROM, 9, paraphrase="said quite otherwise here"),
        page("short", NEW, 3),
        page("seven", OLD, 7),
        page("LAST", NEW, 8, title="Page copy"),
        page("x", NEW, title=" LIST of X"),
        page("y", OLD, title="Listing of Y", changed=str(BEFORE)),
        page("z", OLD, changed=str(BEFORE - day)),
    ]
    made = build(tmp_path, pages, replace(RULES, balanced=False))
    left = {"none": GAP, "nor": GAP, "short": SHORT, "copy": DUPLICATE, " LIST of X": TITLE}
    assert why(made) == left
    assert (made["kept"]["first_day"], made["kept"]["last_day"]) == (OLD, "2023-01-01")
    assert made["kept"]["members_changed_since"] == 1
    labels = [(text.split()[0], label) for text, label in rows(tmp_path, "WikiMIA_length8")]
    assert labels == [("last", 1), ("first", 0), ("y", 1), ("z", 1)]
    assert rows(tmp_path, "WikiMIA_length4")[0] == ("last w1 w2 w3", 1)
    wanted = [("in other words than", 1), ("said quite otherwise here", 0)]
    assert rows(tmp_path, "WikiMIA_length4_paraphrased") == wanted
    assert made["splits"]["WikiMIA_length8_paraphrased"] == {"members": 0, "non_members": 0}
    assert not (tmp_path / "out" / "WikiMIA_length8_paraphrased.jsonl").exists()
    fewer = build(tmp_path, pages, replace(RULES, balanced=False, drop_changed=True))
    assert why(fewer) == left | {"Listing of Y": CHANGED}
    assert build(tmp_path, pages, replace(RULES, members_before=FROM))["dropped"].get(GAP) is None


def test_as_many_pages_of_both_classes_drawn_by_the_seed(tmp_path: Path) -> None:
    pages = [page(f"m{i}", OLD) for i in range(20)]
    pages += [page(f"n{i}", NEW) for i in range(6)]
    drawn = []
    for seed in (0, 1):
        made = build(tmp_path, pages, replace(RULES, seed=seed))
        assert made["kept"]["members"] == made["kept"]["non_members"] == 6
        assert made["dropped"] == {SURPLUS: 14}
        drawn.append(rows(tmp_path, "WikiMIA_length8"))
    assert drawn[0] != drawn[1]
    places = [int(text.split()[0][1:]) for text, label in drawn[0] if label]
    assert places == sorted(places) != list(range(6))  # in the order of the pages


def test_the_same_pages_give_the_same_bytes_wherever_they_lie(tmp_path: Path) -> None:
    pages = [page(f"é{i}", OLD) for i in range(9)] + [page("n", NEW)]
    for folder in ("one", "two"):
        build(tmp_path / folder, pages)
    files = sorted(path.name for path in (tmp_path / "one" / "out").iterdir())
    assert files == ["WikiMIA_length4.jsonl", "WikiMIA_length8.jsonl", PROVENANCE]
    for name in files:
        found = [(tmp_path / folder / "out" / name).read_bytes() for folder in ("one", "two")]
        assert found[0] == found[1]
    written = read_json(tmp_path / "one" / "out" / PROVENANCE)
    days = {"members_before": "2017-01-01", "non_members_from": "2023-01-01"}
    rest = {"lengths": [4, 8], "balanced": True, "drop_changed": False, "seed": 0}
    assert (written["found"], written["rules"]) == (10, days | rest)
    assert written["dropped_pages"][0]["place"].startswith("pages.jsonl, line ")


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"members_before": FROM, "non_members_from": BEFORE}, "2023-01-01 .* 2017-01-01"),
        ({"members_before": date(2001, 1, 1)}, "0 members and 1 non-members"),
        ({"lengths": (50,)}, "2: fewer words"),
    ],
)
def test_rules_that_cannot_be(tmp_path: Path, wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        build(tmp_path, [page("a", OLD), page("b", NEW)], replace(RULES, **wrong))
    assert not (tmp_path / "out").exists()


GOOD = '{"title": "A", "text": "one two", "date": "2016-02-03"}\n'


def test_records_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "pages.jsonl"
    more = ('"changed": "2020-01-01 07:00:00", "paraphrase": "two one"', '"changed": null')
    lines = [GOOD.replace('"2016-02-03"', f'"2016-02-03T10:00:00Z", {extra}') for extra in more]
    path.write_text(GOOD + "".join(lines))
    pages, files = read_pages(path)
    created = date(2016, 2, 3)
    assert [tuple(row) for row in pages.to_numpy()] == [
        (f"{path}, line 1", "A", "one two", created, None, ""),
        (f"{path}, line 2", "A", "one two", created, date(2020, 1, 1), "two one"),
        (f"{path}, line 3", "A", "one two", created, None, ""),
    ]
    assert files == [path]


def test_a_folder_with_an_index(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("# Heading\n\nText of b\n")
    (tmp_path / "a.txt").write_text("Text of a")
    (tmp_path / "pages.csv").write_text(
        'file,title,date,changed\nb.md,"B, indeed",2023-05-06,\na.txt,A,2011-12-13,2012-01-02\n'
    )
    pages, files = read_pages(tmp_path)
    assert [tuple(row) for row in pages.drop(columns=["place", "paraphrase"]).to_numpy()] == [
        ("B, indeed", "# Heading\n\nText of b\n", date(2023, 5, 6), None),
        ("A", "Text of a", date(2011, 12, 13), date(2012, 1, 2)),
    ]
    assert files == [tmp_path / name for name in ("pages.csv", "b.md", "a.txt")]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        *(({"date": day}, "'date'") for day in ("20230131", "2023-01-31x", "2016-13-01", None)),
        ({"changed": "soon"}, "'changed' is 'soon'"),
        ({"title": None}, "'title'"),
    ],
)
def test_a_malformed_page_is_named(tmp_path: Path, wrong: Any, named: str) -> None:
    path = tmp_path / "pages.jsonl"
    fields = {"title": "A", "text": "x", "date": "2016-01-01"} | wrong
    path.write_text(GOOD + json.dumps({k: v for k, v in fields.items() if v is not None}) + "\n")
    with pytest.raises(InputError, match=f"line 2: .*{named}"):
        read_pages(path)
