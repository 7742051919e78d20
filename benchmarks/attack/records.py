"""Bad records and templates for `run.py`: files that are damaged, odd or too much.

What is accepted must be what Python's own readers and `str.format` make of the file.
"""

import csv
import io
import json
import tempfile
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contamination.testsets.sources import open_test_set

Rng = np.random.Generator
Record = dict[str, object]
_KEPT: list[tempfile.TemporaryDirectory[str]] = []

WORDS = ("order", "of", "records,", "«naïve»", "数", "42", "\u2028", "tab\there", "end.")
HUGE = "an integer of 5,000 digits"  # which Python refuses to write
TEMPLATE = "{question}\n{answer}\n"


def kept_folder() -> Path:
    """Return a new folder for what all attempts share; it is removed when the process ends."""
    folder = tempfile.TemporaryDirectory(prefix="attack-")
    _KEPT.append(folder)
    return Path(folder.name)


# Each makes a value that a file may hold and a text should not.
ODD: tuple[Callable[[Rng], object], ...] = (
    lambda rng: None,
    lambda rng: bool(rng.integers(2)),
    lambda rng: float("nan"),
    lambda rng: float("-inf"),
    lambda rng: HUGE,
    lambda rng: 10 ** int(rng.integers(1, 4200)),
    lambda rng: int(rng.integers(-5, 5)),
    lambda rng: [],
    lambda rng: {},
    lambda rng: ["a", {"b": [1, None]}],
    lambda rng: "",
    lambda rng: " " * int(rng.integers(1, 10_000)),
    lambda rng: "\0",
    lambda rng: "\ud800",
    lambda rng: "\r\n\r\n",
    lambda rng: "{question}" * int(rng.integers(1, 50)),
    lambda rng: "x" * int(rng.integers(1, 200_000)),
    lambda rng: "<|endoftext|>",
    lambda rng: chr(int(rng.integers(1, 0x10FFFF))).encode("utf-8", "replace").decode(),
)


def attack_records(rng: Rng, folder: Path) -> str:
    """Write a file of records, spoil it, and read it as a test set."""
    records = [_record(rng) for _ in range(rng.integers(1, 12))]
    for _ in range(rng.integers(0, 3)):
        _spoil(records, rng)
    suffix = rng.choice(list(WRITERS))
    data = WRITERS[suffix](records)
    data = data.replace(f'"{HUGE}"'.encode(), b"9" * 5_000)
    for _ in range(rng.integers(0, 4)):
        data = damage(data, rng)
    path = folder / f"set{suffix}"
    path.write_bytes(data)
    found = open_test_set(path, template=TEMPLATE if suffix != ".txt" else "text/1")
    expected = READERS[suffix](data)
    if list(found.examples) != expected:
        raise AssertionError(f"{found.examples} is not {expected} ({data[:500]!r})")
    return "survived"


def attack_templates(rng: Rng, folder: Path) -> str:
    """Render two records by a template made of good and bad pieces."""
    pieces = [PIECES[i](rng) for i in rng.integers(len(PIECES), size=rng.integers(1, 9))]
    if rng.random() < 0.02:
        pieces *= int(rng.integers(100, 3000))
    records = [_record(rng) | {"options": ["one", "two"]} for _ in range(2)]
    path = folder / "set.jsonl"
    path.write_bytes(_jsonl(records))
    template = "".join(written for written, _ in pieces) + "\n"
    found = open_test_set(path, template=template)
    for example, record in zip(found.examples, records, strict=True):
        if len(example) > 10_000_000:
            raise AssertionError(f"an example of {len(example):,} characters")
        # What a good piece says is known; after a bad one only that nothing leaks.
        if all(meant is not None for _, meant in pieces):
            expected = "".join(meant(record) for _, meant in pieces if meant) + "\n"
            if example != expected:
                raise AssertionError(f"{template!r} gave {example!r}, not {expected!r}")
        elif "<class" in example or "object at 0x" in example or "built-in method" in example:
            raise AssertionError(f"{template!r} gave {example!r}")
    return "survived"


def damage(data: bytes, rng: Rng) -> bytes:
    """Change, drop, repeat or insert bytes somewhere."""
    start = int(rng.integers(len(data) + 1))
    stop = min(len(data), start + int(rng.integers(1, 20)))
    noise = rng.bytes(int(rng.integers(1, 20)))
    flipped = bytes([data[start] ^ (1 << int(rng.integers(8)))]) if start < len(data) else b""
    ways = (
        data[:start] + flipped + data[start + 1 :],
        data[:start],
        data[start:],
        data[:start] + data[stop:],
        data[:start] + noise + data[start:],
        data[:stop] + data[start:],
        b"\xef\xbb\xbf" + data,
        data.replace(b"\n", b"\r\n"),
        data + b"\n" * 3,
        b"[" * 60_000 + data if rng.random() < 0.2 else data,
        b"",
    )
    return ways[int(rng.integers(len(ways)))]


def _record(rng: Rng) -> Record:
    def text() -> str:
        return " ".join(rng.choice(WORDS, size=rng.integers(2, 8)))

    return {"question": text(), "answer": text()}


