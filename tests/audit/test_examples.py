"""Examples in the docstrings of the audit give what is written there."""

import doctest

import pytest

from contamination.audit import (
    decision,
    evidence,
    export,
    generated_texts,
    other_tests,
    power,
    quiz,
    registry,
)
from contamination.audit.controls import options, records

MODULES = [
    decision,
    evidence,
    export,
    generated_texts,
    options,
    other_tests,
    power,
    quiz,
    records,
    registry,
]


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_a_module_give_what_is_written(module):
    tried = doctest.testmod(module)
    assert tried.failed == 0
    assert tried.attempted > 0
