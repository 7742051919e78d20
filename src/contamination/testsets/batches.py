"""Rows of tables, unpacked up to a bound: a few bytes may hold gigabytes, or millions of rows."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from contamination.errors import InputError

if TYPE_CHECKING:
    import pyarrow

MOST_BYTES = 2**32
MOST_ROWS = 10_000_000  # a row without values takes no bytes


def bounded(
    path: Path, batches: Iterable["pyarrow.RecordBatch"]
) -> Iterator["pyarrow.RecordBatch"]:
    """Yield the batches of rows of a table.

    Raises InputError once they are more than MOST_BYTES bytes or MOST_ROWS rows.
    """
    size = 0
    rows = 0
    for batch in batches:
        size += batch.nbytes
        rows += batch.num_rows
        if size > MOST_BYTES or rows > MOST_ROWS:
            raise InputError(
                f"{path}: more than {MOST_BYTES:,} bytes or {MOST_ROWS:,} rows when it is "
                "unpacked; give one with fewer or smaller records"
            )
        yield batch
