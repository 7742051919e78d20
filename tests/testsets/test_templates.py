"""A template shows fields of a record by their names, and nothing that is no text."""

import json
import shlex

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contamination.testsets.item_sets import open_items
from contamination.testsets.sources import fetch, open_records, open_test_set
from contamination.testsets.templates import TEMPLATES, parse, render
from fakes.hub_server import Repository
from fakes.made_up_registry import described, refusal, registry_of

ANSWERS = {"answers": {"text": ["a", "b"]}, "0": "zero", "a.b": "dot", "c:d": "colon"}
ANSWERS |= {"messages": [{"role": "user", "content": "Hi"}, {"role": "model", "content": "Yes"}]}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{answers.text:, }", "a, b"),
        ("{answers[text]:, }", "a, b"),
        ("{answers.text[1]}", "b"),
        ("{0}", "zero"),
        ("{0[1]}", "e"),
        ("{a.b}", "dot"),
        ("{c:d}", "colon"),
        ("{messages[content]:|}", "Hi|Yes"),
        ("{messages[1][content]}", "Yes"),
        ("{{{0}}} {{1}}", "{zero} {1}"),
        ("{0!r:>8}", "  'zero'"),
    ],
)
def test_a_field_is_named_as_the_record_has_it(template: str, text: str) -> None:
    assert render([("line 1", ANSWERS)], template, "f") == (text,)


DEEP = f"{{answers[text][{'7' * 4400}]}}"  # more digits than Python reads


@pytest.mark.parametrize(
    "template",
    ["{answers.words}", "{a.c}", "{1}", "{answers[text][7]}", "{0.upper}", "{0[x]}", DEEP],
)
def test_what_is_missing_is_named_beside_spellings_that_work(template: str) -> None:
    told = refusal(render, [("line 1", ANSWERS)], template, "f")
    assert f"f, line 1: field {template.strip('{}')!r}"[:80] in told
    assert "is missing" in told
    assert "0, a.b, answers.text, c:d, messages" in told


def parse_fails(template: str) -> str | None:
    try:
        parse(template)
    except ValueError as error:
        return str(error)
    return None


NAMES = st.text("ab.0[]", min_size=1, max_size=4).filter(
    lambda name: parse_fails(f"{{{name}}}") is None
)


@given(st.dictionaries(NAMES, st.text("xyz", min_size=1), min_size=1))
def test_whatever_the_names_each_field_has_a_spelling(record: dict[str, str]) -> None:
    for name, value in record.items():
        assert render([("line 1", record)], f"{{{name}}}", "f") == (value,)


@pytest.mark.parametrize(
    ("template", "fix"),
    [
        ("{{question}}", "'{question}'"),
        ("{{ question }}\n{{ answer }}\n", r"'{question}\n{answer}\n'"),
        ("Q: {{question}} A: {answer}", "'Q: {question} A: {answer}'"),
        ("{{}}", "{question}"),
        ("{{x}}", "'{x}'"),
    ],
)
def test_a_template_that_hides_a_field_is_refused_with_the_fix(template, fix, save) -> None:
    rows = "".join(f'{{"question": "q{i}", "answer": "a{i}"}}\n' for i in range(3))
    told = refusal(open_test_set, save("a.jsonl", rows), template=template)
    assert fix in told


def test_braces_that_name_no_field_are_text(save) -> None:
    path = save("a.jsonl", '{"text": "a"}\n{"text": "b"}\n')
    assert open_test_set(path, template="{{q}} {text}").examples == ("{q} a", "{q} b")


@pytest.mark.parametrize(
    ("texts", "named"),
    [
        (["same"] * 4, "4 of 4 examples are the text 'same'"),
        (["same", "same ", "a", "\tsame"], "3 of 4 examples are the text 'same'"),
        (["", " ", "\n", "a"], "3 of 4 examples are blank"),
        (["", ""], "2 of 2 examples are blank"),
    ],
)
def test_records_of_which_most_are_one_text_have_no_order(texts, named, save) -> None:
    path = save("a.jsonl", "".join(f"{json.dumps({'text': text})}\n" for text in texts))
    told = refusal(open_test_set, path)
    assert told.startswith(f"{path}: {named}")
    assert "give a template" in told


