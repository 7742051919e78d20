"""The reference: what git holds of one finished run of `laptop`, for readers and for comparison.

It has the layout of a directory of results: tables, figures (SVG alone), `manifest.json` with the
machine it ran on, `variables.yml` with the numbers that prose quotes, and `report/report.pdf`.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from contamination.errors import InputError
from contamination.files import read_json, replacing

PROFILE = "laptop"
ALWAYS = (
    *("tables/run_steps.md", "tables/run_versions.md"),
    *("manifest.json", "variables.yml", "report/report.pdf"),
)


def renew_reference(results: Path, reference: Path, outputs: Sequence[Path]) -> list[Path]:
    """Replace the directory `reference` by what a reader needs of `results`; return its files.

    `outputs` are the tables and figures of a complete run, below `results`, as make lists them; of
    the figures only SVG is taken. The directory is replaced whole or not at all. Raises InputError
    if the run is of another profile, lacks a file, or was not finished: a notebook is newer than
    the manifest, or the manifest newer than the report.
    """
    manifest = results / "manifest.json"
    profile = read_json(manifest).get("profile")
    if profile != PROFILE:
        raise InputError(f"{manifest}: a run of {profile}; the reference is one of {PROFILE}")
    inner = [path.relative_to(results) for path in outputs if path.suffix != ".png"]
    inner += [Path(name) for name in ALWAYS]
    again = f"run `make reproduce PROFILE={PROFILE}` first"
    for name in inner:
        if not (results / name).is_file():
            raise InputError(f"{results / name} is missing: {again}")
    stages = [*sorted((results / "notebooks").glob("[0-9]*.ipynb")), manifest]
    for earlier in stages:
        later = results / "report" / "report.pdf" if earlier == manifest else manifest
        if earlier.stat().st_mtime > later.stat().st_mtime:
            raise InputError(f"{later} is older than {earlier}, the run is not finished: {again}")
    with replacing(reference) as temporary:
        for name in inner:
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(results / name, temporary / name)
    return [reference / name for name in inner]
