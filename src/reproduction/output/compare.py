"""Two runs, value by value: identical, within the measured tolerance, or different; the reference.

A row is found by its names, not by its place. What must not move (names, counts, published values,
tokens, seeds) is equal or different. What a model computes moves with the order of its sums, that
is with processor, threads and precision; it may differ by the tolerance of its column, which
`benchmarks/tolerances.py` measures.

The reference is what git holds of one finished run of `laptop`. It has the layout of a directory of
results: tables, figures (SVG alone), `manifest.json` with the machine it ran on, `variables.yml`
with the numbers that prose quotes, and `report/report.pdf`.
"""

import math
import shutil
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

IDENTICAL, WITHIN, DIFFERENT = "identical", "within tolerance", "different"
NAME, EXACT, SKIPPED = "name", "exact", "not compared"
COLUMNS = "(the columns)"
ROUNDING = 1e-9  # relative; what libraries of mathematics differ by
LARGEST_P = 0.9  # p-values above it say the same: nothing was found
PROFILE = "laptop"  # of the reference
ALWAYS = (
    *("tables/run_steps.md", "tables/run_versions.md"),
    *("manifest.json", "variables.yml", "report/report.pdf"),
)


def _normal_score(log10_p: Array) -> Array:
    """Return z, whose upper tail under the normal distribution is p, down to z of `LARGEST_P`."""
    log_p = np.minimum(log10_p * math.log(10), math.log(LARGEST_P))
    return np.asarray(-ndtri_exp(log_p))


# What is subtracted of two values: on these scales, differences between two machines are about as
# large for small values as for large ones.
SCALES: dict[str, Callable[[Array], Array]] = {
    "p": lambda p: _normal_score(np.log10(p)),
    "log10 p": _normal_score,
    # A loss is one of a whole corpus, and so steadier than other nats.
    **dict.fromkeys(("auc", "rate", "percent", "nats", "loss"), np.asarray),
    "statistic": np.arcsinh,  # up to 1 the number, from 10 on its logarithm
    "count": np.sqrt,
}


def compare(run: Path, reference: Path, tolerances: pd.DataFrame) -> pd.DataFrame:
    """Compare two directories of results, tables and manifest, as `compare_tables` does.

    `tolerances` is `docs/measurements/tolerances.csv`. Raises InputError if one holds no finished
    run, or if they are of two profiles.
    """
    for folder in (run, reference):
        if not (folder / "manifest.json").is_file():
            raise InputError(f"{folder}: no finished run; run `make reproduce` first")
    profiles = [read_json(folder / "manifest.json").get("profile") for folder in (run, reference)]
    if profiles[0] != profiles[1]:
        raise InputError(f"{reference} is of {profiles[1]}, and this run is of {profiles[0]}")
    return compare_tables(read_tables(run), read_tables(reference), tolerances)


def read_tables(results: Path) -> dict[str, pd.DataFrame]:
    """Read every CSV table of `results`/tables and the facts of its manifest, all as text.

    Of a Markdown table, which prints these numbers for readers, there is the name alone.
    """
    found = sorted((results / "tables").glob("*.csv"))
    if not found:
        raise InputError(f"{results}/tables: no tables; run `make reproduce` first")
    tables = {path.stem: pd.read_csv(path, dtype=str, keep_default_na=False) for path in found}
    manifest = read_json(results / "manifest.json")
    corpus, steps = manifest["corpus"], manifest["steps"].items()
    run = {name: manifest[name] for name in ("profile", "seed", "tokens_scored")}
    run |= {f"corpus_{name}": corpus[name] for name in ("documents", "characters", "tokens")}
    facts: dict[str, list[dict[str, Any]]] = {
        "printed tables": [{"file": p.name} for p in sorted((results / "tables").glob("*.md"))],
        "manifest run": [{"fact": name, "value": value} for name, value in run.items()],
        "manifest packages": corpus["packages"],
        "manifest canaries": [{"set": k} | v for k, v in manifest["canaries"].items()],
        "manifest models": [{"model": k} | v for k, v in manifest["models"].items()],
        "manifest steps": [{"step": k, "tokens": v["tokens"]} for k, v in steps if "tokens" in v],
    }
    return tables | {name: pd.DataFrame(rows).astype(str) for name, rows in facts.items()}


