"""Renew what README.md quotes of the reference run: numbers, tables, the summary that it prints.

    python scripts/readme.py

A number stands between two comments that pages do not show, the first of which names a variable
of results/reference/variables.yml: `<!-- results.detected -->5<!-- -->`. A table stands between
`<!-- table options -->` and `<!-- end of table -->`, and is results/reference/tables/options.md.
"""

import re
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import yaml
from typer.testing import CliRunner

from contamination.cli.main import app

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "README.md"
REFERENCE = Path("results/reference")
NUMBER = re.compile(r"<!-- (\w+)\.(\w+) -->.*?<!-- -->")
TABLE = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
SUMMARY = re.compile(r"(<!-- summary -->\n```text\n).*?(```\n)", re.DOTALL)
COLUMNS = "80"


def renewed(
    page: str, variables: dict[str, dict[str, str]], summary: str, tables: Callable[[str], str]
) -> str:
    """Return the page with these variables, this summary and the tables of these names in place."""

    def number(found: re.Match[str]) -> str:
        group, name = found.groups()
        return f"<!-- {group}.{name} -->{variables[group][name]}<!-- -->"

    page = TABLE.sub(lambda found: found[1] + tables(found[2]) + found[3], page)
    return SUMMARY.sub(lambda found: found[1] + summary + found[2], NUMBER.sub(number, page))


def printed_table(name: str) -> str:
    """Return a table of the reference run as readers see it."""
    return (ROOT / REFERENCE / "tables" / f"{name}.md").read_text(encoding="utf-8")


def printed_summary() -> str:
    """Return what `make reproduce` prints at the end, without the files, which the page links."""
    arguments = ["stage", "summary", "--results", str(REFERENCE)]
    with chdir(ROOT):
        shown = CliRunner().invoke(app, arguments, env={"COLUMNS": COLUMNS}, catch_exceptions=False)
    lines = [line.rstrip() for line in shown.stdout.splitlines()]
    return "".join(f"{line}\n" for line in lines if not line.startswith(f"  {REFERENCE}"))


def renewed_page() -> str:
    """Return README.md with what the reference run says today."""
    variables = yaml.safe_load((ROOT / REFERENCE / "variables.yml").read_text(encoding="utf-8"))
    return renewed(PAGE.read_text(encoding="utf-8"), variables, printed_summary(), printed_table)


if __name__ == "__main__":
    PAGE.write_text(renewed_page(), encoding="utf-8")
