"""The variants of a set, of which a key draws one.

A *variant* is what an author gives several of, all as good, and the key picks one of:
an order of the records, an order of those options of an item that may move (what names
the right one follows), one of the `wordings` of a record, one of its right `answers`.
`draw` takes each variant of a set with the same probability, by streams of the seed
alone (`contamination.randomness.KeyedStream`): "contamination-seal/2/order" for the
records, and one of each of `KINDS` for record C, counted from 0 as the author has them,
such as "contamination-seal/2/options/C".

The published set is a function of the author's records and the seed; whoever has both
can draw it again. docs/how-to/seal-a-benchmark.md writes the algorithm down for other
languages; a change of it is another version.
"""

import datetime
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from contamination.audit.registry import DEFAULT_TESTS
from contamination.audit.request import Request
from contamination.errors import InputError
from contamination.randomness import KeyedStream
from contamination.seal import beacon
from contamination.testsets.example_set import Declared, ExampleSet, make_test_set
from contamination.testsets.option_texts import names_letter
from contamination.testsets.options import Item, items_of
from contamination.testsets.records import ID_FIELDS, Record
from contamination.testsets.templates import parse
from contamination.testsets.variants import (
    FixedOptions,
    permitted_places,
    require_arrangements,
    shown_items,
)

ALGORITHM: Literal["contamination-seal/2"] = "contamination-seal/2"
# What a record may have several of: the name of its stream, and how one is drawn of so
# many.
KINDS: dict[str, tuple[str, Callable[[KeyedStream, int], Any]]] = {
    "options": ("options", KeyedStream.permutation),
    "wordings": ("wording", KeyedStream.below),
    "answers": ("answer", KeyedStream.below),
}


class Statement(BaseModel):
    """What an author states and commits to before anything is drawn.

    Attributes
    ----------
    name, date : of the benchmark, with one commitment for each name; by default today
        (UTC).
    template : how a record becomes an example; it has to show options that may move,
        and wordings.
    options, declared : whether the options of items are permuted, too, and how they are
        found. All may move, numbers as well, but those that are about others: see
        `permitted_places`.
    wordings_of : the field that a wording fills; None: there are none. A record may
        then have a field `wordings`: a list of all its wordings, each a whole text of
        that field, equally many in all records that have any.
    answers_of : likewise the field that an answer fills, and a field `answers`: all
        right answers of a record, texts or whole numbers, each as that field would name
        it alone.
    tests, shards, permutations, arrangements, level : what a model is tested by, so
        that nobody chooses it after the draw; as in
        `contamination.audit.request.Request`.
    beacon_round : whose signature is mixed into the key; None: the author's secret
        alone draws.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    algorithm: Literal["contamination-seal/2"] = ALGORITHM
    name: Annotated[str, Field(pattern=r"^\w[\w .+-]{0,99}$")]
    date: datetime.date = Field(
        default_factory=lambda: datetime.datetime.now(datetime.UTC).date(),
    )
    template: str = "text/1"
    options: bool = True
    declared: Declared = Declared()
    wordings_of: str | None = None
    # Seals from before there were answers do not have the field.
    answers_of: Annotated[str | None, Field(exclude_if=lambda value: value is None)] = None
    tests: tuple[str, ...] = DEFAULT_TESTS
    shards: Annotated[int, Field(ge=1)] | None = None
    permutations: int = 25
    arrangements: int = 24
    level: Annotated[float, Field(gt=0, lt=1)] = 0.05
    beacon_round: Annotated[int, Field(ge=1, le=beacon.MOST_ROUNDS)] | None = None

    def request(self, directory: Path | str, name: str | None) -> Request:
        """Return the stated test of a model of that name, with its stores in a directory."""
        return Request(
            tests=self.tests,
            shards=self.shards,
            permutations=self.permutations,
            arrangements=self.arrangements,
            directory=directory,
            name=name,
        )


@dataclass(frozen=True)
class Variants:
    """All that a record could be published as.

    Attributes
    ----------
    record : as the author gave it, without its lists, but with the first entry of each.
    several : those of `KINDS` that it has: the field that one of them fills, and all of
        them. Of options, the places among which they may move.
    items : its options, read with each of its answers in turn.
    """

    record: Mapping[str, Any]
    several: Mapping[str, tuple[str, tuple[Any, ...]]] = field(default_factory=dict)
    items: tuple[Item, ...] = ()

    def given(self, kind: str) -> tuple[Any, ...]:
        """Return all that it has of a kind; empty where there is one variant."""
        return self.several.get(kind, ("", ()))[1]

    def order(self, picks: Mapping[str, Any]) -> list[int]:
        """Return which option stands in which place."""
        places = self.given("options")
        order = list(range(len(self.items[0].options)))
        for place, pick in zip(places, picks.get("options", ()), strict=False):
            order[place] = places[pick]
        return order

    def variant(self, picks: Mapping[str, Any]) -> dict[str, Any]:
        """Return one: options by `order`, and of each list the entry that is picked, by default 0.

        `picks` are those of `Drawn`.
        """
        record = dict(self.record)
        for kind, (name, values) in self.several.items():
            if name:
                record[name] = values[picks.get(kind, 0)]
        if "options" not in picks:
            return record
        item: Item = replace(self.items[picks.get("answers", 0)], record=record)
        return item.rearranged(self.order(picks))


class Drawn(NamedTuple):
    """A published record: the author's number of it, what it could be, and what was picked."""

    number: int
    variants: Variants
    picks: Mapping[str, Any]

    @property
    def record(self) -> dict[str, Any]:
        """The record as it is published."""
        return self.variants.variant(self.picks)


