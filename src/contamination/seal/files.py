"""Sealing a file, at once or in two steps, and verifying it by drawing it again.

::

    DIR/private/key.json      secret, statement and the author's records (mode 0600)
    DIR/commitment.json       of two steps: statement and commitment, published first
    DIR/commitment.tsq, .tsr  with a time stamp: the request for it, and the answer
    DIR/public/NAME.jsonl     the sealed set, published
    DIR/public/seal.json      statement, commitment and digest, published with the set

Everything public is a function of the key file and, of two steps, of the beacon's
signature. So `verify` believes nothing: it draws seal and set again and compares them
byte by byte.
"""

import datetime
import hashlib
import json
import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from contamination.errors import InputError
from contamination.files import replacing, writable, write_text
from contamination.seal import beacon
from contamination.seal.draws import (
    ALGORITHM,
    KINDS,
    Drawn,
    Statement,
    commitment,
    draw,
    seed_of,
)
from contamination.seal.prepare import prepare
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.options import ALL_OTHERS
from contamination.testsets.records import read_records
from contamination.testsets.templates import template_for

FEWEST_RECORDS = 10  # fewer have hardly an order to be recognised by
_Hex64 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_M = TypeVar("_M", bound=BaseModel)


class Commitment(Statement):
    """The statement, and the digest (hex) that binds the key to it; published first."""

    commitment: _Hex64

    @property
    def stamped(self) -> bytes:
        """The bytes of `commitment.json`, which a time stamp dates."""
        stated = {name: getattr(self, name) for name in Commitment.model_fields}
        return to_json(Commitment.model_validate(stated))


class Seal(Commitment):
    """What is published with a set: the commitment, a signature, the set's SHA-256."""

    signature: str | None
    sha256: _Hex64

    @property
    def guarantee(self) -> str:
        """What a p-value of the set rests on, and what has to be checked for that."""
        if self.beacon_round is None:
            return (
                "sealed in one step: the p-value holds if the author drew one key and "
                "published what it drew, which nothing here proves; an author who tried "
                "keys on an older model could reach a small p"
            )
        return (
            "nobody could choose this arrangement, if the commitment was public before "
            f"{beacon.time_of(self.beacon_round):%Y-%m-%d %H:%M:%S} UTC and there is no "
            f"other one named {self.name}: check both"
        )


