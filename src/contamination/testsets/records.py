"""Records of a file: one JSONL line, JSON item, CSV or Parquet row, or line of text.

A record is never a physical line of the file: one that spans lines stays whole (Oren,
section 2, takes a data set as a sequence of examples). Each comes with its place, which
error messages name.
"""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contamination.errors import InputError, brief

if TYPE_CHECKING:
    import pyarrow

Record = tuple[str, dict[str, Any]]  # place, such as "line 17"; fields

_COLUMN = re.compile(r'\s*"?\w[\w .-]*"?\s*')  # the name of a column, perhaps quoted
BATCH = 1024  # rows of a Parquet file that are unpacked at once
# Of a table, unpacked: a few bytes may hold gigabytes, or millions of rows.
MOST_BYTES = 2**32
MOST_ROWS = 10_000_000  # a row without values takes no bytes
ID_FIELDS = ("id", "idx", "index", "question_id")


def read_records(path: Path) -> list[Record]:
    """Read the records of a .jsonl, .json, .csv, .parquet or .txt file, in their order.

    Raises InputError, with file and line, if there is no such file, its suffix is
    unknown, it is empty or not UTF-8, or a record is malformed.
    """
    if path.suffix not in FORMATS:
        raise InputError(
            f"{path}: unknown kind of file; give one of {', '.join(FORMATS)}",
        )
    if not path.is_file():
        raise InputError(f"{path}: no such file; give the path of a test set")
    records = FORMATS[path.suffix](path)
    if not records:
        raise InputError(
            f"{path}: the test set is empty; give a file with records",
        )
    return records


def read_lines(path: Path) -> dict[int, str]:
    """Read the lines of a UTF-8 file, without ends, by number from 1; blank ones go.

    Raises InputError that names the first line that is not UTF-8.
    """
    # Not splitlines(): a JSON string may hold U+2028 and its like, which are no record
    # ends.
    lines = enumerate(read_text(path).split("\n"), start=1)
    return {number: line for number, line in lines if line.strip()}


def read_text(path: Path) -> str:
    """Read UTF-8 text with plain line ends.

    Raises InputError that names the first line that is not UTF-8.
    """
    data = path.read_bytes()
    try:
        # A byte order mark and Windows line ends come from the editor, not from the
        # records.
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}, line {line}: byte {error.start} is not UTF-8; convert it (`iconv -t UTF-8`)"
        ) from error


def check_ids(records: Sequence[Record], where: str) -> None:
    """Raise InputError if a record with an id stands twice.

    The file was then concatenated or damaged. Different records may have one id, such
    as the questions about one passage.
    """
    for field in ID_FIELDS:
        counts = Counter(repr(record.get(field)) for _, record in records)
        seen: dict[str, str] = {}
        for place, record in records:
            value = record.get(field)
            if value is None or value == "" or counts[repr(value)] == 1:
                continue
            first = seen.setdefault(repr(record), place)
            if first != place:
                raise InputError(
                    f"{where}, {place}: the record of {field} {value!r} stands at "
                    f"{first} already, with the same fields; remove the copy"
                )


def are_mappings(values: Sequence[Any], key: str | None = None) -> bool:
    """Return whether all values are mappings, which have the key if one is named."""
    for value in values:
        if not isinstance(value, Mapping) or (key is not None and key not in value):
            return False
    return True


def articles(text: str) -> list[str]:
    """Cut the text of WikiText into articles, stripped.

    An article starts with " = Title = "; deeper headings have more equal signs.
    """
    parts = re.split(r"\n(?= ?= [^=\n]+ = ?\n)", text)
    return [part.strip() for part in parts if part.strip()]


def normalise(records: Sequence[Record], kind: str | None, where: str) -> list[Record]:
    """Return records of one set with the same fields whatever file they come from.

    None leaves them as they are. "mmlu" makes {question, choices, answer: a letter} of
    the hub's fields and of a CSV's choice0 ... choice3; "wikitext" joins lines into
    articles. Messages call the file `where`. Raises InputError if a field of MMLU is
    missing, or its answer is none of four.
    """
    if kind == "mmlu":
        return [(place, _mmlu(record, f"{where}, {place}")) for place, record in records]
    if kind == "wikitext":
        # The hub keeps the line ends, and "" for a blank line, which is a space in the
        # files.
        lines = (str(record.get("text", "")) or " \n" for _, record in records)
        text = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
        numbered = enumerate(articles(text), start=1)
        return [(f"article {number}", {"text": article}) for number, article in numbered]
    return list(records)


