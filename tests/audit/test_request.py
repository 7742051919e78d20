"""Which tests a request asks for: its own, or those of its axis."""

from dataclasses import replace

import pytest

from contamination.audit.battery import DEFAULT_TESTS, OPTION_TEST
from contamination.audit.request import Request
from contamination.errors import InputError


@pytest.mark.parametrize(
    ("axis", "order", "everything"),
    [
        ("order", DEFAULT_TESTS, DEFAULT_TESTS),
        ("options", (), (OPTION_TEST,)),
        ("both", DEFAULT_TESTS, (*DEFAULT_TESTS, OPTION_TEST)),
    ],
)
def test_every_axis_has_its_default_also_where_it_is_changed_later(axis, order, everything):
    for request in (Request(axis=axis), replace(Request(), axis=axis)):
        assert (request.order_tests, request.all_tests) == (order, everything)


@pytest.mark.parametrize("tests", [DEFAULT_TESTS, [*DEFAULT_TESTS, OPTION_TEST]])
def test_the_default_of_another_axis_is_refused_where_it_is_asked_for(tests):
    with pytest.raises(InputError) as error:
        Request(tests, axis="options")
    assert str(error.value) == (
        "successor is a test of the order of records: leave out --test, or give --axis both"
    )


def test_tests_that_are_asked_for_are_kept():
    assert Request([OPTION_TEST], axis="options").all_tests == (OPTION_TEST,)
    assert Request(["min_p", "successor"]).all_tests == ("min_p", "successor")
    assert Request(["min_p"], axis="both").all_tests == ("min_p", OPTION_TEST)
