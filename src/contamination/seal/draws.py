"""What a key draws: one variant of a set, out of all that could be published.

A *variant* of a record is one order of those options that may move, and one of its wordings; what
names the right answer follows. A variant of a set is an order of its records with a variant of
each. `draw` takes each variant with the same probability, by streams of the seed alone
(`contamination.randomness.KeyedStream`), where C counts the author's records from 0:

- "contamination-seal/2/order": which record stands where, uniform over all n! orders;
- "contamination-seal/2/options/C": the order of the options of record C that may move;
- "contamination-seal/2/wording/C": which of its wordings is published.

The published set is a function of the author's records and the seed; whoever has both can draw it
again. docs/how-to/seal-a-benchmark.md writes the algorithm down for other languages; a change of it
is another version.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from contamination.errors import InputError
from contamination.randomness import KeyedStream
from contamination.testsets.options import Item

ALGORITHM: Literal["contamination-seal/2"] = "contamination-seal/2"
SECRET_BYTES = 32


@dataclass(frozen=True)
class Variants:
    """All that a record could be published as.

    Attributes
    ----------
    record : as the author gave it, with its first wording in the field that wordings fill.
    item, free : its options, and the places among which they may move.
    field, wordings : what the key picks from, and the field that it fills; none where the author
        gave none.
    """

    record: Mapping[str, Any]
    item: Item | None = None
    free: tuple[int, ...] = ()
    field: str = ""
    wordings: tuple[str, ...] = ()

    def variant(self, sources: Sequence[int] = (), wording: str | None = None) -> dict[str, Any]:
        """Return one: `sources` are the free places whose options come to the free places."""
        record = dict(self.record)
        if self.item is not None and sources:
            moved = dict(zip(self.free, sources, strict=True))
            record = self.item.rearranged([moved.get(i, i) for i in range(len(self.item.options))])
        return record if wording is None else {**record, self.field: wording}


def draw(records: Sequence[Variants], seed: bytes) -> list[tuple[int, dict[str, Any]]]:
    """Draw the published set: each record, with its number among the author's.

    Raises InputError for a seed of less than 128 bits.
    """
    found = []
    for number in KeyedStream(seed, f"{ALGORITHM}/order").permutation(len(records)):
        one, wording = records[number], None
        stream = KeyedStream(seed, f"{ALGORITHM}/options/{number}")
        sources = [one.free[i] for i in stream.permutation(len(one.free))]
        if one.wordings:
            stream = KeyedStream(seed, f"{ALGORITHM}/wording/{number}")
            wording = one.wordings[stream.below(len(one.wordings))]
        found.append((number, one.variant(sources, wording)))
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