def test_items_of_which_most_are_one_are_refused_likewise(save) -> None:
    row = json.dumps({"question": "Q?", "choices": ["ash", "elm"], "answer": 0})
    assert "3 of 3 examples" in refusal(open_items, save("a.jsonl", f"{row}\n" * 3))


def test_records_that_repeat_in_part_are_kept(save) -> None:
    path = save("a.jsonl", "".join(f'{{"text": "{text}"}}\n' for text in ("a", "a", "b", "")))
    assert open_test_set(path).examples == ("a\n", "a\n", "b\n", "\n")
    assert open_test_set(path, max_records=1).examples == ("a\n",)


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (None, "null"),
        (float("nan"), "not a finite number"),
        (float("-inf"), "not a finite number"),
        (["a", None], "null"),
        ({"b": [float("nan")]}, "not a finite number"),
    ],
)
def test_what_is_no_text_is_refused_where_it_is_shown(value, named, save) -> None:
    rows = [{"text": "one", "more": "x"}, {"text": "two", "more": value}]
    path = save("a.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    assert open_test_set(path).examples == ("one\n", "two\n")
    told = refusal(open_test_set, path, template="{text} {more}")
    assert told.startswith(f"{path}, line 2: field 'more' is {named}")


def test_numbers_and_flags_are_written_as_python_writes_them(save) -> None:
    row = {"a": 1, "b": 2.50, "c": True, "d": [1, False]}
    path = save("a.jsonl", json.dumps(row))
    assert open_test_set(path, template="{a} {b} {c} {d:,} {d}").examples == (
        "1 2.5 True 1,False [1, False]",
    )


def test_bytes_of_parquet_are_text_where_they_are_utf_8(tmp_path) -> None:
    path = tmp_path / "a.parquet"
    image = b"\x89PNG"
    columns = {
        "question": pa.array([b"Which \xc3\xa9?", b"Who?"]),
        "choices": pa.array([[b"ash", b"elm"]] * 2, pa.list_(pa.large_binary())),
        "image": pa.array([{"bytes": image}] * 2),
    }
    pq.write_table(pa.table(columns), path)
    found = open_test_set(path, template="{question} {choices:,}")
    assert found.examples == ("Which \u00e9? ash,elm", "Who? ash,elm")
    told = refusal(open_test_set, path, template="{question} {image.bytes}")
    assert told.startswith(f"{path}, record 1: field 'image.bytes' is bytes that are not UTF-8")
    assert open_records(path).records[0][1]["image"] == {"bytes": image}


def test_bytes_of_the_hub_are_no_text_in_the_cache_either(server, tmp_path, monkeypatch) -> None:
    table = tmp_path / "test.parquet"
    pd.DataFrame({"question": ["a", "b"], "image": [b"\x89", b"\x90"]}).to_parquet(table)
    server.repositories["org/images"] = made = Repository()
    made.push({"test.parquet": table.read_bytes()})
    images = described(checksum=None, records=2, template="question", hub={"id": "org/images"})
    with registry_of(monkeypatch, tmp_path, {"images": images}):
        from contamination.testsets.sources import entry_of

        kept = fetch(entry_of("images")).read_text()
    assert [json.loads(line)["image"] for line in kept.splitlines()] == [None, None]


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("a.jsonl", '{"text": "a"}\n{"text": "b", "text": "c"}\n', "line 2"),
        ("a.jsonl", '{"text": "a", "x": [{"y": 1, "y": 1}]}\n', "line 1"),
        ("a.json", '[{"text": "a"},\n {"text": "b"}, {"text": "b", "text": "b"}]', "record 3"),
    ],
)
def test_a_key_that_stands_twice_is_refused_with_its_place(name, content, place, save) -> None:
    path = save(name, content)
    key = "y" if "y" in content else "text"
    assert refusal(open_test_set, path).startswith(f"{path}, {place}: key {key!r} stands twice")


