"""The table of notebooks: the package of each, the files it reads and the files it writes.

The Makefile gets its rules from here (`reproduction.stages.rules`), and the stage
`measure` its package. A new notebook is a new row.
"""

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from contamination.errors import InputError
from reproduction.run.profile import Architecture, RunFiles


@dataclass(frozen=True)
class Notebook:
    """One notebook.

    Attributes
    ----------
    package
        Subpackage of `reproduction.notebooks`; its `measure.measure` makes the passes
        over models.
    passes
        Which models of a run the passes read: "stores" (the two models, after their
        canary sets are scored), "both", "all" (with the further sizes), "clean", or ""
        for no passes. In a profile that trains nothing they read released models.
    needs
        The parameter of the notebook without which it makes no passes.
    reads
        Further files, from the root of the repository, or other notebooks by name.
    released
        Whether it belongs to profiles that train nothing.
    also
        Files whose names the notebook makes up in a loop.
    """

    package: str
    passes: str = ""
    needs: str = ""
    reads: tuple[str, ...] = ()
    released: bool = False
    also: tuple[str, ...] = ()


LINES = "docs/measurements/mmlu_lines.csv"
RELEASED_MMLU = "results/reference/pocket/tables/mmlu_subsets.csv"
DENSITIES = (
    "assumptions_density_min_prob_25",
    "assumptions_density_mem_25",
    "assumptions_density_entropy_25",
)
DENSITY_FILES = tuple(f"figures/{name}.svg" for name in DENSITIES)
DENSITY_FILES += tuple(f"figures/{name}.png" for name in DENSITIES)
# Tables of the papers that notebook 13 writes in a loop.
PRINTED = (
    "oren_table_1",
    "oren_table_2",
    "oren_table_4",
    "shi_table_1",
    "fu_figure_18",
    "fu_table_3",
    *(f"fu_table_{number}" for number in range(7, 16)),
)

NOTEBOOKS = {
    "00_start_here": Notebook("start", reads=("data/stores/stores.json", LINES)),
    "01_canary_eval": Notebook("canaries", reads=("stores",)),
    "02_shard_permutation_ablation": Notebook("ablation", "stores"),
    "03_open_model_audit": Notebook("open_models", "stores"),
    "04_mmlu_fisher": Notebook(
        "mmlu",
        "all",
        needs="measured",
        reads=(LINES, RELEASED_MMLU),
    ),
    "05_beyond_the_paper": Notebook(
        "beyond",
        "stores",
        reads=("docs/measurements/power.csv", "docs/measurements/planted_means.csv"),
    ),
    "06_wikimia": Notebook("wikimia", "all"),
    "07_min_k_baseline": Notebook("min_k", "both", reads=("01_canary_eval",)),
    "08_detection_assumptions": Notebook("assumptions", "all", also=DENSITY_FILES),
    "09_controlled_contamination": Notebook("controlled", "clean"),
    "10_book_audit": Notebook("books", "clean"),
    "11_unlearning_audit": Notebook("unlearning", "both"),
    "12_released_checkpoints": Notebook(
        "checkpoints",
        "both",
        reads=("03_open_model_audit",),
        released=True,
    ),
    "13_beside_the_papers": Notebook(
        "papers",
        reads=("notebooks",),
        released=True,
        also=tuple(f"tables/papers_{name}.md" for name in PRINTED),
    ),
    "14_option_order": Notebook("options", "clean"),
}
# What a call in a notebook writes; its argument `name`, the third, is the name.
WRITERS = {
    "write_csv": ("tables/{}.csv",),
    "write_markdown": ("tables/{}.md",),
    "save_figure": ("figures/{}.svg", "figures/{}.png"),
}


def listed_notebooks(run: RunFiles) -> list[str]:
    """Name the notebooks of a run: all, or those of a profile without training."""
    trains_from_scratch = bool(run.shapes) and isinstance(run.profile.model, Architecture)
    if trains_from_scratch:
        return [name for name, row in NOTEBOOKS.items() if not row.released]
    return [name for name in NOTEBOOKS if name in run.profile.notebooks]


def notebook_of(source: Path) -> Notebook:
    """Return the row of a notebook. Raises InputError for a file that has none."""
    if source.stem not in NOTEBOOKS:
        raise InputError(
            f"{source}: not in the table; add it to reproduction.notebooks.table",
        )
    return NOTEBOOKS[source.stem]


def code_of(source: Path) -> Iterator[tuple[ast.Module, bool]]:
    """Yield the syntax tree of each cell of code of a notebook, and whether it has parameters."""
    for cell in json.loads(source.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            tree = _tree_of("".join(cell["source"]))
            yield tree, "parameters" in cell["metadata"].get("tags", ())


@cache
def _tree_of(code: str) -> ast.Module:
    """Return the syntax tree of a cell, of which several rules ask."""
    return ast.parse(code)


def outputs(source: Path) -> list[str]:
    """Name the files that a notebook writes, below the directory of the results.

    Its calls of `WRITERS` say which, but those under a condition, which not every run
    makes.

    Raises InputError for a call whose name is no literal, unless the table names files
    that the notebook writes `also`.
    """
    also = notebook_of(source).also
    paths: dict[str, None] = {}  # in their order, each once
    for call in _unconditional_calls(source):
        for pattern in WRITERS.get(ast.unparse(call.func), ()):
            name = _name_in(call)
            if name is not None:
                paths[pattern.format(name)] = None
            elif not also:
                raise InputError(
                    f"{source}: `{ast.unparse(call)}`: write the name as a literal, or "
                    "list the files as `also` in reproduction.notebooks.table",
                )
    return [*paths, *also]


def _name_in(call: ast.Call) -> str | None:
    """Return the literal that a call of `WRITERS` gives as the name; None for no literal."""
    given = [keyword.value for keyword in call.keywords if keyword.arg == "name"]
    for value in [*call.args[2:3], *given]:
        if isinstance(value, ast.Constant):
            return str(value.value)
    return None


def _unconditional_calls(source: Path) -> Iterator[ast.Call]:
    """Yield the calls of a notebook but those under a condition."""
    for tree, _ in code_of(source):
        for statement in tree.body:
            if isinstance(statement, ast.If):
                continue
            for node in ast.walk(statement):
                if isinstance(node, ast.Call):
                    yield node
