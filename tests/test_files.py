import errno
import os
import signal
import stat
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from contamination import files
from contamination.errors import InputError
from contamination.files import read_json, replacing, sha256_of, write_json, write_text


def fill(kind: str, path: Path, text: str) -> None:
    """Write `text` as a file, or as a directory with a nested file."""
    if kind == "directory":
        path = path / "inner" / "file.txt"
        path.parent.mkdir(parents=True)
    path.write_text(text)


FSYNC = os.fsync  # before `conftest` takes another one


@pytest.fixture(autouse=True)
def files_wait_for_the_disk(monkeypatch) -> None:
    monkeypatch.setattr(os, "fsync", FSYNC)


STAYS = "target: there is something already, and it stays"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def content(kind: str, path: Path) -> str:
    return (path / "inner" / "file.txt" if kind == "directory" else path).read_text()


@pytest.fixture(params=["file", "directory"])
def kind(request) -> str:
    return request.param


def test_the_new_replaces_the_old_when_the_block_ends(kind, tmp_path):
    path = tmp_path / "deep" / "target.txt"
    for text in ("old", "new"):
        with replacing(path) as temporary:
            fill(kind, temporary, text)
            if kind == "directory":
                (temporary / text).touch()
            assert not path.exists() or content(kind, path) == "old"
        assert content(kind, path) == text
    assert names(path.parent) == ["target.txt"]
    assert kind == "file" or names(path) == ["inner", "new"]  # nothing of the old one


@pytest.mark.parametrize("error", [KeyboardInterrupt, PermissionError])
def test_a_failure_leaves_the_old_and_nothing_else(kind, error, tmp_path):
    path = tmp_path / "target.txt"
    fill(kind, path, "old")
    with pytest.raises(error), replacing(path) as temporary:
        fill(kind, temporary, "half")
        raise error
    assert content(kind, path) == "old"
    assert names(tmp_path) == ["target.txt"]


@pytest.mark.parametrize("renames", [1, 2])
def test_a_directory_is_whole_when_its_replacement_is_interrupted(renames, tmp_path, monkeypatch):
    """The old one is renamed away before the new one is in place, and removed after that."""
    path = tmp_path / "target"
    fill("directory", path, "old")
    rename = Path.replace
    done = []

    def interrupted(source: Path, target: Path) -> None:
        rename(source, target)
        done.append(target)
        if len(done) == renames:
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt), replacing(path) as temporary:
        fill("directory", temporary, "new")
    assert content("directory", path) == ("old" if renames == 1 else "new")
    assert names(tmp_path) == ["target"]


def test_a_full_disk_found_while_flushing_is_told_in_one_line(kind, tmp_path, monkeypatch):
    path = tmp_path / "target.txt"
    fill(kind, path, "old")

    for number in (errno.ENOSPC, errno.EDQUOT):
        full = Mock(side_effect=OSError(number, os.strerror(number)))
        monkeypatch.setattr(files.os, "fsync", full)
        with pytest.raises(InputError, match="no space left") as caught, replacing(path) as new:
            fill(kind, new, "new")
        assert str(tmp_path) in str(caught.value)
    # Safetensors and tokenizers raise exceptions of their own, without an errno.
    with pytest.raises(InputError, match="no space left"), replacing(path):
        raise RuntimeError("Error while serializing: No space left on device (os error 28)")
    assert content(kind, path) == "old"
    assert names(tmp_path) == ["target.txt"]


def test_data_are_on_disk_before_the_name_is_and_the_name_before_it_ends(
    kind, tmp_path, monkeypatch
):
    """Otherwise a power cut could leave the new name on an empty file, or no name at all."""
    path = tmp_path / "target.txt"
    order = []
    flush, rename = os.fsync, Path.replace

    def flushing(descriptor: int) -> None:
        order.append(os.fstat(descriptor).st_ino)
        flush(descriptor)

    def renamed(source: Path, target: Path) -> None:
        order.append("rename")
        rename(source, target)

    monkeypatch.setattr(files.os, "fsync", flushing)
    monkeypatch.setattr(Path, "replace", renamed)
    with replacing(path) as temporary:
        fill(kind, temporary, "new")
    inside = [path / "inner" / "file.txt", path / "inner"] if kind == "directory" else []
    flushed = [each.stat().st_ino for each in [*inside, path, tmp_path]]
    assert order == [*flushed[:-1], "rename", flushed[-1]]


