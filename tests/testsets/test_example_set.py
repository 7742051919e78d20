"""Records stay whole; what is wrong with a file is told in one line with file, line and fix."""

import json
from pathlib import Path

import pytest

from contamination.testsets.example_set import LONGEST_TEXT, load_test_set
from fakes.made_up_registry import refusal


def fault(path: Path, template: str = "text/1", **options: object) -> str:
    return refusal(load_test_set, path, template, **options)


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


RENDERED: dict[str, tuple[dict[str, object], str]] = {
    "openbookqa/1": ({"question": {"stem": "S"}, "answerKey": "A"}, "S\nA\n"),
    # Braces of the record are text.
    "piqa/1": ({"goal": "g", "sol1": "{s}", "sol2": "t"}, "g\n{s}\nt\n"),
    "mmlu/2": (
        {"question": "q", "choices": [1, 2, 3, 4], "answer": "B"},
        "q\nA. 1\nB. 2\nC. 3\nD. 4\nAnswer: B\n",
    ),
}


@pytest.mark.parametrize("template", RENDERED)
def test_templates(template: str, save) -> None:
    record, text = RENDERED[template]
    assert load_test_set(save("a.jsonl", json.dumps(record)), template).examples == (text,)


def test_a_list_is_joined_by_its_specification(save) -> None:
    path = save("a.jsonl", '{"words": ["a", 2], "n": 7}')
    assert load_test_set(path, "{words:, } {n:03d} {words}\n").examples == ("a, 2 007 ['a', 2]\n",)
    save("a.jsonl", '{"n": 1}\n{"n": "one"}')
    message = fault(path, "{n:d}\n")
    assert message.startswith(f"{path}, line 2: template '{{n:d}}\\n' does not fit the record (")


MISSPELT = ['{"question": "q", "answer": "a"}'] * 16 + ['{"question": "q", "anwser": "a"}']
TWICE = 'id,text\n1,"one\nand"\n2,two\n1,three\n'


@pytest.mark.parametrize(
    ("name", "content", "template", "named"),
    [
        ("a.jsonl", b'{"text": "a"}\n\n{"text": "caf\xe9"}\n', "text/1", ", line 3: byte 28 "),
        ("a.jsonl", '{"text": "ok"}\n{"text": "cut \\ud83d"}\n', "text/1", ", line 2: '\\ud83d'"),
        ("a.jsonl", '{"text": "a"}\n17\n', "text/1", ", line 2: write a JSON object, not 17"),
        ("a.xlsx", b"PK", "text/1", ": unknown kind of file; give one of .jsonl"),
        ("a.csv", TWICE, "text/1", ", line 5: id '1' stands at line 2 already"),
        ("a.csv", 'text,b\n"ok\nok",1\n\none,"a\ntwo,3\n', "text/1", ", line 5: malformed CSV ("),
        ("a.jsonl", "\n".join(MISSPELT), "question/1", ", line 17: field 'answer' is missing"),
        ("a.jsonl", json.dumps({"text": "x" * LONGEST_TEXT}), "text/1", "5,000,001 characters"),
        ("a.txt", "a\n", "text/9", "unknown template 'text/9'"),
        ("a.txt", "a\n", "{text.__class__}", "{text.__class__} is no field"),
        ("a.txt", "a\n", "{}", "template '{}'"),
        ("a.txt", "a\n", "{text:{n}}", "the format of {text} has a field in it"),
        ("a.txt", "a\n", "{text}" * 5_000, "5,000 fields"),
        ("a.txt", "a\n", "{text!r:>99999999}", "is wider than 1,000"),
    ],
)
def test_a_file_or_template_that_cannot_be_used(name, content, template, named, save) -> None:
    path = save(name, content)
    found = fault(path, template)
    assert named in found
    assert not named.startswith((",", ":")) or found.startswith(f"{path}{named}")
    assert len(found.encode()) < len(str(path)) + 450
