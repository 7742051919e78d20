"""Records stay whole; what is wrong with a file is told in one line with file, line and fix."""

import json
import re
from pathlib import Path

import pytest

from contamination.testsets.example_set import LONGEST_TEXT, TEMPLATES, load_test_set
from fakes.made_up_registry import refusal


def fault(path: Path, template: str = "text/1", **options: object) -> str:
    return refusal(load_test_set, path, template, **options)


# --- what is read ---------------------------------------------------------------------------------


def test_jsonl_in_file_order(save) -> None:
    path = save("mine.jsonl", '{"text": "b"}\n\n  {"text": "a", "more": [1]}  \n{"text": "c"}')
    test_set = load_test_set(path)
    assert test_set.examples == ("b\n", "a\n", "c\n")
    assert (test_set.name, test_set.template) == ("mine", "text/1")
    assert load_test_set(path, name="yours").name == "yours"


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
    assert load_test_set(save(name, content)).examples == tuple(f"{text}\n" for text in examples)


CONTENT = {
    "a.txt": "one\ntwo\n",
    "a.csv": 'text,n\none,1\n"two\nlines",2\n',
    "a.jsonl": '{"text": "one"}\n{"text": "two\\nlines"}\n',
}


@pytest.mark.parametrize("name", CONTENT)
def test_byte_order_mark_and_windows_line_ends_make_no_difference(name, save) -> None:
    plain = load_test_set(save(name, CONTENT[name])).examples
    foreign = "\N{BYTE ORDER MARK}" + CONTENT[name].replace("\n", "\r\n")
    assert load_test_set(save(name, foreign)).examples == plain
    assert "\r" not in "".join(plain)


def test_revision_follows_the_examples_and_the_name_of_the_template(save) -> None:
    def revision(content: str, template: str = "text/1", max_records: int | None = None) -> str:
        return load_test_set(save("a.jsonl", content), template, max_records=max_records).revision

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
    assert load_test_set(path, max_records=2).examples == ("a\n", "b\n")
    assert fault(path, max_records=4) == f"{path}: 3 records, 4 wanted; ask for fewer"
    path = save("a.jsonl", '{"text": "a"}\n{"txt": "b"}\n')  # no text, but it is not wanted either
    assert load_test_set(path, max_records=1).examples == ("a\n",)


# template -> a record, and the example that it becomes
RENDERED: dict[str, tuple[dict[str, object], str]] = {
    "boolq/1": (
        {"passage": "P.", "question": "is it", "answer": True},
        "P.\nQuestion: is it?\nAnswer: True\n",
    ),
    "hellaswag/1": ({"ctx": "C", "endings": ["one", "two"]}, "C one\n"),
    "openbookqa/1": ({"question": {"stem": "S"}, "answerKey": "A"}, "S\nA\n"),
    "naturalquestions/1": ({"question": "q", "answer": ["a", "b"]}, "Question: q?\nAnswer: a\n"),
    "mmlu/1": (
        {"input": "q", "A": 1, "B": 2, "C": 3, "D": 4, "target": "B"},
        "q\nA. 1\nB. 2\nC. 3\nD. 4\nAnswer: B\n",
    ),
    # Braces of the record are text.
    "piqa/1": ({"goal": "g", "sol1": "{s}", "sol2": "t"}, "g\n{s}\nt\n"),
    "choices/1": (
        {"question": "q?", "choices": {"text": ["x", "y"]}, "answerKey": "B"},
        "Question: q?\nx\ny\nAnswer: B\n",
    ),
    "openbookqa/2": (
        {"question_stem": "q", "choices": {"text": ["x", "y"]}, "answerKey": "B"},
        "q\nx\ny\nAnswer: B\n",
    ),
    "mnli/2": ({"premise": "p", "hypothesis": "h", "label": 0}, "p\nh\n0\n"),
    "truthfulqa/2": ({"question": "q?", "best_answer": "a"}, "Q: q?\nA: a\n"),
    "mmlu/2": (
        {"question": "q", "choices": [1, 2, 3, 4], "answer": "B"},
        "q\nA. 1\nB. 2\nC. 3\nD. 4\nAnswer: B\n",
    ),
}


@pytest.mark.parametrize("template", RENDERED)
def test_templates(template: str, save) -> None:
    record, text = RENDERED[template]
    assert load_test_set(save("a.jsonl", json.dumps(record)), template).examples == (text,)


