"""Each public function of the statistics shows one example, and it gives what is written there."""

import doctest
import inspect
from importlib import import_module
from pkgutil import iter_modules

import pytest

from contamination import statistics

MODULES = [module.name for module in iter_modules(statistics.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_give_what_is_written(name):
    assert doctest.testmod(import_module(f"contamination.statistics.{name}")).failed == 0


@pytest.mark.parametrize("name", statistics.__all__)
def test_a_public_function_has_an_example(name):
    function = getattr(statistics, name)
    if inspect.isfunction(function):
        assert ">>> " in (function.__doc__ or "")
