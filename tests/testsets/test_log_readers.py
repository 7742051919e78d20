"""Readers of logs: the texts that they take for answer and prompt, and logs that they refuse."""

import codecs
import json
import math
import struct
import tempfile
import zipfile
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contamination.errors import InputError
from contamination.testsets import logs, unpacked
from contamination.testsets.logs.read import read_log
from contamination.testsets.logs.record import LogRecord
from contamination.testsets.sources import open_test_set
from fakes.answer_logs import (
    OF_LETTERS,
    OF_TEXT,
    Gold,
    chosen_sample,
    generated,
    generated_sample,
    helm,
    inspect,
    inspect_json,
    inspect_sample,
    lm_eval_samples,
    table,
    write_details,
    write_eval,
)
from fakes.made_up_registry import jsonl, refusal

OPEN = [{"id": str(i), "question": f"Name a divisor of {6 * i}!"} for i in range(1, 7)]
ITEMS = [
    {"question": f"Which of {i}?", "choices": [f"w {i}", f"x {i}", f"y {i}", f"z {i}"]}
    for i in range(6)
]
MODULES = [import_module(found.name) for found in iter_modules(logs.__path__, f"{logs.__name__}.")]
NAMED = [module for module in MODULES if hasattr(module, "NAME")]
# A table may be a test set as well.
HARNESSES = [module for module in NAMED if not module.__name__.endswith(".table")]
SAID = ["2", "It is 3.", "2 and 3", "", "ANSWER: 6", "no idea"]
GOLD = st.builds(
    Gold, text=st.text(max_size=5), number=st.integers(0, 3), score=st.floats(0, 1, width=16)
)


def answers(path: Path) -> list[tuple]:
    """Return all of a log that decides what a model has answered."""
    records = read_log(path).records
    return [(one.model, one.id, one.number, one.epoch, one.completion) for one in records]


def only(path: Path) -> LogRecord:
    (record,) = read_log(path).records
    return record


def sample(**changes) -> dict:
    return generated_sample(0, OPEN[0], "2") | changes


# --- an answer is what the model wrote, and nothing else ------------------------------------------


WRITTEN = [(write, OPEN, SAID) for write in OF_TEXT]
CHOSEN = [(write, ITEMS, "ABCDAB") for write in OF_LETTERS]


@pytest.mark.parametrize(("write", "records", "said"), WRITTEN + CHOSEN)
@settings(max_examples=15, deadline=None)
@given(gold=GOLD)
def test_what_a_model_wrote_does_not_depend_on_what_is_right(write, records, said, gold) -> None:
    rows = list(zip(records, said, strict=True))
    with tempfile.TemporaryDirectory() as made:
        usual = answers(write(Path(made), rows, Gold()))
        assert answers(write(Path(made), rows, gold)) == usual


@pytest.mark.parametrize("write", OF_TEXT)
def test_every_reader_returns_what_was_written(write, tmp_path) -> None:
    rows = list(zip(OPEN, SAID, strict=True))
    found = [one.completion.strip() for one in read_log(write(tmp_path, rows, Gold())).records]
    assert found == SAID


# --- lm-evaluation-harness ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({"a": "-3.0", "b": "-1.0", "c": "-2.0"}, " b"),
        ({"a": -3.0, "b": -1.0}, " b"),
        ({"a": "nan", "b": "-1.0"}, ""),
        ({"a": "-1.0", "b": "nan"}, ""),
        ({"a": math.nan, "b": math.nan}, ""),
        ({"a": "-1.0", "b": "-1.0"}, ""),
        ({"a": "-inf", "b": "-inf"}, ""),
        ({"a": None, "b": "-1.0"}, ""),
        ({"a": "-1.0"}, ""),  # the likelihood of the target alone
        ({str(i): f"-{12 - i}.0" for i in range(12)}, " 11"),  # gen_args_10 after gen_args_9
    ],
)
def test_the_likeliest_continuation_is_chosen_where_there_is_one(values, wanted, tmp_path) -> None:
    path = lm_eval_samples(tmp_path, [chosen_sample(0, OPEN[0], values)])
    assert only(path).completion == wanted


