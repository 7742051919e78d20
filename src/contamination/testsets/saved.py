"""Folders that `save_to_disk` of the library `datasets` has written.

A data set has `state.json` and files of Arrow streams; several splits have
`dataset_dict.json` and such a folder for each.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, Field, ValidationError

from contamination.errors import InputError, brief
from contamination.testsets.inside import is_inner_name, require_inside
from contamination.testsets.records import Record, bounded, records_of

if TYPE_CHECKING:
    import pyarrow

STATE = "state.json"
SPLITS = "dataset_dict.json"
_M = TypeVar("_M", bound=BaseModel)


class _File(BaseModel):
    """A file of Arrow streams."""

    filename: str


class _State(BaseModel):
    """The state of a data set.

    Old versions of `datasets` kept the order of its rows elsewhere.
    """

    files: list[_File] = Field(alias="_data_files")
    indices: list[_File] | None = Field(None, alias="_indices_data_files")
    split: str | None = Field(None, alias="_split")


class _Splits(BaseModel):
    """The names of the splits of a data set."""

    splits: list[str]


def is_saved(folder: Path) -> bool:
    """Return whether `save_to_disk` has written a folder."""
    return (folder / STATE).is_file() or (folder / SPLITS).is_file()


def read_saved(folder: Path, split: str | None) -> list[Record]:
    """Return the records of a folder that `save_to_disk` has written, in their order.

    Without a split, that is "test", or the only data set that there is. Raises
    InputError for a split that is not there, for a folder that is incomplete or
    damaged, and for a link that leads out of it.
    """
    if (folder / SPLITS).is_file():
        known = _parsed(_Splits, folder / SPLITS).splits
        return _read_rows(folder / _chosen(known, split, folder), home=folder)
    state = _parsed(_State, folder / STATE)
    if split is not None and split != state.split:
        _chosen([state.split or "no name"], split, folder)
    return _read_rows(folder, home=folder)


def _chosen(known: list[str], split: str | None, folder: Path) -> str:
    """Return the split to be read."""
    wanted = split or "test"
    if split is None and len(known) == 1:
        wanted = known[0]
    if wanted not in known:
        raise InputError(
            f"{folder}: no split {wanted!r} in what save_to_disk wrote; name one of "
            f"{', '.join(known)} by `split`"
        )
    if not is_inner_name(wanted) or Path(wanted).name != wanted:
        raise _damaged(folder / SPLITS, f"{wanted!r} names no folder")
    return wanted


def _read_rows(folder: Path, *, home: Path) -> list[Record]:
    """Return the rows of a folder with a state, all of whose files lie in `home`."""
    import pyarrow

    state = _parsed(_State, folder / STATE)
    if state.indices:
        raise InputError(
            f"{folder}: an old version of datasets wrote it by save_to_disk, with the "
            "order of its rows apart; load it, call flatten_indices() and save_to_disk "
            "again"
        )
    files: list[Path] = []
    for named in state.files:
        name = Path(named.filename).name
        if not is_inner_name(name):
            raise _damaged(folder / STATE, f"{named.filename!r} names no file")
        require_inside(folder / name, home)
        files.append(folder / name)
    try:
        records = records_of(bounded(folder, _batches(files)))
    except InputError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
        raise _damaged(folder, str(error)) from error
    if not records:
        raise InputError(
            f"{folder}: the test set is empty; give one with records",
        )
    return records


def _batches(files: Sequence[Path]) -> Iterator["pyarrow.RecordBatch"]:
    """Yield the batches of rows of files of Arrow streams, all of the same columns."""
    import pyarrow

    schema = None
    for path in files:
        with path.open("rb") as handle, pyarrow.ipc.open_stream(handle) as stream:
            schema = schema or stream.schema
            if stream.schema != schema:
                raise ValueError(f"{path.name} has other columns than {files[0].name}")
            yield from stream


def _parsed(kind: type[_M], path: Path) -> _M:
    """Return what a JSON file of the folder says."""
    try:
        return kind.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise _damaged(path, first["msg"]) from error
    except OSError as error:
        raise _damaged(path, error.strerror or "") from error


def _damaged(path: Path, problem: str) -> InputError:
    reason = brief(problem, 200)
    return InputError(
        f"{path}: not as save_to_disk writes it ({reason}); save the data set again",
    )
