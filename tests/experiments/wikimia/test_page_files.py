"""Dated pages are read from two simple forms, and what is wrong is named with file and line."""

from datetime import date
from pathlib import Path

import pytest

from contamination.errors import InputError
from contamination.experiments.wikimia.page_files import Page, files_of, read_pages

GOOD = '{"title": "A", "text": "one two", "date": "2016-02-03"}\n'


def test_records_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "pages.jsonl"
    more = (
        '"changed": "2020-01-01 07:00:00", "paraphrase": "two one"',
        '"changed": null, "paraphrase": null',
        '"changed": ""',
    )
    lines = [GOOD.replace('"2016-02-03"', f'"2016-02-03T10:00:00Z", {extra}') for extra in more]
    path.write_text(GOOD + "".join(lines))
    pages = read_pages(path)
    created = date(2016, 2, 3)
    assert pages == [
        Page(f"{path}, line 1", "A", "one two", created),
        Page(f"{path}, line 2", "A", "one two", created, date(2020, 1, 1), "two one"),
        Page(f"{path}, line 3", "A", "one two", created),
        Page(f"{path}, line 4", "A", "one two", created),
    ]
    assert files_of(path) == [path]


def test_a_folder_with_an_index(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("# Heading\n\nText of b\n")
    (tmp_path / "a.txt").write_text("Text of a")
    (tmp_path / "pages.csv").write_text(
        'file,title,date,changed\nb.md,"B, indeed",2023-05-06,\na.txt,A,2011-12-13,2012-01-02\n'
    )
    first, second = read_pages(tmp_path)
    assert (first.title, first.text, first.created) == (
        "B, indeed",
        "# Heading\n\nText of b\n",
        date(2023, 5, 6),
    )
    assert (second.text, second.changed) == ("Text of a", date(2012, 1, 2))
    assert second.place == f"{tmp_path / 'pages.csv'}, line 3"
    assert files_of(tmp_path) == [tmp_path / name for name in ("pages.csv", "b.md", "a.txt")]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"title": "A", "text": "x"}', "field 'date' is 'None'; write a date such as 2023-01-31"),
        *(
            (
                f'{{"title": "A", "text": "x", "date": "{told}"}}',
                f"field 'date' is '{told}'; write a date such as 2023-01-31",
            )
            for told in ("2023-W05-1", "20230131", "2023-01-31x")
        ),
        ('{"title": "A", "text": "x", "date": "2016-13-01"}', "field 'date' is '2016-13-01'"),
        ('{"title": "A", "text": "x", "date": "2016-01-011"}', "field 'date' is '2016-01-011'"),
        ('{"title": "A", "text": "x", "date": 2016}', "field 'date' is '2016'"),
        (GOOD.strip().replace("}", ', "changed": "soon"}'), "field 'changed' is 'soon'"),
        ('{"title": " ", "text": "x", "date": "2016-01-01"}', "field 'title' is ' '; write text"),
        ('{"title": "A", "text": 3, "date": "2016-01-01"}', "field 'text' is '3'; write text"),
        ('{"title": "A", "date": "2016-01-01"}', "field 'text' is 'None'; write text"),
        ("{", "not JSON"),
    ],
)
def test_a_malformed_page_is_named(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "pages.jsonl"
    path.write_text(GOOD + line + "\n")
    with pytest.raises(InputError) as caught:
        read_pages(path)
    message = str(caught.value)
    assert message.startswith(f"{path}, line 2: ")
    assert told in message
    assert len(message.splitlines()) == 1


def test_a_folder_that_is_not_whole(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no pages\.csv; write one with the columns file, title"):
        read_pages(tmp_path)
    (tmp_path / "pages.csv").write_text("file,title,date\ngone.txt,A,2016-01-01\n")
    with pytest.raises(InputError, match=r"pages\.csv, line 2: .* has no file 'gone\.txt'"):
        read_pages(tmp_path)
    (tmp_path / "pages.csv").write_text("title,date\nA,2016-01-01\n")
    with pytest.raises(InputError, match=r"pages\.csv, line 2: field 'file'"):
        read_pages(tmp_path)
    with pytest.raises(InputError, match=r"no such file"):
        read_pages(tmp_path / "none.jsonl")
