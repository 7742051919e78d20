"""The JSON documents of a seal, and reading them so that nothing but the original passes.

`Commitment` and `Seal` are published, `Key` stays with the author.
"""

import json
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from contamination.errors import InputError
from contamination.seal import beacon
from contamination.seal.draws import ALGORITHM, Statement, commitment

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
    """The document that is published with a set: the commitment, a signature, the set's SHA-256."""

    signature: str | None
    sha256: _Hex64

    @property
    def guarantee(self) -> str:
        """The basis of a p-value of the set, and what has to be checked for it."""
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
    """The document that the author keeps: the secret, the statement, and the records in order."""

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
