"""What `make reproduce` and `make compare` print: results, where they lie, what differs."""

import math
from pathlib import Path

import pandas as pd
import typer
import yaml

from contamination.cli.printing import print_table, say
from contamination.errors import InputError
from contamination.files import read_json
from contamination.tables import read_csv
from reproduction.output.compare import DIFFERENT, IDENTICAL, compare, counts
from reproduction.stages import steps

PAGES = ("report/report.html", "report/report.pdf", "report/slides.html", "explorer.html")
SHOWN = 10  # largest differences


def print_summary(results: Path, reference: Path, tolerances: Path) -> None:
    """Print the p-values of planted sets, if there are any; then where everything lies.

    Raises InputError if the run is not finished.
    """
    trained = "corpus" in read_json(results / "manifest.json")
    variables = yaml.safe_load((results / "variables.yml").read_text(encoding="utf-8"))
    if trained:
        alpha = float(variables["results"]["alpha"])
        _print_canaries(read_csv(results, "canaries"), alpha)
        say(f"* p <= {alpha:g} after Holm's correction over all sets", wrap=False)
    if notice := variables.get("run", {}).get("rehearsal"):
        typer.secho(notice, fg="red", bold=True)
    if time_taken := steps.finished():
        say(f"{time_taken}; each of them: {results / 'tables' / 'run_steps.md'}", wrap=False)
    for name in (*PAGES, "tables", "figures", "notebooks"):
        if (results / name).exists():
            say(f"  {results / name}", wrap=False)
    if trained:
        try:
            found = compare(results, reference, pd.read_csv(tolerances))
            more = "; `make compare` shows them" if DIFFERENT in {*found["outcome"]} else ""
            say(f"beside {reference}: {counts(found)}{more}", wrap=False)
        except InputError as error:
            say(f"not compared: {error}", wrap=False)


def _print_canaries(table: pd.DataFrame, alpha: float) -> None:
    """Print the p-values of the planted sets under both models."""
    exact = table.query("test == 'sharded_exact'").pivot(
        index=["dup_count", "dataset"], columns="model", values=["p", "holm_p"]
    )
    rows = []
    for (dup_count, dataset), row in exact.iterrows():
        mark, p = "*" if row["holm_p", "contaminated"] <= alpha else " ", row["p"]
        rows.append((dataset, dup_count, f"{p['contaminated']:.2g} {mark}", f"{p['clean']:.2g}"))
    columns = ("canary set", "planted", "p, contaminated model", "p, clean model")
    print_table(columns, rows, title="Exact test: is the canonical order preferred?")


def print_comparison(found: pd.DataFrame, results: Path, reference: Path) -> None:
    """Print both machines, the largest differences, and how many there are."""
    for name, folder in (("this run", results), ("reference", reference)):
        manifest = read_json(folder / "manifest.json")
        shown = f"{manifest['hardware']}, torch {manifest['packages']['torch']}"
        say(f"{name + ':':11}{shown}", wrap=False)
    moved = found[found["outcome"] != IDENTICAL]
    moved = moved.sort_values("share", ascending=False, kind="stable").head(SHOWN)
    rows = [
        (
            "not allowed" if math.isinf(value.share) else f"{value.share:.2f} times",
            f"{value.table}: {value.column}\n{value.row}".rstrip(),
            *(value.run, value.reference),
        )
        for value in moved.itertuples()
    ]
    if rows:
        columns = ("tolerance", "value", "this run", "reference")
        title = f"The {len(rows)} largest differences, in tolerances"
        print_table(columns, rows, title=title, text=("value",))
    say(f"{counts(found)}; all of them: {results / 'comparison.csv'}", wrap=False)
