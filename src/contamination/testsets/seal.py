"""Sealing a set: a secret key draws its order, and a commitment made beforehand proves that it did.

The null hypothesis of a test on the order of records says that the published order was drawn at
random. Of a sealed set that is no assumption. Everything about the published set that the key does
not decide is its *content*, which is the same however the author's file was arranged:

- an `Entry` is a record with the options that may move sorted, and its wordings, if any, sorted;
- the content is all entries, sorted.

From there `arrange` draws, by streams of the key alone (`contamination.randomness.KeyedStream`):

- "contamination-seal/1/order": which entry stands where in the published set, uniform over all n!;
- "contamination-seal/1/options/C": the order of the options of entry C that may move;
- "contamination-seal/1/wording/C": which of its wordings is published;

C counts the entries of the content from 0. So the published set is a function of seed and content,
the author has no say in it beyond drawing the seed, and whoever has the seed can check that. The
`commitment` binds seed, content and all that the public seal says before anybody has seen the seed.
docs/how-to/seal-a-benchmark.md writes the algorithm down for whoever wants to do it again in
another language; a change of it is another version.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contamination.errors import InputError
from contamination.randomness import KeyedStream
from contamination.testsets.options import item_of, rearranged
from contamination.testsets.records import ID_FIELDS

VERSION = 1
ALGORITHM = "contamination-seal/1"
SEED_BYTES = 32
SEALED = "the sealed set"  # what messages call records that an arrangement is made of


@dataclass(frozen=True)
class Entry:
    """A record of the content: without what the key decides.

    Attributes
    ----------
    record : fields; the options in the `free` places are sorted by their text, and the field that
        the key fills is empty.
    free : places of options that may move, ascending; fewer than two: none moves.
    wordings : all that the key picks from, sorted; none where the author gave none.
    """

    record: Mapping[str, Any]
    free: tuple[int, ...] = ()
    wordings: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """Canonical JSON of the entry, by which entries are sorted and committed to."""
        return canonical_json(
            {"free": list(self.free), "record": self.record, "wordings": list(self.wordings)}
        )

    def worded(self, field: str, wording: str) -> dict[str, Any]:
        """Return the record with a wording in its field."""
        return {**self.record, field: wording}


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
        raise InputError(f"a value that JSON cannot keep ({reason}); write it as text") from error
    return text


def entry_of(
    record: Mapping[str, Any],
    *,
    free: Sequence[int] = (),
    field: str | None = None,
    wordings: Sequence[str] = (),
) -> Entry:
    """Take from a record what the key decides.

    Parameters
    ----------
    record : fields, without `wordings`, the options in any arrangement.
    free : places of options that may move.
    field, wordings : the field that the key fills if there are wordings, and these in any order.
    """
    fields = dict(record)
    if len(free) > 1:
        texts = item_of(record, SEALED).options
        order = list(range(len(texts)))
        for place, source in zip(sorted(free), sorted(free, key=texts.__getitem__), strict=True):
            order[place] = source
        fields = rearranged(record, order)
    if wordings and field is not None:
        fields[field] = ""
    return Entry(fields, tuple(sorted(free)), tuple(sorted(wordings)))


def content_of(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Sort entries, by the UTF-8 bytes of their lines."""
    return tuple(sorted(entries, key=lambda entry: entry.line.encode()))


def duplicates(entries: Sequence[Entry]) -> Iterator[tuple[int, int]]:
    """Yield pairs (first, later) of entries that say the same, whatever their ids are."""
    seen: dict[str, int] = {}
    for number, entry in enumerate(entries):
        fields = {name: value for name, value in entry.record.items() if name not in ID_FIELDS}
        first = seen.setdefault(Entry(fields, entry.free, entry.wordings).line, number)
        if first != number:
            yield first, number


@dataclass(frozen=True)
class Published:
    """A record as the key has drawn it: `entry` is its number in the content."""

    entry: int
    record: dict[str, Any]
    wording: str | None


def arrange(content: Sequence[Entry], seed: bytes, field: str | None = None) -> list[Published]:
    """Draw the published set: every arrangement that is possible is as likely as any other.

    `field` is the one that wordings fill. Raises InputError for a seed of less than 128 bits.
    """
    order = KeyedStream(seed, f"{ALGORITHM}/order").permutation(len(content))
    return [_published(content[number], number, seed, field) for number in order]


def _published(entry: Entry, number: int, seed: bytes, field: str | None) -> Published:
    record, wording = dict(entry.record), None
    if len(entry.free) > 1:
        drawn = KeyedStream(seed, f"{ALGORITHM}/options/{number}").permutation(len(entry.free))
        order = list(range(len(item_of(record, SEALED).options)))
        for place, source in zip(entry.free, drawn, strict=True):
            order[place] = entry.free[source]
        record = rearranged(record, order)
    if entry.wordings and field is not None:
        stream = KeyedStream(seed, f"{ALGORITHM}/wording/{number}")
        wording = entry.wordings[stream.below(len(entry.wordings))]
        record[field] = wording
    return Published(number, record, wording)


def commitment(seed: bytes, content: Sequence[Entry], facts: Mapping[str, Any]) -> str:
    """SHA-256 (hex) that binds seed, content and what the seal says (`facts`).

    Over: "contamination-seal/1/commitment", a zero byte, the seed, the SHA-256 of the lines of the
    content, each with a line feed, and the SHA-256 of the facts as canonical JSON. The seed has a
    fixed length and the digests have, so no two triples are one message; and 256 random bits in it
    keep anybody from guessing the content by trying.
    """
    lines = hashlib.sha256("".join(f"{entry.line}\n" for entry in content).encode()).digest()
    told = hashlib.sha256(canonical_json(facts).encode()).digest()
    message = f"{ALGORITHM}/commitment\0".encode() + seed + lines + told
    return hashlib.sha256(message).hexdigest()