def _spoil(records: list[Record], rng: Rng) -> None:
    """Put something odd into a record, or take a field away, or repeat a record."""
    record = records[int(rng.integers(len(records)))]
    field = rng.choice(["question", "answer", "id", "\ufeffquestion", ""])
    match int(rng.integers(6)):
        case 0:
            record.pop(field, None)
        case 1:
            records.append(dict(record))
        case 2:
            nested: object = "deep"
            for _ in range(int(rng.integers(1, 400))):
                nested = [nested] if rng.random() < 0.5 else {"a": nested}
            record[field] = nested
        case _:
            record[field] = ODD[int(rng.integers(len(ODD)))](rng)


def _jsonl(records: list[Record]) -> bytes:
    return "".join(f"{json.dumps(r)}\n" for r in records).encode()


def _json(records: list[Record]) -> bytes:
    return json.dumps(records, indent=1).encode()


def _csv(records: list[Record]) -> bytes:
    columns = list(dict.fromkeys(chain.from_iterable(records))) or ["question"]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    for record in records:
        writer.writerow({name: str(value) for name, value in record.items()})
    return text.getvalue().encode("utf-8", "replace")


def _parquet(records: list[Record]) -> bytes:
    rows = [{name: _without_surrogates(value) for name, value in r.items()} for r in records]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


def _without_surrogates(value: object) -> str:
    return str(value).encode("utf-8", "replace").decode()


def _txt(records: list[Record]) -> bytes:
    return "".join(f"{r.get('question')}\n" for r in records).encode("utf-8", "replace")


def _rendered(records: list[Record]) -> list[str]:
    return [TEMPLATE.format(**record) for record in records]


def _plain(data: bytes) -> str:
    return data.decode("utf-8-sig").replace("\r\n", "\n")


def _read_jsonl(data: bytes) -> list[str]:
    return _rendered([json.loads(line) for line in _plain(data).split("\n") if line.strip()])


def _read_json(data: bytes) -> list[str]:
    text = _plain(data)
    return _rendered(json.loads(text)) if text.lstrip()[:1] == "[" else _read_jsonl(data)


def _read_csv(data: bytes) -> list[str]:
    csv.field_size_limit(2**31 - 1)
    return _rendered(list(csv.DictReader(io.StringIO(_plain(data), newline="\n"))))


def _read_parquet(data: bytes) -> list[str]:
    rows = pq.read_table(io.BytesIO(data)).to_pylist()
    return _rendered([{name: _decoded(value) for name, value in row.items()} for row in rows])


def _decoded(value: object) -> object:
    """Return text for bytes, which a damaged schema, or an old writer, calls binary."""
    return value.decode() if isinstance(value, bytes) else value


def _read_txt(data: bytes) -> list[str]:
    return [f"{line}\n" for line in _plain(data).split("\n") if line.strip()]


WRITERS = {".jsonl": _jsonl, ".json": _json, ".csv": _csv, ".parquet": _parquet, ".txt": _txt}
READERS = {
    ".jsonl": _read_jsonl,
    ".json": _read_json,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".txt": _read_txt,
}


# What is written, and what it says of a record; None where it may be refused, or say anything.
Piece = tuple[str, Callable[[Record], str] | None]


def _literal(rng: Rng) -> str:
    return str(rng.choice(["Q: ", "\n", "A. ", "«", "}}", "{{", "\0", "%s"]))


def _fixed(written: str, meant: Callable[[Record], str] | None) -> Callable[[Rng], Piece]:
    return lambda rng: (written, meant)


def _text_piece(rng: Rng) -> Piece:
    written = _literal(rng)
    said = written.replace("}}", "}").replace("{{", "{")
    return written, lambda record: said


PIECES: tuple[Callable[[Rng], Piece], ...] = (
    *[_text_piece] * 4,
    *[_fixed("{question}", lambda r: str(r["question"]))] * 4,
    *[_fixed("{answer}", lambda r: str(r["answer"]))] * 4,
    _fixed("{options[0]}", lambda r: "one"),
    _fixed("{options: / }", lambda r: "one / two"),
    _fixed("{question.__class__}", None),
    _fixed("{question.__class__.__mro__[1].__subclasses__}", None),
    _fixed("{options.append}", None),
    _fixed("{options[7]}", None),
    _fixed("{options[-1]}", None),
    _fixed("{options[a]}", None),
    _fixed("{nothing}", None),
    _fixed("{}", None),
    _fixed("{0}", None),
    _fixed("{", None),
    _fixed("}", None),
    _fixed("{question!r}", None),
    _fixed("{question!x}", None),
    _fixed("{question:{answer}}", None),
    _fixed("{question:{question.__class__}}", None),
    _fixed("{question:d}", None),
    lambda rng: (f"{{question:{10 ** int(rng.integers(1, 12))}}}", None),
    lambda rng: (f"{{question:>{10 ** int(rng.integers(1, 12))}}}", None),
    lambda rng: (f"{{question:.{10 ** int(rng.integers(1, 30))}f}}", None),
    lambda rng: ("{" * int(rng.integers(1, 300)) + "question" + "}" * int(rng.integers(300)), None),
    lambda rng: (f"{{options[1{'0' * int(rng.integers(5000))}]}}", None),
    lambda rng: (rng.bytes(6).decode("latin-1"), None),
)
