"""What `make reproduce` prints at its end: the p-values, the time of each step, the files."""

from pathlib import Path

import yaml
from rich.console import Console
from rich.table import Table

from contamination.files import read_json
from contamination.results.tables import read_csv

PAGES = ("report/report.html", "report/report.pdf", "report/slides.html", "explorer.html")


def print_summary(results: Path) -> None:
    """Print the exact p-values of the canary sets and the paths of the results."""
    table = read_csv(results, "canaries")
    exact = table[table["test"] == "sharded_exact"].pivot(
        index=["dup_count", "dataset"], columns="model", values=["p", "holm_p"]
    )
    shown = Table(title="Exact test: is the canonical order preferred?")
    for column in ("canary set", "planted", "p, contaminated model", "p, clean model"):
        shown.add_column(column, justify="left" if column == "canary set" else "right")
    variables = yaml.safe_load((results / "variables.yml").read_text(encoding="utf-8"))
    alpha = float(variables["results"]["alpha"])
    for (dup_count, dataset), row in exact.iterrows():
        mark = "*" if row["holm_p", "contaminated"] <= alpha else " "
        values = row["p"]
        shown.add_row(
            dataset,
            str(dup_count),
            f"{values['contaminated']:.2g} {mark}",
            f"{values['clean']:.2g}",
        )
    console = Console()
    console.print(shown, f"* p <= {alpha:g} after Holm's correction over all sets", highlight=False)
    steps = read_json(results / "manifest.json")["steps"]
    seconds = ", ".join(f"{name} {step['seconds']:.0f} s" for name, step in steps.items())
    console.print(f"time: {seconds}", highlight=False)
    for name in (*PAGES, "tables", "figures", "notebooks"):
        if (results / name).exists():
            console.print(f"  {results / name}", highlight=False, soft_wrap=True)
