"""Examples in the docstrings of the seal room give what is written there."""

import doctest

import pytest

from contamination.seal import answers, audit, draws, prepare, shots


@pytest.mark.parametrize("module", [answers, audit, draws, prepare, shots])
def test_the_examples_of_a_module_give_what_is_written(module):
    tried = doctest.testmod(module)
    assert tried.failed == 0
    assert tried.attempted > 0