class Key(BaseModel):
    """What the author keeps: the secret, the statement, and the records in order."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    secret: Annotated[_Hex64, Field(repr=False)]
    statement: Statement
    records: Annotated[list[dict[str, Any]], Field(repr=False)]

    @property
    def commitment(self) -> Commitment:
        """The commitment to secret, statement and records."""
        stated = self.statement.model_dump(mode="json")
        digest = commitment(bytes.fromhex(self.secret), self.records, stated)
        return Commitment(**dict(self.statement), commitment=digest)


@dataclass(frozen=True)
class SealedSet:
    """A sealed set.

    Attributes
    ----------
    seal
        The statement, the commitment, and the digest of the set.
    test_set
        The published examples.
    text
        Bytes of the published file.
    drawn
        Its records in that order, each with the variants it was drawn from.
    """

    seal: Seal
    test_set: ExampleSet
    text: bytes = field(repr=False)
    drawn: tuple[Drawn, ...] = field(repr=False)

    def listed(self, kind: str) -> int:
        """Return the number of records that have several of a kind."""
        return sum(kind in record.variants.several for record in self.drawn)

    @property
    def described(self) -> str:
        """What was verified, in one line."""
        drawn = [f"the order of {len(self.drawn):,} records"]
        for kind, (name, _) in KINDS.items():
            count = self.listed(kind)
            unit = "items" if kind == "options" else "records"
            if count:
                drawn.append(f"the {name} of {count:,} {unit}")
        return (
            f"the key drew {', '.join(drawn)}; dated {self.seal.date} by their author, "
            f"commitment {self.seal.commitment}"
        )


class SealFiles(NamedTuple):
    """Where the files of a sealed set are."""

    directory: Path
    key: Path
    commitment: Path
    seal: Path
    published: Path

    @classmethod
    def of(cls, directory: Path, name: str = "") -> "SealFiles":
        """Return those of a directory, of a set of that name."""
        public = directory / "public"
        return cls(
            directory=directory,
            key=directory / "private" / "key.json",
            commitment=directory / "commitment.json",
            seal=public / "seal.json",
            published=public / f"{name}.jsonl",
        )


# --- the author's side ----------------------------------------------------------------


def seal_file(path: Path, directory: Path, **stated: Any) -> SealFiles:
    """Seal a file by a secret that the operating system draws now, or commit to that.

    With a `beacon_round` nothing is drawn yet: key and commitment are written, and
    `draw_committed` ends it after that round. Either all files are there afterwards, or
    `directory` is as it was: absent or empty.

    Parameters
    ----------
    path
        a .jsonl, .json, .csv, .parquet or .txt file; its order does not matter.
    directory
        a new one, in which all files are written.
    stated
        Fields of the `Statement`. By default `name` is that of the file, and `template`
        that of the layout of the records.

    Raises
    ------
    InputError
        A statement that cannot be; fewer than FEWEST_RECORDS records, or one that
        cannot be read, comes twice, does not fit the template, has wordings or answers
        that are no list of different ones; what `items_of` refuses of any field; a text
        that names an option by its letter; answers that name one option twice; fewer
        than two items that move; a round that is over; a directory with anything in it.
    """
    rows = read_records(path)
    if len(rows) < FEWEST_RECORDS:
        raise InputError(
            f"{path}: too few records ({len(rows)}); seal at least {FEWEST_RECORDS}",
        )
    if stated.get("template") is None:
        stated["template"] = template_for(rows, str(path))
    try:
        statement = Statement(**{"name": writable(path.stem)} | stated)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{first['loc'][0]}: {first['msg']}; give another") from error
    statement.request("", None)  # refuses what is no test
    ahead = statement.beacon_round
    now = datetime.datetime.now(datetime.UTC)
    if ahead is not None and beacon.time_of(ahead) <= now:
        raise InputError(f"round {ahead:,} is over: name one that is not signed yet")
    prepare(rows, statement, str(path))
    records = [record for _, record in rows]
    secret = secrets.token_bytes(32).hex()
    key = Key(secret=secret, statement=statement, records=records)
    with replacing(directory, new=True) as temporary:
        made = SealFiles.of(temporary, statement.name)
        made.key.parent.mkdir(mode=0o700, parents=True)
        write_text(made.key.parent / ".gitignore", "*\n")
        # Before there is anything in it that nobody else may read.
        made.key.touch(mode=0o600)
        made.key.write_bytes(to_json(key))
        if ahead is None:
            _write_public(key, None, made.seal.parent)
        else:
            made.commitment.write_bytes(to_json(key.commitment))
    return SealFiles.of(directory, statement.name)


def draw_committed(directory: Path, signature: str) -> SealFiles:
    """Draw the set to which `seal_file` has committed, by the beacon's signature.

    Raises InputError for a directory without such a commitment, a commitment that was
    changed, a signature that is not that of the round, and a set that was drawn before.
    """
    key = read_model(SealFiles.of(directory).key, Key)
    files = SealFiles.of(directory, key.statement.name)
    require(files.commitment, to_json(key.commitment), files.key)
    with replacing(files.seal.parent, new=True) as temporary:
        _write_public(key, signature, temporary)
    return files


def _write_public(key: Key, signature: str | None, folder: Path) -> None:
    sealed = draw_again(key, signature, "the records")
    folder.mkdir()
    (folder / f"{key.statement.name}.jsonl").write_bytes(sealed.text)
    (folder / "seal.json").write_bytes(to_json(sealed.seal))


# --- what a key draws -----------------------------------------------------------------


def draw_again(key: Key, signature: str | None, where: str) -> SealedSet:
    """Draw the set and the seal of a key.

    What a field looks like is a rule for new seals: it decides nothing that is drawn,
    and a seal that was published before a rule has to verify.

    Parameters
    ----------
    key
        Key of the author.
    signature
        Of the round that is stated (hex); not read where none is stated.
    where
        The name of the records in messages.

    Raises
    ------
    InputError
        For a signature that is not the beacon's of the stated round, and for records
        that `seal_file` refuses.
    """
    stated = key.statement
    declared = replace(stated.declared, other=(*stated.declared.other, ALL_OTHERS))
    lenient = stated.model_copy(update={"declared": declared})
    if stated.beacon_round is None:
        signature = None
    else:
        beacon.check_signature(stated.beacon_round, signature or "")
    rows = []
    for number, record in enumerate(key.records, start=1):
        rows.append((f"record {number}", record))
    seed = seed_of(bytes.fromhex(key.secret), signature)
    drawn = tuple(draw(prepare(rows, lenient, where), seed))
    published = []
    lines = []
    for line, drawn_record in enumerate(drawn, start=1):
        record = drawn_record.record
        published.append((f"line {line}", record))
        lines.append(f"{json.dumps(record, ensure_ascii=False)}\n")
    text = "".join(lines).encode()
    test_set = make_test_set(stated.name, published, stated.template, where)
    digest = hashlib.sha256(text).hexdigest()
    seal = Seal(**dict(key.commitment), signature=signature, sha256=digest)
    return SealedSet(seal, replace(test_set, declared=declared), text, drawn)


# --- the auditor's side ---------------------------------------------------------------


def verify(published: Path | None, seal: Path, key: Path) -> SealedSet:
    """Draw a set and its seal from the key, and compare both with the published ones.

    Parameters
    ----------
    published
        File of the set; None compares the seal alone, which holds its SHA-256.
    seal
        The published seal.json.
    key
        The author's key.json.

    Raises
    ------
    InputError
        For a seal of another version, a set that was changed or re-ordered, a seal or a
        key that was changed, and a key of another seal.
    """
    author = read_model(key, Key)
    signature = read_model(seal, Seal).signature
    sealed = draw_again(author, signature, str(key))
    require(seal, to_json(sealed.seal), key)
    if published is not None:
        require(published, sealed.text, key)
    return sealed


def require(path: Path, drawn: bytes, key: Path) -> None:
    """Raise InputError for a file that is not, byte for byte, what a key draws.

    Parameters
    ----------
    path
        The file.
    drawn
        The bytes that the key draws.
    key
        File of the key, for the message.
    """
    if read_bytes(path) != drawn:
        raise InputError(
            f"{path}: not what {key} draws: it was changed or re-ordered since sealing, "
            "or the key is of another set; take the originals"
        )


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file; raise InputError where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); give the original",
        ) from error


def read_model(path: Path, kind: type[_M]) -> _M:
    """Return the content of a file that sealing wrote, of these fields and no others.

    Raises InputError where sealing would have written other bytes.
    """
    data = read_bytes(path)
    try:
        value = kind.model_validate_json(data)
        if to_json(value) == data:
            return value
    except ValueError:  # of pydantic, or of what UTF-8 cannot say
        pass
    raise InputError(
        f"{path}: no {kind.__name__.lower()} as sealing wrote it: it was changed, or is "
        f"of another version than {ALGORITHM}; take the original"
    )


def to_json(value: BaseModel) -> bytes:
    """Return the bytes of a seal, a commitment or a key: a line for each field."""
    fields = value.model_dump(mode="json")  # records keep the order of their fields
    lines = []
    for name in sorted(fields):
        content = json.dumps(fields[name], ensure_ascii=False)
        lines.append(f'  "{name}": {content}')
    text = ",\n".join(lines)
    return f"{{\n{text}\n}}\n".encode()
