"""Files that are either whole or absent, and the checksums that name them.

Everything that the project writes goes through `replacing`: a temporary file beside the target,
flushed to disk, then renamed over it. A reader never meets half a file, whether the writer was
interrupted, killed or out of disk.
"""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from contamination.errors import InputError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path (file or directory) that replaces `path` if the block succeeds.

    If it fails, the temporary file is removed and `path` is as it was. Raises InputError if the
    disk is full.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # The suffix is kept last: writers such as matplotlib read the format from it. The name is the
    # same every time, so that the next try replaces what a kill left behind.
    temporary = path.with_name(f".{path.stem}.partial{path.suffix}")
    if temporary.is_dir():
        shutil.rmtree(temporary)
    try:
        yield temporary
        if temporary.is_dir():
            for file in temporary.rglob("*"):
                if file.is_file():
                    _flush(file)
            if path.exists():
                shutil.rmtree(path)
        else:
            _flush(temporary)
        temporary.replace(path)
    except Exception as error:
        if _is_full_disk(error):
            raise InputError(
                f"no space left on the disk that holds {path.parent}: free some and run the same "
                "command again; what was finished before is kept"
            ) from error
        raise
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)


def _is_full_disk(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    # Safetensors and tokenizers raise exceptions of their own that carry the system's words alone.
    return any(os.strerror(code) in str(error) for code in (errno.ENOSPC, errno.EDQUOT))


def _flush(file: Path) -> None:
    with file.open("rb") as handle:
        os.fsync(handle.fileno())


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text to `path`, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON with sorted keys, so that equal values are equal bytes."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file that this project wrote."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def sha256_of(*parts: bytes | str | Path) -> str:
    """SHA-256 (hex) over the parts in order: bytes, UTF-8 text, or the contents of files."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            with part.open("rb") as handle:
                digest.update(hashlib.file_digest(handle, "sha256").digest())
        else:
            digest.update(hashlib.sha256(part.encode() if isinstance(part, str) else part).digest())
    return digest.hexdigest()
