"""A notebook without its kernel, which takes seconds to start."""

import ast
import json
import warnings
from contextlib import chdir
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt


def run_cells(path: Path, folder: Path | None = None, **parameters: object) -> list[Any]:
    """Run the cells of a notebook in its folder, or in another one; return what they would show.

    A warning is an error: a reader would see it.
    """
    names: dict[str, Any] = {}
    shown = []
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    with chdir(folder or path.parent), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DeprecationWarning)
        for number, cell in enumerate(code):
            source = "".join(cell["source"])
            where = f"{path.name}, cell {number}"
            tree = ast.parse(source)
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, where, "exec"), names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), where, "eval"), names)
                shown += [] if value is None or source.endswith(";") else [value]
            shown += map(plt.figure, plt.get_fignums())
            plt.close("all")
            if "parameters" in cell["metadata"].get("tags", []):
                assert parameters.keys() <= names.keys()
                names |= parameters
    return shown
