"""Files that are either whole or absent, and the checksums that name them.

Everything that the project writes goes through `replacing`: a temporary file next to
the target, flushed to disk, then renamed over it, and the new name flushed, too. A
reader never meets half a file, whether the writer was interrupted, killed, out of disk
or without power. Two processes may write the same file: each has a temporary file of its
own, and whoever ends last has the last word.
"""

import errno
import hashlib
import json
import os
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from contamination.errors import InputError

# A temporary file unchanged for so long belongs to a dead run.
ABANDONED_SECONDS = 86_400.0
# Size, time of the last writing and of the last change, in ns.
FileState = tuple[int, int, int]
TEMPORARY = f".{'[0-9a-f]' * 8}.partial*"


@contextmanager
def replacing(path: Path, *, new: bool = False) -> Iterator[Path]:
    """Yield a temporary path (file or directory) that replaces `path` if the block succeeds.

    If it fails, the temporary file is removed and `path` is as it was. What killed
    processes left in the folder of `path` is removed a day later. With `new` the block
    makes a directory, and nothing gives way to it but an empty one: what is there
    already, or what another process puts there meanwhile, stays. Raises InputError
    then, if the disk is full, or if `path` cannot be written: it is a device, its name
    is too long, its folder is a file or not writable.
    """
    path = Path(path)
    if not path.name:
        raise InputError(
            f"{path}: a directory that cannot be replaced; name something in it",
        )
    temporary = _temporary(path)
    try:
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                # Asked once: another process may write the same.
                mode = path.stat().st_mode
                if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                    raise InputError(
                        f"{path}: no regular file, which could be replaced; name another"
                    )
            if new and (path.is_file() or (path.is_dir() and any(path.iterdir()))):
                raise _exists(path)
            remove_leftovers(path.parent)
            # Whether it can be written is found out before any work is done.
            temporary.touch()
            temporary.unlink()
        yield temporary
        with writing(path):
            _flush(temporary)
            _rename(temporary, path, new=new)
            _flush_names(path.parent)
    except Exception as error:
        if _is_full_disk(error):
            raise InputError(
                f"no space left for {path} on its disk, or it is larger than the "
                "system's limit (ulimit -f): free some and run it again"
            ) from error
        raise
    finally:
        _remove(temporary)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise InputError if the system does not let the block write `path`."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror or error}); give a path that can be"
        ) from error


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one process at a time into the block, by a lock file, whose folder is made."""
    from filelock import FileLock

    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path).acquire()
    with lock:
        yield


def is_path(text: str) -> bool:
    """Whether a text is the path of something that is there."""
    try:
        return Path(text).exists()
    except (OSError, ValueError):  # too long, or with a zero byte
        return False


def require_path(value: object, what: str) -> None:
    """Raise InputError for a value that is neither a text nor a path; `what` it should name."""
    if not isinstance(value, str | Path):
        shown = repr(value)[:60]
        raise InputError(f"{what} is {shown}: give its name or its path, as text or as a Path")


def writable(name: str) -> str:
    """Return a name without what UTF-8 cannot say, such as half an emoji."""
    return name.encode("utf-8", "replace").decode()


def check_directory(path: Path) -> None:
    """Raise InputError if `path` is no directory and cannot become one."""
    try:
        places = (path, *path.parents)
        nearest = next(place for place in places if place.is_symlink() or place.exists())
        fine = nearest.is_dir()
    except OSError:  # a name that is too long
        fine = False
    if not fine:
        raise InputError(f"{path}: no directory; name another")


def remove_leftovers(folder: Path) -> None:
    """Remove old temporary files in `folder`, which killed processes have left."""
    for path in folder.glob(TEMPORARY):
        with suppress(OSError):  # removed meanwhile
            if time.time() - path.stat().st_mtime > ABANDONED_SECONDS:
                _remove(path)


def _temporary(path: Path) -> Path:
    """Return a name next to `path` that no other process and no other call uses."""
    # The suffix is kept last: writers such as matplotlib read the format from it.
    return path.with_name(f".{uuid4().hex[:8]}.partial{path.suffix}")


def _rename(temporary: Path, path: Path, *, new: bool) -> None:
    """Rename a file or a directory over what is there; nothing if it is to be new."""
    set_aside: list[Path] = []
    try:
        while True:
            try:
                temporary.replace(path)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                if new:
                    raise _exists(path) from error
            else:
                return
            # A directory with something in it gives way to no other, which its own
            # rename may. It is removed when the new one is in its place.
            set_aside.append(_temporary(path))
            with suppress(FileNotFoundError):  # another process was faster
                path.replace(set_aside[-1])
    finally:
        for old in set_aside:
            if not path.exists():
                with suppress(OSError):
                    old.replace(path)
            _remove(old)


def _remove(path: Path) -> None:
    """Remove a file or a directory, if it is there and can be removed."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _exists(path: Path) -> InputError:
    return InputError(
        f"{path}: there is something already, and it stays; name a new directory",
    )


