"""Notebooks with the parameters of a profile, through papermill.

Papermill injects a parameter that a notebook does not have all the same, and a misspelt
name would leave the right one at its default: so it is an error here.
"""

# ruff: noqa: E402 - one import is prevented before the others
import ast
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

# To check addresses that no notebook has, jsonschema imports this package where it is
# installed, and that builds a grammar for two seconds: most of the time that importing
# papermill takes.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

import pandas as pd
import papermill
from papermill.exceptions import PapermillExecutionError
from pydantic import ValidationError

from contamination.errors import InputError
from contamination.files import replacing
from contamination.testsets.sources import DATA_VARIABLE
from reproduction.notebooks.table import notebook_of
from reproduction.run.experiment import Experiment
from reproduction.run.profile import first_mistake
from reproduction.run.settings import NotebookSettings

if TYPE_CHECKING:
    from reproduction.run.grid import Access


def notebook_parameters(
    source: Path,
    experiment: Experiment,
    profile: Path,
) -> dict[str, Any]:
    """Return the values with which a profile executes a notebook, by name.

    Parameters
    ----------
    source
        File of the notebook.
    experiment
        The run, whose profile may give parameters.
    profile
        File that errors name.

    Raises
    ------
    InputError
        If there is no such notebook, the profile has parameters of one that is not in
        the same folder, or the notebook does not know a parameter of the profile or
        takes another kind.
    """
    for name in (source.stem, *experiment.profile.notebooks):
        path = source.with_name(f"{name}.ipynb")
        if not path.is_file():
            raise InputError(f"{path}: no such notebook; correct {profile}")
    described = papermill.inspect_notebook(str(source))
    defaults = {
        name: ast.literal_eval(parameter["default"]) for name, parameter in described.items()
    }
    from_profile = experiment.profile.notebooks.get(source.stem, {})
    unknown = sorted(set(from_profile) - set(defaults))
    if unknown:
        known = ", ".join(defaults)
        raise InputError(
            f"{profile}: unknown parameter {unknown[0]!r}; {source} has {known}",
        )
    for name, value in from_profile.items():
        default = defaults[name]
        if not _is_of_one_kind(value, default):
            raise InputError(
                f"{profile}: {name} of {source.stem} is {str(value)[:40]!r}; write a "
                f"value such as {str(default)[:80]}",
            )
    return defaults | dict(from_profile)


def _is_of_one_kind(value: Any, default: Any) -> bool:
    """Return whether a value may take the place of a default, by their types."""
    if default is None:
        return True
    kinds = {type(value), type(default)} - {tuple}
    return len(kinds) <= 1 or kinds <= {int, float}


@dataclass(frozen=True)
class Measurement:
    """The passes of a notebook over models, and what they depend on.

    Attributes
    ----------
    measure
        The function of the notebook's package.
    settings
        The parameters of the notebook on which its tables depend.
    """

    measure: Callable[..., dict[str, pd.DataFrame]]
    settings: NotebookSettings

    def run(self, experiment: Experiment) -> dict[str, pd.DataFrame]:
        """Make the passes; return the tables by name."""
        return self.measure(experiment, self.settings)

    def count(self, experiment: Experiment, access: "Access") -> dict[str, pd.DataFrame]:
        """Make the passes on sets and models that `access` gives; return the tables by name."""
        return self.measure(experiment, self.settings, access=access)


def measurement_of(
    source: Path,
    experiment: Experiment,
    profile: Path,
) -> Measurement | None:
    """Return the passes of a notebook over models with their parameters; None if it makes none.

    Parameters are those of `notebook_parameters`.

    Parameters
    ----------
    source
        File of the notebook.
    experiment
        The run.
    profile
        File of its profile.

    Raises
    ------
    InputError
        If there is no such notebook, `reproduction.notebooks.table` lacks it, or the
        profile gives a parameter that it does not know or takes another kind.
    """
    values = notebook_parameters(source, experiment, profile)
    package = f"reproduction.notebooks.{notebook_of(source).package}"
    module = import_module(f"{package}.measure")
    measure = getattr(module, "measure", None)
    if measure is None:
        return None
    try:
        settings = module.Settings.from_parameters(values)
    except ValidationError as error:
        message = f"{profile}: {source.stem}: {first_mistake(error)}; correct the parameter"
        raise InputError(message) from error
    return Measurement(measure, settings)


def execute_notebook(
    source: Path,
    experiment: Experiment,
    profile: Path,
    results: Path,
) -> Path:
    """Run `source` in its own directory and write it to `results/notebooks/`.

    On another error in a cell than InputError the executed notebook is kept as
    `*.failed.ipynb`.

    Parameters
    ----------
    source
        File of the notebook.
    experiment
        The run that it reads.
    profile
        File of its parameters.
    results
        Directory of tables, figures and executed notebooks.

    Raises
    ------
    InputError
        If the profile has parameters that the notebook does not know or that are of
        another kind, and if a cell raises one.
    """
    # refuse those that it does not have
    notebook_parameters(source, experiment, profile)
    folder = source.parent
    # Paths are given as seen from the notebook, so that it runs the same way in
    # JupyterLab.
    paths = {"profile": profile, "build": experiment.build, "results": results}
    parameters = {name: os.path.relpath(path, folder) for name, path in paths.items()}
    parameters |= experiment.profile.notebooks.get(source.stem, {})
    # The same mirror as outside, although the kernel starts in the folder of the
    # notebook.
    os.environ[DATA_VARIABLE] = str(
        Path(os.environ.get(DATA_VARIABLE, "data")).absolute(),
    )
    # of the kernel: what it shows stands in the notebook
    os.environ["TQDM_DISABLE"] = "1"
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
            # of the kernel: its socket, its shutdown
            extra_arguments=["--log-level=CRITICAL"],
        )
    except PapermillExecutionError as error:
        if error.ename == InputError.__name__:
            failed.unlink()
            raise InputError(f"{source}: {error.evalue}") from error
        raise
    with replacing(target) as temporary:
        failed.replace(temporary)
    return target
