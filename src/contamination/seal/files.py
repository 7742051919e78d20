"""Sealing a file, at once or in two steps, and verifying what was sealed by drawing it again.

::

    DIR/private/key.json      the secret, what was stated and the author's records (mode 0600)
    DIR/commitment.json       of two steps: what is stated and the commitment, published first
    DIR/public/NAME.jsonl     the sealed set, published
    DIR/public/seal.json      what is stated, the commitment, and what came out, published with it

Everything public is a function of the key file and, of two steps, of the beacon's signature. So
`verify` believes nothing: it draws seal and set again and compares them byte by byte.
"""

import datetime
import hashlib
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from contamination.audit.battery import DEFAULT_TESTS
from contamination.audit.request import MOST_ARRANGEMENTS, MOST_PERMUTATIONS, Request
from contamination.errors import InputError
from contamination.files import replacing, write_text
from contamination.seal import beacon
from contamination.seal.draws import (
    ALGORITHM,
    SECRET_BYTES,
    Published,
    Variants,
    canonical_json,
    commitment,
    draw,
    seed_of,
)
from contamination.testsets.alternatives import FEWEST, Keep, permitted_places, shown_items
from contamination.testsets.example_set import Declared, ExampleSet, make_test_set, render
from contamination.testsets.options import Item, items_of, names_letter
from contamination.testsets.records import ID_FIELDS, Record, read_records

WORDINGS = "wordings"  # the field in which an author gives all wordings of a record
FEWEST_RECORDS = 10  # fewer have hardly an order to be recognised by
MOST_BYTES = 1 << 30  # of a file that is read here
NOTHING_STAYS = Keep(numbers=False, repeated=False)  # but options that are about others
_Hex64 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_M = TypeVar("_M", bound=BaseModel)


class Statement(BaseModel):
    """What an author states and commits to before anything is drawn.

    Attributes
    ----------
    name : of the benchmark; there is one commitment for each.
    date : of the seal, as its author says; by default today (UTC).
    template : how a record becomes the text of an example, by name or as text. It has to show the
        options that may move, and the wordings.
    options, declared : whether the options of items are permuted, too, and how they are found. All
        may move, numbers as well, but those that are about others: see `permitted_places`.
    wordings_of : the field that a wording fills; None: there are none. A record may then have a
        field `wordings`: a list of all its wordings, each a whole text of that field, equally many
        in all records that have any.
    tests, shards, permutations, arrangements, level : what a model is tested by, so that nobody
        chooses it after the draw; as in `contamination.audit.request.Request`.
    beacon_round : of `contamination.seal.beacon`, whose signature is mixed into the key; None: the
        author's secret alone draws.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    algorithm: Literal["contamination-seal/2"] = ALGORITHM
    name: Annotated[str, Field(pattern=r"^\w[\w .+-]{0,99}$")]
    date: datetime.date = Field(default_factory=lambda: datetime.datetime.now(datetime.UTC).date())
    template: str = "text/1"
    options: bool = True
    declared: Declared = Declared()
    wordings_of: str | None = None
    tests: tuple[str, ...] = DEFAULT_TESTS
    shards: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    permutations: Annotated[int, Field(ge=1, le=MOST_PERMUTATIONS)] = 25
    arrangements: Annotated[int, Field(ge=2, le=MOST_ARRANGEMENTS)] = 24
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


class Seal(Statement):
    """What is published with a sealed set: the statement, and what follows from it and the key.

    Attributes
    ----------
    commitment : `contamination.seal.draws.commitment`.
    signature : of the beacon, in hexadecimal.
    sha256 : of the bytes of the published file.
    """

    commitment: _Hex64
    signature: str | None
    sha256: _Hex64


class Key(BaseModel):
    """What the author keeps: the secret, the statement, and the records in the author's order."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    secret: Annotated[_Hex64, Field(repr=False)]
    statement: Statement
    records: Annotated[list[dict[str, Any]], Field(repr=False)]

    @property
    def commitment(self) -> str:
        """What `commitment.json` and `seal.json` have to say."""
        stated = self.statement.model_dump(mode="json")
        return commitment(bytes.fromhex(self.secret), self.records, stated)


@dataclass(frozen=True)
class SealedSet:
    """A sealed set: what is published, and what it was drawn from.

    Attributes
    ----------
    seal : what is stated and what came out.
    test_set : the published set, and `text` the bytes of its file.
    variants : of each record, in the author's order.
    drawn : what is published of them, in the published order.
    """

    seal: Seal
    test_set: ExampleSet
    text: bytes = field(repr=False)
    variants: tuple[Variants, ...] = field(repr=False)
    drawn: tuple[Published, ...] = field(repr=False)

    @property
    def free(self) -> tuple[tuple[int, ...], ...]:
        """The places of options that the key permuted, of each record in the published order."""
        return tuple(self.variants[one.number].free for one in self.drawn)

    @property
    def moving(self) -> int:
        """How many items have options that may move."""
        return sum(len(one.free) > 1 for one in self.variants)

    @property
    def worded(self) -> int:
        """How many records have wordings."""
        return sum(bool(one.wordings) for one in self.variants)


