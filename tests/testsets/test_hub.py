"""Room on the disk before files are fetched, and one fetch for several processes."""

import threading
from collections import namedtuple

import huggingface_hub
import huggingface_hub.constants
import pytest

from contamination import files
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
    assert "org/name: 1.5e-06 GB are missing" in refusal(fetch_files, "org/name", ["*.bin"])
    assert not server.downloaded()
    # What is there already needs no room.
    for free, wanted in ((1000, "a.bin"), (500, "*.bin"), (0, "*.bin")):
        disk(free)
        fetch_files("org/name", [wanted])


def test_two_at_once_fetch_once(repository, server, disk, monkeypatch):
    """The second asks while the first fetches, when the disk has no room for both."""
    free, fetching, asked = 1500, threading.Event(), threading.Event()
    lock, download = files.FileLock, huggingface_hub.snapshot_download

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

    monkeypatch.setattr(files, "FileLock", Lock)
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


def test_a_model_that_cannot_be_had_is_refused_at_once(repository, server, monkeypatch, tmp_path):
    hub.require_in_reach("org/name")
    fetch_files("org/name", ["config.json"])
    monkeypatch.setattr(hub, "in_reach", lambda: False)
    for held in ("org/name", str(tmp_path), "no id: of the hub"):
        hub.require_in_reach(held)
    assert "org/other: no such path" in refusal(hub.require_in_reach, "org/other")


@pytest.mark.parametrize("reached", [False, True])
def test_a_hub_out_of_reach_is_asked_once(monkeypatch, reached: bool):
    """Its client would try six times, for half a minute."""
    monkeypatch.setattr(hub, "in_reach", lambda: reached)
    with hub.asked_once():
        assert huggingface_hub.constants.is_offline_mode() is not reached
    assert not huggingface_hub.constants.is_offline_mode()