def compare_tables(run: Tables, reference: Tables, tolerances: pd.DataFrame) -> pd.DataFrame:
    """Compare tables of text by name; return a row for each value.

    Its columns are table, row (its names), column, run, reference (text, as written), scale,
    difference (on that scale; NaN of what has none), tolerance, share (difference / tolerance,
    infinite where none is allowed) and outcome. What only one side has is "missing" on the other;
    where columns differ, they are a value, too.

    `tolerances` has a row for each table and column with its scale: `NAME` (rows are matched by
    it), `EXACT`, `SKIPPED`, or a key of `SCALES` with its tolerance. A column without a row is
    exact; where no column is a name, all of them are.
    """
    rules = tolerances.set_index(["table", "column"])[["scale", "tolerance"]]
    sides = {
        side: pd.concat({name: _cells(table, rules, name) for name, table in tables.items()})
        for side, tables in (("run", run), ("reference", reference))
    }
    cells = pd.concat(sides, axis=1).rename_axis(["table", "row", "column"]).fillna("missing")
    equal = cells["run"] == cells["reference"]
    cells = cells[~equal | (cells.index.get_level_values("column") != COLUMNS)].reset_index()
    cells = cells.join(rules, on=["table", "column"]).fillna({"scale": EXACT, "tolerance": 0.0})
    one, other = (pd.to_numeric(cells[s], errors="coerce").to_numpy(np.float64) for s in sides)
    same = (one == other) | (cells["run"] == cells["reference"]).to_numpy()
    fractions = (one % 1 != 0) | (other % 1 != 0)  # whole numbers are counts
    same = same | (fractions & np.isclose(one, other, rtol=ROUNDING, atol=0.0))
    difference = np.full(len(cells), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        for scale, moved in SCALES.items():
            at = (cells["scale"] == scale).to_numpy()
            difference[at] = np.abs(moved(one[at]) - moved(other[at]))
        share = np.nan_to_num(difference / cells["tolerance"].to_numpy(), nan=np.inf)
    difference, share = np.where(same, 0.0, difference), np.where(same, 0.0, share)
    outcome = np.where(same, IDENTICAL, np.where(share <= 1, WITHIN, DIFFERENT))
    cells.insert(cells.columns.get_loc("tolerance"), "difference", difference)
    return cells.assign(share=share, outcome=outcome)


def counts(values: pd.DataFrame) -> str:
    """One line: how many values are identical, within tolerance, different."""
    found = values["outcome"].value_counts()
    return ", ".join(f"{found.get(name, 0):,} {name}" for name in (IDENTICAL, WITHIN, DIFFERENT))


def _cells(table: pd.DataFrame, rules: pd.DataFrame, name: str) -> pd.Series:
    """Texts by row and column; rows are called by their names, and those of equal names numbered.

    Where all columns are names, a row is "there". The names of the columns are a cell as well.
    """
    own = dict(rules["scale"].get(name, {}))
    scales = {column: own.get(column, EXACT) for column in table}
    names = [column for column in own if scales.get(column) == NAME] or list(table)
    values = [c for c, scale in scales.items() if c not in names and scale != SKIPPED]
    rows = table[names].agg(", ".join, axis=1) if len(table) else pd.Series([], dtype=str)
    again = rows.groupby(rows).cumcount()
    rows = rows.where(again == 0, rows + " #" + (again + 1).astype(str))
    cells = {("", COLUMNS): ", ".join(sorted(table))}
    for column in values or ["(the row)"]:
        texts = table[column] if values else ["there"] * len(table)
        cells |= {(row, column): text for row, text in zip(rows, texts, strict=True)}
    return pd.Series(cells)


# --- the reference --------------------------------------------------------------------------------


def renew_reference(results: Path, reference: Path, outputs: Sequence[Path]) -> list[Path]:
    """Replace the directory `reference` by what a reader needs of `results`; return its files.

    `outputs` are the tables and figures of a complete run, below `results`, as make lists them; of
    the figures only SVG is taken. A run of another profile than `laptop` replaces the folder of its
    profile in `reference`. What is replaced is replaced whole or not at all. Raises InputError if
    the run lacks a file, or was not finished: a notebook is newer than the manifest, or the
    manifest newer than the report.
    """
    manifest = results / "manifest.json"
    others = [path.parent for path in reference.glob("*/manifest.json")]  # runs of other profiles
    if (profile := read_json(manifest)["profile"]) != PROFILE:
        reference, others = reference / profile, []
    inner = [path.relative_to(results) for path in outputs if path.suffix != ".png"]
    inner += [Path(name) for name in ALWAYS]
    for name in inner:
        if not (results / name).is_file():
            raise InputError(f"{results / name} is missing: run `make reproduce` first")
    steps = [(earlier, manifest) for earlier in (results / "notebooks").glob("[0-9]*.ipynb")]
    for earlier, later in (*steps, (manifest, results / "report" / "report.pdf")):
        if earlier.stat().st_mtime > later.stat().st_mtime:
            raise InputError(f"{later} is older than {earlier}, the run is not finished")
    with replacing(reference) as temporary:
        for name in inner:
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(results / name, temporary / name)
        for other in others:
            shutil.copytree(other, temporary / other.name)
    return [reference / name for name in inner]
