"""Sealing a file, at once or in two steps, and verifying it by drawing it again.

::

    DIR/private/key.json      secret, statement and the author's records (mode 0600)
    DIR/private/held_out.jsonl  records that the key has held back, if any (mode 0600)
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
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from contamination.errors import InputError
from contamination.files import replacing, writable, write_text
from contamination.membership.scores import COMPARED_SCORES, score_of_sides
from contamination.seal import beacon
from contamination.seal.division import FEWEST_RECORDS, divide
from contamination.seal.documents import Key, Seal, read_bytes, read_model, to_json
from contamination.seal.draws import KINDS, Drawn, Statement, Variants, draw, seed_of
from contamination.seal.prepare import prepare
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.layouts import template_for
from contamination.testsets.options import ALL_OTHERS
from contamination.testsets.records import read_records


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
        The published records in this order, each with the variants from which it was
        drawn.
    held_out
        The examples that were held back; None if all are published.
    held_out_text
        Bytes of the file of held-out records.
    """

    seal: Seal
    test_set: ExampleSet
    text: bytes = field(repr=False)
    drawn: tuple[Drawn, ...] = field(repr=False)
    held_out: ExampleSet | None = field(default=None, repr=False)
    held_out_text: bytes = field(default=b"", repr=False)

    def listed(self, kind: str) -> int:
        """Return the number of records that have several of a kind."""
        return sum(kind in record.variants.several for record in self.drawn)

    @property
    def described(self) -> str:
        """The verified facts, in one line."""
        drawn = [f"the order of {len(self.drawn):,} records"]
        for kind, (name, _) in KINDS.items():
            count = self.listed(kind)
            unit = "items" if kind == "options" else "records"
            if count:
                drawn.append(f"the {name} of {count:,} {unit}")
        back = self.seal.hold_out
        if back is not None:
            drawn.append(f"which {back:,} of {len(self.drawn) + back:,} records are held back")
        return (
            f"the key drew {', '.join(drawn)}; dated {self.seal.date} by their author, "
            f"commitment {self.seal.commitment}"
        )


class SealFiles(NamedTuple):
    """Paths of the files of a sealed set."""

    directory: Path
    key: Path
    commitment: Path
    seal: Path
    published: Path
    held_out: Path

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
            held_out=directory / "private" / "held_out.jsonl",
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
        that are no list of different ones; a field to fill where no record has such a
        list; what `items_of` refuses of any field; a text that names an option by its
        letter; answers that name one option twice; fewer than two items that move; a
        round that is over; a directory with anything in it.
        Of records to hold back: too few or too many of them, records that can have one
        text, scores that do not exist, and a set that was published.
    """
    _check_scores(path, stated)
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
        field = str(first["loc"][0])
        message = f"{field}: {first['msg']}; give another"
        if field == "name" and "name" not in stated:
            message = (
                f"{path}: the set is named after its file; rename that, by at most 100 "
                "letters, digits, blanks and . + - _, of which a letter or digit comes first"
            )
        raise InputError(message, parameter=field) from error
    statement.request("", None)  # refuses what is no test
    ahead = statement.beacon_round
    now = datetime.datetime.now(datetime.UTC)
    if ahead is not None and beacon.time_of(ahead) <= now:
        raise InputError(f"round {ahead:,} is over: name one that is not signed yet")
    _refuse_unfilled(prepare(rows, statement, str(path)), statement, str(path))
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
            _write_drawn(key, None, made.seal.parent, made.held_out)
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
        _write_drawn(key, signature, temporary, files.held_out)
    return files


def _check_scores(path: Path, stated: dict[str, Any]) -> None:
    """State the scores by which sides are compared, and refuse a set that was published."""
    if stated.get("hold_out") is None:
        if stated.get("scores"):
            raise InputError(
                "scores compare published records with held-out ones: give hold_out as "
                "well, or leave them out",
                parameter="scores",
            )
        return
    if (path.parent / "seal.json").exists():
        raise InputError(
            f"{path}: it was sealed, and is published, so no record of it can be held back; "
            "seal records that nobody has seen",
            parameter="hold_out",
        )
    stated["scores"] = stated.get("scores") or COMPARED_SCORES
    for name in stated["scores"]:
        score_of_sides(name)


def _refuse_unfilled(prepared: Sequence[Variants], statement: Statement, where: str) -> None:
    """Raise InputError for a field that is to be filled, and no record has its list."""
    filled = {"wordings_of": "wordings", "answers_of": "answers"}
    for parameter, kind in filled.items():
        stated = getattr(statement, parameter) is not None
        if stated and not any(variants.choices(kind) for variants in prepared):
            raise InputError(
                f"{where}: no record has {kind!r} of which the key could pick one: give each "
                "record its list, or name no field to fill",
                parameter=parameter,
            )


def _write_drawn(key: Key, signature: str | None, folder: Path, held_out: Path) -> None:
    """Write what a key draws: first what is held back, then what is published."""
    sealed = draw_again(key, signature, "the records")
    if sealed.held_out is not None:
        _keep(held_out, sealed.held_out_text, "the key")
    folder.mkdir()
    (folder / f"{key.statement.name}.jsonl").write_bytes(sealed.text)
    (folder / "seal.json").write_bytes(to_json(sealed.seal))


def _keep(path: Path, data: bytes, key: str) -> None:
    """Write a file that nobody else may read; one that is there already has to be equal."""
    if path.exists():
        require(path, data, key)
        return
    with replacing(path) as temporary:
        temporary.touch(mode=0o600)
        temporary.write_bytes(data)


# --- what a key draws -----------------------------------------------------------------


def draw_again(key: Key, signature: str | None, where: str) -> SealedSet:
    """Draw the set and the seal of a key.

    What a field looks like is a rule for new seals: it decides nothing that is drawn,
    and a seal that was published before a rule has to verify. The signature (hex) is
    that of the stated round, and is ignored if no round is stated. Raises InputError
    for a signature that is not the beacon's of that round, and for records that
    `seal_file` refuses.
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
    sides = divide(draw(prepare(rows, lenient, where), seed), seed, stated.hold_out)
    test_set, text = _written(sides.published, stated, where)
    held_out = None
    held_out_text = b""
    if sides.held_out:
        held_out, held_out_text = _written(sides.held_out, stated, where)
    digest = hashlib.sha256(text).hexdigest()
    return SealedSet(
        seal=Seal(**dict(key.commitment), signature=signature, sha256=digest),
        test_set=replace(test_set, declared=declared),
        text=text,
        drawn=sides.published,
        held_out=held_out,
        held_out_text=held_out_text,
    )


