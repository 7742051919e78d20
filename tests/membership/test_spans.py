"""Spans: one after the other, or beginning at random places, each place once."""

from types import SimpleNamespace

import numpy as np
import pytest

from contamination.membership.spans import cut, sample
from contamination.testsets.tokens import tokenize

TEXTS = [f"apple {i} river stone {i * i}\n" for i in range(9)]


def drawn(tokenizer, length: int, count: int, seed: int = 0) -> list[tuple[int, ...]]:
    scorer = SimpleNamespace(tokenizer=tokenizer)
    found = sample(scorer, TEXTS, length, count, rng=np.random.default_rng(seed))
    return [tuple(ids.tolist()) for ids in found]


def places(tokenizer, length: int) -> list[tuple[int, ...]]:
    stream = np.concatenate(tokenize(tokenizer, TEXTS)).tolist()
    return [tuple(stream[i : i + length]) for i in range(len(stream) - length + 1)]


@pytest.mark.parametrize("length", [2, 20])
def test_every_place_is_drawn_once_where_all_are_wanted(tokenizer, length: int) -> None:
    whole = places(tokenizer, length)
    assert drawn(tokenizer, length, len(whole)) == whole
    assert drawn(tokenizer, length, len(whole) + 5) == whole


def test_places_are_equally_likely_and_in_their_order(tokenizer) -> None:
    whole = places(tokenizer, 30)
    assert len(set(whole)) == len(whole)
    counts = np.zeros(len(whole))
    for seed in range(400):
        found = [whole.index(ids) for ids in drawn(tokenizer, 30, 10, seed)]
        assert found == sorted(set(found))
        counts[found] += 1
    expected = 400 * 10 / len(whole)
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)


def test_texts_shorter_than_a_span_have_none(tokenizer) -> None:
    longest = len(places(tokenizer, 1))
    assert drawn(tokenizer, longest + 1, 3) == []
    assert len(drawn(tokenizer, longest, 3)) == 1
    assert cut(SimpleNamespace(tokenizer=tokenizer), [], 4) == []
