"""Parameters of notebooks: literals in one cell, whose values a profile may replace.

Papermill injects a parameter that a notebook does not have all the same, and a misspelt
name would leave the right one at its default: so it is an error here.
"""

import ast
from pathlib import Path
from typing import Any

from contamination.errors import InputError
from reproduction.notebooks.table import code_of
from reproduction.run.profile import RunFiles


def check_parameters(run: RunFiles, notebooks: Path) -> None:
    """Raise InputError if a profile gives a notebook of a folder what it does not take."""
    for name in run.profile.notebooks:
        notebook_parameters(notebooks / f"{name}.ipynb", run)


def notebook_parameters(source: Path, run: RunFiles) -> dict[str, Any]:
    """Return the values with which a run executes a notebook, by name.

    Raises InputError if there is no such notebook, or if it does not know a parameter
    of the profile or takes another kind.
    """
    if not source.is_file():
        raise InputError(f"{source}: no such notebook; correct {run.file}")
    defaults = _defaults(source)
    from_profile = run.profile.notebooks.get(source.stem, {})
    unknown = sorted(set(from_profile) - set(defaults))
    if unknown:
        known = ", ".join(defaults)
        raise InputError(
            f"{run.file}: unknown parameter {unknown[0]!r}; {source} has {known}",
        )
    for name, value in from_profile.items():
        default = defaults[name]
        if not _is_of_one_kind(value, default):
            raise InputError(
                f"{run.file}: {name} of {source.stem} is {str(value)[:40]!r}; write a "
                f"value such as {str(default)[:80]}",
            )
    return defaults | dict(from_profile)


def _defaults(source: Path) -> dict[str, Any]:
    """Return the literals of the cell of a notebook that is tagged `parameters`, by name."""
    defaults: dict[str, Any] = {}
    for tree, has_parameters in code_of(source):
        if has_parameters:
            for statement in tree.body:
                if isinstance(statement, ast.Assign):
                    name = ast.unparse(statement.targets[0])
                    defaults[name] = ast.literal_eval(statement.value)
    return defaults


def _is_of_one_kind(value: Any, default: Any) -> bool:
    """Return whether a value may take the place of a default, by their types."""
    if default is None:
        return True
    kinds = {type(value), type(default)} - {tuple}
    return len(kinds) <= 1 or kinds <= {int, float}
