"""Notebooks with the parameters of a profile, through papermill.

Papermill injects a parameter that a notebook does not have all the same, and a misspelt name would
leave the right one at its default: so it is an error here.
"""

# ruff: noqa: E402 - one import is prevented before the others
import ast
import os
import sys
from collections.abc import Callable
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

# To check addresses that no notebook has, jsonschema imports this package where it is installed,
# and that builds a grammar for two seconds: most of the time that importing papermill takes.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

import papermill
from papermill.exceptions import PapermillExecutionError

from contamination.errors import InputError
from contamination.files import replacing
from contamination.testsets.sources import DATA_VARIABLE
from reproduction.notebooks.table import notebook_of
from reproduction.run.experiment import Experiment


def notebook_parameters(source: Path, experiment: Experiment, profile: Path) -> dict[str, Any]:
    """Return the values with which a profile executes a notebook, by name.

    Raises InputError if there is no such notebook, the profile has parameters of one that is not
    beside it, or the notebook does not know a parameter of the profile or takes another kind.
    """
    for name in (source.stem, *experiment.profile.notebooks):
        if not (path := source.with_name(f"{name}.ipynb")).is_file():
            raise InputError(f"{path}: no such notebook; correct {profile}")
    found = papermill.inspect_notebook(str(source))
    own = {name: ast.literal_eval(each["default"]) for name, each in found.items()}
    given = experiment.profile.notebooks.get(source.stem, {})
    if unknown := sorted(set(given) - set(own)):
        known = ", ".join(own)
        raise InputError(f"{profile}: unknown parameter {unknown[0]!r}; {source} has {known}")
    for key, value in given.items():
        kinds = {type(value), type(own[key])} - {tuple}
        if own[key] is not None and len(kinds) > 1 and not kinds <= {int, float}:
            raise InputError(
                f"{profile}: {key} of {source.stem} is {str(value)[:40]!r}; write a value such as "
                f"{str(own[key])[:80]}"
            )
    return {**own, **given}


def measurement_of(
    source: Path, experiment: Experiment, profile: Path
) -> tuple[Callable[..., Any] | None, dict[str, Any]]:
    """Return the passes of a notebook over models, if it has any, and their parameters.

    Raises InputError as `notebook_parameters` does, and for a notebook that the table lacks.
    """
    values = notebook_parameters(source, experiment, profile)
    module = import_module(f"reproduction.notebooks.{notebook_of(source).package}.measure")
    passes = getattr(module, "measure", None)
    wanted = signature(passes).parameters if passes else ()
    return passes, {name: values[name] for name in wanted if name in values}


def execute_notebook(source: Path, experiment: Experiment, profile: Path, results: Path) -> Path:
    """Run `source` in its own directory and write it to `results/notebooks/`, whole or not at all.

    Raises InputError as `notebook_parameters` does, and if a cell raises one. On another error in a
    cell the executed notebook is kept as `*.failed.ipynb`.
    """
    notebook_parameters(source, experiment, profile)  # refuse those that it does not have
    folder = source.parent
    # Paths are given as seen from the notebook, so that it runs the same way in JupyterLab.
    paths = {"profile": profile, "build": experiment.build, "results": results}
    parameters = {name: os.path.relpath(path, folder) for name, path in paths.items()}
    parameters |= experiment.profile.notebooks.get(source.stem, {})
    # The same mirror as outside, although the kernel starts in the folder of the notebook.
    os.environ[DATA_VARIABLE] = str(Path(os.environ.get(DATA_VARIABLE, "data")).absolute())
    os.environ["TQDM_DISABLE"] = "1"  # of the kernel: what it shows stands in the notebook
    target = results / "notebooks" / source.name
    failed = target.with_suffix(".failed.ipynb")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        papermill.execute_notebook(
            source,
            failed,
            parameters,
            cwd=folder,
            progress_bar={"desc": source.stem},
            extra_arguments=["--log-level=CRITICAL"],  # of the kernel: its socket, its shutdown
        )
    except PapermillExecutionError as error:
        if error.ename == InputError.__name__:
            failed.unlink()
            raise InputError(f"{source}: {error.evalue}") from error
        raise
    with replacing(target) as temporary:
        failed.replace(temporary)
    return target
