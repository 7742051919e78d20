from functools import partial

import numpy as np
import pytest
import scipy.stats

from contamination.errors import InputError
from reproduction.run.injection import fill_blocks, mix

END = 0


def documents(count: int, first: int = 1000) -> list[np.ndarray]:
    """Documents of different lengths in which every token is unique."""
    lengths = 1 + np.arange(count) % 5
    stops = first + np.cumsum(lengths)
    return [
        np.arange(stop - length, stop, dtype=np.int32)
        for stop, length in zip(stops, lengths, strict=True)
    ]


CANARIES = {
    "a": (np.array([1, 2, 3, 4], dtype=np.int32), 3),
    "b": (np.array([11, 12], dtype=np.int32), 8),
    "never": (np.array([21, 22], dtype=np.int32), 0),
}


def join(corpus: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.empty(0, np.int32), *(np.append(d, np.int32(END)) for d in corpus)])


def make(seed: int, corpus=None, canaries=CANARIES):
    corpus = documents(40) if corpus is None else corpus
    ends = np.cumsum([len(d) + 1 for d in corpus], dtype=np.int64)
    pieces, injections = mix(join(corpus), ends, canaries, END, rng=np.random.default_rng(seed))
    return np.concatenate(pieces), injections


@pytest.mark.parametrize("seed", range(2))
def test_taking_the_copies_out_leaves_the_corpus_in_order(seed):
    tokens, injections = make(seed)
    names = [copy.name for copy in injections]
    assert {name: names.count(name) for name in CANARIES} == {"a": 3, "b": 8, "never": 0}
    for name, (ids, dup_count) in CANARIES.items():
        windows = np.lib.stride_tricks.sliding_window_view(tokens, len(ids))
        assert (windows == ids).all(axis=1).sum() == dup_count, name
    rest, position = [], 0
    for copy in injections:
        ids = CANARIES[copy.name][0]
        np.testing.assert_array_equal(tokens[copy.start : copy.stop], ids)
        assert tokens[copy.stop] == END
        # Whole documents before it: a copy starts at the very start or after an end of text.
        assert copy.start == 0 or tokens[copy.start - 1] == END
        rest.append(tokens[position : copy.start])
        position = copy.stop + 1
    rest.append(tokens[position:])
    np.testing.assert_array_equal(np.concatenate(rest), join(documents(40)))
    assert make(0, [], {})[0].shape == (0,)


def test_a_copy_goes_before_between_and_after_the_documents_equally_often():
    """Counts of 11 gaps are multinomial: 5500 copies, chi-squared with 10 degrees of freedom."""
    corpus = documents(10)
    copies = 5500
    tokens, injections = make(7, corpus, {"a": (np.array([1], dtype=np.int32), copies)})
    last_tokens = np.array([d[-1] for d in corpus])
    ended = np.cumsum(np.isin(tokens, last_tokens))  # documents, up to each token
    gaps = [ended[copy.start] for copy in injections]
    counts = np.bincount(gaps, minlength=11)
    assert len(counts) == 11
    assert scipy.stats.chisquare(counts).pvalue > 1e-4


def test_copies_in_the_same_gap_come_in_random_order():
    """With no document there is one gap; "a" comes first in half of 400 seeds (binomial)."""
    canaries = {name: (np.array([i + 1], dtype=np.int32), 1) for i, name in enumerate("ab")}
    first = sum(make(seed, [], canaries)[1][0].name == "a" for seed in range(400))
    assert scipy.stats.binomtest(first, 400).pvalue > 1e-4


@pytest.mark.parametrize("tokens", [None, 100])
def test_blocks_are_full_of_whole_copies_and_of_the_beginning_of_the_background(tokens):
    background = documents(60)
    ends = np.cumsum([len(d) + 1 for d in background])
    fill = partial(
        fill_blocks,
        join(background),
        ends,
        CANARIES,
        END,
        context=8,
        rng=np.random.default_rng(3),
    )
    blocks, injections = fill(tokens=tokens)
    planted = sum((len(ids) + 1) * count for ids, count in CANARIES.values())
    whole = (tokens or planted + len(join(background))) // 8 * 8
    assert blocks.shape == (whole // 8, 8)
    assert blocks.dtype == np.int64
    stream = blocks.ravel()
    rest = np.ones(blocks.size, dtype=bool)
    for copy in injections:
        assert stream[copy.start : copy.stop].tolist() == CANARIES[copy.name][0].tolist()
        assert stream[copy.stop] == END
        assert copy.start == 0 or stream[copy.start - 1] == END
        rest[copy.start : copy.stop + 1] = False
    assert stream[rest].tolist() == join(background)[: rest.sum()].tolist()
    for most in (30, 10_000):  # no room, and too little background
        with pytest.raises(InputError, match="give more background"):
            fill(tokens=most)


@pytest.mark.parametrize("kind", [np.uint16, np.uint32])
def test_the_stream_is_of_the_corpus_kind_and_shares_its_memory(kind):
    """Otherwise a corpus larger than memory could not be mixed."""
    corpus = join(documents(40)).astype(kind)
    ends = np.flatnonzero(corpus == END) + 1
    pieces, _ = mix(corpus, ends, CANARIES, END, rng=np.random.default_rng(0))
    assert {piece.dtype for piece in pieces} == {np.dtype(kind)}
    shared = sum(len(p) for p in pieces if np.shares_memory(p, corpus))
    assert shared == len(corpus)
