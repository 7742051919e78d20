"""Editing a part of a profile touches the files of that part alone, so `make` redoes just that."""

import os
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from contamination.pretraining.experiment import Experiment
from contamination.pretraining.profile import Profile, load_profile
from contamination.pretraining.profile_sections import SECTIONS, write_sections
from fakes.data_fixtures import PROFILES, profile_data, write_profile


def _changed(tmp_path: Path, edit: dict[str, Any]) -> set[str]:
    """Sections whose file is rewritten when these keys of the profile change."""
    directory = tmp_path / "profile"
    path = write_profile(tmp_path / "tiny.yaml")
    write_sections(load_profile(path), directory)
    for file in directory.iterdir():
        os.utime(file, (0, 0))
    write_sections(load_profile(write_profile(path, {**profile_data(), **edit})), directory)
    return {file.stem for file in directory.iterdir() if file.stat().st_mtime > 0}


def _edited(section: str, **values: object) -> dict[str, Any]:
    return {section: {**profile_data()[section], **values}}


@pytest.mark.parametrize(
    ("edit", "sections"),
    [
        ({}, set()),
        ({"seed": 6}, set(SECTIONS)),
        (_edited("notebooks", **{"01_canary_eval": {"alpha": 0.01}}), {"notebooks"}),
        (_edited("scoring", shards=3), {"scoring"}),
        (_edited("training", learning_rate=0.1), {"training", "sizes"}),
        (_edited("model", n_embd=16), {"training"}),
        ({"sizes": [profile_data()["model"] | {"n_embd": 4}]}, {"sizes"}),
        (_edited("corpus", characters=9), {"corpus"}),
    ],
)
def test_only_the_sections_of_what_changed(
    edit: dict[str, Any], sections: set[str], tmp_path: Path
) -> None:
    assert _changed(tmp_path, edit) == sections


def test_canary_sets_change_everything_before_the_notebooks(tmp_path: Path) -> None:
    sets = profile_data()["canaries"]
    sets[0]["dup_count"] = 2
    assert _changed(tmp_path, {"canaries": sets}) == {"corpus", "training", "scoring"}


def test_every_key_of_a_profile_is_in_a_section() -> None:
    named = {key for keys in SECTIONS.values() for key in keys}
    assert named == {field.name for field in fields(Profile)} - {"name"}


@pytest.mark.parametrize("path", PROFILES, ids=lambda p: p.stem)
def test_make_reads_the_names_of_the_sizes(path: Path) -> None:
    command = ["make", "-s", f"PROFILE={path.stem}", "--eval=sizes: ; @echo $(SIZES)", "sizes"]
    told = subprocess.run(
        command, cwd=path.parent.parent, check=True, capture_output=True, text=True
    )
    assert tuple(told.stdout.split()) == Experiment(path, path.parent).sizes