def draw(records: Sequence[Variants], seed: bytes) -> list[Drawn]:
    """Draw the published set, in its order. Raises InputError for a seed of less than 128 bits."""

    def stream(name: str) -> KeyedStream:
        return KeyedStream(seed, f"{ALGORITHM}/{name}")

    found = []
    for number in stream("order").permutation(len(records)):
        one = records[number]
        picks = {
            kind: pick(stream(f"{name}/{number}"), len(one.given(kind)))
            for kind, (name, pick) in KINDS.items()
            if kind in one.several
        }
        found.append(Drawn(number, one, picks))
    return found


def seed_of(secret: bytes, signature: str | None) -> bytes:
    """Mix the secret of the author with public randomness (hexadecimal; None: there is none).

    HMAC-SHA256(secret, "contamination-seal/2/seed", a zero byte, the bytes of the
    signature).
    """
    public = bytes.fromhex(signature or "")
    return hmac.digest(secret, f"{ALGORITHM}/seed\0".encode() + public, "sha256")


def commitment(
    secret: bytes, records: Sequence[Mapping[str, Any]], statement: Mapping[str, Any]
) -> str:
    """SHA-256 (hex) that binds secret, the author's records in their order, and the statement.

    Over: "contamination-seal/2/commitment", a zero byte, the secret, the SHA-256 of the
    records and that of the statement, both as canonical JSON. The secret has a fixed
    length and the digests have, so no two triples are one message; and its 256 random
    bits keep anybody from guessing the records by trying.
    """
    digests = [hashlib.sha256(canonical_json(x).encode()).digest() for x in (records, statement)]
    message = f"{ALGORITHM}/commitment\0".encode() + secret + b"".join(digests)
    return hashlib.sha256(message).hexdigest()


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no blanks, in which equal values are equal texts.

    Raises InputError for what JSON cannot say, such as a date of a Parquet file or a
    NaN.
    """
    try:
        text = json.dumps(
            value,
            sort_keys=True,
            ensure_ascii=False,
            separators=(",", ":"),
            allow_nan=False,
        )
        text.encode()
    except (
        TypeError,
        ValueError,
    ) as error:  # UnicodeEncodeError: half of a surrogate pair
        reason = " ".join(str(error).split())[:100]
        raise InputError(
            f"a value that JSON cannot keep ({reason!a}); write it as text",
        ) from error
    return text


# --- reading an author's records ------------------------------------------------------


def prepare(
    rows: Sequence[Record],
    stated: Statement,
    where: str,
) -> tuple[Variants, ...]:
    """Return the variants of an author's records. Nothing here depends on what a key draws.

    Parameters
    ----------
    rows : the records, each with its place.
    stated : what the author states.
    where : what messages call their source.

    Raises
    ------
    InputError
        For records that `contamination.seal.files.seal_file` refuses.
    """
    variants = list[Variants]()
    seen = dict[str, str]()
    for place, record in rows:
        try:
            variants.append(_listed(record, stated))
            _refuse_repeated(record, place, seen)
        except InputError as error:
            raise InputError(f"{where}, {place}: {error}") from error
    counts = {len(one.given("wordings")) for one in variants} - {0}
    if len(counts) > 1:
        raise InputError(
            f"{where}: records have {min(counts)} to {max(counts)} wordings; give each "
            "record that has any the same number"
        )
    pairs = zip(rows, variants, strict=True)
    placed = [(place, one.variant({})) for (place, _), one in pairs]
    rendered = make_test_set(stated.name, placed, stated.template, where)
    if counts and stated.wordings_of not in parse(stated.template).fields:
        raise InputError(
            f"{where}: template {stated.template[:80]!a} does not show "
            f"{stated.wordings_of!a}, which wordings fill; use one that does"
        )
    if not stated.options:
        return tuple(variants)
    try:
        named = replace(rendered, name=where, declared=stated.declared)
        return tuple(_movable(named, variants, stated))
    except InputError as error:
        alone = "or seal the order of records alone"
        raise InputError(f"{error}; {alone}", parameter="axis") from error


def _refuse_repeated(
    record: Mapping[str, Any],
    place: str,
    seen: dict[str, str],
) -> None:
    """Raise InputError for a record that was seen, but for its id; else add it to those seen."""
    fields = {name: record[name] for name in record if name not in ID_FIELDS}
    first = seen.setdefault(canonical_json(fields), place)
    if first != place:
        raise InputError(f"the record of {first} again; remove it")


def _listed(record: Mapping[str, Any], stated: Statement) -> Variants:
    """Take the lists out of a record; the field that one fills stands there, or in its place."""
    canonical_json(record)
    shown = dict(record)
    lists = dict[str, tuple[str, tuple[Any, ...]]]()
    if stated.wordings_of is None and "wordings" in record:
        raise InputError(
            "there are wordings, of which the key is to pick one: name the field that "
            "it fills (wordings_of), or remove them",
            parameter="wordings_of",
        )
    for kind, name in (
        ("wordings", stated.wordings_of),
        ("answers", stated.answers_of),
    ):
        if name is None or kind not in record:
            continue
        values = record[kind]
        if not _is_choice(values, numbers_too=kind == "answers"):
            raise InputError(
                f"{kind} is no list of 2 or more different texts; write one",
            )
        if shown.get(name, values[0]) not in values:
            raise InputError(f"{name!a} is none of its {kind}; list that one as well")
        shown = _with_first(shown, kind, name, values[0])
        lists[kind] = (name, tuple(values))
    return Variants(shown, lists)


def _is_choice(values: Any, *, numbers_too: bool) -> bool:
    """Return whether a value is a list of two or more different texts, or also whole numbers."""
    if not isinstance(values, list):
        return False
    types = {type(value) for value in values}
    are_texts = types == {str} and all(map(str.strip, values))
    are_numbers = types == {int} and numbers_too
    if not (are_texts or are_numbers):
        return False
    return len(values) >= 2 and len(set(values)) == len(values)


def _with_first(
    record: Mapping[str, Any],
    kind: str,
    name: str,
    first: Any,
) -> dict[str, Any]:
    """Return a record with the first entry of a list in the field that it fills.

    Parameters
    ----------
    record : with the list.
    kind : name of the list, which is left out.
    name : the field; it takes the place of the list where the record does not have it.
    first : the entry.
    """
    shown = dict[str, Any]()
    for field_name, value in record.items():
        if field_name != kind:
            shown[field_name] = value
        elif name not in record:
            shown[name] = first
    shown[name] = first
    return shown


def _movable(
    rendered: ExampleSet, variants: Sequence[Variants], stated: Statement
) -> list[Variants]:
    """Add the items, and the places of each among which its options may move."""
    shown_items(rendered, stated.template)
    read = _items_by_answer(rendered, variants)
    free = permitted_places(read[0], FixedOptions(habits=False))
    movable = list[Variants]()
    for number, (one, places) in enumerate(zip(variants, free, strict=True)):
        answers = max(1, len(one.given("answers")))
        items = [read[pick][number] for pick in range(answers)]
        where = f"{rendered.name}, record {number + 1}"
        _refuse_unclear(one, items, stated, where)
        several = dict(one.several)
        if places:
            several["options"] = ("", places)
        movable.append(replace(one, several=several, items=tuple(items)))
    # else no test could be made
    require_arrangements(rendered, free, stated.arrangements - 1)
    return movable


def _items_by_answer(
    rendered: ExampleSet,
    variants: Sequence[Variants],
) -> list[tuple[Item, ...]]:
    """Return the items with the first answer of all records, with the second, and so on."""
    counts = [max(1, len(one.given("answers"))) for one in variants]
    read = list[tuple[Item, ...]]()
    for pick in range(max(counts)):
        pairs = zip(variants, counts, strict=True)
        records = tuple(one.variant({"answers": pick % count}) for one, count in pairs)
        read.append(items_of(replace(rendered, records=records), shown=None))
    return read


def _refuse_unclear(
    one: Variants,
    items: Sequence[Item],
    stated: Statement,
    where: str,
) -> None:
    """Raise InputError for texts that would say something else where options move.

    Parameters
    ----------
    one : a record.
    items : it, read with each of its answers.
    stated : what the author states.
    where : file and record.
    """
    wordings = one.given("wordings")
    count = len(items[0].options)
    if items[0].lettered or any(names_letter(wording, count) for wording in wordings):
        raise InputError(
            f"{where}: a text names an option by its letter, which is another one when "
            "options move; name it by its text, or declare FIELD as other if it means "
            "something else",
            parameter="other",
        )
    outer_names = {name.partition(".")[0] for name in items[0].used}
    fills_item = stated.wordings_of in outer_names
    if wordings and fills_item and items[0].question not in wordings:
        raise InputError(
            f"{where}: {stated.wordings_of!a} is, or names, an option; word another field",
        )
    different = {item.answer for item in items}
    if one.given("answers") and len(different) < len(items):
        raise InputError(
            f"{where}: answers name one option twice, or {stated.answers_of!a} names "
            "none; list each right option once, and name the field that it fills",
            parameter="answers_of",
        )
