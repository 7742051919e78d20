"""The variants of a set, of which a key draws one.

A *variant* is what an author gives several of, all as good, and the key picks one of:
an order of the records, an order of those options of an item that may move (what names
the right one follows), one of the `wordings` of a record, one of its right `answers`.
`draw` takes each variant of a set with the same probability, by streams of the seed
alone (`contamination.randomness.KeyedStream`): "contamination-seal/2/order" for the
records, and one of each of `KINDS` for record C, counted from 0 as the author has them,
such as "contamination-seal/2/options/C". Which records stay back is drawn of all of
them (`contamination.seal.division`).

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
from contamination.testsets.example_set import Declared
from contamination.testsets.options import Item

ALGORITHM: Literal["contamination-seal/2"] = "contamination-seal/2"
# What a record may have several of: the name of its stream, and the draw of one among n.
KINDS: dict[str, tuple[str, Callable[[KeyedStream, int], Any]]] = {
    "options": ("options", KeyedStream.permutation),
    "wordings": ("wording", KeyedStream.below),
    "answers": ("answer", KeyedStream.below),
}


def today() -> datetime.date:
    """Return the date of today (UTC)."""
    return datetime.datetime.now(datetime.UTC).date()


def _is_none(value: object) -> bool:
    return value is None


class Statement(BaseModel):
    """The statement to which an author commits before anything is drawn.

    Attributes
    ----------
    name, date
        Name of the benchmark, with one commitment for each name, and date; by default
        today (UTC).
    template
        How a record becomes an example; it must show options that may move, and
        wordings.
    options, declared
        Whether the options of items are permuted, too, and how they are found. All may
        move, numbers as well, but those that are about others: see `permitted_places`.
    wordings_of
        The field that a wording fills; None if there are no wordings. A record may then
        have a field `wordings`: a list of all its wordings, each a whole text of that
        field, equally many in all records that have any.
    answers_of
        Likewise the field that an answer fills. A record may then have a field
        `answers`: all its right answers, texts or whole numbers, each as that field
        would name it alone.
    tests, shards, permutations, arrangements, level
        Tests of a model and their settings, so that nobody chooses them after the draw;
        as in `contamination.audit.request.Request`.
    hold_out
        Number of records that are held back: the key draws which. None: all are
        published.
    scores
        Membership scores by which published and held-out records are compared.
    beacon_round
        Number of the beacon's round whose signature is mixed into the key; None draws
        by the author's secret alone.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    algorithm: Literal["contamination-seal/2"] = ALGORITHM
    name: Annotated[str, Field(pattern=r"^\w[\w .+-]{0,99}$")]
    date: datetime.date = Field(default_factory=today)
    template: str = "text/1"
    options: bool = True
    declared: Declared = Declared()
    wordings_of: str | None = None
    # Seals from before there were answers, or held-out records, do not have the fields.
    answers_of: Annotated[str | None, Field(exclude_if=_is_none)] = None
    tests: tuple[str, ...] = DEFAULT_TESTS
    shards: Annotated[int, Field(ge=1)] | None = None
    permutations: int = 25
    arrangements: int = 24
    level: Annotated[float, Field(gt=0, lt=1)] = 0.05
    hold_out: Annotated[int | None, Field(ge=1, exclude_if=_is_none)] = None
    scores: Annotated[tuple[str, ...] | None, Field(exclude_if=_is_none)] = None
    beacon_round: Annotated[int, Field(ge=1, le=beacon.MOST_ROUNDS)] | None = None

    def request(self, directory: Path | str, name: str | None) -> Request:
        """Return the stated test of the model `name`, with its stores in a directory."""
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
    record
        The author's record without its lists, but with the first entry of each.
    several
        Kind (of `KINDS`) -> the field that one of its entries fills, and all entries.
        For options: the places among which they may move.
    items
        The record's options, read with each of its answers in turn.
    """

    record: Mapping[str, Any]
    several: Mapping[str, tuple[str, tuple[Any, ...]]] = field(default_factory=dict)
    items: tuple[Item, ...] = ()

    def choices(self, kind: str) -> tuple[Any, ...]:
        """Return all that the record has of a kind; empty where there is one variant.

        >>> several = {"wordings": ("question", ("Why?", "How so?"))}
        >>> Variants({"question": "Why?"}, several).choices("wordings")
        ('Why?', 'How so?')
        """
        if kind not in self.several:
            return ()
        _, values = self.several[kind]
        return values

    def order(self, picks: Mapping[str, Any]) -> list[int]:
        """Return the option that stands in each place, by its number."""
        places = self.choices("options")
        order = list(range(len(self.items[0].options)))
        for place, pick in zip(places, picks.get("options", ()), strict=False):
            order[place] = places[pick]
        return order

    def variant(self, picks: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record as these picks make it; what is not picked is the first.

        `picks` are those of `Drawn`.

        >>> several = {"wordings": ("question", ("Why?", "How so?"))}
        >>> variants = Variants({"id": 7, "question": "Why?"}, several)
        >>> variants.variant({"wordings": 1})
        {'id': 7, 'question': 'How so?'}
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
    """A record as the key has drawn it.

    Attributes
    ----------
    number
        Number of the record, from 0, in the author's order.
    variants
        Variants of the record.
    picks
        Kind (of `KINDS`) -> which of the record's entries the key drew.
    """

    number: int
    variants: Variants
    picks: Mapping[str, Any]

    @property
    def record(self) -> dict[str, Any]:
        """The record as it is published, or held back."""
        return self.variants.variant(self.picks)


def draw(records: Sequence[Variants], seed: bytes) -> list[Drawn]:
    """Draw all records of a set, in their order.

    Raises InputError for a seed of less than 128 bits.

    >>> records = [Variants({"text": letter}) for letter in "abcd"]
    >>> [drawn.record["text"] for drawn in draw(records, seed=bytes(16))]
    ['d', 'b', 'c', 'a']
    """
    published = []
    order = KeyedStream(seed, f"{ALGORITHM}/order").permutation(len(records))
    for number in order:
        variants = records[number]
        picks = {}
        for kind, (name, pick) in KINDS.items():
            if kind in variants.several:
                stream = KeyedStream(seed, f"{ALGORITHM}/{name}/{number}")
                picks[kind] = pick(stream, len(variants.choices(kind)))
        published.append(Drawn(number, variants, picks))
    return published


def seed_of(secret: bytes, signature: str | None) -> bytes:
    """Return the seed of all draws: the author's secret, mixed with public randomness.

    HMAC-SHA256(secret, "contamination-seal/2/seed", a zero byte, the bytes of the
    signature). The signature is hexadecimal; None stands for no public randomness.

    >>> seed_of(bytes(32), None).hex()[:16]
    '6c3a716d8895b6d7'
    """
    public = bytes.fromhex(signature or "")
    message = f"{ALGORITHM}/seed\0".encode() + public
    return hmac.digest(secret, message, "sha256")


def commitment(
    secret: bytes,
    records: Sequence[Mapping[str, Any]],
    statement: Mapping[str, Any],
) -> str:
    """Return the SHA-256 (hex) that binds a secret, an author's records and a statement.

    Over: "contamination-seal/2/commitment", a zero byte, the secret, the SHA-256 of the
    records and that of the statement, both as canonical JSON. The secret has 32 bytes
    and the digests have a fixed length, so no two triples are one message; and its 256
    random bits keep anybody from guessing the records by trying. Records are in the
    author's order; `statement` has the fields of a `Statement`, as JSON has them.

    >>> commitment(bytes(32), [{"text": "a"}], {"name": "set"})[:16]
    '1479b95b67c21ebe'
    """
    message = f"{ALGORITHM}/commitment\0".encode() + secret
    for value in (records, statement):
        message += hashlib.sha256(canonical_json(value).encode()).digest()
    return hashlib.sha256(message).hexdigest()


def canonical_json(value: Any) -> str:
    """Return JSON with sorted keys and no blanks: equal values have equal texts.

    Raises InputError for what JSON cannot say, such as a date of a Parquet file or a
    NaN.

    >>> canonical_json({"b": 1, "a": "é"})
    '{"a":"é","b":1}'
    """
    try:
        text = json.dumps(
            value,
            sort_keys=True,
            ensure_ascii=False,
            separators=(",", ":"),
            allow_nan=False,
        )
        text.encode()  # fails for half of a surrogate pair
    except (TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:100]
        raise InputError(
            f"a value that JSON cannot keep ({reason!a}); write it as text",
        ) from error
    return text
