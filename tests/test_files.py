import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

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
            assert not path.exists() or content(kind, path) == "old"
        assert content(kind, path) == text
    assert [p.name for p in path.parent.iterdir()] == ["target.txt"]


def test_a_directory_does_not_keep_files_of_the_one_it_replaces(tmp_path):
    for name in ("old", "new"):
        with replacing(tmp_path / "d") as temporary:
            temporary.mkdir()
            (temporary / name).touch()
    assert [p.name for p in (tmp_path / "d").iterdir()] == ["new"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, PermissionError])
def test_a_failure_leaves_the_old_and_nothing_else(kind, error, tmp_path):
    path = tmp_path / "target.txt"
    fill(kind, path, "old")
    with pytest.raises(error), replacing(path) as temporary:
        fill(kind, temporary, "half")
        raise error
    assert content(kind, path) == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["target.txt"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_found_while_flushing_is_told_in_one_line(kind, number, tmp_path, monkeypatch):
    path = tmp_path / "target.txt"
    fill(kind, path, "old")

    def full(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(InputError, match="no space left") as caught, replacing(path) as temporary:
        fill(kind, temporary, "new")
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert content(kind, path) == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["target.txt"]


def test_a_full_disk_that_a_library_tells_in_words_is_recognised(tmp_path):
    """Safetensors and tokenizers raise exceptions of their own, without an errno."""
    with (
        pytest.raises(InputError, match="no space left"),
        replacing(tmp_path / "target") as temporary,
    ):
        temporary.touch()
        raise RuntimeError("Error while serializing: No space left on device (os error 28)")
    assert list(tmp_path.iterdir()) == []


def test_another_operating_system_error_keeps_its_type(tmp_path):
    with pytest.raises(PermissionError), replacing(tmp_path / "target"):
        raise PermissionError(errno.EACCES, "not allowed")


def test_data_are_on_disk_before_the_name_is(kind, tmp_path, monkeypatch):
    """Otherwise a power failure could leave the new name on an empty file."""
    path, order = tmp_path / "target.txt", []
    flush, rename = os.fsync, Path.replace
    monkeypatch.setattr(files.os, "fsync", lambda fd: (order.append("flush"), flush(fd)))
    monkeypatch.setattr(
        Path, "replace", lambda self, to: (order.append("rename"), rename(self, to))
    )
    with replacing(path) as temporary:
        fill(kind, temporary, "new")
    assert order == ["flush", "rename"]


def test_a_kill_leaves_the_old(kind, tmp_path):
    path = tmp_path / "target.txt"
    fill(kind, path, "old")
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from contamination.files import replacing\n"
        "with replacing(Path(sys.argv[1])) as temporary:\n"
        "    if sys.argv[2] == 'directory': temporary.mkdir(); temporary = temporary / 'file.txt'\n"
        "    temporary.write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    child = subprocess.run([sys.executable, "-c", code, path, kind], check=False)
    assert child.returncode == -signal.SIGKILL
    assert content(kind, path) == "old"
    # What it leaves is hidden, so that no reader takes it for a result.
    (left,) = [p for p in tmp_path.iterdir() if p != path]
    assert left.name.startswith(".")


def test_text_and_json_round_trip_as_equal_bytes(tmp_path):
    value = {"b": [1, 2.5, None], "a": "é\n\u2028"}
    write_json(tmp_path / "x.json", value)
    write_json(tmp_path / "y.json", dict(reversed(value.items())))
    assert (tmp_path / "x.json").read_bytes() == (tmp_path / "y.json").read_bytes()
    assert read_json(tmp_path / "x.json") == value
    write_text(tmp_path / "t.txt", "é\n")
    assert (tmp_path / "t.txt").read_bytes() == b"\xc3\xa9\n"


def test_a_checksum_names_the_contents_and_where_they_end(tmp_path):
    file = tmp_path / "f"
    file.write_bytes("né".encode())
    assert sha256_of("né") == sha256_of("né".encode()) == sha256_of(file)
    assert sha256_of("ab", "c") != sha256_of("a", "bc")
    assert sha256_of("a", "b") != sha256_of("b", "a")
    assert sha256_of("") != sha256_of()
