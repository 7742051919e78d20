"""Differences between two runs of one profile, and the tolerances of `make compare`.

    .venv/bin/python benchmarks/tolerances.py RESULTS RESULTS ... [--table TABLE]

Each RESULTS is a directory of results: runs on several machines, or with other threads, kernels or
precision (docs/how-to/reproduce.md says how). Every pair of one profile is compared; those of the
profile of the reference renew the numbers of docs/measurements/tolerances.csv, whose lines with
table, column and scale are written by hand. Writes docs/measurements/tolerances_runs.csv, which
runs they were, and tolerances_pairs.csv, how far each pair is apart. Nothing is written if a value
moved that must not. With --table only that one is compared, which is new: its lines are renewed
alone, and the runs and pairs are added to those that are there.
"""

import argparse
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.errors import InputError
from contamination.files import read_json, replacing
from reproduction.output.compare import (
    DIFFERENT,
    PROFILE,
    SCALES,
    compare,
    read_tables,
)

MEASUREMENTS = Path(__file__).parents[1] / "docs" / "measurements"
DEVIATIONS = 6.0  # what is allowed, in root mean square differences of the column
MARGIN = 2.0  # and at least that times the largest difference seen
OTHERS = 10  # values of an uneasy column of the scale that count for every column
UNEASY = 0.9  # share of the scale's columns that move less than that one
KEPT = ("tolerances_runs", "tolerances_pairs")
MACHINE = ("processor", "cores", "threads", "instructions", "precision")


def measure(
    runs: Sequence[Path], rules: pd.DataFrame, table: str | None = None, before: int = 0
) -> pd.DataFrame:
    """Differences of every pair of runs of one profile, a row for each value with a scale.

    The columns of `compare_tables`, profile, and first and second: the places of the runs, after
    so many that were measured `before`. Of one table alone, if it is named. Raises InputError if a
    column has no line in `rules`, or if anything moved that must not.
    """
    listed = set(rules[["table", "column"]].itertuples(index=False, name=None))
    for run in runs:
        lost = []
        for name, table in read_tables(run).items():
            lost += [f"{name}, {column}" for column in table if (name, column) not in listed]
        if lost:
            raise InputError(f"write lines with table, column and scale of: {'; '.join(lost)}")
    allowed = rules.assign(tolerance=np.inf)
    profiles = [read_json(run / "manifest.json")["profile"] for run in runs]
    pairs = [
        compare(runs[first], runs[second], allowed).assign(
            profile=profiles[first], first=before + first + 1, second=before + second + 1
        )
        for first, second in combinations(range(len(runs)), 2)
        if profiles[first] == profiles[second]
    ]
    if not pairs:
        raise InputError("name two runs of one profile, or more")
    values = pd.concat(pairs, ignore_index=True)
    if table is not None:
        values = values[values["table"] == table]
    moved = values[values["outcome"] == DIFFERENT]
    if len(moved):
        raise InputError(f"moved, which must not:\n{moved.head(20).to_string(index=False)}")
    return values[values["scale"].isin(list(SCALES))]


def summarise_pairs(values: pd.DataFrame) -> pd.DataFrame:
    """Root mean square and largest difference of each pair on each scale."""
    keys = ["profile", "first", "second", "scale"]
    grouped = values.replace({"scale": {"log10 p": "p"}}).groupby(keys)["difference"]
    return grouped.agg(
        values="size",
        moved=lambda found: (found > 0).sum(),
        typical=lambda found: round(np.sqrt((found**2).mean()), 4),
        largest=lambda found: round(found.max(), 4),
    ).reset_index()


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
    squares = table["squares"].fillna(0)
    number = table["values"].fillna(0)
    typical = np.sqrt((squares + OTHERS * uneasy) / (number + OTHERS))
    tolerance = np.maximum(DEVIATIONS * typical, MARGIN * table["largest"].fillna(0))
    return rules.assign(
        values=table["values"].astype("Int64"),
        moved=table["moved"].astype("Int64"),
        largest=table["largest"].round(4),
        typical=typical.round(4),
        tolerance=tolerance.round(4),
    )


def describe(runs: Sequence[Path], before: int = 0) -> pd.DataFrame:
    """A row for each run: what it was, on what."""
    rows = []
    for place, run in enumerate(runs, start=before + 1):
        manifest = read_json(run / "manifest.json")
        facts = {"run": place, "profile": manifest["profile"], "commit": manifest["commit"]}
        facts |= {name: manifest["machine"][name] for name in MACHINE}
        facts |= {"torch": manifest["packages"]["torch"]}
        losses = {f"loss_{k}": round(v["final_loss"], 5) for k, v in manifest["models"].items()}
        rows.append(facts | losses)
    return pd.DataFrame(rows)


def main() -> None:
    """Measure the runs, and renew the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--table")
    asked = parser.parse_args()
    runs, table = asked.results, asked.table
    rules = pd.read_csv(MEASUREMENTS / "tolerances.csv")
    old = {name: pd.read_csv(MEASUREMENTS / f"{name}.csv") for name in KEPT if table}
    before = len(old["tolerances_runs"]) if table else 0
    try:
        values = measure(runs, rules, table, before)
        used = values[values["profile"] == PROFILE]
        if used.empty:
            raise InputError(f"name two runs of {PROFILE}, or more, that have this table")
    except InputError as error:
        raise SystemExit(f"error: {error}") from error
    tables = {
        "tolerances": derive(used, rules),
        "tolerances_runs": describe(runs, before),
        "tolerances_pairs": summarise_pairs(values),
    }
    if table:
        renewed = rules["table"] == table
        lines = derive(used, rules[renewed].reset_index(drop=True)).set_index(rules.index[renewed])
        untouched = pd.read_csv(MEASUREMENTS / "tolerances.csv", dtype=str)[~renewed]
        tables["tolerances"] = pd.concat([untouched, lines]).sort_index()
        tables |= {name: pd.concat([old[name], tables[name]]) for name in KEPT}
    for name, found in tables.items():
        with replacing(MEASUREMENTS / f"{name}.csv") as temporary:
            found.to_csv(temporary, index=False, lineterminator="\n")
    print(tables["tolerances_pairs"].to_string(index=False))


if __name__ == "__main__":
    main()
