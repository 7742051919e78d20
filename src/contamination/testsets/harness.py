"""What evaluation harnesses have: their tasks and logs as test sets, and what models answered.

- `lm-eval:TASK`: a task of lm-evaluation-harness, by its name or its .yaml file.
- `lm-eval-samples:FILE`: `samples_*.jsonl`, which it writes with `--log_samples`.
- `inspect:FILE`: an `.eval` log of Inspect.
- `lighteval:FILE`: `details_*.parquet` of lighteval, with `__doc__` and `__model_response__`.

As a test set they are in the order in which the set was published. A log need not have this order:
it is put back by the numbers that the harness gave the records of the stored data set. A record has
its `text`; of a multiple-choice item also `question`, `choices` and `answer`, which the axis of
options moves.

For what models answered, logs of HELM (`scenario_state.json`) are read as well, and any .jsonl,
.csv ... of records with `id`, `answer` and, where there are several, `model`. What the answers are
worth is decided by who reads them.
"""

import json
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contamination.errors import InputError
from contamination.files import read_json
from contamination.testsets.option_texts import LETTERS
from contamination.testsets.records import Record, read_records

STORED = "contamination: number in the stored data set"  # a column beside those of a task
_ZSTANDARD = 93  # method of a zip file that Python reads from 3.14 on


def read_harness(what: str) -> tuple[str, list[Record]]:
    """Return name and records of a set that has one of the names above.

    Raises InputError for a task or a log that cannot be read, and where the published order or the
    texts cannot be told.
    """
    kind, _, rest = what.partition(":")
    if kind == "lm-eval":
        return Path(rest).stem, read_task(rest)
    # What a log is, it says itself. It has a record once for each filter, or epoch.
    once: dict[int, Record] = {}
    for one in read_log(Path(rest)):
        if one.number is None or not one.doc:
            raise InputError(
                f"{one.place}: the log does not tell this record and its published place (were "
                "named samples shuffled?); give the data set itself"
            )
        once.setdefault(one.number, (one.place, dict(one.doc)))
    return Path(rest).stem, [once[number] for number in sorted(once)]


def read_task(name: str) -> list[Record]:
    """Return the records of a task in the stored order of its test split, else validation split.

    A record is rendered by the task's own `doc_to_text`, `doc_to_choice` and `doc_to_target`. Its
    `process_docs` may leave records out or shuffle them: the stored order is put back. (A log of
    such a task counts the shuffled order; the task alone knows the stored one.) Where the choices
    are the same for all records, such as "A" to "D", they are labels: the options then are those of
    the record, whose own fields stay. Raises InputError as `read_harness`, for a group of tasks,
    and for one that draws at random.
    """
    import datasets

    path = Path(name).absolute()
    own = path.suffix in (".yaml", ".yml")
    try:
        from lm_eval.tasks import TaskManager

        manager = TaskManager(include_defaults=not own)
        tasks = manager.load(str(path) if own else name)["tasks"]
    except Exception as error:  # no lm-eval, datasets, the hub, YAML, Jinja: no common base class
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise InputError(
            f"lm-eval:{name}: the task cannot be opened ({reason}); check its name, or "
            "pip install 'contamination[harness]'"
        ) from error
    if len(tasks) != 1:
        raise InputError(f"lm-eval:{name} is a group; give one of its tasks: {', '.join(tasks)}")
    (task,) = tasks.values()
    split = task.config.test_split or task.config.validation_split
    if split is None:
        raise InputError(f"lm-eval:{name} has neither a test nor a validation split; give another")
    datasets.disable_caching()  # what was drawn at random would be drawn once
    try:
        first, again = (_rendered(task, _in_stored_order(task, split)) for _ in range(2))
    finally:
        datasets.enable_caching()
    if first != again:
        raise InputError(
            f"lm-eval:{name}: process_docs draws at random what a record shows, so nobody knows "
            "which text was published; give the data set itself"
        )
    return [(f"document {number}", record) for number, record in enumerate(first)]


def _in_stored_order(task: Any, split: str) -> list[dict[str, Any]]:
    """Return the documents of a task, processed, in the order of the stored data set."""
    stored, process = task.dataset[split], task.config.process_docs
    if process is None:
        return list(stored)
    docs = list(process(stored.add_column(STORED, list(range(len(stored))))))
    if all(STORED in doc for doc in docs):
        docs.sort(key=lambda doc: doc[STORED])
        return [{key: value for key, value in doc.items() if key != STORED} for doc in docs]
    # It makes new columns alone: one document after the other keeps them in place.
    return [doc for one in range(len(stored)) for doc in process(stored.select([one]))]