def test_requests_stand_in_the_order_of_their_numbers(tmp_path) -> None:
    """Sorted keys of JSON put gen_args_10 before gen_args_2."""
    values = {str(i): "-1.0" if i == 2 else "-9.0" for i in range(12)}
    row = chosen_sample(0, OPEN[0], values)
    row["arguments"] = dict(sorted(row["arguments"].items()))
    assert only(lm_eval_samples(tmp_path, [row])).completion == " 2"


def test_priors_without_the_question_do_not_count(tmp_path) -> None:
    row = chosen_sample(0, OPEN[0], {"a": "-2.0", "b": "-3.0"})
    row["arguments"]["gen_args_2"] = {"arg_0": "", "arg_1": " b"}
    row["resps"].append([["-0.1", "False"]])
    assert only(lm_eval_samples(tmp_path, [row])).completion == " a"


@pytest.mark.parametrize(
    "arguments",
    [
        [["Q?", {"until": ["\n"]}]],  # before version 0.4.3
        {"gen_args_0": {"arg_0": "Q?", "arg_1": {}}, "gen_args_1": None},
        {"gen_args_0": {"arg_0": "Q?", "arg_1": {}}, "gen_args_1": {"arg_0": None, "arg_1": None}},
        {"gen_args_0": {"arg_0": ['[{"role": "user", "content": "Q?"}]'], "arg_1": {}}},
        {"gen_args_0": {"arg_0": '[{"role": "user", "content": "Q?"}]', "arg_1": {}}},
        {"gen_args_0": {"arg_0": [{"role": "user", "content": "Q?"}], "arg_1": {}}},
    ],
)
def test_arguments_of_every_version_are_read(arguments, tmp_path) -> None:
    record = only(lm_eval_samples(tmp_path, [sample(arguments=arguments)]))
    assert record.completion == "2"
    assert record.prompt.removeprefix("user\n") == "Q?"


def test_settings_that_somebody_wrote_as_a_text_are_no_continuation(tmp_path) -> None:
    settings = "{'until': ['\\n'], 'max_gen_toks': 64}"
    row = sample(arguments={"gen_args_0": {"arg_0": "Q?", "arg_1": settings}})
    assert only(lm_eval_samples(tmp_path, [row])).completion == "2"


def test_filters_count_once_and_repeats_are_epochs(tmp_path) -> None:
    rows = [sample(filter=name, resps=[["2", "3"]]) for name in ("strict", "loose")]
    found = answers(lm_eval_samples(tmp_path, rows))
    assert found == [("m", "", 0, 1, "2"), ("m", "", 0, 2, "3")]


def test_repeated_ids_of_one_filter_keep_their_records(tmp_path) -> None:
    rows = [sample(), sample(resps=[["3"]]), sample()]
    assert [one[4] for one in answers(lm_eval_samples(tmp_path, rows))] == ["2", "3", "2"]


def test_the_results_beside_a_log_say_how_many_were_asked(tmp_path) -> None:
    path = lm_eval_samples(tmp_path, [sample()])
    counts = {"quiz": {"original": 9, "effective": 5}}
    (tmp_path / "results_T.json").write_text(json.dumps({"n-samples": counts, "model_name": "x"}))
    log = read_log(path)
    assert log.claimed == 5
    assert log.records[0].model == "x"


def test_a_log_as_parquet_is_padded_and_read(tmp_path) -> None:
    rows = [
        chosen_sample(0, {"q": "a"} | OPEN[0], {"a": "-1", "b": "-2"}),
        chosen_sample(1, {"q": "b"} | OPEN[1], {"a": "-3", "b": "-2", "c": "-1"}),
    ]
    path = tmp_path / "samples.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    assert [one[4] for one in answers(path)] == [" a", " c"]


# --- Inspect --------------------------------------------------------------------------------------


def test_a_log_of_inspect_says_how_many_samples_it_has(tmp_path) -> None:
    header = {
        "eval": {"model": "m", "config": {"epochs": 2}},
        "results": {"total_samples": 12, "completed_samples": 12},
    }
    path = write_eval(tmp_path / "a.eval", [inspect_sample(1, OPEN[0], "2")], header)
    assert read_log(path).claimed == 6


