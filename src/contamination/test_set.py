"""A test set: examples in canonical order, each one record rendered by a named template.

Oren (section 2) takes a dataset as a sequence of examples whose order carries no information. An
example is one *record* of the file (a JSONL line, a CSV row, a non-empty line of text), never a
physical line of a record: a record that spans lines stays whole.
"""

import csv
import io
import json
import re
import string
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contamination.errors import InputError
from contamination.files import sha256_of

# name/version -> how a record becomes the text of an example. The final newline is the separator,
# tokenised with the example. A changed template gets a new version: stores are keyed by it.
TEMPLATES = {
    "text/1": "{text}\n",
    "signature/1": "{name}{signature}: {summary}\n",
    "question/1": "Question: {question}\nAnswer: {answer}\n",
    "parameter/1": "{function}, argument {parameter} ({type}): {description}\n",
    "entry/1": "{name}\n{text}\n\n",
    "boolq/1": "{passage}\nQuestion: {question}?\nAnswer: {answer}\n",
    "hellaswag/1": "{ctx} {endings[0]}\n",
    "openbookqa/1": "{question[stem]}\n{answerKey}\n",
    "naturalquestions/1": "Question: {question}?\nAnswer: {answer[0]}\n",
    "mnli/1": "{sentence1}\n{sentence2}\n{gold_label}\n",
    "truthfulqa/1": "{prompt}{completion}\n",
    "piqa/1": "{goal}\n{sol1}\n{sol2}\n",
    "mmlu/1": "{input}\nA. {A}\nB. {B}\nC. {C}\nD. {D}\nAnswer: {target}\n",
}


@dataclass(frozen=True)
class TestSet:
    """Examples in canonical order.

    Attributes
    ----------
    name : what tables call it.
    examples : rendered texts, separator included; at least one.
    template : name/version of the rendering.
    revision : SHA-256 of the file's bytes and of the template.
    records : the fields behind each example, where they are known.
    """

    __test__ = False  # not a pytest class

    name: str
    examples: tuple[str, ...]
    template: str
    revision: str
    records: tuple[dict[str, Any], ...] = ()


def load_test_set(
    path: Path, template: str = "text/1", name: str | None = None, first: int | None = None
) -> TestSet:
    """Read a .jsonl, .csv or .txt file as a test set, in the order of the file.

    With `first`, only that many records from the start are used; there must be as many.

    Raises
    ------
    InputError
        No such file, unknown suffix or template, an empty file, bytes that are not UTF-8, a
        malformed record or a missing field; the message names file and line.
    """
    path = Path(path)
    if template not in TEMPLATES and "{" not in template:
        raise InputError(
            f"unknown template {template!r}: choose one of {', '.join(TEMPLATES)}, or give the "
            "text itself, such as '{question}\\n{answer}\\n'"
        )
    pattern = TEMPLATES.get(template, template)
    try:
        parsed = list(string.Formatter().parse(pattern))
    except ValueError as error:
        raise InputError(f"template {template!r}: {error}; write {{{{ for a brace") from error
    records = read_records(path)
    if first is not None and len(records) < first:
        raise InputError(f"{path}: {len(records)} records, {first} wanted; ask for fewer")
    fields = {re.split(r"[.\[]", field)[0] for _, field, _, _ in parsed if field}
    examples = []
    for line, record in records[:first]:
        if missing := sorted(fields - record.keys()):
            raise InputError(
                f"{path}, line {line}: field {missing[0]!r} is missing, which template "
                f"{template} needs; the record has {', '.join(sorted(record)) or 'no fields'}"
            )
        try:
            text = pattern.format_map(record)
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{path}, line {line}: {text[error.start]!a} is half of a surrogate pair and no "
                "character; write the pair, or the character itself"
            ) from error
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise InputError(
                f"{path}, line {line}: the record has not the inner fields that template "
                f"{template} needs ({error})"
            ) from error
        examples.append(text)
    revision = sha256_of(path, template, pattern, str(len(examples)))
    chosen = tuple(record for _, record in records[:first])
    return TestSet(name or path.stem, tuple(examples), template, revision, chosen)


def read_records(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """Read the records of a .jsonl, .csv or .txt file, each with the line where it starts.

    Raises
    ------
    InputError
        As `load_test_set`, up to what a template needs.
    """
    readers = {".jsonl": _read_jsonl, ".csv": _read_csv, ".txt": _read_txt}
    if path.suffix not in readers:
        raise InputError(f"{path}: unknown kind of file; give one of {', '.join(readers)}")
    if not path.is_file():
        raise InputError(f"{path}: no such file; give the path of a test set")
    records = readers[path.suffix](path, read_text(path))
    if not records:
        raise InputError(f"{path}: the test set is empty; give a file with at least two records")
    return records


def read_text(path: Path) -> str:
    """Read UTF-8 text with plain line ends; `InputError` names the first line that is not UTF-8."""
    data = path.read_bytes()
    try:
        # A byte order mark and Windows line ends come from the editor, not from the records.
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}, line {line}: byte {error.start} is not UTF-8; convert the file, for example "
            "with `iconv -t UTF-8`"
        ) from error


def _read_jsonl(path: Path, text: str) -> list[tuple[int, dict[str, Any]]]:
    records = []
    # Not splitlines(): a JSON string may hold U+2028 and its like, which are no record ends.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(
                f"{path}, line {number}: not JSON ({error.msg} at column {error.colno}); "
                "write one JSON object per line"
            ) from error
        if not isinstance(record, dict):
            raise InputError(f"{path}, line {number}: write a JSON object, not {line.strip()[:40]}")
        records.append((number, record))
    return records


def _read_csv(path: Path, text: str) -> list[tuple[int, dict[str, Any]]]:
    # The module's own limit of 131,072 characters would refuse long documents.
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    # Not splitlines(): as in JSON, U+2028 and its like are no record ends.
    reader = csv.reader(io.StringIO(text, newline="\n"), strict=True)
    header: list[str] = []
    records: list[tuple[int, dict[str, Any]]] = []
    start = 1
    try:
        for row in reader:
            if not header:
                header = row
            elif row and len(row) != len(header):
                raise InputError(
                    f"{path}, line {start}: the row has {len(row)} columns and the header "
                    f"{len(header)}; check its quotes and commas"
                )
            elif row:  # a blank line is none
                records.append((start, dict(zip(header, row, strict=True))))
            start = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{path}, line {start}: malformed CSV ({error}); check quotes") from error
    return records


def _read_txt(path: Path, text: str) -> list[tuple[int, dict[str, Any]]]:
    lines = enumerate(text.split("\n"), start=1)
    return [(number, {"text": line}) for number, line in lines if line.strip()]
