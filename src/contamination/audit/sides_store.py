"""Scores of two sides on disk, and each test of them: enough to compute it again.

A store is a folder beside the other stores of a model and a set. It holds a header, the
scores of all records (`contamination.membership.stored.stored_scores`), and a note for
each test. `verify` reads these alone, without a model and without the records.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from contamination.audit.other_tests import SIDES_HEADER
from contamination.errors import InputError
from contamination.files import read_json, sha256_of, write_json
from contamination.randomness import random_stream
from contamination.scoring.plan import stores_of
from contamination.statistics.held_out import HeldOutResult, held_out_test

if TYPE_CHECKING:
    import pandas as pd

TEST = "held_out"
STRICT = ConfigDict(frozen=True, extra="forbid")
M = TypeVar("M", bound=BaseModel)


class SidesHeader(BaseModel):
    """The header of a store of two sides: model, both sides, and requested scores.

    Attributes
    ----------
    kind
        Kind of the store.
    model, model_revision
        Name and revision of the scorer.
    dataset, dataset_revision
        The published records.
    held_out, held_out_revision
        The records that were held back.
    template
        Template of both sides.
    scores
        Scores that were requested; a model may not give all of them.
    published
        Number of published records, which stand first.
    records
        Number of records of both sides.
    """

    model_config = STRICT

    kind: Literal["held-out"] = "held-out"
    model: str
    model_revision: str
    dataset: str
    dataset_revision: str
    held_out: str
    held_out_revision: str
    template: str
    scores: tuple[str, ...] = Field(min_length=1)
    published: int = Field(ge=1)
    records: int = Field(ge=2)

    @property
    def key(self) -> str:
        """Hash of all that the scores depend on."""
        return sha256_of(
            self.model_revision,
            self.dataset_revision,
            self.held_out_revision,
            self.template,
            *self.scores,
        )

    def directory(self, stores: Path) -> Path:
        """Return the folder of the store, in that of all stores."""
        return stores_of(stores, self.model, self.dataset) / f"held-out-{self.key[:16]}"


class SidesTest(BaseModel):
    """The settings of a test of the scores.

    Attributes
    ----------
    statistic, resamples, seed
        Same as in `contamination.audit.held_out.SidesRequest`.
    within
        Name of the field of the strata; "" if there is none.
    paired
        Whether record i of one side and record i of the other are a stratum.
    strata
        Stratum of each record, published ones first; None if all are in one.
    """

    model_config = STRICT

    statistic: str
    resamples: int = Field(ge=1)
    seed: int = Field(ge=0)
    within: str = ""
    paired: bool = False
    strata: tuple[int, ...] | None = None

    @property
    def key(self) -> str:
        """Hash of everything but the scores on which the p-value depends."""
        return sha256_of(self.model_dump_json())


class SidesNote(BaseModel):
    """A test that was made, in words as well, and the checksum of what it read."""

    model_config = STRICT

    described: str
    test: SidesTest
    checksum: str


@dataclass(frozen=True)
class SidesStore:
    """A store of the scores of two sides, and one test of them.

    Attributes
    ----------
    directory
        Folder of the store.
    header, test
        What was scored, and how the scores were tested.
    checksum
        SHA-256 of the scores.
    """

    directory: Path
    header: SidesHeader
    test: SidesTest
    checksum: str

    @property
    def key(self) -> str:
        """SHA-256 of all that was scored and asked; it names the test."""
        return sha256_of(self.header.key, self.test.key)

    @property
    def note(self) -> Path:
        """Return the file that says that the scores were tested."""
        return self.directory / f"test-{TEST}-{self.test.resamples}-{self.test.key[:8]}.json"

    @property
    def described(self) -> str:
        """Return what was tested, for people."""
        test = self.test
        parts = [f"scores {', '.join(self.header.scores)}"]
        parts += [f"{test.resamples} draws", f"seed {test.seed}", f"statistic {test.statistic}"]
        if test.within:
            parts.append(f"within {test.within}")
        if test.paired:
            parts.append("pairs")
        return "; ".join(parts)

    def write_note(self) -> None:
        """Note the test in the store; nothing where it cannot be written."""
        note = SidesNote(described=self.described, test=self.test, checksum=self.checksum)
        with suppress(InputError):
            _write_changed(self.note, note)


def write_header(directory: Path, header: SidesHeader) -> None:
    """Write the header of a store, unless the same lies there."""
    _write_changed(directory / SIDES_HEADER, header)


def read_header(directory: Path) -> SidesHeader:
    """Return the header of a store; raise InputError if it is damaged."""
    return _read(directory / SIDES_HEADER, SidesHeader)


def read_note(path: Path) -> SidesNote:
    """Return what a note of a test says; raise InputError if it is damaged."""
    return _read(path, SidesNote)


def read_scores(directory: Path, header: SidesHeader) -> "pd.DataFrame":
    """Return the scores of a store, a row for each record.

    Raises InputError if a file is damaged, or not all records have scores.
    """
    import pandas as pd
    import pyarrow as pa

    parts = []
    for path in sorted(directory.glob("*.parquet")):
        try:
            parts.append(pd.read_parquet(path))
        except (OSError, ValueError, pa.ArrowException) as error:
            raise InputError(f"{path}: it is damaged; compare the sides again") from error
    if not parts:
        raise InputError(f"{directory}: it holds no scores; compare the sides again")
    table = pd.concat(parts).sort_index()
    if not np.array_equal(table.index, np.arange(header.records)):
        raise InputError(
            f"{directory}: {len(table):,} of {header.records:,} records have scores; "
            "compare the sides again"
        )
    return table


def stored_tests(directory: Path, header: SidesHeader, table: "pd.DataFrame") -> list[SidesStore]:
    """Return each test that was made of a store, with its header and its scores.

    Raises InputError if a note is damaged, or the scores are not those that were tested.
    """
    checksum = checksum_of(table, header)
    stores = []
    for path in sorted(directory.glob(f"test-{TEST}-*.json")):
        note = read_note(path)
        if note.checksum != checksum:
            raise InputError(
                f"{path}: the scores are not those that were tested; compare the sides again"
            )
        stores.append(SidesStore(directory, header, note.test, checksum))
    return stores


def checksum_of(table: "pd.DataFrame", header: SidesHeader) -> str:
    """Return the SHA-256 of what was scored, and of its scores as float64."""
    values = table.to_numpy(np.float64)
    return sha256_of(header.key, *map(str, table.columns), values.tobytes())


def usable_scores(table: "pd.DataFrame", header: SidesHeader) -> list[str]:
    """Return the names of scores that all records have.

    Raises InputError if there is none.
    """
    names = [name for name in table.columns if table[name].notna().all()]
    if not names:
        raise InputError(f"{header.dataset}: the model gives none of {', '.join(header.scores)}")
    return names


def judge_sides(table: "pd.DataFrame", header: SidesHeader, test: SidesTest) -> HeldOutResult:
    """Return the result of a test of two sides, from their scores alone.

    The table has a row for each record, the published ones first. The header says which
    those are, and its revisions name the random draws. Raises InputError if no score is
    there for all records, if no stratum has both sides, or for a statistic that does
    not exist.
    """
    names = usable_scores(table, header)
    revisions = (header.dataset_revision, header.held_out_revision)
    return held_out_test(
        table[names].to_numpy().T,
        np.arange(header.records) < header.published,
        strata=test.strata,
        names=names,
        statistic=test.statistic,
        resamples=test.resamples,
        rng=random_stream(test.seed, "held-out", *revisions),
    )


def strata_to_keep(strata: Sequence[int]) -> tuple[int, ...] | None:
    """Return strata as a note holds them: None if all records are in one."""
    if len(set(strata)) == 1:
        return None
    return tuple(int(stratum) for stratum in strata)


def _write_changed(path: Path, model: BaseModel) -> None:
    """Write a model as JSON; what is the same stays, with its date."""
    content = model.model_dump(mode="json")
    with suppress(InputError):  # there is none, or it is damaged
        if read_json(path) == content:
            return
    write_json(path, content)


def _read(path: Path, kind: type[M]) -> M:
    """Return a file as a model; raise InputError if it is none."""
    try:
        return kind.model_validate(read_json(path))
    except ValidationError as error:
        raise InputError(
            f"{path}: it is damaged; remove it and compare the sides again",
        ) from error
