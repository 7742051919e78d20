"""Renew what pages quote of the reference run: numbers and tables.

    python scripts/readme.py

A number stands between two comments that readers do not see, the first of which names a variable
of results/reference/variables.yml: `<!-- results.detected -->5<!-- -->`. A table stands between
`<!-- table options -->` and `<!-- end of table -->`, and is results/reference/tables/options.md.
"""

import re
from pathlib import Path

import yaml

from contamination.files import write_text

ROOT = Path(__file__).parents[1]
PAGES = (
    ROOT / "README.md",
    ROOT / "docs" / "power.md",
    ROOT / "docs" / "fidelity.md",
    ROOT / "docs" / "membership.md",
    ROOT / "docs" / "how-to" / "reproduce.md",
)
REFERENCE = ROOT / "results" / "reference"
NUMBER = re.compile(r"<!-- (\w+)\.(\w+) -->.*?<!-- -->")
TABLE = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def renewed(page: str) -> str:
    """Return a page with what the reference run says today; KeyError for an unknown variable."""
    variables = yaml.safe_load((REFERENCE / "variables.yml").read_text(encoding="utf-8"))

    def number(found: re.Match[str]) -> str:
        group, name = found.groups()
        return f"<!-- {group}.{name} -->{variables[group][name]}<!-- -->"

    def table(found: re.Match[str]) -> str:
        path = REFERENCE / "tables" / f"{found[2]}.md"
        return found[1] + path.read_text(encoding="utf-8") + found[3]

    return TABLE.sub(table, NUMBER.sub(number, page))


if __name__ == "__main__":
    for path in PAGES:
        write_text(path, renewed(path.read_text(encoding="utf-8")))
