"""A sealed set with its seal and its key, verified before anything is tested.

`verify` believes nothing that it can compute: the seal and the set byte by byte, the commitment,
and that the published arrangement is the one that the seed draws from the content.
`contamination.testsets.sealing` writes the files.
"""

import hashlib
import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.testsets.alternatives import FEWEST, AlternativeSet
from contamination.testsets.example_set import ExampleSet, make_test_set, render
from contamination.testsets.options import item_of
from contamination.testsets.records import read_records
from contamination.testsets.seal import (
    SEED_BYTES,
    VERSION,
    Entry,
    arrange,
    commitment,
    content_of,
    entry_of,
)

WORDINGS = "wordings"  # the field in which an author gives all wordings of a record
_SEED = re.compile(rf"[0-9a-f]{{{2 * SEED_BYTES}}}")


@dataclass(frozen=True)
class Seal:
    """What is published with a sealed set; field by field what `seal.json` holds.

    Attributes
    ----------
    template : how a record becomes the text of an example, by name or as text.
    records : how many there are.
    options : whether the options of the items were permuted.
    moving : how many items have options that may move; 0 of a set whose options were not permuted.
    fixed : of which records (lines of the published file, from 1) some options stay, and their
        places from 0; empty for a set whose options were not permuted.
    wordings_of : the field that the key filled with one of several wordings; None if there are
        none.
    wordings : of how many, in each record that has any; 1 if there are none.
    sha256, sorted_sha256 : of the bytes of the published file, and of its lines, sorted: the second
        tells a set that was re-ordered from one that was changed.
    commitment : see `contamination.testsets.seal.commitment`; over all of the above, too.
    """

    version: int
    algorithm: str
    date: str
    template: str
    records: int
    options: bool
    moving: int
    fixed: Mapping[str, list[int]]
    wordings_of: str | None
    wordings: int
    sha256: str
    sorted_sha256: str
    commitment: str = ""

    @property
    def permuted(self) -> list[str]:
        """What the key has drawn, in words."""
        found = ["their order"]
        if self.options:
            found.append(f"the options of {self.moving:,} items")
        if self.wordings_of is not None:
            found.append(f"one of {self.wordings} wordings")
        return found

    @property
    def facts(self) -> dict[str, Any]:
        """All but the commitment, which commits to them."""
        return {name: value for name, value in vars(self).items() if name != "commitment"}


@dataclass(frozen=True)
class SealedSet:
    """A sealed set whose arrangement was verified to be what its key draws.

    Attributes
    ----------
    test_set : in the published order.
    free : of each record in that order, the places of options that the key permuted.
    content : all entries, in the order of the content.
    published : of each entry of the content, the wording that was published; None without any.
    """

    seal: Seal
    test_set: ExampleSet
    free: tuple[tuple[int, ...], ...]
    content: tuple[Entry, ...] = field(repr=False)
    published: tuple[str | None, ...] = field(repr=False)

    @property
    def worded(self) -> int:
        """How many records have wordings."""
        return sum(bool(entry.wordings) for entry in self.content)


def verify(published: Path, seal: Path, key: Path) -> SealedSet:
    """Read a sealed set, its seal and its key, and check that each is what the others say.

    Raises InputError, one line each, for a seal of another version, a set that was changed or
    re-ordered, a seal or a key that was changed, a key of another seal, and a set that is not what
    the seed draws from its content: then somebody chose the order, and not the key.
    """
    told, secret = Seal(**_read(seal, "seal", _SEAL)), _read(key, "key", _KEY)
    if secret["seal_sha256"] != sha256(seal.read_bytes()):
        if secret["commitment"] == told.commitment:
            raise InputError(f"{seal}: it or {key} was changed since sealing; take the originals")
        raise InputError(f"{key}: the key of another seal than {seal}; give the one of this set")
    damaged = InputError(f"{key}: changed since sealing; take the author's copy")
    if not _SEED.fullmatch(secret["seed"]) or secret["commitment"] != told.commitment:
        raise damaged
    _check_published(published, seal, told)
    seed = bytes.fromhex(secret["seed"])
    records = [record for _, record in read_records(published)]
    try:
        entries = [
            _entry_again(number, record, told, secret[WORDINGS])
            for number, record in enumerate(records, start=1)
        ]
    except (InputError, TypeError, ValueError) as error:
        raise damaged from error
    content = content_of(entries)
    if commitment(seed, content, told.facts) != told.commitment:
        raise damaged
    drawn = arrange(content, seed, told.wordings_of)
    if [one.record for one in drawn] != records:
        raise InputError(
            f"{published}: not the arrangement that the key draws of these records: somebody chose "
            "it, so the seal proves nothing"
        )
    numbered = [(f"line {number}", record) for number, record in enumerate(records, start=1)]
    wordings = {one.entry: one.wording for one in drawn}
    return SealedSet(
        seal=told,
        test_set=make_test_set(published.stem, numbered, told.template, str(published)),
        free=tuple(content[one.entry].free for one in drawn),
        content=content,
        published=tuple(wordings[number] for number in range(len(content))),
    )


