"""A set that is too small for a store is refused with what would do."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contamination.errors import InputError
from contamination.scoring.plan import StoreNeed, plan_store

NEEDS = (StoreNeed(kind="successors", tokens_per_example=4), StoreNeed())


@given(need=st.sampled_from(NEEDS), examples=st.integers(0, 20), shards=st.integers(1, 20))
def test_what_the_message_asks_for_is_enough(need, examples, shards) -> None:
    fewest = 3 if need.kind == "successors" else 2
    if examples >= fewest * shards:
        assert plan_store(need, examples, shards).shards == shards
        return
    with pytest.raises(InputError) as refused:
        plan_store(need, examples, shards)
    message = str(refused.value)
    if examples < fewest:
        assert f"give at least {fewest}" in message
        assert "shards" not in message
        return
    match = re.search(r"at most (\d+) shards", message)
    assert match is not None
    most = int(match.group(1))
    assert plan_store(need, examples, most).shards == most