@pytest.mark.parametrize(
    ("changes", "completion", "prompt"),
    [
        ({"target": []}, "2", "Name a divisor of 6!"),
        ({"output": None}, "", "Name a divisor of 6!"),
        ({"output": {"completion": "attachment://k"}, "attachments": {"k": "3"}}, "3", None),
        ({"output": {"choices": [{"message": {"role": "assistant", "content": "6"}}]}}, "6", None),
        ({"input": "attachment://k", "attachments": {"k": "Q?"}, "messages": []}, "2", "Q?"),
        (
            {
                "messages": [
                    {"role": "user", "content": "shot"},
                    {"role": "assistant", "content": "its answer"},
                    {"role": "user", "content": "Q?"},
                    {"role": "assistant", "content": "2"},
                ]
            },
            "2",
            "shot\nits answer\nQ?",
        ),
        (
            {
                "messages": [
                    {"role": "assistant", "content": "given", "source": "input"},
                    {"role": "user", "content": "Q?"},
                    {"role": "assistant", "content": "let me see", "source": "generate"},
                    {"role": "tool", "content": [{"type": "text", "text": "found"}]},
                    {"role": "assistant", "content": "2", "source": "generate"},
                ]
            },
            "2",
            "given\nQ?\nfound",
        ),
        (
            {
                "messages": [
                    {"role": "user", "content": "Q?", "source": "input"},
                    {"role": "assistant", "content": "It is 3.", "source": "generate"},
                    {"role": "user", "content": "That was wrong. Try again."},
                    {"role": "assistant", "content": "2", "source": "generate"},
                ]
            },
            "It is 3.",
            "Q?",
        ),
    ],
)
def test_what_a_model_was_shown_and_what_it_wrote(changes, completion, prompt, tmp_path) -> None:
    path = write_eval(tmp_path / "a.eval", [inspect_sample(1, OPEN[0], "2") | changes])
    record = only(path)
    assert record.completion == completion
    assert prompt is None or record.prompt == prompt


# --- lighteval, tables ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "wanted"),
    [
        ({"text": ["2", "3"], "logprobs": None}, ["2", "3"]),
        ({"text": [None], "logprobs": [-2.0, -1.0, None]}, ["y"]),
        ({"text": [None], "logprobs": [-2.0, math.nan, None]}, [""]),
        ({"text": [None], "logprobs": [-2.0, -2.0, -2.0]}, [""]),
        ({"text": [None], "logprobs": [None, None, None]}, [""]),
        ({"text": [None], "logprobs": [-3.0, -2.0, -1.0]}, [""]),  # of tokens
    ],
)
def test_answers_of_lighteval(response, wanted, tmp_path) -> None:
    doc = {"id": "0", "query": "Q?", "choices": ["x", "y", None], "gold_index": [0]}
    path = write_details(tmp_path, [doc], [response | {"input": "Q?"}], Gold())
    assert [one.completion for one in read_log(path).records] == wanted
    older = {"doc": "__doc__", "model_response": "__model_response__", "metric": "__metric__"}
    renamed = pyarrow.parquet.read_table(path).rename_columns(older)
    pyarrow.parquet.write_table(renamed, path)
    assert [one.completion for one in read_log(path).records] == wanted


def test_shots_of_lighteval_are_in_its_prompt(tmp_path) -> None:
    shots = [{"query": "Another Q?", "choices": ["no"], "gold_index": 0}]
    doc = {"id": "0", "query": "Q?", "choices": [], "gold_index": [], "fewshot_samples": shots}
    path = write_details(tmp_path, [doc], [{"text": ["2"]}], Gold())
    assert only(path).prompt == "Another Q?\nno\nQ?"


def test_numbers_and_nulls_of_a_table_are_answers(tmp_path) -> None:
    rows = [{"id": 1, "answer": 2}, {"id": "r2", "answer": None}, {"id": 1, "answer": "3"}]
    (tmp_path / "m.jsonl").write_bytes(jsonl(rows))
    assert answers(tmp_path / "m.jsonl") == [
        ("m", "1", 0, 1, "2"),
        ("m", "r2", None, 1, ""),
        ("m", "1", 0, 1, "3"),  # without `epoch` nothing says which came first
    ]


@pytest.mark.parametrize("write", [helm, inspect_json])
def test_a_byte_order_mark_changes_nothing(write, tmp_path) -> None:
    path = write(tmp_path, [(OPEN[0], "2")], Gold())
    usual = answers(path)
    path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())
    assert answers(path) == usual


