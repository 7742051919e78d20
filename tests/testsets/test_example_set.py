"""Records stay whole in every kind of file, each with its place; faults are told in one line."""

import json
import os
from pathlib import Path

import pandas as pd
import pytest

from contamination.testsets.example_set import make_test_set
from contamination.testsets.records import ID_FIELDS, articles, check_ids, normalise, read_records
from contamination.testsets.sources import open_test_set
from contamination.testsets.templates import LONGEST_TEXT
from fakes.made_up_registry import refusal


def fault(path: Path, template: str = "text/1", **options: object) -> str:
    return refusal(open_test_set, path, template=template, **options)


SEPARATED = "one\u2028two\u2029three\x85four"
LONG = "word " * 40_000  # the csv module's own limit is 131,072 characters


@pytest.mark.parametrize(
    ("name", "content", "examples"),
    [
        ("a.jsonl", f'{{"text": "{SEPARATED}"}}\n{{"text": "x"}}\n', [SEPARATED, "x"]),
        (
            "a.csv",
            'id,text\n1,"one\ntwo, ""three""\n\nfour"\n2,x\u2028y\n\n3,"z"\n',
            ['one\ntwo, "three"\n\nfour', "x\u2028y", "z"],
        ),
        ("a.csv", f'id,text\n1,"{LONG}"\n2,b\n', [LONG, "b"]),
        ("a.txt", "one\n\n  \n  two \u2028 three\nfour", ["one", "  two \u2028 three", "four"]),
    ],
    ids=["separators in JSON", "CSV over several lines", "a long field", "lines, some blank"],
)
def test_records_stay_whole(name: str, content: str, examples: list[str], save) -> None:
    assert open_test_set(save(name, content)).examples == tuple(f"{text}\n" for text in examples)


def test_revision_follows_the_examples_and_the_name_of_the_template(save) -> None:
    def revision(content: str, template: str = "text/1", **options: int) -> str:
        return open_test_set(save("a.jsonl", content), template=template, **options).revision

    lines = '{"text": "a", "name": "n"}\n{"text": "b", "name": "n"}\n'
    base = revision(lines)
    unused = '{"name": "m", "text": "a"}\n\n{"text": "b"}\n'
    assert revision(unused) == base  # the same examples
    others = {
        revision(lines, "entry/1"),
        revision(lines, "{text}\n"),
        revision(lines, max_records=1),
        revision("".join(reversed(lines.splitlines(keepends=True)))),
        revision('{"text": "a\\nb"}'),
    }
    assert len(others | {base}) == 6


def test_first_records_alone(save) -> None:
    path = save("a.txt", "a\nb\nc\n")
    assert open_test_set(path, max_records=2).examples == ("a\n", "b\n")
    told = refusal(make_test_set, "a", read_records(path), "text/1", "a.txt", 4)
    assert told == "a.txt: 3 records, 4 wanted; ask for fewer"
    path = save("a.jsonl", '{"text": "a"}\n{"txt": "b"}\n')  # no text, but it is not wanted either
    assert open_test_set(path, max_records=1).examples == ("a\n",)


@pytest.mark.parametrize(
    ("template", "record", "text"),
    [
        ("openbookqa/1", {"question": {"stem": "S"}, "answerKey": "A"}, "S\nA\n"),
        # Braces of the record are text.
        ("piqa/1", {"goal": "g", "sol1": "{s}", "sol2": "t"}, "g\n{s}\nt\n"),
        ("{words:, } {n:03d} {words}\n", {"words": ["a", 2], "n": 7}, "a, 2 007 ['a', 2]\n"),
    ],
)
def test_a_record_becomes_text(template: str, record, text: str, save) -> None:
    assert open_test_set(save("a.jsonl", json.dumps(record)), template=template).examples == (text,)


DEEP = "[" * 50_000 + "]" * 50_000
LONG = "x" * LONGEST_TEXT  # plain: a count
MISSPELT = ['{"question": "q", "answer": "a"}'] * 16 + ['{"question": "q", "anwser": "a"}']