def _mmlu(record: dict[str, Any], where: str) -> dict[str, Any]:
    try:
        choices = record.get("choices") or [record[f"choice{i}"] for i in range(4)]
        answer = str(record["answer"])
        if answer not in list("ABCD"):
            answer = "ABCD"[list("0123").index(answer)]
        if len(choices) != 4:
            raise ValueError(f"{len(choices)} choices")
        question = record["question"]
    except (KeyError, ValueError) as error:
        raise InputError(
            f"{where}: no record of MMLU ({error}); give question, choices and answer (0 to 3)"
        ) from error
    return {"question": question, "choices": list(choices), "answer": answer}


def without_bytes(value: object) -> str | None:
    """Return what JSON has for a value: text for a date, null for bytes (an image)."""
    return None if isinstance(value, bytes) else str(value)


class _Objects:
    """Makes the objects of JSON, and keeps the first that has a key twice.

    Attributes
    ----------
    twice
        An object that has a key twice, and the key; None if there is none.
    """

    def __init__(self) -> None:
        self.twice: tuple[dict[str, Any], str] | None = None

    def __call__(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs) and self.twice is None:
            counts = Counter(key for key, _ in pairs)
            commonest, _ = counts.most_common(1)[0]
            self.twice = (fields, commonest)
        return fields

    def check(self, values: Sequence[Record], path: Path) -> None:
        """Raise InputError that names the record with a key that stands twice."""
        if self.twice is None:
            return
        broken, key = self.twice
        place = next(place for place, value in values if _holds(value, broken))
        raise InputError(
            f"{path}, {place}: key {key[:60]!r} stands twice; remove or rename one",
        )


def _holds(value: Any, broken: dict[str, Any]) -> bool:
    """Whether an object is a value, or lies within it."""
    if value is broken:
        return True
    if isinstance(value, dict):
        return any(_holds(inner, broken) for inner in value.values())
    if isinstance(value, list):
        return any(_holds(inner, broken) for inner in value)
    return False


def _parse_json(text: str, path: Path, first_line: int, objects: _Objects) -> Any:
    try:
        return json.loads(text, object_pairs_hook=objects)
    except (ValueError, RecursionError) as error:
        # Also an integer that Python does not convert.
        problem = getattr(error, "msg", None) or str(error)
        if "\0" in text:
            problem = "it has a NUL byte"
        line = first_line + getattr(error, "lineno", 1) - 1
        raise InputError(
            f"{path}, line {line}: not JSON ({brief(problem, 200)}); "
            "write an object a line, or a list"
        ) from error


def _read_json(path: Path) -> list[Record]:
    objects = _Objects()
    values: list[tuple[str, Any]]
    text = read_text(path) if path.suffix == ".json" else ""
    if text.lstrip().startswith("["):
        items = enumerate(_parse_json(text, path, 1, objects), start=1)
        values = [(f"record {i}", value) for i, value in items]
    elif text and _is_one_object(text):
        values = [("record 1", _parse_json(text, path, 1, objects))]
    else:  # many files called .json hold an object a line, too
        lines = read_lines(path).items()
        values = []
        for number, line in lines:
            value = _parse_json(line, path, number, objects)
            values.append((f"line {number}", value))
    objects.check(values, path)
    records: list[Record] = []
    for place, value in values:
        if not isinstance(value, dict | str):
            raise InputError(
                f"{path}, {place}: write a JSON object, not {json.dumps(value)[:40]}",
            )
        fields = {"text": value} if isinstance(value, str) else value
        records.append((place, fields))
    return records


def _is_one_object(text: str) -> bool:
    """Return whether a text is one object of JSON over several lines."""
    try:
        json.loads(text.split("\n", 1)[0])
    except (ValueError, RecursionError):
        with suppress(ValueError, RecursionError):
            return isinstance(json.loads(text), dict)
    return False


