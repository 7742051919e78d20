"""The parameters of a notebook: the literals of its first cell, those of a profile in their place.

A parameter that the notebook does not have is an error: papermill would inject it all the same, and
a misspelt name would leave the right one at its default.
"""

import ast
import json
from pathlib import Path
from typing import Any

from contamination.errors import InputError
from reproduction.notebooks.table import notebook_of
from reproduction.run.experiment import Experiment


def notebook_parameters(source: Path, experiment: Experiment, profile: Path) -> dict[str, Any]:
    """Return the values with which a profile executes a notebook, by name.

    Raises InputError if there is no such notebook, the profile has parameters of one that is not
    beside it, or the notebook does not know a parameter of the profile.
    """
    if not source.is_file():
        raise InputError(f"{source}: no such notebook")
    for name in experiment.profile.notebooks:
        if not source.with_name(f"{name}.ipynb").is_file():
            raise InputError(f"{profile}: notebooks.{name}: {source.parent} has no such notebook")
    own = _literals(source)
    given = experiment.profile.notebooks.get(source.stem, {})
    if unknown := sorted(set(given) - set(own)):
        raise InputError(
            f"{source}: unknown parameter {unknown[0]!r} in {profile}; the notebook has "
            f"{', '.join(own)}"
        )
    return {**own, **given}


def experiment_of(source: Path) -> str:
    """Name the package in `reproduction.notebooks` that a notebook is made of.

    Raises InputError if there is no such notebook, or it is not in the table.
    """
    return notebook_of(source).package


def _literals(source: Path) -> dict[str, Any]:
    for cell in json.loads(source.read_text(encoding="utf-8"))["cells"]:
        if "parameters" in cell["metadata"].get("tags", ()):
            lines = ast.parse("".join(cell["source"])).body
            return {
                line.targets[0].id: ast.literal_eval(line.value)
                for line in lines
                if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)
            }
    raise InputError(f"{source}: no cell is tagged `parameters`; restore the notebook from git")
