"""Renew what README.md quotes of the reference run: its numbers, and the summary that it prints.

    python scripts/readme.py

A number stands between two comments that pages do not show, the first of which names a variable
of results/reference/variables.yml: `<!-- results.detected -->5<!-- -->`.
"""

import re
from contextlib import chdir
from pathlib import Path

import yaml
from typer.testing import CliRunner

from contamination.cli.main import app

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "README.md"
REFERENCE = Path("results/reference")
NUMBER = re.compile(r"<!-- (\w+)\.(\w+) -->.*?<!-- -->")
SUMMARY = re.compile(r"(<!-- summary -->\n```text\n).*?(```\n)", re.DOTALL)
COLUMNS = "80"


def renewed(page: str, variables: dict[str, dict[str, str]], summary: str) -> str:
    """Return the page with these variables and this summary in their places."""

    def number(found: re.Match[str]) -> str:
        group, name = found.groups()
        return f"<!-- {group}.{name} -->{variables[group][name]}<!-- -->"

    return SUMMARY.sub(lambda found: found[1] + summary + found[2], NUMBER.sub(number, page))


def printed_summary() -> str:
    """Return what `make reproduce` prints at the end, without the files, which the page links."""
    arguments = ["stage", "summary", "--results", str(REFERENCE)]
    with chdir(ROOT):
        shown = CliRunner().invoke(app, arguments, env={"COLUMNS": COLUMNS}, catch_exceptions=False)
    lines = [line.rstrip() for line in shown.stdout.splitlines()]
    return "".join(f"{line}\n" for line in lines if not line.startswith(f"  {REFERENCE}"))


def renewed_page() -> str:
    """Return README.md with the numbers and the summary of the reference run."""
    variables = yaml.safe_load((ROOT / REFERENCE / "variables.yml").read_text(encoding="utf-8"))
    return renewed(PAGE.read_text(encoding="utf-8"), variables, printed_summary())


if __name__ == "__main__":
    PAGE.write_text(renewed_page(), encoding="utf-8")