def _rendered(task: Any, docs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    listed = task.config.doc_to_choice is not None
    choices = [list(task.doc_to_choice(doc)) if listed else [] for doc in docs]
    labels = listed and len({*map(tuple, choices)}) == 1
    found = []
    for doc, options in zip(docs, choices, strict=True):
        question, answer = task.doc_to_text(doc), task.doc_to_target(doc)
        if isinstance(answer, list):  # of several right answers the first
            answer = answer[0] if answer else ""
        if isinstance(question, int):  # which of several beginnings is the right one
            found.append({"text": f"{options[question]}{task.config.target_delimiter}{answer}"})
            continue
        if options and isinstance(answer, str) and answer in options:
            answer = options.index(answer)
        shown = item(question, options, answer, task.config.target_delimiter)
        found.append({**doc, "text": shown["text"]} if labels or not options else shown)
    return found


@dataclass(frozen=True)
class LogRecord:
    """One question to a model, and its answer.

    Attributes
    ----------
    place : where in the file, for messages.
    model : its name, from the log or the files beside it, else from the name of the file.
    id, number : what the log calls the record, and its place in the published order, from 0; "" and
        None where the log does not say.
    doc : the record: as published in logs of lm-evaluation-harness, an `item` in those of Inspect
        and lighteval, as the log has it in others.
    prompt : all that the model was shown; "" where the log does not say.
    answers : what it answered, as the log has extracted it, else all that it wrote; before the
        label of an option its text.
    """

    place: str
    model: str
    id: str
    number: int | None
    doc: Mapping[str, Any] = field(default_factory=dict, repr=False)
    prompt: str = field(default="", repr=False)
    answers: tuple[str, ...] = ()


def read_log(path: Path) -> list[LogRecord]:
    """Read a log, in its own order.

    Raises InputError that names file and record for what cannot be read, is of no known format, or
    lacks an id or an answer.
    """
    if path.suffix == ".eval":
        rows = _read_eval(path)
    elif path.name == "scenario_state.json":  # one object over many lines
        rows = [("request_states", read_json(path))]
    else:
        rows = read_records(path)
    first, found = rows[0][1] if rows else {}, list[LogRecord]()
    reader = next((each for field, each in READERS.items() if field in first), _plain)
    for place, row in rows:
        try:
            found += reader(path, f"{path}, {place}", row)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            problem = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise InputError(
                f"{path}, {place}: not as {reader.__doc__} has it ({problem}); give the log itself"
            ) from error
    if not (answered := [one for one in found if one.answers]):
        raise InputError(f"{path}: no model has answered anything here; give another log")
    return answered


def _harness(path: Path, place: str, row: Mapping[str, Any]) -> Iterator[LogRecord]:
    """lm-evaluation-harness"""
    requests = [list(each.values()) for each in row["arguments"].values()]
    said = row["filtered_resps"]
    if len(requests) > 1:  # the likeliest of several continuations, each with its log-probability
        values = [float(each[0]) for each in said]
        said = [requests[values.index(max(values))][1]]
    answers = tuple(each if isinstance(each, str) else each[0] for each in said)
    run = path.with_name(f"results_{path.stem.rpartition('_')[2]}.json")
    model = str(read_json(run)["model_name"]) if run.is_file() else path.parent.name
    yield LogRecord(place, model, "", row["doc_id"], row["doc"], requests[0][0], answers)


def _inspect(path: Path, place: str, row: Mapping[str, Any]) -> Iterator[LogRecord]:
    """Inspect"""
    name, choices = str(row["id"]), row.get("choices") or ()
    labels = dict(zip(LETTERS, choices, strict=False))
    scores = (row.get("scores") or {}).values()
    scored = [score["answer"] for score in scores if score.get("answer")]
    answers = _mapped(scored or [row["output"]["completion"]], labels)
    doc = {"id": name} | sample_item(_contents(row["input"]), choices, row["target"])
    prompt = _contents(row["messages"])
    yield LogRecord(place, row["model"], name, row["number"], doc, prompt, answers)


def _lighteval(path: Path, place: str, row: Mapping[str, Any]) -> Iterator[LogRecord]:
    """lighteval"""
    doc, said = row["__doc__"], row["__model_response__"]
    name, texts, values = str(doc["id"]), said.get("text") or (), said.get("logprobs")
    if not texts and values:  # the likeliest of several continuations
        texts = [doc["choices"][values.index(max(values))]]
    above = "/".join(path.absolute().parts[:-2])  # .../details/ORG/MODEL/TIME/details_TASK_TIME
    model = above.rpartition("/details/")[2] if "/details/" in above else path.stem
    prompt, gold = text_of(said.get("input") or doc["query"]), doc["gold_index"]
    right = gold if isinstance(gold, int) else gold[0]
    asked = item(doc["query"], doc["choices"], right, " ")
    yield LogRecord(place, model, name, _number(name), asked, prompt, tuple(texts))


def _helm(path: Path, place: str, row: Mapping[str, Any]) -> Iterator[LogRecord]:
    """HELM"""
    model = row["adapter_spec"]["model"]
    for state in row["request_states"]:
        doc, name = state["instance"], state["instance"]["id"]
        if state.get("reference_index") is None and state.get("result"):  # no request an option
            said = [state["result"]["completions"][0]["text"]]
            answers = _mapped(said, state.get("output_mapping") or {})
            prompt = state["request"]["prompt"]
            yield LogRecord(place, model, name, _number(name), doc, prompt, answers)


def _plain(path: Path, place: str, row: Mapping[str, Any]) -> Iterator[LogRecord]:
    """a table with `id`, `answer` and, of several, `model`"""
    name, model = str(row["id"]), str(row.get("model") or path.stem)
    number = int(name) - 1 if name.isdecimal() else None
    yield LogRecord(place, model, name, number, answers=(str(row["answer"]),))


# A field of a record that only one of them writes.
READERS: dict[str, Callable[[Path, str, Mapping[str, Any]], Iterator[LogRecord]]] = {
    "arguments": _harness,
    "messages": _inspect,
    "__doc__": _lighteval,
    "request_states": _helm,
}


def item(
    question: str, choices: Sequence[str], answer: int | str, delimiter: str
) -> dict[str, Any]:
    """Return the record of a multiple-choice item, or of a question with its answer."""
    right = choices[answer] if isinstance(answer, int) and choices else answer
    text = {"text": f"{question}{delimiter}{right}"}
    if not choices:
        return text
    return text | {"question": question, "choices": list(choices), "answer": answer}


def sample_item(
    question: str, choices: Sequence[str], target: str | Sequence[str]
) -> dict[str, Any]:
    """Return the `item` of a sample of Inspect, whose target is a text, or a choice's letter."""
    first = target if isinstance(target, str) else target[0]
    labels = dict(zip(LETTERS, choices, strict=False))
    right = first if first in choices else labels.get(first.upper(), first)
    return item(question, choices, [*choices].index(right) if right in choices else first, "\n")


def text_of(value: Any) -> str:
    """Return all text in a value, such as a prompt or a list of messages."""
    if isinstance(value, Mapping | list | tuple):
        return "\n".join(map(text_of, value.values() if isinstance(value, Mapping) else value))
    return value if isinstance(value, str) else ""


def _contents(messages: Any) -> str:
    """Return a prompt of Inspect, a text or messages, without what models have said."""
    if isinstance(messages, str):
        return messages
    said = [each["content"] for each in messages if each["role"] != "assistant"]
    return text_of(
        [each if isinstance(each, str) else [p.get("text") for p in each] for each in said]
    )


def _mapped(texts: Sequence[str], mapping: Mapping[str, str]) -> tuple[str, ...]:
    """Put before answers that are labels what stood at these labels."""
    options = [mapping[text.strip()] for text in texts if text.strip() in mapping]
    return (*options, *texts)


def _number(name: str) -> int | None:
    """Return a number that counts records from 0, as "7", or "id7" of HELM."""
    return int(digits) if (digits := name.removeprefix("id")).isdecimal() else None


def _read_eval(path: Path) -> list[Record]:
    """Read the samples of a log of Inspect, a zip file with a JSON file for each."""
    try:
        with zipfile.ZipFile(path) as archive:
            about = json.loads(_unpacked(archive, archive.getinfo("header.json")))["eval"]
            samples = [one for one in archive.infolist() if one.filename.startswith("samples/")]
            rows = [(one.filename, json.loads(_unpacked(archive, one))) for one in samples]
        dataset = about.get("dataset", {})
        ids = dataset.get("sample_ids") or ()
        # Ids that Inspect gave count from 1, before it shuffles.
        known = {name: name - 1 for _, row in rows if isinstance(name := row["id"], int)}
        if not dataset.get("shuffled") and list(ids) != sorted(known):
            known |= {name: place for place, name in enumerate(ids)}
        about = {"model": about["model"]}
        return [(name, {**row, **about, "number": known.get(row["id"])}) for name, row in rows]
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: no log of Inspect ({error}); give the .eval file") from error


def _unpacked(archive: zipfile.ZipFile, one: zipfile.ZipInfo) -> bytes:
    """Return the contents of a file in an archive, also if Zstandard has packed it."""
    if one.compress_type != _ZSTANDARD:
        return archive.read(one)
    import pyarrow

    assert archive.fp is not None
    archive.fp.seek(one.header_offset + 26)  # the lengths of a name and of extra fields
    archive.fp.seek(sum(struct.unpack("<HH", archive.fp.read(4))), 1)
    packed = pyarrow.BufferReader(archive.fp.read(one.compress_size))
    return bytes(pyarrow.CompressedInputStream(packed, "zstd").read())