HALF = "\ud83d"  # of an emoji


@pytest.mark.parametrize("write", [generated, inspect, table, helm])
def test_half_an_emoji_is_text_and_none_in_the_name_of_a_model(write, tmp_path) -> None:
    path = write(tmp_path, [(OPEN[0], f"2 {HALF}")], Gold())
    if write is table:
        path.write_text(path.read_text().replace('"m"', '"m\\ud83d"'))
    record = only(path)
    assert HALF in record.completion
    assert record.model in ("m", "m?")
    record.model.encode()


# --- what is refused, in one line -----------------------------------------------------------------

DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("name", "data", "named"),
    [
        ("a.jsonl", '{"arguments": {}, "doc": {}}', ["a.jsonl, line 1", "doc_id"]),
        ("a.jsonl", json.dumps(sample(arguments=None)), ["a.jsonl, line 1", "arguments"]),
        ("a.jsonl", json.dumps(sample(doc=None)), ["a.jsonl, line 1", "doc"]),
        ("a.jsonl", json.dumps(sample(resps=None)), ["a.jsonl, line 1", "resps"]),
        ("a.jsonl", json.dumps(sample(resps=[])), ["a.jsonl, line 1", "resps"]),
        ("a.jsonl", json.dumps(sample(resps=["2"])), ["a.jsonl, line 1", "resps"]),
        ("a.jsonl", json.dumps(sample(doc_id="first")), ["a.jsonl, line 1", "doc_id"]),
        ("a.jsonl", '{"id": "r9"}', ["a.jsonl, line 1", "answer"]),
        ("a.jsonl", '{"answer": "ash 9"}', ["a.jsonl, line 1", "id"]),
        (
            "a.jsonl",
            '{"id": "chatcmpl-0", "model": "m", "choices": [{"message": {"content": "x"}}]}',
            ["a.jsonl, line 1", "samples_*.jsonl", ".eval", "details_*.parquet", "`answer`"],
        ),
        ("a.jsonl", '{"id": 1, "answer": "x", "model": ["m"]}', ["a.jsonl, line 1", "model"]),
        ("a.jsonl", '{"id": 1, "answer": ' + DEEP, ["a.jsonl, line 1"]),
        ("a.json", '{"eval": ' + DEEP, ["a.json"]),
        ("a.json", '{"eval": {"model": ["m"]}, "samples": []}', ["a.json", "model"]),
        ("a.json", '{"eval": {"model": "m"}, "samples": [{}]}', ["a.json", "id"]),
        ("a.json", '{"status": "started", "eval": {"model": "m"}}', ["inspect log convert"]),
        ("a.json", '{"what": "else"}', ["a.json", "samples_*.jsonl", "`answer`"]),
        ("a.eval", "PK", ["a.eval"]),
        ("a.eval", "", ["a.eval"]),
        ("a.parquet", "PAR1", ["a.parquet"]),
        ("scenario_state.json", "{}", ["scenario_state.json", "adapter_spec"]),
        (
            "scenario_state.json",
            '{"adapter_spec": {"model": "m"}, "request_states": [null]}',
            ["scenario_state.json", "request_states.0"],
        ),
        (
            "scenario_state.json",
            '{"adapter_spec": {"model": "m"}, "request_states": []}',
            ["scenario_state.json"],
        ),
        ("a.log", "", ["a.log", "`answer`"]),
        ("a.jsonl", "\n", ["a.jsonl"]),
        ("a.csv", "id,answer\n", ["a.csv"]),
        ("a.csv", "", ["a.csv"]),
    ],
)
def test_what_is_no_log_is_refused_in_one_line(tmp_path, name, data, named) -> None:
    (tmp_path / name).write_text(data)
    message = refusal(read_log, tmp_path / name)
    assert [part for part in named if part not in message] == []
    assert "test set" not in message


def test_a_folder_is_no_log(tmp_path) -> None:
    assert "folder" in refusal(read_log, tmp_path)


@pytest.mark.parametrize("name", ["a.eval", "a.json", "a.jsonl", "a.parquet", "none/a.eval"])
def test_a_log_that_is_not_there_is_named(tmp_path, name) -> None:
    assert name in refusal(read_log, tmp_path / name)


