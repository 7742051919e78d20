"""The state of a run: its tables with their columns, its figures, variables and sections.

Runs of one state were written by the same code, whatever their numbers are. So a
reference of an older state is found by any finished run, of a small profile as well.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import yaml

from contamination.errors import InputError
from contamination.files import read_json

# File below a directory of results -> its parts: "column p", "section Limits".
State = Mapping[str, Sequence[str]]

MANIFEST = "manifest.json"
VARIABLES = "variables.yml"
REPORT = "report/report.pdf"
# An entry of the outline of a PDF, its number apart.
_OUTLINE = re.compile(rb"/Title\((?:[\d.]+ )?(.*?)\)/Dest")


def state_of(results: Path) -> dict[str, list[str]]:
    """Return the state of a finished run: file -> its parts.

    Columns that are named after a number of copies, which a profile sets, are left out.
    Raises InputError if a file is missing.
    """
    for name in (MANIFEST, VARIABLES, REPORT):
        if not (results / name).is_file():
            raise InputError(f"{results / name} is missing: run `make reproduce` first")
    state: dict[str, list[str]] = {}
    for path in sorted((results / "tables").iterdir()):
        state[f"tables/{path.name}"] = []
        if path.suffix == ".csv":
            columns = pd.read_csv(path, nrows=0)
            named = [column for column in columns if not column.isdigit()]
            state[f"tables/{path.name}"] = [f"column {column}" for column in named]
    for path in sorted((results / "figures").glob("*.svg")):
        state[f"figures/{path.name}"] = []
    state[MANIFEST] = _facts(results / MANIFEST)
    variables = yaml.safe_load((results / VARIABLES).read_text(encoding="utf-8"))
    state[VARIABLES] = variable_names(variables)
    state[REPORT] = _sections(results / REPORT)
    return state


def variable_names(variables: Mapping[str, Mapping[str, object]]) -> list[str]:
    """Return the name of each variable, "variable GROUP.NAME"."""
    names = []
    for group, values in variables.items():
        names += [f"variable {group}.{name}" for name in values]
    return names


def _facts(path: Path) -> list[str]:
    """Name the facts of a manifest, those of the machine, and the notebooks that ran."""
    manifest = read_json(path)
    facts = [f"fact {name}" for name in manifest]
    facts += [f"fact machine.{name}" for name in manifest["machine"]]
    facts += [f"step {name}" for name in manifest["steps"] if name.startswith("notebook ")]
    return facts


def _sections(path: Path) -> list[str]:
    """Return the headings of a report, as the outline of its PDF has them."""
    headings = _OUTLINE.findall(path.read_bytes())
    if not headings:
        raise InputError(f"{path}: no outline; render it again with `make report`")
    return [f"section {heading.decode('latin-1')}" for heading in headings]


def differences(run: State, reference: State, *, names: tuple[str, str]) -> list[str]:
    """Return a line for each file or part that only one of two states has.

    Parameters
    ----------
    run, reference
        The two states, as `state_of` returns them.
    names
        Names of the two states in the lines.
    """
    lines = []
    for file in sorted(run.keys() | reference.keys()):
        if file not in reference:
            lines.append(f"{names[1]} lacks {file}, which {names[0]} has")
            continue
        if file not in run:
            lines.append(f"{names[0]} lacks {file}, which {names[1]} has")
            continue
        lines += [
            f"{names[1]} lacks in {file}: {part}"
            for part in run[file]
            if part not in reference[file]
        ]
        lines += [
            f"{names[0]} lacks in {file}: {part}"
            for part in reference[file]
            if part not in run[file]
        ]
    return lines
