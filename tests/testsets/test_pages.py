"""Dated pages: records, a folder, a MediaWiki export; and what is no page."""

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from contamination.errors import InputError
from contamination.testsets.mediawiki import LATER_REVISION, plain_text, read_export
from contamination.testsets.pages import Page, read_page_folder, read_page_records
from fakes.made_up_registry import jsonl

CUTOFF = date(2023, 1, 1)
GOOD = {"title": "A", "text": "one two", "date": "2016-02-03"}


def export(*pages: str, before: str = "") -> str:
    return f'{before}<mediawiki xmlns="http://x/export-0.11/">{"".join(pages)}</mediawiki>'


def page(title: str, *revisions: str, namespace: str = "0", more: str = "") -> str:
    inside = f"<title>{title}</title><ns>{namespace}</ns><id>1</id>{more}{''.join(revisions)}"
    return f"<page>{inside}</page>\n"


def revision(day: str, text: str, parent: str = "", hour: int = 10) -> str:
    parent_id = f"<parentid>{parent}</parentid>" if parent else ""
    stamp = f"<timestamp>{day}T{hour}:00:00Z</timestamp>"
    return f"<revision><id>9</id>{parent_id}{stamp}<text>{text}</text></revision>"


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., list[Page]]:
    def read_pages(xml: str) -> list[Page]:
        path = tmp_path / "dump.xml"
        path.write_text(xml, encoding="utf-8")
        return read_export(path, CUTOFF)

    return read_pages


def test_records_have_a_title_a_text_and_a_day(tmp_path: Path) -> None:
    path = tmp_path / "pages.jsonl"
    timed = GOOD | {"date": "2016-02-03T10:00:00Z", "paraphrase": "two one"}
    path.write_bytes(jsonl([GOOD, timed]))
    plain, other = read_page_records(path)
    assert plain == Page("A", "one two", date(2016, 2, 3))
    assert other == Page("A", "one two", date(2016, 2, 3), paraphrase="two one")


def test_a_folder_has_an_index_and_its_files(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("Text of b\n")
    (tmp_path / "pages.csv").write_text('file,title,date\nb.md,"B, indeed",2023-05-06\n')
    pages, files = read_page_folder(tmp_path)
    assert pages == [Page("B, indeed", "Text of b\n", date(2023, 5, 6))]
    assert files == [tmp_path / "pages.csv", tmp_path / "b.md"]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"date": "20230131"}, "20230131"),
        ({"date": "2016-13-01"}, "2016-13-01"),
        ({"date": None}, "date is missing"),
        ({"title": None}, "'title'"),
        ({"text": 7}, "'text' is 7"),
        ({"text": "half \ud83d a smile"}, r"\\ud83d"),
        ({"title": "\udc00"}, r"\\udc00"),
        ({"paraphrase": "\ud83d"}, r"\\ud83d"),
        ({"paraphrase": 7}, "'paraphrase' is 7"),
    ],
)
def test_a_malformed_record_is_named_by_its_line(tmp_path: Path, wrong: dict, named: str) -> None:
    path = tmp_path / "pages.jsonl"
    path.write_bytes(jsonl([GOOD, GOOD | wrong]))
    with pytest.raises(InputError, match=f"line 2: .*{named}"):
        read_page_records(path)


def test_an_index_or_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"pages\.csv"):
        read_page_folder(tmp_path)
    (tmp_path / "pages.csv").write_text("file,title,date\ngone.md,A,2020-01-01\n")
    with pytest.raises(InputError, match=r"line 2: .*gone\.md"):
        read_page_folder(tmp_path)


def test_an_export_gives_the_text_that_a_model_may_have_read(read) -> None:
    history = [
        revision("2010-01-01", "first"),
        revision("2022-12-31", "'''last''' before", parent="1"),
        revision("2023-01-01", "too late", parent="2"),
    ]
    new = [revision("2023-04-01", "stub"), revision("2024-04-01", "grown", parent="3")]
    old, young = read(export(page("Old", *history), page("New", *reversed(new))))
    assert old == Page("Old", "last before", date(2010, 1, 1))
    assert young == Page("New", "grown", date(2023, 4, 1))


@pytest.mark.parametrize("day", ["2022-12-31", "2023-04-01"])
def test_revisions_of_one_day_count_by_their_time(read, day: str) -> None:
    history = [revision(day, "first"), revision(day, "second", parent="1", hour=11)]
    expected = Page("A", "second", date.fromisoformat(day))
    assert read(export(page("A", *history), page("A", *reversed(history)))) == [expected] * 2


def test_without_its_first_revision_only_an_old_page_has_a_known_side(read) -> None:
    old, new = read(
        export(
            page("Old", revision("2020-01-01", "x", parent="5")),
            page("New", revision("2024-01-01", "y", parent="6")),
        )
    )
    assert not old.unknown
    assert new.unknown == LATER_REVISION


def test_talk_and_redirects_are_no_pages(read) -> None:
    text = revision("2020-01-01", "x")
    redirect = page("Moved", text, more='<redirect title="A" />')
    assert read(export(page("Talk:A", text, namespace="1"), redirect)) == []


BOMB = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>'
OUTSIDE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]>'


@pytest.mark.parametrize(
    ("xml", "named"),
    [
        (export(page("A", revision("2020-01-01", "&b;")), before=BOMB), "line 1: .*document type"),
        (export(page("A", revision("2020-01-01", "&a;")), before=OUTSIDE), "document type"),
        (export(page("A", revision("2020-01-01", "&gone;"))), "line 1: not XML"),
        ("<mediawiki><page>", "line 1: not XML"),
        ("<html></html>", "root is <html>"),
        ("", "not XML"),
        (export(page("A")), "page 'A': no revision"),
        (export(page("A", revision("soon", "x"))), "page 'A': the date is 'soonT10:00:00Z'"),
    ],
)
def test_what_is_no_export_is_refused(read, xml: str, named: str) -> None:
    with pytest.raises(InputError, match=f"dump.xml.*{named}"):
        read(xml)


@pytest.mark.parametrize(
    ("wikitext", "words"),
    [
        ("a {{b|{{c}}}} d", "a d"),
        ("{| class=x\n| cell\n|}\nText", "Text"),
        ("[[File:x.jpg|thumb|A [[b|c]].]]A [[d]] [[e|f]]", "A d f"),
        ("a<ref name=x/> b<ref>c [[d]]</ref>, e<!-- f -->", "a b, e"),
        ("[https://x.org the site] and [https://x.org]", "the site and"),
        ("== Heading ==\n* one\n# ''two''", "one two"),
        ("a&nbsp;&amp; b<br />c", "a & bc"),
        ("a {{never closed", "a {{never closed"),
    ],
)
def test_markup_is_removed(wikitext: str, words: str) -> None:
    assert plain_text(wikitext) == words