class SealFiles(NamedTuple):
    """Where the files of a sealed set are."""

    directory: Path
    key: Path
    commitment: Path
    seal: Path
    published: Path

    @classmethod
    def of(cls, directory: Path, name: str) -> "SealFiles":
        """Return those of a directory, of a set of that name."""
        key, public = directory / "private" / "key.json", directory / "public"
        commitment = directory / "commitment.json"
        return cls(directory, key, commitment, public / "seal.json", public / f"{name}.jsonl")


# --- the author's side ----------------------------------------------------------------------------


def seal_file(path: Path, directory: Path, **stated: Any) -> tuple[SealedSet | None, SealFiles]:
    """Seal a file by a secret that the operating system draws now, or commit to that.

    With a `beacon_round` nothing is drawn yet: key and commitment are written, and `draw_committed`
    ends it after that round. Either all files are there afterwards, or `directory` is as it was:
    absent or empty.

    Parameters
    ----------
    path : a .jsonl, .json, .csv, .parquet or .txt file; its order does not matter.
    stated : fields of the `Statement`; `name` is by default that of the file.

    Raises
    ------
    InputError
        A field of the statement that cannot be; records that cannot be read, are too few
        (FEWEST_RECORDS), come twice, or do not fit the template; what `items_of` refuses of any
        field, or a text that names an option by its letter; fewer than two items whose options may
        move; wordings without a field that they fill, or that are no list of different texts; a
        round that is over; a directory with anything in it.
    """
    rows = read_records(path)
    if len(rows) < FEWEST_RECORDS:
        raise InputError(f"{path}: too few records ({len(rows)}); seal at least {FEWEST_RECORDS}")
    try:
        statement = Statement(**{"name": path.stem} | stated)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{first['loc'][0]}: {first['msg']}; give another") from error
    statement.request("", None)  # refuses what is no test
    ahead = statement.beacon_round
    if ahead is not None and beacon.time_of(ahead) <= datetime.datetime.now(datetime.UTC):
        raise InputError(f"round {ahead:,} is over: name one that is not signed yet")
    prepare(rows, statement, str(path))
    secret = secrets.token_bytes(SECRET_BYTES).hex()
    key = Key(secret=secret, statement=statement, records=[record for _, record in rows])
    files = SealFiles.of(directory, statement.name)
    with replacing(directory, new=True) as temporary:
        made = SealFiles.of(temporary, statement.name)
        _write_private(made.key, to_json(key))
        if ahead is not None:
            made.commitment.write_bytes(_committed(key))
            return None, files
        return _write_public(key, None, made.seal.parent), files


def draw_committed(directory: Path, signature: str) -> tuple[SealedSet, SealFiles]:
    """Draw the set of a directory that `seal_file` has committed to, by the beacon's signature.

    Raises InputError for a directory without such a commitment, a commitment that was changed, a
    signature that is not that of the round, and a set that was drawn before.
    """
    path = SealFiles.of(directory, "").key
    key = _read(path, Key, "key")
    files = SealFiles.of(directory, key.statement.name)
    if key.statement.beacon_round is None:
        raise InputError(f"{directory}: sealed in one step, so no beacon has a part in it")
    if _bytes(files.commitment, "commitment") != _committed(key):
        raise InputError(f"{files.commitment}: not what {path} commits to; take the original")
    with replacing(files.seal.parent, new=True) as temporary:
        return _write_public(key, signature, temporary), files


def _write_public(key: Key, signature: str | None, folder: Path) -> SealedSet:
    sealed = draw_again(key, signature, "the records")
    folder.mkdir()
    (folder / f"{key.statement.name}.jsonl").write_bytes(sealed.text)
    (folder / "seal.json").write_bytes(to_json(sealed.seal))
    return sealed


