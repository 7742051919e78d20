"""Logs of evaluations: which record a model was asked, as the log has it, and what it answered.

Read are lm-evaluation-harness (`samples_*.jsonl` of `--log_samples`), Inspect (`.eval`), lighteval
(`details_*.parquet` with `__doc__` and `__model_response__`), HELM (`scenario_state.json`,
`display_predictions.json`), and any .jsonl, .csv ... of records with `id`, `answer` and, where
there are several, `model`. Another room decides what the answers are worth.
"""

import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contamination.errors import InputError
from contamination.files import read_json
from contamination.testsets.options import LETTERS
from contamination.testsets.records import Record, read_records

_ZSTANDARD = 93  # method of a zip file that Python reads from 3.14 on


@dataclass(frozen=True)
class LogRecord:
    """One question to a model, and its answer.

    Attributes
    ----------
    place : where in the file, for messages.
    model : its name, from the log or the files beside it, else from the name of the file.
    id, number : what the log calls the record, and its place in the published order, from 0; "" and
        None where the log does not say.
    doc : the record as the log has it; as published in logs of lm-evaluation-harness.
    prompt : all that the model was shown; "" where the log does not say.
    answers : what it answered, the most telling form first: the option that it chose, what a filter
        has extracted, all that it wrote.
    """

    place: str
    model: str
    id: str
    number: int | None
    doc: Mapping[str, Any] = field(default_factory=dict, repr=False)
    prompt: str = field(default="", repr=False)
    answers: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All that the log has of the question."""
        return " ".join(_texts([self.prompt, self.doc]))


def read_log(path: Path) -> list[LogRecord]:
    """Read a log, in its own order.

    Raises InputError that names file and record for what cannot be read, is of no known format, or
    lacks an id or an answer.
    """
    if path.suffix == ".eval":
        rows, reader = _read_eval(path), _inspect
    else:
        rows, reader = _rows(path)
    found, where = [], str(path)
    for place, row in rows:
        where = f"{path}, {place}"
        try:
            found += [one for one in reader(path, place, row) if one.answers]
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise InputError(f"{where}: not as {reader.__doc__} writes it ({reason})") from error
    if not found:
        raise InputError(f"{path}: no model has answered anything here; give another log")
    return found


_Reader = Callable[[Path, str, Mapping[str, Any]], Iterator[LogRecord]]


def _rows(path: Path) -> tuple[Sequence[Record], _Reader]:
    """Read a file of records, and tell by the first one who wrote it."""
    if path.name == "scenario_state.json":
        state = read_json(path)
        model = {"model": state["adapter_spec"]["model"]}
        states = enumerate(state["request_states"], start=1)
        return [(f"request {number}", model | each) for number, each in states], _helm
    rows = read_records(path)
    first = rows[0][1]
    if "predicted_text" in first:
        return rows, _predictions
    if "__doc__" in first:
        return rows, _lighteval
    return rows, _harness if {"doc_id", "doc", "arguments"} <= first.keys() else _plain


def _harness(path: Path, place: str, row: Mapping[str, Any]) -> Iterator[LogRecord]:
    """lm-evaluation-harness"""
    requests = [_ordered(each) for each in _ordered(row["arguments"])]
    said = row["filtered_resps"]
    if len(requests) > 1:  # the likeliest of several continuations, each with its log-probability
        values = [float(each[0]) for each in said]
        said = [requests[values.index(max(values))][1]]
    texts = [each if isinstance(each, str) else each[0] for each in said]
    yield LogRecord(
        place,
        _beside(path, f"results_{path.stem.rpartition('_')[2]}.json", "model_name")
        or path.parent.name,
        "",
        int(row["doc_id"]),
        row["doc"],
        str(requests[0][0]),
        tuple(texts),
    )


def _inspect(path: Path, place: str, row: Mapping[str, Any]) -> Iterator[LogRecord]:
    """Inspect"""
    doc = {name: row[name] for name in ("input", "choices", "target") if row.get(name) is not None}
    number = row["id"] - 1 if isinstance(row["id"], int) else None  # counted from 1
    scores = (row.get("scores") or {}).values()
    texts = [score["answer"] for score in scores if score.get("answer")]
    texts.append(row["output"]["completion"])
    mapping = dict(zip(LETTERS, doc.get("choices", ()), strict=False))
    prompt = [
        text
        for each in row["messages"]
        if each["role"] != "assistant"
        for text in _texts(each["content"])
    ]
    answers = _mapped(texts, mapping)
    yield LogRecord(place, row["model"], str(row["id"]), number, doc, "\n".join(prompt), answers)


def _lighteval(path: Path, place: str, row: Mapping[str, Any]) -> Iterator[LogRecord]:
    """lighteval"""
    doc, response = row["__doc__"], row["__model_response__"]
    number = int(doc["id"]) if str(doc.get("id", "")).isdecimal() else int(place.split()[-1]) - 1
    values, texts = response.get("logprobs"), list(response.get("text") or ())
    if not texts and values is not None and len(values):
        texts = [doc["choices"][list(values).index(max(values))]]
    # details/ORG/MODEL/TIME/details_TASK_TIME.parquet
    model = "/".join(path.absolute().parts[-4:-2]) if "details" in path.parts else path.stem
    prompt = "\n".join(_texts(response.get("input") or doc["query"]))
    yield LogRecord(place, model, str(doc.get("id") or ""), number, doc, prompt, tuple(texts))


def _helm(path: Path, place: str, row: Mapping[str, Any]) -> Iterator[LogRecord]:
    """HELM"""
    instance = row["instance"]
    if row.get("reference_index") is None and row.get("result"):  # else one request an option
        text = row["result"]["completions"][0]["text"]
        answers = _mapped([text], row.get("output_mapping") or {})
        name, prompt = instance["id"], row["request"]["prompt"]
        yield LogRecord(place, row["model"], name, _counted(name), instance, prompt, answers)


def _predictions(path: Path, place: str, row: Mapping[str, Any]) -> Iterator[LogRecord]:
    """HELM"""
    model = _beside(path, "run_spec.json", "adapter_spec", "model") or path.parent.name
    texts = [row[name] for name in ("mapped_output", "predicted_text") if row.get(name)]
    name = row["instance_id"]
    yield LogRecord(place, model, name, _counted(name), answers=tuple(texts))


def _plain(path: Path, place: str, row: Mapping[str, Any]) -> Iterator[LogRecord]:
    """a table of `id`, `answer` and, if there are several, `model`"""
    name, model = str(row["id"]), str(row.get("model") or path.stem)
    number = int(name) - 1 if name.isdecimal() else None
    yield LogRecord(place, model, name, number, answers=(str(row["answer"]),))


def _ordered(value: Any) -> list[Any]:
    """Return the entries of a list, or of a mapping that counts: gen_args_0, gen_args_1 ..."""
    return list(value.values() if isinstance(value, Mapping) else value)


def _texts(value: Any) -> list[str]:
    """Return all texts in a prompt, whether it is one or a list of messages."""
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, Mapping) else value or ()
    return [
        text for part in parts if isinstance(part, str | Mapping | list) for text in _texts(part)
    ]


def _mapped(texts: Sequence[str], mapping: Mapping[str, str]) -> tuple[str, ...]:
    """Put before answers that are labels what stood at these labels."""
    options = [mapping[text.strip()] for text in texts if text.strip() in mapping]
    return (*options, *texts)


def _counted(name: str) -> int | None:
    """Return the number of an instance of HELM, which counts them: id0, id1 ..."""
    return int(name[2:]) if name.startswith("id") and name[2:].isdecimal() else None


def _beside(path: Path, name: str, *keys: str) -> str | None:
    """Return what a JSON file in the same folder says, if it is there."""
    try:
        value = json.loads((path.parent / name).read_bytes())
        for key in keys:
            value = value[key]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(value)


def _read_eval(path: Path) -> list[Record]:
    """Read the samples of a log of Inspect, a zip file with a JSON file for each."""
    try:
        with zipfile.ZipFile(path) as archive:
            model = json.loads(_unpacked(archive, archive.getinfo("header.json")))["eval"]["model"]
            samples = [one for one in archive.infolist() if one.filename.startswith("samples/")]
            return [
                (one.filename, {"model": model} | json.loads(_unpacked(archive, one)))
                for one in samples
            ]
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: no log of Inspect ({error}); give the .eval file") from error


def _unpacked(archive: zipfile.ZipFile, one: zipfile.ZipInfo) -> bytes:
    """Return the contents of a file in an archive, also if Zstandard has packed it."""
    if one.compress_type != _ZSTANDARD:
        return archive.read(one)
    import pyarrow

    assert archive.fp is not None
    archive.fp.seek(one.header_offset)
    header = archive.fp.read(30)  # which ends with the lengths of a name and of extra fields
    lengths = int.from_bytes(header[26:28], "little"), int.from_bytes(header[28:30], "little")
    archive.fp.seek(sum(lengths), 1)
    packed = pyarrow.BufferReader(archive.fp.read(one.compress_size))
    return bytes(pyarrow.CompressedInputStream(packed, "zstd").read())
