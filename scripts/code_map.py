"""Renew the map of the code in docs/contributing.md from the first lines of the package docstrings.

    python scripts/code_map.py

Packages stand in the order of the layers that import-linter checks (pyproject.toml), top first.
"""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "contamination"
PAGE = ROOT / "docs" / "contributing.md"
START, END = "<!-- map: python scripts/code_map.py -->\n", "<!-- end of map -->"


def code_map() -> str:
    """Return the map as a Markdown table, a row a package."""
    rows = [f"| `{name}` | {idea} |" for name, idea in _packages()]
    return "\n".join(["| room | what it is for |", "|---|---|", *rows, ""])


def _packages() -> Iterator[tuple[str, str]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    for layer in layers:
        rooms = layer.split(" | ")
        if (SOURCES / rooms[0]).is_dir():
            for room in rooms:
                yield room, _first_line(SOURCES / room / "__init__.py")
                for path in sorted((SOURCES / room).glob("*/__init__.py")):
                    yield f"{room}/{path.parent.name}", _first_line(path)
        else:
            ideas = [_first_line(SOURCES / f"{room}.py") for room in rooms]
            yield "`, `".join(rooms), " ".join(ideas)


def _first_line(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.split("\n")[0]


def renewed(page: str) -> str:
    """Return the page with the map of today between its marks."""
    before, _, rest = page.partition(START)
    return before + START + code_map() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
