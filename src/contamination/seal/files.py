"""Sealing a file, at once or in two steps, and verifying what was sealed by drawing it again.

::

    DIR/private/key.json      the secret, what was stated and the author's records (mode 0600)
    DIR/commitment.json       of two steps: what is stated and the commitment, published first
    DIR/commitment.tsq, .tsr  with a time stamp: the request for it, and the answer to that
    DIR/public/NAME.jsonl     the sealed set, published
    DIR/public/seal.json      what is stated, the commitment, and what came out, published with it

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
    prepare,
    seed_of,
)
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.options import ALL_OTHERS
from contamination.testsets.records import read_records
from contamination.testsets.templates import template_for

FEWEST_RECORDS = 10  # fewer have hardly an order to be recognised by
_Hex64 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_M = TypeVar("_M", bound=BaseModel)


class Commitment(Statement):
    """What is published first: the statement, and what binds the key to it (hexadecimal)."""

    commitment: _Hex64

    @property
    def stamped(self) -> bytes:
        """The bytes of `commitment.json`, which a time stamp dates."""
        fields = {name: getattr(self, name) for name in Commitment.model_fields}
        return to_json(Commitment(**fields))


class Seal(Commitment):
    """What is published with a set: also the beacon's signature, and the SHA-256 of its file."""

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
    """What the author keeps: the secret, the statement, and the records in the author's order."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    secret: Annotated[_Hex64, Field(repr=False)]
    statement: Statement
    records: Annotated[list[dict[str, Any]], Field(repr=False)]

    @property
    def commitment(self) -> Commitment:
        """What `commitment.json` has to say, and `seal.json` as well."""
        stated = self.statement.model_dump(mode="json")
        found = commitment(bytes.fromhex(self.secret), self.records, stated)
        return Commitment(**dict(self.statement), commitment=found)


@dataclass(frozen=True)
class SealedSet:
    """A sealed set: what is stated and came out, what is published, and what it was drawn from.

    `text` are the bytes of the published file, and `drawn` are its records, in that
    order.
    """

    seal: Seal
    test_set: ExampleSet
    text: bytes = field(repr=False)
    drawn: tuple[Drawn, ...] = field(repr=False)

    def listed(self, kind: str) -> int:
        """Return the number of records that have several of a kind."""
        return sum(kind in one.variants.several for one in self.drawn)

    @property
    def described(self) -> str:
        """What was verified, in one line."""
        drawn = [f"the order of {len(self.drawn):,} records"]
        for kind, (name, _) in KINDS.items():
            count = self.listed(kind)
            of = "items" if kind == "options" else "records"
            if count:
                drawn.append(f"the {name} of {count:,} {of}")
        dated = f"dated {self.seal.date} by their author, commitment {self.seal.commitment}"
        return f"the key drew {', '.join(drawn)}; {dated}"


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
    path : a .jsonl, .json, .csv, .parquet or .txt file; its order does not matter.
    stated : fields of the `Statement`. By default `name` is that of the file, and
        `template` that of the layout of the records.

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
    if ahead is not None and beacon.time_of(ahead) <= datetime.datetime.now(
        datetime.UTC,
    ):
        raise InputError(f"round {ahead:,} is over: name one that is not signed yet")
    prepare(rows, statement, str(path))
    records = [record for _, record in rows]
    key = Key(secret=secrets.token_bytes(32).hex(), statement=statement, records=records)
    with replacing(directory, new=True) as temporary:
        made = SealFiles.of(temporary, statement.name)
        made.key.parent.mkdir(mode=0o700, parents=True)
        write_text(made.key.parent / ".gitignore", "*\n")
        # before there is anything in it that nobody else may read
        made.key.touch(mode=0o600)
        made.key.write_bytes(to_json(key))
        if ahead is None:
            _write_public(key, None, made.seal.parent)
        else:
            made.commitment.write_bytes(to_json(key.commitment))
    return SealFiles.of(directory, statement.name)


def draw_committed(directory: Path, signature: str) -> SealFiles:
    """Draw the set of a directory that `seal_file` has committed to, by the beacon's signature.

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

    Raises InputError for a signature that is not the beacon's of the round that is
    stated, and for records as `seal_file`. What a field looks like is a rule for new
    seals: it decides nothing that is drawn, and a seal that was published before a rule
    has to verify.
    """
    stated = key.statement
    declared = replace(stated.declared, other=(*stated.declared.other, ALL_OTHERS))
    if stated.beacon_round is None:
        signature = None
    else:
        beacon.check_signature(stated.beacon_round, signature or "")
    rows = [(f"record {number}", record) for number, record in enumerate(key.records, start=1)]
    seed = seed_of(bytes.fromhex(key.secret), signature)
    answered = stated.model_copy(update={"declared": declared})
    drawn = tuple(draw(prepare(rows, answered, where), seed))
    published = [(f"line {line}", one.record) for line, one in enumerate(drawn, start=1)]
    text = "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for _, one in published).encode()
    test_set = make_test_set(stated.name, published, stated.template, where)
    digest = hashlib.sha256(text).hexdigest()
    seal = Seal(**dict(key.commitment), signature=signature, sha256=digest)
    return SealedSet(seal, replace(test_set, declared=declared), text, drawn)


# --- the auditor's side ---------------------------------------------------------------


def verify(published: Path | None, seal: Path, key: Path) -> SealedSet:
    """Draw a set and its seal again from the key, and compare both with what was published.

    Without the published set the seal alone is compared, which holds the SHA-256 of the
    set.

    Raises InputError, one line each, for a seal of another version, a set that was
    changed or re-ordered, a seal or a key that was changed, and a key of another seal.
    """
    found = draw_again(read_model(key, Key), read_model(seal, Seal).signature, str(key))
    require(seal, to_json(found.seal), key)
    if published is not None:
        require(published, found.text, key)
    return found


def require(path: Path, drawn: bytes, key: Path) -> None:
    """Refuse a file that is not, byte for byte, what a key draws."""
    if read_bytes(path) != drawn:
        raise InputError(
            f"{path}: not what {key} draws: it was changed or re-ordered since sealing, "
            "or the key is of another set; take the originals"
        )


def read_bytes(path: Path) -> bytes:
    """Read a file whole; InputError if that fails."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); give the original",
        ) from error


def read_model(path: Path, kind: type[_M]) -> _M:
    """Read a file that sealing wrote: these fields of these types, and not a byte more."""
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
    """Bytes of a seal, a commitment or a key: a line for each field, equal for equal values."""
    made = value.model_dump(mode="json")  # records keep the order of their fields
    lines = (f'  "{name}": {json.dumps(made[name], ensure_ascii=False)}' for name in sorted(made))
    return "{{\n{}\n}}\n".format(",\n".join(lines)).encode()
