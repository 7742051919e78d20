"""Examples in docstrings give what is written there."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import contamination

SOURCE = Path(contamination.__file__).parent


def modules_with_examples() -> list[str]:
    """Return the names of the modules that have an example."""
    names = []
    for file in sorted(SOURCE.rglob("*.py")):
        if ">>> " in file.read_text(encoding="utf-8"):
            parts = file.relative_to(SOURCE.parent).with_suffix("").parts
            names.append(".".join(parts).removesuffix(".__init__"))
    return names


MODULES = modules_with_examples()


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_give_what_is_written(name):
    tried = doctest.testmod(import_module(name))
    assert tried.failed == 0
    assert tried.attempted > 0