@pytest.mark.parametrize(
    ("name", "content", "template", "named"),
    [
        ("a.jsonl", b'{"text": "a"}\n\n{"text": "caf\xe9"}\n', "text/1", ", line 3: byte 28 "),
        ("a.jsonl", '{"text": "ok"}\n{"text": "cut \\ud83d"}\n', "text/1", ", line 2: '\\ud83d'"),
        ("a.jsonl", '{"text": "a"}\n17\n', "text/1", ", line 2: write a JSON object, not 17"),
        ("a.json", '[{"text": "a"},\n {"text": ]', "text/1", ", line 2: not JSON (Expecting val"),
        ("a.json", '[{"text": "a"}, 3]', "text/1", ", record 2: write a JSON object, not 3"),
        (
            "a.jsonl",
            '{"text": "a"}\n{\0"text": "b"}\n',
            "text/1",
            ", line 2: not JSON (it has a NUL",
        ),
        ("a.jsonl", f'{{"text": "a"}}\n{{"text": {DEEP}}}\n', "text/1", ", line 2: not JSON (m"),
        ("a.csv", "text,label,text\na,1,b\n", "text/1", ", line 1: column 'text' stands twice"),
        ("a.parquet", b"PAR1 and no more", "text/1", ": not a Parquet file ("),
        ("a.xlsx", b"PK", "text/1", ": unknown kind of file; give one of .jsonl"),
        (
            "a.jsonl",
            '{"n": 1}\n{"n": "one"}',
            "{n:d}\n",
            ", line 2: template '{n:d}\\n' does not fit",
        ),
        ("a.csv", "question;answer\nWhy, then?;So\n", "question/1", ", line 1: its columns are "),
        ("a.csv", "question\tanswer\nWhy?\tSo\n", "question/1", r"separated by '\t'"),
        ("a.csv", 'text,b\n"ok\nok",1\none,"a\ntwo,3\n', "text/1", ", line 4: malformed CSV ("),
        ("a.jsonl", "\n".join(MISSPELT), "question/1", ", line 17: field 'answer' is missing"),
        ("a.jsonl", json.dumps({"text": LONG}), "text/1", "5,000,001 characters"),
        ("a.txt", "a\n", "text/9", "unknown template 'text/9'"),
        ("a.txt", "a\n", "{text.__class__}", "field 'text.__class__' is missing"),
        ("a.txt", "a\n", "{text:{n}}", "has one in its format"),
    ],
    ids=lambda value: "" if len(value) > 40 else None,
)
def test_a_file_or_template_that_cannot_be_used(name, content, template, named, save) -> None:
    path = save(name, content)
    found = fault(path, template)
    assert named in found
    assert not named.startswith((",", ":")) or found.startswith(f"{path}{named}")
    assert len(found.encode()) < len(str(path)) + 450


RECORDS = [{"id": "a", "text": "one\ntwo"}, {"id": "b", "text": 'thr"ee'}]


def test_places_are_lines_where_there_are_lines(save, tmp_path) -> None:
    lines = "".join(json.dumps(record) + "\n" for record in RECORDS)
    pd.DataFrame(RECORDS).to_parquet(tmp_path / "a.parquet")
    texts = [{"text": "x"}, {"text": "y"}]
    for name, content, places, wanted in (
        ("a.jsonl", "\n" + lines, ["line 2", "line 3"], RECORDS),
        ("lines.json", lines, ["line 1", "line 2"], RECORDS),
        ("a.json", json.dumps(RECORDS, indent=2), ["record 1", "record 2"], RECORDS),
        ("texts.json", '["x", "y"]', ["record 1", "record 2"], texts),
        ("texts.jsonl", '"x"\n"y"\n', ["line 1", "line 2"], texts),
        ("a.csv", pd.DataFrame(RECORDS).to_csv(index=False), ["line 2", "line 4"], RECORDS),
        ("a.parquet", (tmp_path / "a.parquet").read_bytes(), ["record 1", "record 2"], RECORDS),
        ("a.txt", "x\n\ny\n", ["line 1", "line 3"], texts),
    ):
        assert read_records(save(name, content)) == [*zip(places, wanted, strict=True)], name
        if isinstance(content, str):  # as an editor of Windows saves it
            foreign = "\N{BYTE ORDER MARK}" + content.replace("\n", "\r\n")
            assert read_records(save(name, foreign)) == [*zip(places, wanted, strict=True)], name


def test_no_regular_file_is_read(tmp_path) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")  # would be waited for
    for name in ("none.jsonl", "folder.jsonl", "pipe.jsonl"):
        assert "file; give the path of a test set" in fault(tmp_path / name)


def test_an_id_that_comes_twice() -> None:
    for field in ID_FIELDS:
        records = [(f"line {i}", {field: value}) for i, value in enumerate([7, 8, 9, 8])]
        told = refusal(check_ids, records, "f")
        assert f"f, line 3: the record of {field} 8 stands at line 1 already" in told
        check_ids(records[:3], "f")
        check_ids([*records[:3], ("line 3", {field: 8, "text": "another"})], "f")


MMLU = {"question": "q", "choices": ["w", "x", "y", "z"], "answer": "C"}
OF_HUB = {"question": "q", "subject": "s", "choices": ["w", "x", "y", "z"], "answer": 2}
OF_CSV = {"question": "q"} | {f"choice{i}": c for i, c in enumerate("wxyz")} | {"answer": "2"}


def test_mmlu_is_the_same_from_every_source() -> None:
    for record in (MMLU, OF_HUB, OF_CSV):
        assert normalise([("line 1", record)], "mmlu", "f") == [("line 1", MMLU)]


WIKI = " \n = One = \n \n Text . \n = = Part = = \n More . \n \n = Two = \n \n = = = \n Text . \n"


def test_wikitext_is_the_same_from_every_source() -> None:
    expected = ["= One = \n \n Text . \n = = Part = = \n More .", "= Two = \n \n = = = \n Text ."]
    assert articles(WIKI) == expected
    rows = [line if line.strip() else "" for line in WIKI.splitlines(keepends=True)]  # the hub's
    of_hub = normalise([("", {"text": row}) for row in rows], "wikitext", "f")
    assert of_hub == [(f"article {i + 1}", {"text": text}) for i, text in enumerate(expected)]
    assert normalise(of_hub, "wikitext", "f") == of_hub
    assert normalise([("line 1", {"answer": 9})], None, "f") == [("line 1", {"answer": 9})]
