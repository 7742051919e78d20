"""Records of a file: one JSONL line, JSON item, CSV or Parquet row, or non-empty line of text.

A record is never a physical line of the file: one that spans lines stays whole (Oren, section 2,
takes a data set as a sequence of examples). Each comes with its place, which error messages name.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from contamination.errors import InputError

Record = tuple[str, dict[str, Any]]  # place, such as "line 17"; fields

MOST_DIGITS = 4_300  # of an integer in JSON: Python itself converts no more
MOST_NESTED = 100  # lists and objects in one another: deeper ones exhaust the reader's stack

ID_FIELDS = ("id", "idx", "index", "question_id")


def read_records(path: Path) -> list[Record]:
    """Read the records of a .jsonl, .json, .csv, .parquet or .txt file, in the order of the file.

    Raises InputError, with file and line, if there is no such file, its suffix is unknown, it is
    empty or not UTF-8, or a record is malformed.
    """
    if path.suffix not in FORMATS:
        raise InputError(f"{path}: unknown kind of file; give one of {', '.join(FORMATS)}")
    if not path.is_file():
        what = "regular" if path.exists() else "such"
        raise InputError(f"{path}: no {what} file; give the path of a test set")
    records = FORMATS[path.suffix](path)
    if not records:
        raise InputError(f"{path}: the test set is empty; give a file with at least two records")
    return records


def read_lines(path: Path) -> list[str]:
    """Read the lines of a UTF-8 file without their ends, but for blank ones; else InputError."""
    # Not splitlines(): a JSON string may hold U+2028 and its like, which are no record ends.
    return [line for line in read_text(path).split("\n") if line.strip()]


def read_text(path: Path) -> str:
    """Read UTF-8 text with plain line ends; InputError names the first line that is not UTF-8."""
    data = path.read_bytes()
    try:
        # A byte order mark and Windows line ends come from the editor, not from the records.
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}, line {line}: byte {error.start} is not UTF-8; convert it (`iconv -t UTF-8`)"
        ) from error


def check_ids(records: Sequence[Record], where: str) -> None:
    """Raise InputError if two records have one id: the file was concatenated or damaged."""
    for field in ID_FIELDS:
        seen: dict[str, str] = {}
        for place, record in records:
            value = record.get(field)
            if value is None or value == "":
                continue
            first = seen.setdefault(repr(value), place)
            if first != place:
                raise InputError(
                    f"{where}, {place}: {field} {value!r} stands at {first} already; remove one"
                )


def articles(text: str) -> list[str]:
    """Cut the text of WikiText into articles, stripped.

    An article starts with " = Title = "; deeper headings have more equal signs.
    """
    parts = re.split(r"\n(?= ?= [^=\n]+ = ?\n)", text)
    return [part.strip() for part in parts if part.strip()]


def normalise(records: Sequence[Record], kind: str | None, where: str) -> list[Record]:
    """Give records of one set the same fields whatever file they come from.

    The kind None leaves them as they are; "mmlu" makes {question, choices, answer: a letter} of the
    hub's fields and of a CSV's choice0 ... choice3, and raises InputError if a field is missing or
    the answer is none of four; "wikitext" joins lines into articles.
    """
    if kind == "mmlu":
        return [(place, _mmlu(record, f"{where}, {place}")) for place, record in records]
    if kind == "wikitext":
        # The hub keeps the line ends, and "" for a blank line, which is a space in the files.
        lines = (str(record.get("text", "")) or " \n" for _, record in records)
        text = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
        return [(f"article {i}", {"text": text}) for i, text in enumerate(articles(text), start=1)]
    return list(records)


def _mmlu(record: dict[str, Any], where: str) -> dict[str, Any]:
    try:
        choices = record.get("choices") or [record[f"choice{i}"] for i in range(4)]
        answer = str(record["answer"])
        letter = answer if answer in list("ABCD") else "ABCD"[list("0123").index(answer)]
        if len(choices) != 4:
            raise ValueError(f"{len(choices)} choices")
        return {"question": record["question"], "choices": list(choices), "answer": letter}
    except (KeyError, ValueError) as error:
        raise InputError(
            f"{where}: no record of MMLU ({error}); give question, choices and answer (0 to 3)"
        ) from error


def _read_jsonl(path: Path) -> list[Record]:
    records: list[Record] = []
    texts = False  # whether every line is a JSON string
    # Not splitlines(): a JSON string may hold U+2028 and its like, which are no record ends.
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        record = _parse_json(line, path, number, "write one JSON object per line")
        texts = isinstance(record, str) if not records else texts
        if texts and isinstance(record, str):
            record = {"text": record}
        elif texts or not isinstance(record, dict):
            raise InputError(f"{path}, line {number}: write a JSON object, not {line.strip()[:40]}")
        records.append((f"line {number}", record))
    return records


def _parse_json(text: str, path: Path, first_line: int, advice: str) -> Any:
    if (position := _too_deep(text)) is not None:
        line = first_line + text.count("\n", 0, position)
        raise InputError(
            f"{path}, line {line}: JSON nested more than {MOST_NESTED} deep; write flat records"
        )
    try:
        return json.loads(text, object_pairs_hook=_unique_keys)
    except _DuplicateKeyError as error:
        where = path if "\n" in text else f"{path}, line {first_line}"
        raise InputError(
            f"{where}: key {str(error)[:60]!r} stands twice in one object; keep one"
        ) from error
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}, line {first_line + error.lineno - 1}: not JSON ({error.msg} at column "
            f"{error.colno}); {advice}"
        ) from error
    except ValueError as error:
        # Not where: the reader does not say. No string of a record is likely to have such a run.
        found = re.search(rf"\d{{{MOST_DIGITS + 1}}}", text)
        line = first_line + text.count("\n", 0, found.start() if found else 0)
        raise InputError(
            f"{path}, line {line}: an integer of more than {MOST_DIGITS:,} digits; write it as text"
        ) from error


class _DuplicateKeyError(Exception):
    """A key that an object of JSON holds twice, of which the reader would drop one."""


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _DuplicateKeyError(next(name for name in names if names.count(name) > 1))
    return found


def _too_deep(text: str) -> int | None:
    """Where JSON is nested more than MOST_NESTED deep, if it is."""
    if text.count("[") + text.count("{") <= MOST_NESTED:
        return None
    depth = 0
    # Possessive, so that a string without an end is passed over once.
    for token in re.finditer(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', text, re.DOTALL):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if depth > MOST_NESTED:
            return token.start()
    return None


def _read_json(path: Path) -> list[Record]:
    text = read_text(path)
    if not text.lstrip().startswith("["):  # many files of this name hold an object a line
        return _read_jsonl(path)
    records = []
    items = _parse_json(text, path, 1, "write a list of objects")
    for number, item in enumerate(items, start=1):
        if not isinstance(item, dict | str):
            raise InputError(
                f"{path}, record {number}: write a JSON object or a text, not "
                f"{json.dumps(item)[:40]}"
            )
        records.append((f"record {number}", {"text": item} if isinstance(item, str) else item))
    return records


def _read_csv(path: Path) -> list[Record]:
    text = read_text(path)
    # The module's own limit of 131,072 characters would refuse long documents.
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    # Not splitlines(): as in JSON, U+2028 and its like are no record ends.
    reader = csv.reader(io.StringIO(text, newline="\n"), strict=True)
    header: list[str] = []
    records: list[Record] = []
    start = 1
    try:
        for row in reader:
            if not header:
                header = row
                if twice := [name for name in row if row.count(name) > 1]:
                    raise InputError(
                        f"{path}, line {start}: column {twice[0][:60]!r} stands twice; rename one"
                    )
            elif row and len(row) != len(header):
                raise InputError(
                    f"{path}, line {start}: {len(row)} columns, and the header has {len(header)}; "
                    "check quotes"
                )
            elif row:  # a blank line is no record
                records.append((f"line {start}", dict(zip(header, row, strict=True))))
            start = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{path}, line {start}: malformed CSV ({error}); check quotes") from error
    return records


def _read_parquet(path: Path) -> list[Record]:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
        rows = table.to_pylist()
    # Text that is not UTF-8 and dates that Python has not are found out as rows are made.
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path}: not a Parquet file ({reason}); download it again") from error
    if len(set(table.column_names)) < table.num_columns:
        raise InputError(f"{path}: two columns have one name; rename one")
    return [(f"record {number}", row) for number, row in enumerate(rows, start=1)]


def _read_txt(path: Path) -> list[Record]:
    lines = enumerate(read_text(path).split("\n"), start=1)
    return [(f"line {number}", {"text": line}) for number, line in lines if line.strip()]


FORMATS: dict[str, Callable[[Path], list[Record]]] = {
    ".jsonl": _read_jsonl,
    ".json": _read_json,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".txt": _read_txt,
}