def archive_of(path: Path, files: dict[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


HEADER = json.dumps({"eval": {"model": "m"}})
SAMPLE = json.dumps(inspect_sample(1, OPEN[0], "2"))


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({"_journal/start.json": "{}", "samples/1.json": SAMPLE}, "inspect log recover"),
        ({"samples/1.json": SAMPLE}, "header.json"),
        ({"header.json": HEADER}, "a.eval"),
        ({"header.json": HEADER, "samples/1.json": DEEP}, "samples/1.json"),
        ({"header.json": HEADER, "samples/1.json": "null"}, "samples/1.json"),
        ({"header.json": '{"eval": {"model": ["m"]}}'}, "eval.model"),
        ({"header.json": '{"eval": null}'}, "eval"),
    ],
)
def test_archives_that_are_no_logs(tmp_path, files, named) -> None:
    assert named in refusal(read_log, archive_of(tmp_path / "a.eval", files))


@pytest.mark.parametrize("pack", ["deflate", "zstd"])
@pytest.mark.parametrize("bound", ["MOST_OF_A_FILE", "MOST_OF_ALL"])
def test_an_archive_is_unpacked_up_to_a_bound(tmp_path, monkeypatch, pack, bound) -> None:
    """A few kilobytes that hold fifty megabytes of blanks."""
    bomb = SAMPLE.encode() + b" " * 50_000_000
    path = archive_of(tmp_path / "a.eval", {"header.json": HEADER, "samples/1.json": bomb})
    if pack == "zstd":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("header.json", HEADER)
            archive.writestr("samples/1.json", pyarrow.compress(bomb, "zstd", asbytes=True))
            archive.getinfo("samples/1.json").compress_type = 93
    monkeypatch.setattr(unpacked, bound, 1_000_000)
    assert "samples/1.json" in refusal(read_log, path)


def test_an_encrypted_sample_is_named(tmp_path) -> None:
    path = inspect(tmp_path, [(OPEN[0], "2")])
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = data.rindex(signature) + offset
        struct.pack_into("<H", data, start, 1)
    path.write_bytes(data)
    assert "samples/1_epoch_1.json" in refusal(read_log, path)


def test_a_flipped_byte_is_an_error_in_one_line_or_none(tmp_path) -> None:
    path = inspect(tmp_path, [(record, "2") for record in OPEN[:2]])
    whole = path.read_bytes()
    refused = 0
    for position in range(0, len(whole), 3):
        data = bytearray(whole)
        data[position] ^= 0xFF
        path.write_bytes(data)
        try:
            read_log(path)
        except InputError as error:
            refused += 1
            assert len(str(error).splitlines()) == 1
    assert refused > len(whole) // 9


def test_columns_of_an_older_lighteval_are_named_with_the_version(tmp_path) -> None:
    row = {"full_prompt": "Q?", "predictions": ["2"], "gold_index": [0], "example": "Q?"}
    path = tmp_path / "details_quiz_T.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), path)
    assert "0.11" in refusal(read_log, path)


def test_a_results_file_that_is_damaged_is_named(tmp_path) -> None:
    path = generated(tmp_path, [(OPEN[0], "2")])
    (tmp_path / "results_T.json").write_text('{"model_name": ["m"]}')
    assert "results_T.json" in refusal(read_log, path)


# --- logs in the place of test sets ---------------------------------------------------------------


@pytest.mark.parametrize("write", [write for write in OF_LETTERS if write is not table])
def test_a_log_is_recognised_where_a_test_set_is_wanted(write, tmp_path) -> None:
    """A log of a new format as well, once it has a writer."""
    path = write(tmp_path, list(zip(ITEMS, "ABCDAB", strict=True)), Gold())
    told = refusal(open_test_set, path)
    assert [harness.NAME for harness in HARNESSES if f"a log of {harness.NAME}" in told]


def test_every_harness_has_a_writer(tmp_path) -> None:
    told = ""
    for write in OF_LETTERS:
        if write is not table:
            told += refusal(open_test_set, write(tmp_path, [(ITEMS[0], "A")], Gold()))
    assert [harness.NAME for harness in HARNESSES if harness.NAME not in told] == []
    assert len(HARNESSES) > 3