def _committed(key: Key) -> bytes:
    """What `commitment.json` holds."""
    stated = key.statement.model_dump(mode="json") | {"commitment": key.commitment}
    return (json.dumps(stated, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _write_private(path: Path, data: bytes) -> None:
    """Write a file that nobody else may read at any moment, and that git does not take along."""
    path.parent.mkdir(mode=0o700, parents=True)
    write_text(path.parent / ".gitignore", "*\n")
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)


# --- what a key draws -----------------------------------------------------------------------------


def prepare(rows: Sequence[Record], stated: Statement, where: str) -> tuple[Variants, ...]:
    """Return the variants of an author's records; errors as `seal_file`.

    Nothing here depends on what a key draws: an arrangement of the records is accepted or refused
    with all others.
    """
    field, name = stated.wordings_of, stated.wordings_of or ""
    wordings = [_wordings(record, field, f"{where}, {place}") for place, record in rows]
    if field is not None and not any(wordings):
        raise InputError(
            f"{where}: no record has {WORDINGS}; leave out --wordings-of, or give them"
        )
    if len(counts := {len(each) for each in wordings if each}) > 1:
        raise InputError(
            f"{where}: records have {min(counts)} to {max(counts)} {WORDINGS}; give each record "
            "that has any the same number"
        )
    placed = [
        (place, _worded(record, name, each) if each else dict(record))
        for (place, record), each in zip(rows, wordings, strict=True)
    ]
    for place, record in placed:
        try:
            canonical_json(record)
        except InputError as error:
            raise InputError(f"{where}, {place}: {error}") from error
    rendered = make_test_set(stated.name, placed, stated.template, where)
    items: Sequence[Item | None] = [None] * len(rows)
    free: list[tuple[int, ...]] = [()] * len(rows)
    if stated.options:
        items, free = _movable(rendered, wordings, stated, where)
    found = tuple(
        Variants(record, item, places, tuple(each))
        for (_, record), item, places, each in zip(placed, items, free, wordings, strict=True)
    )
    seen: dict[str, str] = {}
    for (place, _), one in zip(rows, found, strict=True):
        if (first := seen.setdefault(_identity(one, name), place)) != place:
            raise InputError(f"{where}, {place}: the record of {first} again; remove it")
    for one, (place, _) in zip(found, rows, strict=True):
        shown = [("", {**one.record, name: text}) for text in one.wordings]
        if len({*render(shown, stated.template, where)}) < len(shown):
            raise InputError(
                f"{where}, {place}: template {stated.template[:80]!a} does not show {name!a}, "
                f"which {WORDINGS} fill; use one that does"
            )
    return found


def _movable(
    rendered: ExampleSet, wordings: Sequence[Sequence[str]], stated: Statement, where: str
) -> tuple[tuple[Item, ...], list[tuple[int, ...]]]:
    """Return the items, and the places of each among which its options may move."""
    alone, field = "or seal the order of records alone (--axis order)", stated.wordings_of
    named = replace(rendered, name=where, declared=stated.declared)
    try:
        shown_items(named, stated.template)
        items = items_of(named, shown=None)
    except InputError as error:
        raise InputError(f"{error}; {alone}") from error
    for number, (item, record, each) in enumerate(
        zip(items, rendered.records, wordings, strict=True), start=1
    ):
        if item.lettered or any(names_letter(text, len(item.options)) for text in each):
            raise InputError(
                f"{where}, record {number}: a text names an option by its letter, which is another "
                f"one when options move; name it by its text, {alone}"
            )
        if each and field is not None:
            varied = replace(named, records=tuple({**record, field: text} for text in each))
            if any(one.options != item.options for one in items_of(varied)):
                raise InputError(f"{where}, record {number}: {field!a} is an option; word another")
    free = [places if len(places) > 1 else () for places in permitted_places(items, NOTHING_STAYS)]
    if (able := sum(map(bool, free))) < FEWEST:
        raise InputError(
            f"{where}: the options of {able} items may move, a test needs {FEWEST}; {alone}"
        )
    return items, free


def _identity(one: Variants, field: str) -> str:
    """What a record says, whatever its id, the order of its options and the picked wording."""
    record = dict(one.record)
    if one.item is not None and len(one.free) > 1:
        texts = one.item.options
        sources = sorted(one.free, key=texts.__getitem__)
        record = one.variant(sources, None, None)
    said = {name: value for name, value in record.items() if name not in ID_FIELDS}
    return canonical_json([said | ({field: ""} if one.wordings else {}), sorted(one.wordings)])


def _wordings(record: Mapping[str, Any], field: str | None, where: str) -> list[str]:
    """Return all wordings of a record, checked; none if it has none."""
    if WORDINGS not in record:
        if field is not None and field not in record:
            raise InputError(f"{where}: neither {field!a} nor {WORDINGS!a} is there; give one")
        return []
    if field is None:
        raise InputError(
            f"{where}: there are {WORDINGS}, of which the key is to pick one: name the field that "
            "it fills (--wordings-of), or remove them"
        )
    given = record[WORDINGS]
    if (
        not isinstance(given, list)
        or len(given) < 2
        or not all(isinstance(text, str) and text.strip() for text in given)
        or len(set(given)) < len(given)
    ):
        raise InputError(f"{where}: {WORDINGS} is no list of 2 or more different texts; write one")
    if record.get(field, given[0]) not in given:
        raise InputError(
            f"{where}: {field!a} is none of its {WORDINGS}; list all of them, that one included"
        )
    return given


def _worded(record: Mapping[str, Any], field: str, wordings: Sequence[str]) -> dict[str, Any]:
    """Put a wording where it will be published: in its field, or in the place of the list."""
    place = field if field in record else WORDINGS
    return {
        field if name == place else name: wordings[0] if name == place else value
        for name, value in record.items()
        if name == place or name != WORDINGS
    }


def draw_again(key: Key, signature: str | None, where: str) -> SealedSet:
    """Draw the set and the seal of a key.

    Raises InputError for a signature that is not the beacon's, or is there without a round, and for
    records as `seal_file`.
    """
    stated = key.statement
    if stated.beacon_round is None:
        if signature is not None:
            raise InputError("--signature goes with a commitment that names a round")
    elif signature is None:
        raise InputError(f"the signature of round {stated.beacon_round:,} is missing; give it")
    else:
        beacon.check_signature(stated.beacon_round, signature)
    rows = [(f"record {number}", record) for number, record in enumerate(key.records, start=1)]
    variants = prepare(rows, stated, where)
    drawn = draw(variants, seed_of(bytes.fromhex(key.secret), signature), stated.wordings_of)
    text = "".join(f"{json.dumps(one.record, ensure_ascii=False)}\n" for one in drawn).encode()
    published = [(f"line {number}", one.record) for number, one in enumerate(drawn, start=1)]
    seal = Seal(
        **dict(stated),
        commitment=key.commitment,
        signature=signature,
        sha256=hashlib.sha256(text).hexdigest(),
    )
    test_set = make_test_set(stated.name, published, stated.template, where)
    test_set = replace(test_set, declared=stated.declared)
    return SealedSet(seal, test_set, text, variants, tuple(drawn))


# --- the auditor's side ---------------------------------------------------------------------------


def verify(published: Path, seal: Path, key: Path) -> SealedSet:
    """Draw a set and its seal again from the key, and compare both with what was published.

    Raises InputError, one line each, for a seal of another version, a set that was changed or
    re-ordered, a seal or a key that was changed, and a key of another seal.
    """
    told, secret = _read(seal, Seal, "seal"), _read(key, Key, "key")
    if told.name != secret.statement.name:
        raise InputError(f"{key}: the key of another seal than {seal}; give the one of this set")
    found = draw_again(secret, told.signature, str(key))
    if found.seal.commitment != told.commitment:
        raise InputError(
            f"{key}: its secret, records and statement do not give the commitment of {seal}: one "
            "of the two was changed since sealing, or the key is another's; take the originals"
        )
    if differing := [name for name in vars(told) if vars(told)[name] != vars(found.seal)[name]]:
        raise InputError(
            f"{seal}: {differing[0]!a} is not what the key draws; take the published original"
        )
    if (data := _bytes(published, "sealed file")) != found.text:
        lines, expected = (sorted(each.split(b"\n")) for each in (data, found.text))
        what = "re-ordered" if lines == expected else "changed"
        raise InputError(
            f"{published}: not the set that the key draws: its records were {what} since they were "
            "sealed; take the published file"
        )
    return found


def _bytes(path: Path, what: str) -> bytes:
    """Read a file, and nothing that never ends."""
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: no regular file; give the {what}")
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path}: larger than any {what} may be ({MOST_BYTES:,} bytes)")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read ({reason}); give the {what}") from error


def _read(path: Path, kind: type[_M], what: str) -> _M:
    """Read a file that sealing wrote: these fields of these types, and not a byte more."""
    data = _bytes(path, what)
    try:
        value = kind.model_validate_json(data)
        if to_json(value) == data:
            return value
    except (ValidationError, InputError):
        pass
    raise InputError(
        f"{path}: no {what} as sealing wrote it: it was changed, or is of another version than "
        f"{ALGORITHM}; take the original"
    )


def to_json(value: BaseModel) -> bytes:
    """Bytes of a seal or a key, a line for each field, in which equal values are equal bytes."""
    made = value.model_dump(mode="json")
    canonical_json(made)  # refuses what JSON cannot keep; records keep the order of their fields
    lines = (f'  "{name}": {json.dumps(made[name], ensure_ascii=False)}' for name in sorted(made))
    return "{{\n{}\n}}\n".format(",\n".join(lines)).encode()
