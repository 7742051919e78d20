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


# --- kinds of file --------------------------------------------------------------------------------


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


def test_parquet_keeps_numbers_lists_and_nested_fields(tmp_path) -> None:
    records = [{"n": i, "choices": {"text": ["x", "y"], "label": ["A", "B"]}} for i in range(3)]
    pd.DataFrame(records).to_parquet(tmp_path / "a.parquet")
    assert [record for _, record in read_records(tmp_path / "a.parquet")] == records


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


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"text": "a"},\n {"text": ]', ", line 2: not JSON (Expecting value at column 11); "),
        ('[{"text": "a"}, 3]', ", record 2: write a JSON object or a text, not 3"),
        ("[]", ": the test set is empty; "),
        ('{"a": [\n', ", line 1: not JSON ("),
    ],
)
def test_bad_json(content: str, message: str, save) -> None:
    assert refusal(save("a.json", content)).startswith(message)


DEEP, LONG = "[" * 50_000 + "]" * 50_000, "9" * 5_000
TOO_DEEP, TOO_LONG = "JSON nested more than 100 deep; ", "an integer of more than 4,300 digits; "


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", f'{{"text": "a"}}\n{{"text": {DEEP}}}\n', f", line 2: {TOO_DEEP}"),
        ("a.json", f'[{{"text": "a"}},\n\n{{"text": {DEEP}}}]', f", line 3: {TOO_DEEP}"),
        ("a.json", "[" * 50_000, f", line 1: {TOO_DEEP}"),
        ("a.jsonl", f'{{"text": "a"}}\n{{"id": -{LONG}}}\n', f", line 2: {TOO_LONG}"),
        ("a.json", f'[{{"text": "a"}},\n{{"text": {LONG}}}]', f", line 2: {TOO_LONG}"),
        ("a.json", '["' + '[\\"' * 50_000, ", line 1: not JSON ("),  # passed over once
    ],
    ids=["deep line", "deep item", "unclosed", "long line", "long item", "unclosed text"],
)
def test_json_that_its_reader_cannot_take(name: str, content: str, message: str, save) -> None:
    assert refusal(save(name, content)).startswith(message)


def test_what_is_just_not_too_deep_or_too_long(save) -> None:
    text = "[" * 99 + "9" * 4_300 + "]" * 99
    many = json.dumps({"text": "[{" * 200, "more": [[] for _ in range(200)]})
    assert len(read_records(save("a.jsonl", f'{{"text": {text}}}\n{many}\n'))) == 2


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"\xff\xfe"]).view(pa.string()),
        pa.array([2**62], pa.timestamp("us")),
        pa.array([2**62], pa.duration("s")),
    ],
    ids=["not UTF-8", "a date that Python has not", "a time that it has not"],
)
def test_parquet_that_python_cannot_hold(tmp_path, column) -> None:
    pq.write_table(pa.table({"text": column}), tmp_path / "a.parquet")
    assert refusal(tmp_path / "a.parquet").startswith(": not a Parquet file (")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", '{"text": "a"}\n{"text": "b", "x": {"y": 1, "y": 2}}\n', ", line 2: key 'y' "),
        ("a.json", '[{"text": "a",\n"text": "b"}]', ": key 'text' stands twice"),
        ("a.csv", "text,label,text\na,1,b\n", ", line 1: column 'text' stands twice"),
    ],
)
def test_a_name_that_stands_twice_would_lose_data(name, content, message, save) -> None:
    assert refusal(save(name, content)).startswith(message)


def test_bad_parquet(save, tmp_path) -> None:
    assert refusal(save("a.parquet", b"PAR1 and no more")).startswith(": not a Parquet file (")
    pd.DataFrame({"text": []}).to_parquet(tmp_path / "b.parquet")
    assert refusal(tmp_path / "b.parquet").startswith(": the test set is empty; ")


# --- ids ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["id", "idx", "index", "question_id"])
def test_an_id_that_comes_twice(field: str) -> None:
    records = [(f"line {i}", {field: value}) for i, value in enumerate([7, 8, 9, 8])]
    with pytest.raises(InputError, match=f"f, line 3: {field} 8 stands at line 1 already"):
        check_ids(records, "f")
    check_ids(records[:3], "f")


@pytest.mark.parametrize("values", [[1, "1", True, 1.5], [None, None], ["", ""], [[1], [2]]])
def test_other_ids_differ(values: list[object]) -> None:
    check_ids([(f"line {i}", {"id": v, "label": 1}) for i, v in enumerate(values)], "f")
    check_ids([("line 1", {}), ("line 2", {})], "f")


# --- one set, several shapes ----------------------------------------------------------------------

MMLU = {"question": "q", "choices": ["w", "x", "y", "z"], "answer": "C"}
OF_HUB = {"question": "q", "subject": "s", "choices": ["w", "x", "y", "z"], "answer": 2}
OF_CSV = {"question": "q"} | {f"choice{i}": c for i, c in enumerate("wxyz")} | {"answer": "2"}


@pytest.mark.parametrize("record", [MMLU, OF_HUB, OF_CSV])
def test_mmlu_is_the_same_from_every_source(record: dict[str, object]) -> None:
    assert normalise([("line 1", record)], "mmlu", "f") == [("line 1", MMLU)]


CHANGES = ({"answer": 4}, {"answer": "-1"}, {"answer": ""})


@pytest.mark.parametrize("change", [*CHANGES, {"choices": ["w", "x", "y"]}, {"choices": None}])
def test_no_record_of_mmlu(change: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"f, line 2: no record of MMLU \("):
        normalise([("line 1", OF_HUB), ("line 2", OF_HUB | change)], "mmlu", "f")


WIKI = " \n = One = \n \n Text . \n = = Part = = \n More . \n \n = Two = \n \n = = = \n Text . \n"


def test_wikitext_is_the_same_from_every_source() -> None:
    expected = ["= One = \n \n Text . \n = = Part = = \n More .", "= Two = \n \n = = = \n Text ."]
    assert articles(WIKI) == expected
    rows = [line if line.strip() else "" for line in WIKI.splitlines(keepends=True)]  # the hub's
    of_hub = normalise([("", {"text": row}) for row in rows], "wikitext", "f")
    assert of_hub == [(f"article {i + 1}", {"text": text}) for i, text in enumerate(expected)]
    assert normalise(of_hub, "wikitext", "f") == of_hub
    assert normalise([("line 1", {"answer": 9})], None, "f") == [("line 1", {"answer": 9})]


@pytest.mark.skipif(
    "CONTAMINATION_DATA" not in os.environ,
    reason="set CONTAMINATION_DATA to a directory with wikitext-2/*.txt to read real articles",
)
@pytest.mark.parametrize("name", ["valid", "test"])
def test_real_articles_survive_the_way_over_the_hub(name: str) -> None:
    text = Path(os.environ["CONTAMINATION_DATA"], "wikitext-2", f"{name}.txt").read_text("utf-8")
    rows = [line if line.strip() else "" for line in text.splitlines(keepends=True)]
    found = normalise([("", {"text": row}) for row in rows], "wikitext", "f")
    assert [record["text"] for _, record in found] == articles(text)
    assert len(found) >= 60