def test_a_folder_that_cannot_be_flushed_does_not_stop_anybody(tmp_path, monkeypatch):
    """Some network file systems answer EINVAL; nothing else is passed over."""

    def only_files(number: int, descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.os, "fsync", partial(only_files, errno.EINVAL))
    write_text(tmp_path / "a", "new")
    monkeypatch.setattr(files.os, "fsync", partial(only_files, errno.EIO))
    with pytest.raises(InputError, match=r"b: cannot be written \(Input/output error\)"):
        write_text(tmp_path / "b", "new")


KILLED = """
import os, signal, sys
from pathlib import Path
from contamination.files import replacing
with replacing(Path(sys.argv[1])) as temporary:
    if sys.argv[2] == "directory":
        temporary.mkdir()
        temporary = temporary / "file.txt"
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_kill_leaves_the_old_and_a_later_writer_tidies_up(kind, tmp_path):
    path = tmp_path / "target.txt"
    fill(kind, path, "old")
    child = subprocess.run([sys.executable, "-c", KILLED, path, kind], check=False)
    assert child.returncode == -signal.SIGKILL
    assert content(kind, path) == "old"
    # What it leaves is hidden, so that no reader takes it for a result.
    (left,) = [p for p in tmp_path.iterdir() if p != path]
    assert left.name.startswith(".")
    write_text(path.with_name("another"), "")
    assert left.exists()  # it might be of a process at work
    days_ago = time.time() - 2 * 86_400
    os.utime(left, (days_ago, days_ago))
    write_text(path.with_name("another"), "")
    assert names(tmp_path) == ["another", "target.txt"]


def test_what_a_writer_at_work_has_is_left_to_it(kind, tmp_path):
    path = tmp_path / "target.txt"
    with replacing(path) as first:
        fill(kind, first, "first")
        with replacing(path) as second:
            assert second != first
            fill(kind, second, "second")
        assert content(kind, path) == "second"
        assert content(kind, first) == "first"
    assert content(kind, path) == "first"
    assert names(tmp_path) == ["target.txt"]


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("/dev/null", "no regular file"),
        ("/proc/version/target", "cannot be written"),
        ("/", "a directory that cannot be replaced"),
        ("file/target", "cannot be written"),
        ("pipe", "no regular file"),
        ("x" * 300, "File name too long"),
    ],
)
def test_where_nothing_can_be_written_is_told_before_the_work(tmp_path, where, reason):
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    before = names(tmp_path)
    path = tmp_path / where
    with pytest.raises(InputError, match=reason) as caught, replacing(path):
        pytest.fail("the work starts, although it cannot be written")
    assert str(path) in str(caught.value)
    assert names(tmp_path) == before


def test_json_round_trips_as_equal_bytes(tmp_path):
    value = {"b": [1, 2.5, None], "a": "é\n\u2028"}
    write_json(tmp_path / "x.json", value)
    write_json(tmp_path / "y.json", dict(reversed(value.items())))
    assert (tmp_path / "x.json").read_bytes() == (tmp_path / "y.json").read_bytes()
    assert read_json(tmp_path / "x.json") == value


@pytest.mark.parametrize(
    "data", [b"", b'{"a": 1', b"\xff\xfe", b"[1]", b"[" * 100_000, b"9" * 5000]
)
def test_json_that_is_damaged_is_told_in_one_line(tmp_path, data):
    path = tmp_path / "x.json"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"x\.json: it is damaged; remove it"):
        read_json(path)
    for where in (tmp_path, tmp_path / "nothing", path / "within"):
        with pytest.raises(InputError, match=f"{where}: cannot be read"):
            read_json(where)


def test_a_checksum_names_the_contents_and_where_they_end(tmp_path):
    file = tmp_path / "f"
    file.write_bytes("né".encode())
    assert sha256_of("né") == sha256_of("né".encode()) == sha256_of(file)
    assert sha256_of("ab", "c") != sha256_of("a", "bc")
    assert sha256_of("a", "b") != sha256_of("b", "a")
    assert sha256_of("") != sha256_of()


def test_what_is_there_is_not_replaced_by_something_new(kind, tmp_path):
    path = tmp_path / "target"
    fill(kind, path, "old")
    with pytest.raises(InputError, match=STAYS), replacing(path, new=True):
        pytest.fail("the work starts")
    assert content(kind, path) == "old"
    assert names(tmp_path) == ["target"]


def test_of_two_that_make_the_same_the_first_stays(tmp_path):
    path = tmp_path / "deep" / "target"
    path.mkdir(parents=True)  # an empty one gives way
    with pytest.raises(InputError, match=STAYS), replacing(path, new=True) as late:
        fill("directory", late, "late")
        with replacing(path, new=True) as early:
            fill("directory", early, "early")
    assert content("directory", path) == "early"
    assert names(path.parent) == ["target"]
