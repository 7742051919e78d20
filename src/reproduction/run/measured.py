"""What an experiment measured on models: tables on disk, which its notebook reads.

The stage `measure` makes all passes of a notebook over models, on all processes, and writes::

    build/<profile>/scores/<package>/tables-<parameters>/   what the notebook reads
    build/<profile>/scores/<package>/parts/                 rows that are not scored again
    build/<profile>/scores/<notebook>.json                  the target of make: it is done

The folder of the tables is named after the parameters that they depend on, so that a notebook never
shows what was measured with others.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.errors import InputError
from contamination.files import replacing, sha256_of, write_json
from reproduction.run.experiment import Experiment

PARAMETERS = "parameters.json"


def parts_of(experiment: Experiment, package: str) -> Path:
    """Return the folder of the rows that the passes of an experiment have scored so far."""
    return experiment.build / "scores" / package / "parts"


def write_measured(
    experiment: Experiment,
    package: str,
    parameters: Mapping[str, Any],
    tables: Mapping[str, pd.DataFrame],
    *,
    keep_others: bool,
) -> Path:
    """Write the tables of an experiment, whole or not at all; return their folder.

    Without `keep_others` tables that were measured with other parameters go: they may be of models
    that are no more.
    """
    folder = _folder(experiment, package, parameters)
    with replacing(folder) as temporary:
        temporary.mkdir()
        write_json(temporary / PARAMETERS, dict(parameters))
        for name, table in tables.items():
            table.to_parquet(temporary / f"{name}.parquet", index=False)
    if not keep_others:
        for other in folder.parent.glob("tables-*"):
            if other != folder:
                shutil.rmtree(other)
    return folder


def read_measured(
    experiment: Experiment, package: str, **parameters: Any
) -> dict[str, pd.DataFrame]:
    """Read the tables of an experiment, by name, as they were measured with these parameters.

    Raises InputError if they were not.
    """
    folder = _folder(experiment, package, parameters)
    if not (folder / PARAMETERS).is_file():
        raise InputError(
            f"{folder} is missing: nothing was measured with these parameters; run `make "
            "reproduce`, or `python -m reproduction measure` with the notebook and its --parameter"
        )
    return {path.stem: pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))}


def _folder(experiment: Experiment, package: str, parameters: Mapping[str, Any]) -> Path:
    digest = sha256_of(json.dumps(dict(parameters), sort_keys=True))[:8]
    return experiment.build / "scores" / package / f"tables-{digest}"