def _written(drawn: Sequence[Drawn], stated: Statement, where: str) -> tuple[ExampleSet, bytes]:
    """Return the examples of some drawn records, and the bytes of their file."""
    placed = []
    lines = []
    for line, drawn_record in enumerate(drawn, start=1):
        record = drawn_record.record
        placed.append((f"line {line}", record))
        lines.append(f"{json.dumps(record, ensure_ascii=False)}\n")
    examples = make_test_set(stated.name, placed, stated.template, where)
    return examples, "".join(lines).encode()


# --- the auditor's side ---------------------------------------------------------------


def verify(
    published: Path | None, seal: Path, key: Path, held_out: Path | None = None
) -> SealedSet:
    """Draw a set and its seal from the key, and compare both with the published ones.

    Parameters
    ----------
    published
        File of the set; None compares the seal alone, which holds its SHA-256.
    seal
        The published seal.json.
    key
        The author's key.json.
    held_out
        The author's file of the records that were held back; None leaves it unread.

    Raises
    ------
    InputError
        For a seal of another version, a set that was changed or re-ordered, a seal, a
        key or held-out records that were changed, held-out records of a seal without
        any, and a key of another seal.
    """
    author = read_model(key, Key)
    signature = read_model(seal, Seal).signature
    sealed = draw_again(author, signature, str(key))
    require(seal, to_json(sealed.seal), key)
    if published is not None:
        require(published, sealed.text, key)
    if held_out is not None:
        if sealed.held_out is None:
            raise InputError(
                f"{held_out}: {seal} holds no record back; leave these records out",
                parameter="held_out",
            )
        require(held_out, sealed.held_out_text, key)
    return sealed


def require(path: Path, drawn: bytes, key: Path | str) -> None:
    """Raise InputError for a file that is not, byte for byte, what a key draws."""
    published = read_bytes(path)
    if published == drawn:
        return
    if published.replace(b"\r\n", b"\n") == drawn:
        raise InputError(
            f"{path}: not what {key} draws: its line ends are those of Windows (git's autocrlf "
            "changes them); take the original"
        )
    raise InputError(
        f"{path}: not what {key} draws: it was changed or re-ordered since sealing, "
        "or the key is of another set; take the originals"
    )
