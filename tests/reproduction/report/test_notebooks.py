"""Notebooks hold calls and reading, nothing else; parameters are checked; failures leave no result.

Three tests start a kernel, which takes a second or two each.
"""

import ast
from pathlib import Path
from typing import Any

import nbformat
import pytest
from papermill.exceptions import PapermillExecutionError

from contamination.errors import InputError
from fakes.data_fixtures import NOTEBOOKS, PROFILES, profile_data, write_profile
from reproduction.report.notebooks import execute_notebook
from reproduction.run.experiment import Experiment
from reproduction.run.profile import load_profile
from reproduction.stages.rules import write_rules

PATHS = {"profile", "build", "results"}  # given to every notebook


def _code(path: Path) -> list[Any]:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return [cell for cell in notebook.cells if cell["cell_type"] == "code"]


def _parameters(path: Path) -> dict[str, object]:
    """Parameters of a notebook and their defaults; fails unless they are literals."""
    (cell,) = [c for c in _code(path) if "parameters" in c["metadata"].get("tags", [])]
    assert cell == _code(path)[0]
    statements = [ast.unparse(each).partition(" = ") for each in ast.parse(cell["source"]).body]
    return {name: ast.literal_eval(value) for name, _, value in statements}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_holds_calls_and_a_reading_alone(path: Path) -> None:
    code = _code(path)
    assert [cell["outputs"] for cell in code] == [[]] * len(code)
    assert {cell["execution_count"] for cell in code} == {None}
    forbidden = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
    nodes = list[ast.AST]()
    for cell in code:
        nodes += ast.walk(ast.parse(cell["source"]))
    assert [ast.unparse(n) for n in nodes if isinstance(n, forbidden)] == []
    parameters = set(_parameters(path))
    assert parameters >= PATHS
    names = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    assert parameters - names <= {"profile", "build"}  # `04` needs no run


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: p.stem)
def test_parameters_of_profiles_exist_and_have_the_type_of_the_default(profile: Path) -> None:
    known = {path.stem: _parameters(path) for path in NOTEBOOKS}
    loaded = load_profile(profile)
    for notebook, parameters in loaded.notebooks.items():
        assert notebook in known
        assert not PATHS & set(parameters)
        for name, value in parameters.items():
            assert name in known[notebook], f"{notebook} has no {name}"
            default = known[notebook][name]
            assert default is None or type(value) is type(default)


class Setting:
    """A folder with a two-cell notebook `mine`, and a profile that may set its `number`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.results = root / "results"
        self.source = root / "notebooks" / "mine.ipynb"
        self.source.parent.mkdir()

    def write(self, code: str) -> None:
        parameters = nbformat.v4.new_code_cell(
            'profile = "p"\nbuild = "b"\nresults = "r"\nnumber = 1',
            metadata={"tags": ["parameters"]},
        )
        notebook = nbformat.v4.new_notebook(
            cells=[parameters, nbformat.v4.new_code_cell(code)],
            metadata={"kernelspec": {"name": "python3", "display_name": "P", "language": "python"}},
        )
        nbformat.write(notebook, self.source)

    def experiment(self, **notebooks: dict[str, object]) -> Experiment:
        profile = write_profile(self.root / "tiny.yaml", {**profile_data(), "notebooks": notebooks})
        return Experiment(profile, self.root / "build")

    def run(self, **notebooks: dict[str, object]) -> Path:
        return execute_notebook(self.source, self.experiment(**notebooks), self.results)

    def written(self) -> list[str]:
        return sorted(p.relative_to(self.results).as_posix() for p in self.results.rglob("*.*"))


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path)


def test_parameters_and_the_mirror_reach_the_notebook_as_seen_from_it(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTAMINATION_DATA", "mirror")
    setting.write("import os\nprint(number, profile, results, os.environ['CONTAMINATION_DATA'])")
    source = setting.source.read_bytes()
    target = setting.run(mine={"number": 17})
    assert target == setting.results / "notebooks" / "mine.ipynb"
    assert setting.written() == ["notebooks/mine.ipynb"]
    output = _code(target)[-1]["outputs"][0]["text"]
    assert output == f"17 ../tiny.yaml ../results {Path.cwd() / 'mirror'}\n"
    assert setting.source.read_bytes() == source


def test_bad_input_in_a_cell_surfaces_and_leaves_nothing(setting: Setting) -> None:
    setting.write("from contamination.errors import InputError\nraise InputError('set x: mend it')")
    with pytest.raises(InputError) as caught:
        setting.run()
    assert str(caught.value) == f"{setting.source}: set x: mend it"
    assert setting.written() == []


def test_another_error_keeps_the_notebook_aside_and_the_old_result(setting: Setting) -> None:
    setting.write("print('so far')\n1 / 0")
    old = setting.results / "notebooks" / "mine.ipynb"
    old.parent.mkdir(parents=True)
    old.write_text("the previous result")
    with pytest.raises(PapermillExecutionError, match="ZeroDivisionError"):
        setting.run()
    assert old.read_text() == "the previous result"
    assert "so far" in (old.parent / "mine.failed.ipynb").read_text()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mine": {"nubmer": 2}}, "unknown parameter 'nubmer'; .*profile, build, results, number"),
        ({"mien": {"number": 1}}, r"mien\.ipynb: no such notebook"),
    ],
)
def test_what_a_notebook_lacks_is_an_error_before_anything_runs(setting, given, message) -> None:
    setting.write("raise RuntimeError('executed')")
    run = setting.experiment(**given)
    with pytest.raises(InputError, match=message):
        write_rules(run, setting.results, setting.root)
    assert not run.build.exists()
    if "mine" in given:
        with pytest.raises(InputError, match=message):
            execute_notebook(setting.source, run, setting.results)
        assert not setting.results.exists()
