"""Two runs, value by value: identical, within tolerance, or different.

A row is found by its names, not by its place. What must not move (names, counts,
published values, tokens, seeds) is equal or different. What a model computes moves with
the order of its sums, that is with processor, threads and precision; it may differ by
the tolerance of its column, which `benchmarks/tolerances.py` measures.

The reference is what git holds of one finished run of `laptop`. It has the layout of a
directory of results: tables, figures (SVG alone), `manifest.json` with the machine it
ran on, `variables.yml` with the numbers that prose quotes, and `report/report.pdf`.
"""

import math
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri_exp

from contamination.errors import InputError
from contamination.files import read_json, replacing

Array = NDArray[np.float64]
Tables = Mapping[str, pd.DataFrame]

# Outcomes of a comparison.
IDENTICAL = "identical"
WITHIN = "within tolerance"
DIFFERENT = "different"
# Scales of columns that have no tolerance.
NAME = "name"
EXACT = "exact"
SKIPPED = "not compared"
COLUMNS = "(the columns)"
ROUNDING = 1e-9  # relative; what libraries of mathematics differ by
LARGEST_P = 0.9  # p-values above it say the same: nothing was found
PROFILE = "laptop"  # of the reference
ALWAYS = (
    "tables/run_steps.md",
    "tables/run_versions.md",
    "manifest.json",
    "variables.yml",
    "report/report.pdf",
)


def _normal_score(log10_p: Array) -> Array:
    """Return z, whose normal upper tail is p, down to z of `LARGEST_P`."""
    log_p = np.minimum(log10_p * math.log(10), math.log(LARGEST_P))
    return np.asarray(-ndtri_exp(log_p))


def _normal_score_of_p(p: Array) -> Array:
    """Return z of p itself, as `_normal_score` does of its logarithm."""
    return _normal_score(np.log10(p))


# Two values are subtracted on these scales: differences between two machines are about
# as large for small values as for large ones.
SCALES: dict[str, Callable[[Array], Array]] = {
    "p": _normal_score_of_p,
    "log10 p": _normal_score,
    "auc": np.asarray,
    "rate": np.asarray,
    "percent": np.asarray,
    "nats": np.asarray,
    "loss": np.asarray,  # of a whole corpus, and so steadier than other nats
    "statistic": np.arcsinh,  # up to 1 the number, from 10 on its logarithm
    "count": np.sqrt,
}


def compare(run: Path, reference: Path, tolerances: pd.DataFrame) -> pd.DataFrame:
    """Compare two directories of results, tables and manifest, as `compare_tables` does.

    `tolerances` is `docs/measurements/tolerances.csv`. Raises InputError if one holds
    no finished run, or if they are of two profiles.

    Parameters
    ----------
    run
        Directory of the results of a run.
    reference
        Directory of other results.
    tolerances
        The table `docs/measurements/tolerances.csv`.
    """
    for folder in (run, reference):
        if not (folder / "manifest.json").is_file():
            raise InputError(f"{folder}: no finished run; run `make reproduce` first")
    profile = read_json(run / "manifest.json").get("profile")
    expected = read_json(reference / "manifest.json").get("profile")
    if profile != expected:
        raise InputError(f"{reference} is of {expected}, and this run is of {profile}")
    return compare_tables(read_tables(run), read_tables(reference), tolerances)


def read_tables(results: Path) -> dict[str, pd.DataFrame]:
    """Read every table of `results`/tables and the facts of its manifest as text.

    Of a Markdown table, which prints these numbers for readers, only the name is read.
    """
    folder = results / "tables"
    paths = sorted(folder.glob("*.csv"))
    if not paths:
        raise InputError(f"{folder}: no tables; run `make reproduce` first")
    tables = {}
    for path in paths:
        tables[path.stem] = pd.read_csv(path, dtype=str, keep_default_na=False)
    printed = [{"file": path.name} for path in sorted(folder.glob("*.md"))]
    tables["printed tables"] = pd.DataFrame(printed).astype(str)
    for name, rows in _manifest_rows(read_json(results / "manifest.json")).items():
        tables[name] = pd.DataFrame(rows).astype(str)
    return tables


