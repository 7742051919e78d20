"""Examples in the docstrings of membership give what is written there."""

import doctest

import pytest

from contamination.membership import api, blind, evaluate, intervals, scores


@pytest.mark.parametrize("module", [api, blind, evaluate, intervals, scores])
def test_the_examples_of_a_module_give_what_is_written(module):
    tried = doctest.testmod(module)
    assert tried.failed == 0
    assert tried.attempted > 0
