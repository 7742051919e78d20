"""Bad items, seals and keys for `run.py`, by properties: hypothesis makes them up, and shrinks.

*Items*: records of multiple-choice sets in many layouts, whose option texts look like labels and
indices, with further fields that name the right option, or seem to. They are sealed. What is
accepted must name the same right option in every field afterwards, and must verify.

*Seals*: `seal.json` and `key.json` with fields that were exchanged, removed, added or made up, and
damaged bytes. Whatever is not the original, byte for byte, must be refused.
"""

import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from contamination.errors import InputError
from contamination.seal.files import SealFiles, seal_file, verify

Rng = np.random.Generator
Record = dict[str, Any]
RECORDS, EACH = 10, 5  # records of a sealed file, examples of an attempt

CHECKS = settings(
    max_examples=EACH,
    database=None,
    deadline=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)


def by_properties(
    rng: Rng,
    strategy: st.SearchStrategy[Any],
    accept: Callable[[Any], Any],
    judge: Callable[[Any, Any], None],
) -> str:
    """Draw examples; what `accept` does not refuse must pass `judge`. Return the last one's end."""
    ends: list[str] = []

    @seed(int(rng.integers(1 << 32)))
    @CHECKS
    @given(strategy)
    def checked(drawn: Any) -> None:
        try:
            accepted = accept(drawn)
        except InputError as error:
            if len(str(error).splitlines()) != 1:
                raise AssertionError(f"a message of several lines: {error}") from error
            ends.append("refused")
            return
        try:
            judge(drawn, accepted)
        except InputError as error:
            raise AssertionError(f"accepted at first, then refused: {error}") from error
        ends.append("survived")

    checked()
    return ends[-1]


# --- items ----------------------------------------------------------------------------------------

LOOKS = [*"01234ABCDab", "I", "II", "true", "No", " lamp", "", "all of the above", "both A and B"]
LOOKS += ["[A] x", "B - y", "None", "3 kg", "1999"]
PLAIN = st.text("abcdefghijklmnopqrstuvwxyzäß数 ", min_size=3, max_size=12).map("w{}".format)
TEXTS = st.sampled_from([PLAIN, PLAIN, PLAIN, PLAIN | st.sampled_from(LOOKS)])


def _listed(name: str) -> Callable[[list[str], str], Record]:
    return lambda texts, _: {"question": "Q?", name: list(texts)}


def _keyed(texts: list[str], _: str) -> Record:
    return {"input": "Q?", **dict(zip("ABCDEFGH", texts, strict=False))}


def _arc(texts: list[str], _: str) -> Record:
    labels = list("ABCDEFGH"[: len(texts)])
    return {"question": "Q?", "choices": {"text": list(texts), "label": labels}}


def _flagged(texts: list[str], gold: str) -> Record:
    return {"question": "Q?", "choices": [{"text": t, "correct": t == gold} for t in texts]}


def _numbered(texts: list[str], _: str) -> Record:
    return {"question": "Q?"} | {f"option{i}": text for i, text in enumerate(texts, start=1)}


LAYOUTS = (_listed("choices"), _listed("options"), _listed("endings"), _keyed, _arc, _flagged)
LAYOUTS += (_numbered,)
UNREADABLE = ("in a list", "option_1", "B. text", "second", "0100")
KNOWN = ("answer", "answerKey", "label", "target")  # others are refused without a declaration
NAMES = (*KNOWN, "gold", "correct_answer", "cop", "solution", "answerIndex", "id", "note")


def options_in(record: Record) -> list[str]:
    """Options of a record of `LAYOUTS`, in their order."""
    for name in ("choices", "options", "endings"):
        if name in record:
            found = record[name]
            if isinstance(found, dict):
                return list(found["text"])
            return [each["text"] if isinstance(each, dict) else each for each in found]
    keys = [k for k in record if k in "ABCDEFGH" or k.removeprefix("option").isdigit()]
    return [record[key] for key in keys]


def template_of(record: Record, fields: list[tuple[str, str]]) -> str:
    """A template that shows the question, every option, and the further fields."""
    shown = [next(name for name in ("question", "input") if name in record)]
    for name in ("choices", "options", "endings"):
        if name in record:
            found = record[name]
            inner = "[text]{}" if isinstance(found, dict) else "{}"
            inner += "[text]" if isinstance(found, list) and isinstance(found[0], dict) else ""
            shown += [name + inner.format(f"[{i}]") for i in range(len(options_in(record)))]
    if len(shown) == 1:
        shown += [k for k in record if k in "ABCDEFGH" or k.removeprefix("option").isdigit()]
    return "".join(f"{{{name}}}\n" for name in [*shown, *(name for name, _ in fields)])


def named(record: Record, name: str, way: str) -> object:
    """Return the option that a field names, read as it was written."""
    value = record[name]
    texts = options_in(record)
    if way == "letter":
        return texts["ABCDEFGH".index(value)]
    if way == "index":
        return texts[value]
    if way == "flags":
        return [text for text, flag in zip(texts, value, strict=True) if flag]
    if way in UNREADABLE:  # "answer": [1] alone is read, as an index
        return texts[value[0]] if isinstance(value, list) else f"accepted: {value}, {texts}"
    if way == "parallel":
        return dict(zip(texts, value, strict=True))
    return value


