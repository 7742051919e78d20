"""Stamps: an edit that is taken back makes nothing stale, unless a stage has begun meanwhile."""

import os
from pathlib import Path

import pytest

from fakes.data_fixtures import write_profile
from reproduction.stages.stamps import forget_stamp, write_stamp


@pytest.mark.parametrize("has_begun", [False, True])
def test_only_a_stage_that_has_not_begun_is_as_before(tmp_path: Path, has_begun: bool) -> None:
    """A stage that failed may have replaced tables beside its target."""
    stamp = tmp_path / "score"
    target = tmp_path / "target"
    write_stamp(stamp, {"code": "a"}, target)
    os.utime(stamp, ns=(1, 1))
    target.write_text("made of a")
    os.utime(target, ns=(2, 2))
    write_stamp(stamp, {"code": "b"}, target)
    assert stamp.stat().st_mtime_ns > 2
    if has_begun:
        forget_stamp(tmp_path, "score")
    write_stamp(stamp, {"code": "a"}, target)
    assert (stamp.stat().st_mtime_ns > 2) is has_begun


def test_a_stage_forgets_as_it_begins(tmp_path: Path, refused) -> None:
    profile = write_profile(tmp_path / "tiny.yaml")
    kept = tmp_path / "build" / "stamps" / "manifest.made"
    kept.parent.mkdir(parents=True)
    kept.write_text("code a\n")
    where = ("--profile", profile, "--build", tmp_path / "build", "--results", tmp_path / "results")
    assert "corpus.json" in refused("stage", "manifest", *where)
    assert not kept.exists()
