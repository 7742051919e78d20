"""The stages: bad input is one line on standard error, status 2, and nothing half-written."""

from pathlib import Path

import pytest
from filelock import FileLock

from fakes.data_fixtures import profile_data, write_profile


def _files(root: Path) -> list[str]:
    return sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())


@pytest.mark.parametrize(
    ("command", "profile", "named"),
    [
        ("score clean", "bad.yaml", "sede"),
        ("rules --results {root}/results", "bad.yaml", "sede"),
        ("train celan", "tiny.yaml", "celan"),
        ("score clean", "tiny.yaml", "corpus.json"),
        ("manifest --results {root}/results", "tiny.yaml", "corpus.json"),
        ("ship-stores --results {root}/r --stores {root}/s", "tiny.yaml", "r/manifest.json"),
        ("score clean --build {root}/tiny.yaml/x", "tiny.yaml", "tiny.yaml/x"),
        ("summary --results {root}/results", None, "results/manifest.json"),
    ],
)
def test_what_cannot_start_writes_nothing(command, profile, named, refused, tmp_path) -> None:
    write_profile(tmp_path / "tiny.yaml")
    write_profile(tmp_path / "bad.yaml", {**profile_data(), "sede": 1})
    arguments = command.format(root=tmp_path).split()
    if profile is not None:
        arguments += ["--profile", tmp_path / profile]
        arguments += [] if "--build" in arguments else ["--build", tmp_path / "build"]
    assert named in refused("stage", *arguments)
    assert _files(tmp_path) == ["bad.yaml", "tiny.yaml"]


def test_a_second_make_is_refused_and_a_third_may_come_later(refused, tmp_path: Path) -> None:
    write_profile(tmp_path / "tiny.yaml")
    build = tmp_path / "build"
    build.mkdir()
    arguments = ("train", "clean", "--profile", tmp_path / "tiny.yaml", "--build", build)
    with FileLock(build / ".train-clean.lock"):
        assert "another make works on this profile" in refused("stage", *arguments)
        # Another step of the same make may run beside it.
        beside = ("train", "contaminated", *arguments[2:])
        assert "corpus.json is missing" in refused("stage", *beside)
    for _ in range(2):  # the lock goes with the command, and with one that fails
        assert "corpus.json is missing" in refused("stage", *arguments)