@st.composite
def items(draw: st.DrawFn) -> tuple[list[Record], list[tuple[str, str]]]:
    """Draw records of one layout, and which of their fields name the right option in which way."""
    layout = draw(st.sampled_from(LAYOUTS))
    names = draw(st.lists(st.sampled_from(draw(st.sampled_from([KNOWN, NAMES]))), max_size=2))
    ways = st.sampled_from(("letter", "index", "text", "flags", "parallel", *UNREADABLE))
    fields = [(name, draw(ways)) for name in dict.fromkeys(names)]
    count = draw(st.integers(2, 4))
    drawn = draw(TEXTS)
    records = []
    for number in range(RECORDS):
        texts = draw(st.lists(drawn, min_size=count, max_size=count, unique=True))
        right = draw(st.integers(0, count - 1))
        record = layout(texts, texts[right])
        stem = next(name for name in ("question", "input") if name in record)
        record[stem] = f"Question {number}?"
        values = {
            "letter": "ABCDEFGH"[right],
            "index": right,
            "text": texts[right],
            "flags": [int(i == right) for i in range(count)],
            "parallel": [f"because {i}" for i in range(count)],
            "in a list": [right],
            "option_1": f"option_{right}",
            "B. text": f"{'ABCDEFGH'[right]}. {texts[right]}",
            "second": ("first", "second", "third", "fourth")[right],
            "0100": "".join(str(int(i == right)) for i in range(count)),
        }
        records.append(record | {name: values[way] for name, way in fields})
    return records, fields


def attack_items(rng: Rng, folder: Path) -> str:
    """Seal made-up items: what is accepted must verify, and say the same."""

    def accept(drawn: tuple[list[Record], list[tuple[str, str]]]) -> SealFiles:
        records, fields = drawn
        place = Path(tempfile.mkdtemp(dir=folder))
        path = place / "set.jsonl"
        out = place / "out"
        path.write_text("".join(json.dumps(each) + "\n" for each in records))
        return seal_file(path, out, template=template_of(records[0], fields))

    def judge(drawn: tuple[list[Record], list[tuple[str, str]]], files: SealFiles) -> None:
        records, fields = drawn
        verify(files.published, files.seal, files.key)
        stem = "input" if "input" in records[0] else "question"
        before = {record[stem]: record for record in records}
        for after in map(json.loads, files.published.read_text().splitlines()):
            asked = before.pop(after[stem])
            if sorted(options_in(after)) != sorted(options_in(asked)):
                raise AssertionError(f"other options: {asked} became {after}")
            for name, way in fields:
                if named(after, name, way) != named(asked, name, way):
                    raise AssertionError(f"{name} names another option: {asked} became {after}")

    return by_properties(rng, items(), accept, judge)


# --- seals and keys -------------------------------------------------------------------------------

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=20)
    | st.sampled_from(["\ud800", "a\nb", "\x1b[31m", "contamination-seal/1", "2" * 64, 10**400]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
WAYS = ("exchange", "remove", "add", "bytes", "other")


@cache
def sealed_files() -> tuple[bytes, bytes, bytes]:
    """A set that was sealed once: the published file, its seal and its key."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "set.jsonl")
        rows = [
            {"question": f"Question {i}?", "choices": [f"w{i}", f"x{i}", f"y{i}"], "answer": i % 3}
            for i in range(RECORDS)
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        files = seal_file(
            path, Path(folder, "out"), template="{question}\n{choices:\n}\n{answer}\n"
        )
        return files.published.read_bytes(), files.seal.read_bytes(), files.key.read_bytes()


def attack_seals(rng: Rng, folder: Path) -> str:
    """Change the seal or the key of a sealed set: `verify` must refuse what is not the original."""
    originals = dict(zip(("set.jsonl", "seal.json", "key.json"), sealed_files(), strict=True))

    def accept(data: st.DataObject) -> dict[str, bytes]:
        name = data.draw(st.sampled_from(["seal.json", "key.json"]))
        files = originals | {name: changed_file(data, originals[name])}
        for file, content in files.items():
            (folder / file).write_bytes(content)
        verify(*(folder / file for file in originals))
        return files

    def judge(data: st.DataObject, files: dict[str, bytes]) -> None:
        if files != originals:
            raise AssertionError(f"accepted: {files['seal.json']!r} {files['key.json']!r}")

    return by_properties(rng, st.data(), accept, judge)


def changed_file(data: st.DataObject, original: bytes) -> bytes:
    """Return a seal or a key in which something was changed, and now and then nothing."""
    way = data.draw(st.sampled_from(WAYS))
    value = json.loads(original)
    place = value
    if "statement" in value and data.draw(st.booleans()):
        place = value["statement"]
    field = data.draw(st.sampled_from(sorted(place)))
    if way == "exchange":
        place[field] = data.draw(JSON)
    elif way == "remove":
        del place[field]
    elif way == "add":
        place[data.draw(st.text(max_size=8))] = data.draw(JSON)
    elif way == "other":
        value = data.draw(JSON)
    else:
        start = data.draw(st.integers(0, len(original)))
        return original[:start] + data.draw(st.binary(max_size=8)) + original[start + 1 :]
    text = json.dumps(value, indent=data.draw(st.sampled_from([None, 1, 2])))
    return text.encode("utf-8", "surrogatepass")