def test_a_field_is_a_template(save) -> None:
    path = save("a.jsonl", '{"question": "q", "answer": "a"}')
    by_field, by_text = load_test_set(path, "question"), load_test_set(path, "{question}\n")
    assert by_field.examples == ("q\n",)
    assert by_field == by_text
    assert "field 'text' is missing, which template '{text}\\n' needs" in fault(path, "text")


def test_a_list_is_joined_by_its_specification(save) -> None:
    path = save("a.jsonl", '{"words": ["a", 2], "n": 7}')
    assert load_test_set(path, "{words:, } {n:03d} {words}\n").examples == ("a, 2 007 ['a', 2]\n",)
    save("a.jsonl", '{"n": 1}\n{"n": "one"}')
    message = fault(path, "{n:d}\n")
    assert message.startswith(f"{path}, line 2: template '{{n:d}}\\n' does not fit the record (")


def test_every_template_is_versioned_and_ends_the_line() -> None:
    for name, template in TEMPLATES.items():
        assert re.fullmatch(r"[a-z]+/\d+", name)
        assert template.endswith("\n")


# --- what is refused ------------------------------------------------------------------------------


LATIN, UTF16 = b'{"text": "a"}\n\n{"text": "caf\xe9"}\n', "one\ntwo\n".encode("utf-16")
PAIR = '{"text": "ok \\ud83d\\ude00"}\n{"text": "cut \\ud83d"}\n'
ONE, NO_OBJECT = '{"text": "a"}', ", line 2: write a JSON object, not "
NO_OBJECTS = ('"text"', "17", "null", '["text"]', '"' + "x" * 500 + '"')
EMPTY = {"a.jsonl": ("", "\n \n"), "a.csv": ("", "text\n"), "a.txt": ("\r\n",)}
NO_RECORDS = ": the test set is empty; give a file with at least two records"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", LATIN, ", line 3: byte 28 is not UTF-8"),
        ("a.txt", UTF16, ", line 1: byte 0 is not UTF-8; convert"),
        ("a.jsonl", json.dumps([{"text": "a"}], indent=2), ", line 1: not JSON"),
        ("a.jsonl", PAIR, ", line 2: '\\ud83d' is half of a surrogate pair"),
        ("a.csv", 'txt\n"two\nlines"\n', ", line 2: field 'text' is missing"),
        ("a.xlsx", b"PK", ": unknown kind of file; give one of .jsonl, .json, .csv, .parquet, .t"),
        *(("a.jsonl", f"{ONE}\n{line}\n", f"{NO_OBJECT}{line[:5]}") for line in NO_OBJECTS),
        *((name, content, NO_RECORDS) for name, several in EMPTY.items() for content in several),
    ],
)
def test_a_file_that_cannot_be_read(name: str, content: str | bytes, message: str, save) -> None:
    path = save(name, content)
    found = fault(path)
    assert found.startswith(f"{path}{message}")
    assert len(found.encode()) < len(str(path)) + 150


def test_malformed_json_names_line_and_column(save) -> None:
    path = save("a.jsonl", '{"text": "a"}\n\n{"text": "b",}\n')
    message = fault(path)
    assert re.match(rf"{re.escape(str(path))}, line 3: not JSON \(.* at column 1[34]\); ", message)
    assert message.endswith("write one JSON object per line")


def test_missing_field_in_record_17_and_in_an_empty_one(save) -> None:
    lines = ['{"question": "q", "answer": "a"}'] * 40
    lines[16] = '{"question": "q", "anwser": "a"}'
    path = save("a.jsonl", "\n".join(lines))
    assert fault(path, "question/1") == (
        f"{path}, line 17: field 'answer' is missing, which template question/1 needs; "
        "the record has anwser, question"
    )
    assert fault(save("a.jsonl", "{}\n")).endswith("the record has no fields")


@pytest.mark.parametrize(
    ("template", "bad"),
    [
        ("hellaswag/1", {"ctx": "C", "endings": []}),
        ("hellaswag/1", {"ctx": "C", "endings": 3}),
        ("openbookqa/1", {"question": {"text": "S"}, "answerKey": "A"}),
        ("openbookqa/1", {"question": "S", "answerKey": "A"}),
    ],
)
def test_missing_inner_field(template: str, bad: dict[str, object], save) -> None:
    path = save("a.jsonl", json.dumps(RENDERED[template][0]) + "\n" + json.dumps(bad))
    assert fault(path, template).startswith(
        f"{path}, line 2: the record has not the inner fields that template {template} needs ("
    )


