"""Files in an archive, unpacked up to a bound: a few bytes may hold gigabytes."""

import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyarrow

from contamination.errors import InputError

MOST_OF_A_FILE = 2**28  # bytes of one file in an archive, unpacked
MOST_OF_ALL = 2**32
COPY_LOG = "copy the log again"
ZSTANDARD = 93  # method of a zip file that Python reads from 3.14 on
# Where a file's own header has the lengths of its name and of extra fields.
_NAME_LENGTH = 26
# What zipfile and its decompressors raise at damaged files.
_DAMAGE = (
    OSError,
    EOFError,
    KeyError,
    ValueError,
    OverflowError,
    RuntimeError,  # encrypted, or packed by a method that Python does not have
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    pyarrow.ArrowException,
)


class Archive:
    """The files of an open zip file by their names; it counts the bytes unpacked."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, again: str) -> None:
        self.path = path
        self.archive = archive
        self.again = again
        self.files = {file.filename: file for file in archive.infolist()}
        self.unpacked = 0

    def read(self, name: str) -> bytes:
        """Return the contents of a file.

        Raises InputError where it is damaged or encrypted, or larger than
        MOST_OF_A_FILE, or all files that were read are larger than MOST_OF_ALL.
        """
        room = min(MOST_OF_A_FILE, MOST_OF_ALL - self.unpacked)
        with damage_named(self.path, name, self.again):
            data = self._read(self.files[name], room + 1)
        if len(data) > room:
            raise InputError(
                f"{self.path}, {name}: more than {room:,} bytes when it is unpacked; "
                "give one with fewer or smaller records"
            )
        self.unpacked += len(data)
        return data

    def _read(self, file: zipfile.ZipInfo, size: int) -> bytes:
        if file.compress_type != ZSTANDARD:
            with self.archive.open(file) as stream:
                return stream.read(size)
        handle = self.archive.fp
        assert handle is not None
        packed = pyarrow.BufferReader(_packed(handle, file))
        with pyarrow.CompressedInputStream(packed, "zstd") as stream:
            return bytes(stream.read(size))


def _packed(handle: IO[bytes], file: zipfile.ZipInfo) -> bytes:
    """Return the bytes of a file as the archive has them."""
    handle.seek(file.header_offset + _NAME_LENGTH)
    name_length, extra_length = struct.unpack("<HH", handle.read(4))
    handle.seek(name_length + extra_length, 1)
    return handle.read(file.compress_size)


@contextmanager
def opened_archive(path: Path, again: str = COPY_LOG) -> Iterator[Archive]:
    """Open a zip file for the block.

    Raises InputError where it is none; `again` says how to get a whole one.
    """
    with damage_named(path, "the archive", again):
        archive = zipfile.ZipFile(path)
    with archive:
        yield Archive(path, archive, again)


@contextmanager
def damage_named(path: Path, what: str, again: str = COPY_LOG) -> Iterator[None]:
    """Raise InputError for what decompressors raise in the block.

    The message names file and part, and says how to get a whole file `again`.
    """
    try:
        yield
    except InputError:
        raise
    except _DAMAGE as error:
        problem = getattr(error, "strerror", None) or str(error) or type(error).__name__
        shown = " ".join(problem.split())[:100]
        raise InputError(
            f"{path}: {what} cannot be read ({shown}); {again}",
        ) from error