def _is_full_disk(error: Exception) -> bool:
    # Safetensors and tokenizers raise exceptions of their own that carry the system's
    # words alone.
    codes = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return any(os.strerror(code) in str(error) for code in codes)


def _flush(path: Path) -> None:
    """Have a file, or all that is in a directory, on disk."""
    if path.is_dir():
        for inner in path.iterdir():
            _flush(inner)
        _flush_names(path)
    else:
        with path.open("rb") as handle:
            os.fsync(handle.fileno())


def _flush_names(folder: Path) -> None:
    """Have the names in a directory on disk, where the file system can be asked to."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # what some network file systems answer
            raise
    finally:
        os.close(handle)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text to `path`, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON with sorted keys: equal values are equal bytes."""
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    write_text(path, f"{text}\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that this project wrote, which holds an object.

    Raises InputError if it cannot be read, or holds anything else.
    """
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); run the command that writes it"
        ) from error
    except (ValueError, RecursionError):  # not UTF-8, not JSON, nested beyond all bounds
        value = None
    if not isinstance(value, dict):
        raise InputError(
            f"{path}: it is damaged; remove it and run the command that writes it",
        )
    return value


def read_yaml(path: Path) -> Any:
    """Read a YAML file that people write.

    Raises InputError for a file that is no YAML, and for a key that stands twice: YAML
    readers would silently take the last.
    """
    import yaml

    try:
        loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
        root = loader.get_single_node()
        content = loader.construct_document(root) if root else None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (yaml.YAMLError, ValueError) as error:  # not UTF-8, or no such date
        problem = " ".join(str(error).split())[:200]
        raise InputError(f"{path}: not valid YAML ({problem}); correct it") from error
    _require_distinct_keys(root, path)
    return content


def _require_distinct_keys(node: Any, path: Path) -> None:
    """Raise InputError if a mapping below a node of YAML has a key twice."""
    import yaml

    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _require_distinct_keys(item, path)
    if isinstance(node, yaml.MappingNode):
        seen = set[str]()
        for key, value in node.value:
            if str(key.value) in seen:
                line = key.start_mark.line + 1
                raise InputError(f"{path}, line {line}: {key.value!r} is there twice; remove one")
            seen.add(str(key.value))
            _require_distinct_keys(value, path)


def states_of(files: Iterable[Path]) -> dict[Path, FileState]:
    """Return the state of each file that is there.

    Another state says that the file was written or replaced, even by equal bytes: the
    last of the three is the system's own, and no program can set it back.
    """
    states = {}
    for file in files:
        with suppress(FileNotFoundError):
            now = file.stat()
            states[file] = (now.st_size, now.st_mtime_ns, now.st_ctime_ns)
    return states


class PartsDigest:
    """The SHA-256 over parts that are added one after the other."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, part: bytes | str | Path) -> None:
        """Add bytes, a text in UTF-8, or the contents of a file."""
        if isinstance(part, Path):
            with part.open("rb") as handle:
                inner = hashlib.file_digest(handle, "sha256")
        elif isinstance(part, str):
            inner = hashlib.sha256(part.encode())
        else:
            inner = hashlib.sha256(part)
        self._digest.update(inner.digest())

    def hexdigest(self) -> str:
        """Return the digest of what was added so far, hexadecimal."""
        return self._digest.hexdigest()


def sha256_of(*parts: bytes | str | Path) -> str:
    """Return the SHA-256 (hex) over parts in order: bytes, UTF-8, contents of files."""
    digest = PartsDigest()
    for part in parts:
        digest.add(part)
    return digest.hexdigest()