def test_a_repeated_id_names_both_lines(save) -> None:
    path = save("a.csv", 'id,text\n1,"one\nand"\n2,two\n1,three\n')
    assert fault(path) == (
        f"{path}, line 5: id '1' stands at line 2 already; remove the copy, or rename the field if "
        "it is no id"
    )
    assert load_test_set(path, max_records=2).examples == ("one\nand\n", "two\n")


COLUMNS = "the row has {} columns and the header 2; check its quotes and commas"


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ('text,b\nok,1\none,"a"b"\n', 3, "malformed CSV ("),
        ('text,b\n"ok\nok",1\n\none,"a\ntwo,3\n', 5, "malformed CSV ("),  # where the quote opens
        ("text,b\nok,1\na\rb,2\n", 3, "malformed CSV ("),
        ('text,b\n"two\nlines",1\none\n', 4, COLUMNS.format(1)),
        ("text,b\n\none,1\n\n\none,1,2\n", 6, COLUMNS.format(3)),
        ('"te\nxt",b\none\n', 3, COLUMNS.format(1)),
    ],
)
def test_malformed_csv(content: str, line: int, message: str, save) -> None:
    path = save("a.csv", content)
    found = fault(path)
    assert found.startswith(f"{path}, line {line}: {message}")
    assert re.search("check (its )?quotes( and commas)?$", found)


def test_a_missing_file_and_an_unknown_template(save, tmp_path: Path) -> None:
    message = fault(save("a.txt", "a\n"), "text/9")
    assert message.startswith("unknown template 'text/9': choose one of text/1, ")
    (tmp_path / "folder.txt").mkdir()
    for path in (tmp_path / "none.jsonl", tmp_path / "folder.txt"):
        assert fault(path) == f"{path}: no such file; give the path of a test set"


NO_FIELD, WIDE = " is no field; write {field}, {field[key]} or {field[0]}", "is wider than 1,000 "


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (
            "{question.__class__}",
            "template '{question.__class__}': {question.__class__}" + NO_FIELD,
        ),
        ("{question[0].__class__.__mro__}", NO_FIELD),
        ("question.__class__", NO_FIELD),
        ("{choices.append}", NO_FIELD),
        ("{}", "template '{}': {}" + NO_FIELD),
        ("{question:{answer}}", "the format of {question} has a field in it; write it out"),
        ("{question}" * 5_000, "5,000 fields; a template may have 1,000"),
        (
            "{question:99999999}",
            ", line 1: template '{question:99999999}' does not fit the record",
        ),
        ("{question:2000000000}", WIDE),
        ("{question!r:>99999999}", WIDE),
        ("{answer:.99999999f}", WIDE),
        ("{answer:099999999d}", WIDE),
        ("{answer:c}", " does not fit the record ("),
    ],
)
def test_a_template_that_asks_for_too_much(template: str, message: str, save) -> None:
    path = save("a.jsonl", json.dumps({"question": "q", "answer": 1 << 40, "choices": ["x"]}))
    found = fault(path, template)
    assert message in found
    assert len(found) < len(str(path)) + 400


def test_a_width_that_a_table_has_and_a_separator_of_digits(save) -> None:
    path = save("a.jsonl", '{"n": 7, "words": ["a", "b"]}')
    assert load_test_set(path, "{n:>4} {words: 2000 }").examples == ("   7 a 2000 b",)


def test_a_text_that_is_too_long_names_its_record(save) -> None:
    long = json.dumps({"text": "x" * LONGEST_TEXT})
    path = save("a.jsonl", f'{{"text": "a"}}\n{long}\n')
    assert fault(path).startswith(
        f"{path}, line 2: a text of 5,000,001 characters, and the longest"
    )
    assert len(load_test_set(path, "{text}").examples[1]) == LONGEST_TEXT


def test_a_record_of_many_fields_is_not_told_whole(save) -> None:
    path = save("a.jsonl", json.dumps({f"field{i}": i for i in range(5_000)}))
    assert len(fault(path)) < len(str(path)) + 400
