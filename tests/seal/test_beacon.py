"""A round of the public beacon: its time, and its signature, verified without a network."""

import datetime
import hashlib
import sys

import pytest

from contamination.seal.beacon import check_signature, round_at, time_of
from fakes.made_up_registry import refusal

# https://api.drand.sh/52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971/public/1000
ROUND, SIGNATURE = (
    1000,
    "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39",
)
RANDOMNESS = "fe290beca10872ef2fb164d2aa4442de4566183ec51c56ff3cd603d930e54fdd"


def test_the_signature_of_a_round_is_the_one_that_the_beacon_published() -> None:
    assert hashlib.sha256(bytes.fromhex(SIGNATURE)).hexdigest() == RANDOMNESS
    check_signature.cache_clear()
    limit = sys.getrecursionlimit()
    check_signature(ROUND, SIGNATURE)
    assert sys.getrecursionlimit() == limit  # py_ecc raises it, and deep JSON would end Python


@pytest.mark.parametrize(
    ("number", "signature"),
    [
        (ROUND + 1, SIGNATURE),
        (ROUND, SIGNATURE[:-2] + "38"),
        (ROUND, SIGNATURE.upper()),
        (ROUND, RANDOMNESS),
        (ROUND, "c0" + "00" * 47),  # the point at infinity
        (ROUND, ""),
        (ROUND, "no signature"),
        (ROUND, "\x1b[31m" + SIGNATURE),
    ],
)
def test_any_other_signature_is_refused(number, signature) -> None:
    told = refusal(check_signature, number, signature)
    assert f"is not the beacon's of round {number:,}" in told


def test_rounds_come_every_three_seconds() -> None:
    assert time_of(1) == datetime.datetime(2023, 8, 23, 15, 9, 27, tzinfo=datetime.UTC)
    for seconds, number in ((-5, 1), (0, 1), (1, 2), (3, 2), (4, 3), (6, 3)):
        assert round_at(time_of(1) + datetime.timedelta(seconds=seconds)) == number
    assert time_of(round_at(time_of(12345))) == time_of(12345)