def _read_csv(path: Path) -> list[Record]:
    text = read_text(path)
    # The module's own limit of 131,072 characters would refuse long documents.
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    # Not splitlines(): as in JSON, U+2028 and its like are no record ends.
    reader = csv.DictReader(io.StringIO(text, newline="\n"), strict=True)
    records: list[Record] = []
    start = 1
    try:
        names = reader.fieldnames or []
        _require_distinct(names, f"{path}, line 1")
        separator = _other_separator(names)
        if separator is not None:
            raise InputError(
                f"{path}, line 1: its columns are separated by {separator!r}; write the file with "
                "commas, and quote the texts that hold some"
            )
        start = reader.line_num + 1
        for row in reader:  # without blank lines
            if None in row or None in row.values():
                raise InputError(
                    f"{path}, line {start}: the header has {len(names)} columns, and "
                    "this row more or fewer; check quotes"
                )
            records.append((f"line {start}", row))
            start = reader.line_num + 1
    except csv.Error as error:
        raise InputError(
            f"{path}, line {start}: malformed CSV ({error}); check quotes",
        ) from error
    return records


def _require_distinct(columns: Sequence[str], where: str) -> None:
    """Raise InputError if two columns of a table have the same name."""
    for name, count in Counter(columns).items():
        if count > 1:
            raise InputError(f"{where}: column {name[:60]!r} stands twice; rename one")


def _other_separator(names: Sequence[str]) -> str | None:
    """Return what separates the columns of a header without commas; None if nothing does."""
    if len(names) != 1:
        return None
    for separator in ";\t|":
        parts = names[0].split(separator)
        if len(parts) > 1 and all(_COLUMN.fullmatch(part) for part in parts):
            return separator
    return None


def _read_parquet(path: Path) -> list[Record]:
    import pyarrow
    import pyarrow.parquet

    try:
        with (
            path.open("rb") as handle,  # its name may not be UTF-8
            pyarrow.parquet.ParquetFile(handle) as file,
        ):
            return records_of(bounded(path, file.iter_batches(BATCH)))
    except InputError:
        raise
    except (pyarrow.ArrowException, OSError) as error:
        reason = brief(str(error), 200)
        raise InputError(
            f"{path}: not a Parquet file ({reason}); download it again",
        ) from error
    # Text that is not UTF-8 and dates that Python has not are found out as rows are
    # made.
    except (ValueError, OverflowError) as error:
        reason = brief(str(error), 200)
        raise InputError(
            f"{path}: a value cannot be read ({reason}); write it as text in UTF-8",
        ) from error


def bounded(
    path: Path, batches: Iterable["pyarrow.RecordBatch"]
) -> Iterator["pyarrow.RecordBatch"]:
    """Yield the batches of rows of a table.

    Raises InputError if a column stands twice, of which rows would have the last alone,
    and once they are more than MOST_BYTES bytes or MOST_ROWS rows.
    """
    size = 0
    rows = 0
    for batch in batches:
        _require_distinct(batch.schema.names, str(path))
        size += batch.nbytes
        rows += batch.num_rows
        if size > MOST_BYTES or rows > MOST_ROWS:
            raise InputError(
                f"{path}: more than {MOST_BYTES:,} bytes or {MOST_ROWS:,} rows when it is "
                "unpacked; give one with fewer or smaller records"
            )
        yield batch


def records_of(batches: Iterable["pyarrow.RecordBatch"]) -> list[Record]:
    """Return the rows of batches of Arrow; bytes that are UTF-8 become text."""
    records: list[Record] = []
    for batch in batches:
        for row in batch.to_pylist():
            records.append((f"record {len(records) + 1}", _decoded(row)))
    return records


def _decoded(value: Any) -> Any:
    """Return a value with the text of bytes that are UTF-8.

    Others stay, such as an image.
    """
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return value
    if isinstance(value, list):
        return [_decoded(inner) for inner in value]
    if isinstance(value, dict):
        return {key: _decoded(inner) for key, inner in value.items()}
    return value


def _read_txt(path: Path) -> list[Record]:
    lines = read_lines(path).items()
    return [(f"line {number}", {"text": line}) for number, line in lines]


FORMATS: dict[str, Callable[[Path], list[Record]]] = {
    ".jsonl": _read_json,
    ".json": _read_json,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".txt": _read_txt,
}
