"""The files that a notebook writes, as its calls say."""

from pathlib import Path

import nbformat
import pytest

from contamination.errors import InputError
from reproduction.notebooks.table import outputs


def notebook(folder: Path, code: str) -> Path:
    """Write a notebook of the table whose only cell is the code."""
    cells = [nbformat.v4.new_code_cell(code)]
    path = folder / "01_canary_eval.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


@pytest.mark.parametrize(
    ("code", "files"),
    [
        ("write_csv(table, results, 'a')", ["tables/a.csv"]),
        ("write_csv(table, results, name='a')", ["tables/a.csv"]),
        ("save_figure(figure, results=results, name='a')", ["figures/a.svg", "figures/a.png"]),
        ("if some:\n    write_csv(table, results, 'a')", []),
    ],
)
def test_a_call_names_its_files(tmp_path: Path, code: str, files: list[str]) -> None:
    assert outputs(notebook(tmp_path, code)) == files


@pytest.mark.parametrize("call", ["write_csv(t, r, chosen)", "write_csv(t, r, name=f'{a}')"])
def test_a_name_that_is_no_literal_is_refused_with_its_call(tmp_path: Path, call: str) -> None:
    path = notebook(tmp_path, call)
    with pytest.raises(InputError) as refused:
        outputs(path)
    assert str(path) in str(refused.value)
    assert call in str(refused.value)