MESSAGES = [{"role": "user", "content": "Hi {}"}, {"role": "assistant", "content": "Yes"}]


@pytest.mark.parametrize(
    ("record", "template", "text"),
    [
        ({"text": "t", "question": "q", "answer": "a"}, "text/1", "t\n"),
        ({"question": "q", "answer": "a"}, "question/1", "Question: q\nAnswer: a\n"),
        (
            {"question": "q", "choices": ["x", "y"], "answer": 1},
            "choices/2",
            "Question: q\nx\ny\nAnswer: 1\n",
        ),
        (
            {"question": "q", "choices": {"text": ["x"], "label": ["A"]}, "answerKey": "A"},
            "choices/1",
            "Question: q\nx\nAnswer: A\n",
        ),
        ({"prompt": "p ", "completion": "c"}, "truthfulqa/1", "p c\n"),
        ({"messages": MESSAGES}, "messages/1", "Hi {}\nYes\n"),
    ],
)
def test_a_known_layout_brings_its_template(record, template, text, save) -> None:
    found = open_test_set(save("a.jsonl", json.dumps(record)))
    assert found.template == template
    assert found.examples == (text,)


@pytest.mark.parametrize(
    ("record", "fields"),
    [
        ({"goal": "g", "sol1": "s", "label": 0}, ["goal", "sol1"]),
        ({"question": "q", "answer": ["a"]}, ["question"]),
        ({"id": "7", "title": "t", "it's": "x"}, ["title", "it's"]),
        ({"n": 1, "list": []}, ["n"]),
        ({"target": "t", "filter": "none", "doc_hash": "0", "docId": "x", "n": 1}, ["target"]),
        ({"page": "https://a.org/1", "digest": "9f" * 16, "title": "t"}, ["title"]),
        ({"id": 1, "doc": {"question": "q", "answer": "a"}}, ["doc.question", "doc.answer"]),
        (
            {"custom_id": "r", "method": "POST", "url": "/v1", "body": {"messages": MESSAGES}},
            [r"body.messages[content]:\n"],
        ),
        ({"status": "ok", "turns": [{"from": "a", "value": "b"}]}, [r"turns[value]:\n"]),
    ],
)
def test_other_records_get_a_template_of_their_own_fields(record, fields, save) -> None:
    rows = json.dumps(record)
    told = refusal(open_test_set, save("a.jsonl", rows))
    assert "line 1: there is no field 'text'" in told
    (argument,) = shlex.split(told[told.index("template=") :])
    template = argument.removeprefix("template=")
    assert template == "".join(f"{{{name}}}\\n" for name in fields)
    open_test_set(save("a.jsonl", rows), template=template)


@pytest.mark.parametrize(
    ("name", "content", "named"),
    [
        ("a.json", '{"custom_id": "r-1", "url": "/v1", "status": "ok"}', "looks like a text"),
        ("a.json", '{"data": [{"question": "a"}, {"question": "b"}]}', "save that list alone"),
        (
            "a.json",
            '{\n "data": [{"question": "a"}, {"question": "b"}]\n}',
            "save that list alone",
        ),
        ("a.csv", 'Why is it so?,Since it is.\nHow?,"Well, so."\n', "a.csv: line 1 seems to be"),
        ("a.csv", f"{'long words ' * 9},x\na,b\n", "question,answer"),
    ],
)
def test_records_without_a_text_get_no_template(name, content, named, save) -> None:
    told = refusal(open_test_set, save(name, content))
    assert named in told
    assert "template=" not in told


def test_every_template_has_fields() -> None:
    assert all(parse(name).fields for name in TEMPLATES)


@pytest.mark.parametrize(
    ("template", "named"),
    [
        ("{text:>99999999999}", "pads"),
        ("{text:.99999}", "pads"),
        (f"{{text:>{'9' * 5000}}}", "pads"),
        ("{text}" * 1001, "1,001 fields"),
    ],
)
def test_a_template_of_absurd_size_is_refused_before_the_set_is_opened(template, named) -> None:
    assert named in refusal(open_test_set, "no such set", template=template)
