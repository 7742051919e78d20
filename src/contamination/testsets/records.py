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
    kind: type | None = None  # every line is an object, or every line is a string
    # Not splitlines(): a JSON string may hold U+2028 and its like, which are no record ends.
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            value = _parse_json(line, path, number)
            records.append((f"line {number}", _fields(value, f"{path}, line {number}", kind)))
            kind = type(value)
    return records


def _fields(value: Any, where: str, kind: type | None = None) -> dict[str, Any]:
    """Fields of a record: of an object, or of a text. `kind`: what the one before it was."""
    if not isinstance(value, dict | str) or kind not in (None, type(value)):
        raise InputError(f"{where}: write a JSON object, not {json.dumps(value)[:40]}")
    return {"text": value} if isinstance(value, str) else value


def _parse_json(text: str, path: Path, first_line: int) -> Any:
    """Read JSON, but for keys that stand twice and integers that Python does not convert."""
    try:
        value = json.loads(text, object_pairs_hook=_unique_keys)
        if text.count("[") + text.count("{") <= MOST_NESTED or _depth(value) <= MOST_NESTED:
            return value
        raise ValueError(f"nested more than {MOST_NESTED} deep")
    except RecursionError:
        problem, line = "nested too deep", first_line
    except ValueError as error:
        problem = getattr(error, "msg", None) or str(error)
        line = first_line + getattr(error, "lineno", 1) - 1
    raise InputError(
        f"{path}, line {line}: not JSON ({problem[:99]}); write an object a line, or a list of them"
    )


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):  # the reader would drop one
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {twice[:60]!r} stands twice in one object")
    return found


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, inner), default=0) if isinstance(value, dict | list) else 0


def _read_json(path: Path) -> list[Record]:
    text = read_text(path)
    if not text.lstrip().startswith("["):  # many files of this name hold an object a line
        return _read_jsonl(path)
    items = enumerate(_parse_json(text, path, 1), start=1)
    return [(f"record {i}", _fields(item, f"{path}, record {i}")) for i, item in items]


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
