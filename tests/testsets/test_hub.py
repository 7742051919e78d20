"""Room on the disk before files are fetched, and one fetch for several processes."""

import threading
from collections import namedtuple

import huggingface_hub
import huggingface_hub.constants
import pytest

from contamination.testsets import hub
from contamination.testsets.hub import fetch_files
from fakes.hub_server import Repository
from fakes.made_up_registry import refusal

FILES = {"config.json": b"{}", "a.bin": b"a" * 1000, "b.bin": b"b" * 500, "other.h5": b"o" * 9000}
Usage = namedtuple("Usage", "free")  # of `shutil.disk_usage`


@pytest.fixture
def repository(server) -> Repository:
    server.models["org/name"] = made = Repository()
    made.push(FILES)
    return made


@pytest.fixture
def disk(monkeypatch):
    """Return a function that says how much room the disk has."""

    def has(free: int) -> None:
        monkeypatch.setattr(hub.shutil, "disk_usage", lambda folder: Usage(free))

    return has


def test_a_disk_that_is_too_small_is_refused_before_anything_is_fetched(repository, server, disk):
    disk(1499)
    message = refusal(fetch_files, "org/name", ["*.bin"])
    assert message.startswith("org/name: 1.5e-06 GB are missing of it, and the disk that holds ")
    assert message.endswith(
        "has 1.5e-06 GB left; free some, or name a folder on a larger disk with HF_HOME"
    )
    assert not server.downloaded()
    # What is there already needs no room.
    disk(1000)
    fetch_files("org/name", ["a.bin"])
    disk(500)
    fetch_files("org/name", ["*.bin"])
    disk(0)
    fetch_files("org/name", ["*.bin"])


def test_two_at_once_fetch_once(repository, server, disk, monkeypatch):
    """The second asks while the first fetches, when the disk has no room for both."""
    free, fetching, asked = 1500, threading.Event(), threading.Event()
    lock, download = hub.FileLock, huggingface_hub.snapshot_download

    def slow(*arguments, dry_run=False, **options):
        nonlocal free
        if not dry_run:
            fetching.set()
            assert asked.wait(10)
        found = download(*arguments, dry_run=dry_run, **options)
        free -= 0 if dry_run else free
        return found

    class Lock(lock):
        def acquire(self, *arguments, **options):
            if fetching.is_set():
                asked.set()
            return super().acquire(*arguments, **options)

    monkeypatch.setattr(hub, "FileLock", Lock)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", slow)
    monkeypatch.setattr(hub.shutil, "disk_usage", lambda folder: Usage(free))
    folders = []
    first = threading.Thread(target=lambda: folders.append(fetch_files("org/name", ["*.bin"])))
    first.start()
    assert fetching.wait(10)
    folders.append(fetch_files("org/name", ["*.bin"]))
    first.join()
    assert folders[0] == folders[1]
    assert len([line for line in server.seen if line.startswith("GET /lfs/")]) == 2
