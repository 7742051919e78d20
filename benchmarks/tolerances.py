"""How far the numbers of two runs of one profile are apart, and what `make compare` allows.

    .venv/bin/python benchmarks/tolerances.py RESULTS RESULTS ...

Each RESULTS is a directory of results: runs on several machines, or with other threads, kernels or
precision (docs/how-to/compare.md says how). Every pair of them counts. Renews the numbers of
docs/measurements/tolerances.csv, whose lines with table, column and scale are written by hand, and
writes docs/measurements/tolerances_runs.csv: which runs they were. Nothing is written if a value
moved that must not.
"""

import argparse
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.errors import InputError
from contamination.files import read_json, replacing
from contamination.report.compare import DIFFERENT, SCALES, compare, read_tables, read_tolerances

MEASUREMENTS = Path(__file__).parents[1] / "docs" / "measurements"
DEVIATIONS = 6.0  # what is allowed, in root mean square differences of the column
MARGIN = 2.0  # and at least that times the largest difference seen
OTHERS = 10  # values of an uneasy column of the scale that count for every column
UNEASY = 0.9  # share of the scale's columns that move less than that one
MACHINE = ("processor", "cores", "threads", "instructions", "precision")


def measure(runs: Sequence[Path], rules: pd.DataFrame) -> pd.DataFrame:
    """Differences of every pair of runs, a row for each value of a column with a scale.

    Raises InputError if a column has no line in `rules`, or if anything moved that must not.
    """
    listed = set(rules[["table", "column"]].itertuples(index=False, name=None))
    for run in runs:
        found = [(name, column) for name, table in read_tables(run).items() for column in table]
        if lost := [", ".join(pair) for pair in found if pair not in listed]:
            raise InputError(f"write lines with table, column and scale of: {'; '.join(lost)}")
    allowed = rules.assign(tolerance=np.inf)
    pairs = [compare(*pair, allowed).values for pair in combinations(runs, 2)]
    values = pd.concat(pairs, ignore_index=True)
    if len(moved := values[values["outcome"] == DIFFERENT]):
        raise InputError(f"moved, which must not:\n{moved.head(20).to_string(index=False)}")
    return values


def derive(differences: pd.DataFrame, rules: pd.DataFrame) -> pd.DataFrame:
    """Give `rules` the columns values, moved, largest, typical and tolerance.

    `differences` has columns table, column and difference. A column with few rows, or one that
    happened not to move, tells little about itself; so its mean square is taken together with that
    of `OTHERS` values of a column of its scale that moves more than most, by the quantile `UNEASY`.
    """
    rules = rules[["table", "column", "scale"]]
    values = differences.assign(square=differences["difference"] ** 2)
    grouped = values.groupby(["table", "column"])
    own = grouped.agg(
        values=("square", "size"),
        moved=("difference", lambda found: (found > 0).sum()),
        largest=("difference", "max"),
        squares=("square", "sum"),
    )
    table = rules.merge(own.reset_index(), on=["table", "column"], how="left")
    measured = table["scale"].isin(list(SCALES))
    table.loc[~measured, ["values", "moved", "largest", "squares"]] = np.nan
    family = table["scale"].replace("log10 p", "p")
    mean_square = table["squares"] / table["values"]
    uneasy = mean_square.groupby(family).transform(lambda columns: columns.quantile(UNEASY))
    squares, number = table["squares"].fillna(0), table["values"].fillna(0)
    typical = np.sqrt((squares + OTHERS * uneasy) / (number + OTHERS))
    tolerance = np.maximum(DEVIATIONS * typical, MARGIN * table["largest"].fillna(0))
    counts = {name: table[name].astype("Int64") for name in ("values", "moved")}
    rounded = {"largest": table["largest"], "typical": typical, "tolerance": tolerance}
    rounded = {name: column.round(4) for name, column in rounded.items()}
    return rules.assign(**counts, **rounded)


def describe(runs: Sequence[Path]) -> pd.DataFrame:
    """A row for each run: what it was, on what."""
    rows = []
    for run in runs:
        manifest = read_json(run / "manifest.json")
        facts = {"profile": manifest["profile"], "commit": manifest["commit"]}
        losses = {f"loss_{k}": round(v["final_loss"], 4) for k, v in manifest["models"].items()}
        machine = {name: manifest["machine"][name] for name in MACHINE}
        rows.append(
            {"run": run.name} | facts | machine | {"torch": manifest["packages"]["torch"]} | losses
        )
    return pd.DataFrame(rows)


def main() -> None:
    """Measure the runs, and renew both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("results", type=Path, nargs="+")
    runs = parser.parse_args().results
    path = MEASUREMENTS / "tolerances.csv"
    rules = read_tolerances(path)
    try:
        table = derive(measure(runs, rules), rules)
    except InputError as error:
        raise SystemExit(f"error: {error}") from error
    for name, found in (("tolerances", table), ("tolerances_runs", describe(runs))):
        with replacing(MEASUREMENTS / f"{name}.csv") as temporary:
            found.to_csv(temporary, index=False, lineterminator="\n")
    scales = table.groupby("scale")[["values", "moved", "typical", "tolerance"]]
    print(scales.agg({"values": "sum", "moved": "sum", "typical": "median", "tolerance": "max"}))


if __name__ == "__main__":
    main()