def _entry_again(
    number: int, record: Mapping[str, Any], told: Seal, unpublished: Mapping[str, list[str]]
) -> Entry:
    """Return the entry that a published record was drawn from."""
    free: list[int] = []
    if told.options:
        fixed = told.fixed.get(str(number), [])
        free = [i for i in range(len(item_of(record, "").options)) if i not in fixed]
    others = unpublished.get(str(number), [])
    wordings = [record[told.wordings_of], *others] if others and told.wordings_of else []
    if not all(isinstance(text, str) for text in wordings):
        raise TypeError("a wording is a text")
    return entry_of(record, free=free, field=told.wordings_of, wordings=wordings)


def _check_published(path: Path, seal: Path, told: Seal) -> None:
    """Refuse a file that is not the published one, before its records are looked at."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); with --seal, give the sealed file"
        ) from error
    if sha256(data) == told.sha256:
        return
    if sorted_sha256(data) == told.sorted_sha256:
        raise InputError(
            f"{path}: its records were re-ordered since they were sealed; take the published file"
        )
    raise InputError(
        f"{path}: not the set that {seal} seals (its SHA-256 is {sha256(data)[:16]}..., "
        f"the sealed one's {told.sha256[:16]}...); take the published file"
    )


_KEY = {"version": int, "seed": str, "commitment": str, "seal_sha256": str, WORDINGS: dict}
_SEAL = {
    "version": int,
    "algorithm": str,
    "date": str,
    "template": str,
    "records": int,
    "options": bool,
    "moving": int,
    "fixed": dict,
    "wordings_of": str | None,
    "wordings": int,
    "sha256": str,
    "sorted_sha256": str,
    "commitment": str,
}


def _read(path: Path, what: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Read a file that sealing wrote: these fields of these types, and not a byte more."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); give the {what}") from error
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or "version" not in value:
        raise InputError(f"{path}: no {what} of a sealed set; give the one that sealing wrote")
    if value["version"] != VERSION:
        raise InputError(
            f"{path}: sealed by version {str(value['version'])[:20]!r} of the algorithm, and this "
            f"program has version {VERSION}; use one that has it"
        )
    if (
        value.keys() != fields.keys()
        or not all(isinstance(value[name], kind) for name, kind in fields.items())
        or to_json(value) != data
    ):
        raise InputError(f"{path}: changed since sealing; take the author's copy")
    return value


def wording_alternatives(sealed: SealedSet) -> AlternativeSet:
    """Render every wording of every record, the published one first, records as in the content.

    The options stand in the order of the content and not as published: so the texts depend on the
    key by its choice of wordings alone, and a test on them is independent of one on arrangements.
    Raises InputError if fewer than 2 records have wordings, or the template does not show them.
    """
    field, most = sealed.seal.wordings_of, sealed.seal.wordings
    if field is None or sealed.worded < FEWEST:
        raise InputError(
            f"{sealed.test_set.name}: {sealed.worded} records have {WORDINGS}, and the test needs "
            f"{FEWEST}"
        )
    texts = []
    for number, (entry, published) in enumerate(
        zip(sealed.content, sealed.published, strict=True), start=1
    ):
        row = sorted(entry.wordings, key=lambda text: text != published)  # stable: that one first
        records = [entry.worded(field, text) for text in row] or [dict(entry.record)]
        shown = render(
            [(f"record {number} of the content", record) for record in records],
            sealed.seal.template,
            sealed.test_set.name,
        )
        if len(set(shown)) < len(records):
            raise InputError(
                f"{sealed.test_set.name}: template {sealed.seal.template[:80]!r} does not show "
                f"{field!r}, which {WORDINGS} fill; use one that does"
            )
        texts.append(shown if entry.wordings else shown * most)
    return AlternativeSet(
        sealed.test_set.name,
        tuple(texts),
        sealed.test_set.template,
        sha256_of(sealed.test_set.template, *itertools.chain.from_iterable(texts)),
        "wordings",
        tuple(max(len(entry.wordings), 1) for entry in sealed.content),
    )


def to_json(value: Mapping[str, Any]) -> bytes:
    """Bytes of a seal or a key, a line for each field, in which equal values are equal bytes."""
    lines = (
        f"  {json.dumps(name)}: {json.dumps(value[name], sort_keys=True, ensure_ascii=False)}"
        for name in sorted(value)
    )
    return "{{\n{}\n}}\n".format(",\n".join(lines)).encode()


def sha256(data: bytes) -> str:
    """SHA-256 of bytes as they stand, in hexadecimal, as `sha256sum` prints it."""
    return hashlib.sha256(data).hexdigest()


def sorted_sha256(data: bytes) -> str:
    """SHA-256 of the lines in the order of their bytes: the same for every order of them."""
    return sha256(b"\n".join(sorted(data.split(b"\n"))))
