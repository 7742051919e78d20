"""Notebooks with the parameters of a profile: their passes, and papermill's execution."""

# ruff: noqa: E402 - one import is prevented before the others
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

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
from reproduction.report.parameters import notebook_parameters
from reproduction.run.experiment import Experiment
from reproduction.run.profile import first_mistake
from reproduction.run.settings import NotebookSettings

if TYPE_CHECKING:
    from reproduction.run.grid import Access


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


def measurement_of(source: Path, experiment: Experiment) -> Measurement | None:
    """Return the passes of a notebook over models with their parameters; None if it makes none.

    Parameters are those of `notebook_parameters`.

    Raises InputError if there is no such notebook, `reproduction.notebooks.table` lacks
    it, or the profile gives a parameter that it does not know or takes another kind.
    """
    values = notebook_parameters(source, experiment)
    package = f"reproduction.notebooks.{notebook_of(source).package}"
    module = import_module(f"{package}.measure")
    measure = getattr(module, "measure", None)
    if measure is None:
        return None
    try:
        settings = module.Settings.from_parameters(values)
    except ValidationError as error:
        message = f"{experiment.file}: {source.stem}: {first_mistake(error)}; correct the parameter"
        raise InputError(message) from error
    return Measurement(measure, settings)


def execute_notebook(
    source: Path,
    experiment: Experiment,
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
    results
        Directory of tables, figures and executed notebooks.

    Raises
    ------
    InputError
        If the profile has parameters that the notebook does not know or that are of
        another kind, and if a cell raises one.
    """
    # refuse those that it does not have
    notebook_parameters(source, experiment)
    folder = source.parent
    # Paths are given as seen from the notebook, so that it runs the same way in
    # JupyterLab.
    paths = {"profile": experiment.file, "build": experiment.build, "results": results}
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
