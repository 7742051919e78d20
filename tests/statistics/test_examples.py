"""Each public function of the statistics shows one example."""

import inspect

import pytest

from contamination import statistics


@pytest.mark.parametrize("name", statistics.__all__)
def test_a_public_function_has_an_example(name):
    function = getattr(statistics, name)
    if inspect.isfunction(function):
        assert ">>> " in (function.__doc__ or "")
