"""Files of every kind become the same records, each with its place."""

import csv
import io
import json
import os
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contamination.errors import InputError
from contamination.testsets.records import articles, check_ids, normalise, read_records
from fakes import made_up_registry

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
RECORDS = [{"id": "a", "text": "one\ntwo"}, {"id": "b", "text": 'thr"ee'}]


def refusal(path: Path) -> str:
    message = made_up_registry.refusal(read_records, path)
    assert message.startswith(str(path))
    return message.removeprefix(str(path))


def test_places_are_lines_where_there_are_lines(save, tmp_path) -> None:
    lines = "".join(json.dumps(record) + "\n" for record in RECORDS)
    save("a.jsonl", "\n" + lines)
    save("lines.json", lines)
    save("a.json", json.dumps(RECORDS, indent=2))
    save("texts.json", '["x", "y"]')
    save("texts.jsonl", '"x"\n"y"\n')
    pd.DataFrame(RECORDS).to_csv(tmp_path / "a.csv", index=False)
    pd.DataFrame(RECORDS).to_parquet(tmp_path / "a.parquet")
    save("a.txt", "x\n\ny\n")
    expected = {
        "a.jsonl": ["line 2", "line 3"],
        "lines.json": ["line 1", "line 2"],
        "a.json": ["record 1", "record 2"],
        "texts.json": ["record 1", "record 2"],
        "texts.jsonl": ["line 1", "line 2"],
        "a.csv": ["line 2", "line 4"],
        "a.parquet": ["record 1", "record 2"],
        "a.txt": ["line 1", "line 3"],
    }
    for name, places in expected.items():
        found = read_records(tmp_path / name)
        assert [place for place, _ in found] == places, name
        texts = [{"text": "x"}, {"text": "y"}]
        wanted = texts if name.startswith(("a.txt", "texts.")) else RECORDS
        assert [record for _, record in found] == wanted, name


@settings(max_examples=50)
@given(st.lists(TEXT, min_size=1, max_size=5))
def test_any_text_survives_every_kind_of_file(tmp_path_factory, texts: list[str]) -> None:
    directory = tmp_path_factory.mktemp("texts")
    lines = "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts)
    (directory / "a.jsonl").write_bytes(lines.encode())
    (directory / "a.json").write_text(json.dumps([{"text": text} for text in texts]))
    pd.DataFrame({"text": texts}).to_parquet(directory / "a.parquet")
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows([["text"], *([text] for text in texts)])
    (directory / "a.csv").write_bytes(buffer.getvalue().encode())
    for name in ("a.jsonl", "a.json", "a.parquet", "a.csv"):
        found = [record["text"] for _, record in read_records(directory / name)]
        # The line ends of a CSV file are made plain, those inside its cells with them.
        plain = [text.replace("\r\n", "\n") for text in texts] if name == "a.csv" else texts
        assert found == plain, name


DEEP, LONG = "[" * 50_000 + "]" * 50_000, "9" * 5_000


def parquet(column) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"text": column}), buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "named"),
    [
        ("a.json", '[{"text": "a"},\n {"text": ]', ", line 2: not JSON (Expecting value at colu"),
        ("a.json", '[{"text": "a"}, 3]', ", record 2: write a JSON object or a text, not 3"),
        ("a.jsonl", f'{{"text": "a"}}\n{{"text": {DEEP}}}\n', ", line 2: JSON nested more than "),
        ("a.jsonl", f'{{"text": "a"}}\n{{"id": -{LONG}}}\n', ", line 2: an integer of more than"),
        ("a.jsonl", '{"text": "a"}\n{"text": "b", "x": {"y": 1, "y": 2}}\n', ", line 2: key 'y' "),
        ("a.csv", "text,label,text\na,1,b\n", ", line 1: column 'text' stands twice"),
        ("a.parquet", b"PAR1 and no more", ": not a Parquet file ("),
    ],
    ids=lambda value: "" if len(value) > 40 else None,
)
def test_a_file_that_cannot_be_read(name: str, content: str | bytes, named: str, save) -> None:
    assert refusal(save(name, content)).startswith(named)


@pytest.mark.parametrize("name", ["none.jsonl", "folder.jsonl", "pipe.jsonl"])
def test_no_regular_file_is_read(name, tmp_path) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")  # would be waited for
    assert "file; give the path of a test set" in refusal(tmp_path / name)


@pytest.mark.parametrize("field", ["id", "idx", "index", "question_id"])
def test_an_id_that_comes_twice(field: str) -> None:
    records = [(f"line {i}", {field: value}) for i, value in enumerate([7, 8, 9, 8])]
    with pytest.raises(InputError, match=f"f, line 3: {field} 8 stands at line 1 already"):
        check_ids(records, "f")
    check_ids(records[:3], "f")


MMLU = {"question": "q", "choices": ["w", "x", "y", "z"], "answer": "C"}
OF_HUB = {"question": "q", "subject": "s", "choices": ["w", "x", "y", "z"], "answer": 2}
OF_CSV = {"question": "q"} | {f"choice{i}": c for i, c in enumerate("wxyz")} | {"answer": "2"}


@pytest.mark.parametrize("record", [MMLU, OF_HUB, OF_CSV])
def test_mmlu_is_the_same_from_every_source(record: dict[str, object]) -> None:
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