def _manifest_rows(manifest: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the facts of a manifest that are compared, as rows of tables."""
    facts = {name: manifest[name] for name in ("profile", "seed", "tokens_scored")}
    steps = []
    for step, costs in manifest["steps"].items():
        if "tokens" in costs:
            steps.append({"step": step, "tokens": costs["tokens"]})
    rows = {
        "manifest run": [{"fact": name, "value": value} for name, value in facts.items()],
        "manifest steps": steps,
    }
    if "released" in manifest:
        return rows | {"manifest released": _rows_by_name(manifest["released"], "model")}
    corpus = manifest["corpus"]
    for name in ("documents", "characters", "tokens"):
        rows["manifest run"].append({"fact": f"corpus_{name}", "value": corpus[name]})
    return rows | {
        "manifest packages": corpus["packages"],
        "manifest canaries": _rows_by_name(manifest["canaries"], "set"),
        "manifest models": _rows_by_name(manifest["models"], "model"),
    }


def _rows_by_name(
    facts: Mapping[str, Mapping[str, Any]],
    column: str,
) -> list[dict[str, Any]]:
    """Return a row for each name, which the column holds, with its facts."""
    return [{column: name} | dict(own) for name, own in facts.items()]


def compare_tables(
    run: Tables,
    reference: Tables,
    tolerances: pd.DataFrame,
) -> pd.DataFrame:
    """Compare tables of text by name; return a row for each value.

    A value that only one side has is "missing" on the other. Where columns differ, they
    are a value, too.

    Parameters
    ----------
    run, reference
        The tables by name, all text.
    tolerances
        A row for each table and column with its scale: `NAME` (rows are matched by it),
        `EXACT`, `SKIPPED`, or a key of `SCALES` with its tolerance. A column without a
        row is exact; where no column is a name, all of them are.

    Returns
    -------
    cells
        Columns table, row (its names), column, run, reference (text, as written),
        scale, difference (on that scale; NaN of a value without one), tolerance, share
        (difference / tolerance, infinite where none is allowed) and outcome.
    """
    rules = tolerances.set_index(["table", "column"])[["scale", "tolerance"]]
    cells = _joined_cells(run, reference, rules)
    run_values = pd.to_numeric(cells["run"], errors="coerce").to_numpy(np.float64)
    reference_values = pd.to_numeric(cells["reference"], errors="coerce").to_numpy(
        np.float64,
    )
    same_text = (cells["run"] == cells["reference"]).to_numpy()
    same = same_text | _is_equal(run_values, reference_values)
    difference = np.full(len(cells), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        for scale, to_scale in SCALES.items():
            at = (cells["scale"] == scale).to_numpy()
            difference[at] = np.abs(
                to_scale(run_values[at]) - to_scale(reference_values[at]),
            )
        share = np.nan_to_num(difference / cells["tolerance"].to_numpy(), nan=np.inf)
    difference = np.where(same, 0.0, difference)
    share = np.where(same, 0.0, share)
    outcome = np.where(share <= 1, WITHIN, DIFFERENT)
    outcome = np.where(same, IDENTICAL, outcome)
    cells.insert(cells.columns.get_loc("tolerance"), "difference", difference)
    return cells.assign(share=share, outcome=outcome)


def _joined_cells(run: Tables, reference: Tables, rules: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each value of either side, with its scale and tolerance."""
    sides = {}
    for side, tables in (("run", run), ("reference", reference)):
        cells_by_table = {name: _cells(table, rules, name) for name, table in tables.items()}
        sides[side] = pd.concat(cells_by_table)
    cells = pd.concat(sides, axis=1).rename_axis(["table", "row", "column"]).fillna("missing")
    is_equal = cells["run"] == cells["reference"]
    is_value = cells.index.get_level_values("column") != COLUMNS
    cells = cells[~is_equal | is_value].reset_index()
    return cells.join(rules, on=["table", "column"]).fillna(
        {"scale": EXACT, "tolerance": 0.0},
    )


def _is_equal(run: Array, reference: Array) -> NDArray[np.bool_]:
    """Return where numbers are equal; up to `ROUNDING` unless both are whole, which are counts."""
    has_fraction = (run % 1 != 0) | (reference % 1 != 0)
    is_close = np.isclose(run, reference, rtol=ROUNDING, atol=0.0)
    return np.asarray((run == reference) | (has_fraction & is_close))


def counts(values: pd.DataFrame) -> str:
    """Return a line that counts the values identical, within tolerance and different."""
    by_outcome = values["outcome"].value_counts()
    parts = [f"{by_outcome.get(name, 0):,} {name}" for name in (IDENTICAL, WITHIN, DIFFERENT)]
    return ", ".join(parts)


def _cells(table: pd.DataFrame, rules: pd.DataFrame, name: str) -> pd.Series:
    """Return texts by row and column; rows of equal names are numbered.

    Where all columns are names, a row is "there". The names of the columns are a cell
    as well.
    """
    own_scales = dict(rules["scale"].get(name, {}))
    scales = {column: own_scales.get(column, EXACT) for column in table}
    names = [column for column in own_scales if scales.get(column) == NAME] or list(
        table,
    )
    values = [c for c, scale in scales.items() if c not in names and scale != SKIPPED]
    texts = table.astype(object)  # where the texts are Arrow's, each look-up makes one anew
    repetitions: Counter[str] = Counter()
    rows = []
    for parts in texts[names].itertuples(index=False, name=None):
        row = ", ".join(parts)
        repetitions[row] += 1
        rows.append(row if repetitions[row] == 1 else f"{row} #{repetitions[row]}")
    cells = {("", COLUMNS): ", ".join(sorted(table))}
    if not values:
        cells |= {(row, "(the row)"): "there" for row in rows}
    for column in values:
        for row, text in zip(rows, texts[column], strict=True):
            cells[row, column] = text
    return pd.Series(cells)


# --- the reference --------------------------------------------------------------------


def renew_reference(
    results: Path,
    reference: Path,
    outputs: Sequence[Path],
) -> list[Path]:
    """Replace the directory `reference` by the files of `results` that a reader needs.

    A run of another profile than `laptop` replaces the folder of its profile in
    `reference`. The folder is replaced whole or not at all.

    Parameters
    ----------
    results
        Directory of a complete run.
    reference
        Directory that git holds.
    outputs
        Tables and figures of the run, below `results`, as make lists them; of the
        figures only SVG is taken.

    Returns
    -------
    files : of the reference.

    Raises
    ------
    InputError
        If the run lacks a file, or was not finished: a notebook is newer than the
        manifest, or the manifest newer than the report.
    """
    profile = read_json(results / "manifest.json")["profile"]
    if profile == PROFILE:
        # of other profiles
        kept = [path.parent for path in reference.glob("*/manifest.json")]
    else:
        reference = reference / profile
        kept = []
    names = [path.relative_to(results) for path in outputs if path.suffix != ".png"]
    names += [Path(name) for name in ALWAYS]
    _require_finished(results, names)
    with replacing(reference) as temporary:
        for name in names:
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(results / name, temporary / name)
        for folder in kept:
            shutil.copytree(folder, temporary / folder.name)
    return [reference / name for name in names]


def _require_finished(results: Path, names: Sequence[Path]) -> None:
    """Raise InputError if a file is missing, or older than one that it is made from."""
    manifest = results / "manifest.json"
    notebooks = []
    for step in read_json(manifest)["steps"]:
        kind, _, name = step.partition(" ")
        if kind == "notebook":
            notebooks.append(Path("notebooks") / f"{name}.ipynb")
    for path in [*names, *notebooks]:
        if not (results / path).is_file():
            raise InputError(f"{results / path} is missing: run `make reproduce` first")
    steps = [(results / notebook, manifest) for notebook in notebooks]
    steps.append((manifest, results / "report" / "report.pdf"))
    for earlier, later in steps:
        if earlier.stat().st_mtime > later.stat().st_mtime:
            raise InputError(f"{later} is older than {earlier}, the run is not finished")
