"""Variants become tokens some records at a time, and how many at a time changes nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contamination.errors import InputError
from contamination.scoring import token_groups as module
from contamination.scoring.token_groups import token_groups
from contamination.testsets.variants import VariantSet


class Letters:
    """A tokenizer whose tokens are characters; it counts the texts of each call."""

    name_or_path = "letters"

    def __init__(self) -> None:
        self.calls: list[int] = []

    def __call__(self, texts, **settings):
        self.calls.append(len(texts))
        return {"input_ids": [list(map(ord, text)) for text in texts]}


def variants_of(*records: tuple[str, ...]) -> VariantSet:
    return VariantSet("a set", records, "text/1", "options")


def as_lists(groups):
    shown = []
    for group in groups:
        rests = [rest.tolist() for rest in group.rests]
        shown.append((group.record, group.prefix.tolist(), rests, list(group.which)))
    return shown


def test_a_group_has_what_its_variants_share_and_how_each_goes_on():
    (group,) = token_groups(Letters(), variants_of(("same",) * 3, ("abc", "abd", "abc")))
    assert as_lists([group]) == [(1, [97, 98], [[99], [100]], [0, 1, 0])]


records = st.lists(st.tuples(*[st.text("ab", min_size=1, max_size=4)] * 3), max_size=6)


@given(records, st.integers(1, 40))
def test_the_size_of_a_chunk_changes_nothing(texts, characters):
    whole = as_lists(token_groups(Letters(), variants_of(*texts)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK", characters)
        assert as_lists(token_groups(Letters(), variants_of(*texts))) == whole


def test_texts_of_some_records_are_in_memory_at_a_time(monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 100)
    texts = []
    for record in range(200):
        texts.append(tuple(f"{record:03d}{variant}" for variant in range(5)))
    tokenizer = Letters()
    groups = token_groups(tokenizer, variants_of(*texts))
    assert len(groups) == 200
    assert max(tokenizer.calls) <= 25  # of 1,000: five records of 20 characters


def test_what_stays_in_memory_is_no_view_of_whole_texts():
    beginning = "x" * 10_000
    (group,) = token_groups(Letters(), variants_of((f"{beginning}ab", f"{beginning}ba")))
    assert all(rest.base.size == 4 for rest in group.rests)  # two of two tokens, and no more


def test_a_variant_without_a_token_is_named():
    with pytest.raises(InputError, match="a set, record 2"):
        token_groups(Letters(), variants_of(("a", "b"), ("a", "")))
