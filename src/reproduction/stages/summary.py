"""The output of `make reproduce` and `make compare`: results, their files, and differences."""

import math
from pathlib import Path

import pandas as pd
import typer
import yaml

from contamination.audit.registry import DEFAULT_TESTS, TESTS
from contamination.cli.printing import print_table, say
from contamination.errors import InputError
from contamination.files import read_json
from contamination.tables import read_csv
from reproduction.output.compare import DIFFERENT, IDENTICAL, compare, counts
from reproduction.run.profile import MODELS
from reproduction.stages import steps

PAGES = (
    "report/report.html",
    "report/report.pdf",
    "report/slides.html",
    "explorer.html",
)
SHOWN = 10  # largest differences


def print_summary(results: Path, reference: Path, tolerances: Path) -> None:
    """Print the p-values of planted sets, if there are any; then where everything lies.

    Parameters
    ----------
    results
        Directory of the run.
    reference
        Results that the run is compared with.
    tolerances
        Table of what may differ.

    Raises
    ------
    InputError
        If the run is not finished.
    """
    trained = "corpus" in read_json(results / "manifest.json")
    variables = yaml.safe_load((results / "variables.yml").read_text(encoding="utf-8"))
    if trained:
        alpha = float(variables["results"]["alpha"])
        _print_canaries(read_csv(results, "canaries"), alpha)
        say(f"* p <= {alpha:g} after Holm's correction over all sets", wrap=False)
    notice = variables.get("run", {}).get("rehearsal")
    if notice:
        typer.secho(notice, fg="red", bold=True)
    time_taken = steps.finished()
    if time_taken:
        say(
            f"{time_taken}; each of them: {results / 'tables' / 'run_steps.md'}",
            wrap=False,
        )
    for name in (*PAGES, "tables", "figures", "notebooks"):
        if (results / name).exists():
            say(f"  {results / name}", wrap=False)
    if trained:
        _print_counts(results, reference, tolerances)


def _print_counts(results: Path, reference: Path, tolerances: Path) -> None:
    """Print how many values differ from the reference, or why they cannot be compared."""
    try:
        values = compare(results, reference, pd.read_csv(tolerances))
    except InputError as error:
        say(f"not compared: {error}", wrap=False)
        return
    line = f"compared with {reference}: {counts(values)}"
    if (values["outcome"] == DIFFERENT).any():
        line += "; `make compare` shows them"
    say(line, wrap=False)


def _print_canaries(table: pd.DataFrame, alpha: float) -> None:
    """Print the p-values of the planted sets under both models, by the paper's way and by ours."""
    tests = ("sharded_exact", *DEFAULT_TESTS)
    wide = table.pivot(
        index=["dup_count", "dataset"],
        columns=["test", "model"],
        values=["p", "holm_p"],
    )
    columns = ["canary set", "planted"]
    for test in tests:
        columns += [f"{TESTS[test].label}, {model}" for model in MODELS]
    rows = []
    for (dup_count, dataset), row in wide.iterrows():
        cells = [dataset, dup_count]
        for test in tests:
            for model in MODELS:
                mark = "*" if row["holm_p", test, model] <= alpha else " "
                cells.append(f"{row['p', test, model]:.2g} {mark}")
        rows.append(cells)
    print_table(columns, rows, title="p-values: is the canonical order preferred?")


def print_comparison(values: pd.DataFrame, results: Path, reference: Path) -> None:
    """Print both machines, the largest differences, and their number.

    Parameters
    ----------
    values
        The table of `reproduction.output.compare.compare`.
    results, reference
        Directories of the two runs.
    """
    for name, folder in (("this run", results), ("reference", reference)):
        manifest = read_json(folder / "manifest.json")
        shown = f"{manifest['hardware']}, torch {manifest['packages']['torch']}"
        say(f"{name + ':':11}{shown}", wrap=False)
    moved = values[values["outcome"] != IDENTICAL]
    moved = moved.sort_values("share", ascending=False, kind="stable").head(SHOWN)
    rows = []
    for value in moved.itertuples():
        times = "not allowed" if math.isinf(value.share) else f"{value.share:.2f} times"
        place = f"{value.table}: {value.column}\n{value.row}".rstrip()
        rows.append((times, place, value.run, value.reference))
    if rows:
        columns = ("tolerance", "value", "this run", "reference")
        title = f"The {len(rows)} largest differences, in tolerances"
        print_table(columns, rows, title=title, text=("value",))
    say(f"{counts(values)}; all of them: {results / 'comparison.csv'}", wrap=False)
