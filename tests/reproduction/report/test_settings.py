"""Settings of notebooks: all that the passes over models depend on, checked before they begin."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from contamination.errors import InputError
from fakes.data_fixtures import NOTEBOOKS, profile_data, write_profile
from reproduction.notebooks.table import code_of, notebook_of
from reproduction.report.notebooks import measurement_of
from reproduction.report.parameters import notebook_parameters
from reproduction.run.experiment import Experiment

MEASURED = [path for path in NOTEBOOKS if path.stem[0].isdigit() and notebook_of(path).passes]
OPTIONS = next(path for path in NOTEBOOKS if path.stem == "14_option_order")


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    return Experiment(write_profile(tmp_path / "tiny.yaml"), tmp_path / "build")


def settings_calls(notebook: Path) -> list[dict[str, str]]:
    """Return the arguments of each call of `Settings` in a notebook, by name."""
    calls = []
    for tree, _ in code_of(notebook):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Settings":
                arguments = {
                    str(keyword.arg): ast.unparse(keyword.value) for keyword in node.keywords
                }
                calls.append(arguments)
    return calls


@pytest.mark.parametrize("notebook", MEASURED, ids=lambda path: path.stem)
def test_settings_are_parameters_of_the_notebook_as_they_are(
    notebook: Path, experiment: Experiment
) -> None:
    parameters = notebook_parameters(notebook, experiment)
    measurement = measurement_of(notebook, experiment)
    assert measurement is not None
    as_written = json.loads(json.dumps(measurement.settings.model_dump()))
    assert as_written == {name: parameters[name] for name in as_written}


@pytest.mark.parametrize("notebook", MEASURED, ids=lambda path: path.stem)
def test_a_notebook_reads_what_was_measured_with_all_settings(
    notebook: Path, experiment: Experiment
) -> None:
    measurement = measurement_of(notebook, experiment)
    assert measurement is not None
    names = type(measurement.settings).model_fields
    assert settings_calls(notebook) == [{name: name for name in names}]


@pytest.mark.parametrize(
    ("parameter", "value"), [("dup_counts", ["many"]), ("packages", [3]), ("examples", 2.5)]
)
def test_a_setting_of_another_type_is_refused_by_its_name(
    tmp_path: Path, parameter: str, value: Any
) -> None:
    data = profile_data() | {"notebooks": {OPTIONS.stem: {parameter: value}}}
    experiment = Experiment(write_profile(tmp_path / "bad.yaml", data), tmp_path / "build")
    with pytest.raises(InputError, match=parameter):
        measurement_of(OPTIONS, experiment)
