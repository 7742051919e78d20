"""What a key draws: one variant of a set, out of all that could be published.

A *variant* is what an author gives several of, all as good, and the key picks one of: an order of
the records, an order of those options of an item that may move (what names the right one follows),
one of the `wordings` of a record, one of its right `answers`. `draw` takes each variant of a set
with the same probability, by streams of the seed alone (`contamination.randomness.KeyedStream`),
where C counts the author's records from 0:

- "contamination-seal/2/order": which record stands where, uniform over all n! orders;
- "contamination-seal/2/options/C": the order of the options of record C that may move;
- "contamination-seal/2/wording/C", "contamination-seal/2/answer/C": which one is published.

The published set is a function of the author's records and the seed; whoever has both can draw it
again. docs/how-to/seal-a-benchmark.md writes the algorithm down for other languages; a change of it
is another version.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from contamination.errors import InputError
from contamination.randomness import KeyedStream
from contamination.testsets.options import Item

ALGORITHM: Literal["contamination-seal/2"] = "contamination-seal/2"
SECRET_BYTES = 32
# Fields in which an author lists variants of what another field says, and what draws name one.
LISTS = {"wordings": "wording", "answers": "answer"}


@dataclass(frozen=True)
class Variants:
    """All that a record could be published as.

    Attributes
    ----------
    record : as the author gave it, without its lists.
    lists : those of `LISTS` that it has: the field that one of them fills, and all of them.
    items, free : its options, read with each of its answers in turn, and the places among which
        they may move.
    """

    record: Mapping[str, Any]
    lists: Mapping[str, tuple[str, tuple[Any, ...]]] = field(default_factory=dict)
    items: tuple[Item, ...] = ()
    free: tuple[int, ...] = ()

    def given(self, what: str) -> tuple[Any, ...]:
        """Return a list of the author's; empty where there is none."""
        return self.lists.get(what, ("", ()))[1]

    def order(self, sources: Sequence[int]) -> list[int]:
        """Return which option stands in which place, when those of `sources` come to `free`."""
        moved = dict(zip(self.free, sources, strict=True))
        return [moved.get(i, i) for i in range(len(self.items[0].options))]

    def variant(
        self, sources: Sequence[int] = (), picks: Mapping[str, int] | None = None
    ) -> dict[str, Any]:
        """Return one: options by `order`, and entry picks[list], by default 0, of each list."""
        picks = picks or {}
        chosen = {name: all_[picks.get(what, 0)] for what, (name, all_) in self.lists.items()}
        record = {**self.record, **chosen}
        if not sources:
            return record
        item = self.items[picks.get("answers", 0)]
        written = replace(item, layout=replace(item.layout, record=record))
        return written.rearranged(self.order(sources))


class Drawn(NamedTuple):
    """A published record: the author's number of it, and what was drawn for `Variants.variant`."""

    number: int
    sources: Sequence[int]
    picks: Mapping[str, int]


def draw(records: Sequence[Variants], seed: bytes) -> list[Drawn]:
    """Draw the published set, in its order. Raises InputError for a seed of less than 128 bits."""

    def stream(name: str) -> KeyedStream:
        return KeyedStream(seed, f"{ALGORITHM}/{name}")

    found = []
    for number in stream("order").permutation(len(records)):
        one = records[number]
        sources = [one.free[i] for i in stream(f"options/{number}").permutation(len(one.free))]
        picks = {
            what: stream(f"{LISTS[what]}/{number}").below(len(one.given(what)))
            for what in one.lists
        }
        found.append(Drawn(number, sources, picks))
    return found


def seed_of(secret: bytes, signature: str | None) -> bytes:
    """Mix the secret of the author with public randomness (hexadecimal; None: there is none).

    HMAC-SHA256(secret, "contamination-seal/2/seed", a zero byte, the bytes of the signature).
    """
    public = bytes.fromhex(signature or "")
    return hmac.digest(secret, f"{ALGORITHM}/seed\0".encode() + public, "sha256")


def commitment(
    secret: bytes, records: Sequence[Mapping[str, Any]], statement: Mapping[str, Any]
) -> str:
    """SHA-256 (hex) that binds secret, the author's records in their order, and the statement.

    Over: "contamination-seal/2/commitment", a zero byte, the secret, the SHA-256 of the records and
    that of the statement, both as canonical JSON. The secret has a fixed length and the digests
    have, so no two triples are one message; and its 256 random bits keep anybody from guessing the
    records by trying.
    """
    digests = [hashlib.sha256(canonical_json(x).encode()).digest() for x in (records, statement)]
    message = f"{ALGORITHM}/commitment\0".encode() + secret + b"".join(digests)
    return hashlib.sha256(message).hexdigest()


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no blanks, in which equal values are equal texts.

    Raises InputError for what JSON cannot say, such as a date of a Parquet file or a NaN.
    """
    try:
        text = json.dumps(
            value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        )
        text.encode()
    except (TypeError, ValueError) as error:  # UnicodeEncodeError: half of a surrogate pair
        reason = " ".join(str(error).split())[:100]
        raise InputError(f"a value that JSON cannot keep ({reason!a}); write it as text") from error
    return text
