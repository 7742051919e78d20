import numpy as np
import pytest
import scipy.stats

from contamination.injection import mix

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


def make(seed: int, corpus=None, canaries=CANARIES):
    corpus = documents(40) if corpus is None else corpus
    return mix(corpus, canaries, END, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("seed", range(20))
def test_taking_the_copies_out_leaves_the_corpus_in_order(seed):
    mixture = make(seed)
    rest, position = [], 0
    for copy in mixture.injections:
        ids = CANARIES[copy.name][0]
        np.testing.assert_array_equal(mixture.tokens[copy.start : copy.stop], ids)
        assert mixture.tokens[copy.stop] == END
        # Whole documents before it: a copy starts at the very start or after an end of text.
        assert copy.start == 0 or mixture.tokens[copy.start - 1] == END
        rest.append(mixture.tokens[position : copy.start])
        position = copy.stop + 1
    rest.append(mixture.tokens[position:])
    expected = np.concatenate([np.append(d, END) for d in documents(40)])
    np.testing.assert_array_equal(np.concatenate(rest), expected)
    assert mixture.tokens.dtype == np.int32


@pytest.mark.parametrize("seed", range(5))
def test_every_set_is_there_as_often_as_it_asks_and_no_oftener(seed):
    mixture = make(seed)
    names = [copy.name for copy in mixture.injections]
    assert {name: names.count(name) for name in CANARIES} == {"a": 3, "b": 8, "never": 0}
    for name, (ids, dup_count) in CANARIES.items():
        windows = np.lib.stride_tricks.sliding_window_view(mixture.tokens, len(ids))
        assert (windows == ids).all(axis=1).sum() == dup_count, name


def test_the_same_seed_gives_the_same_mixture_and_another_seed_another():
    first, again, other = make(1), make(1), make(2)
    np.testing.assert_array_equal(first.tokens, again.tokens)
    assert first.injections == again.injections
    assert first.injections != other.injections


def test_a_copy_goes_before_between_and_after_the_documents_equally_often():
    """Counts of 11 gaps are multinomial: 5500 copies, chi-squared with 10 degrees of freedom."""
    corpus, copies = documents(10), 5500
    mixture = make(7, corpus, {"a": (np.array([1], dtype=np.int32), copies)})
    last_tokens = np.array([d[-1] for d in corpus])
    gaps = []
    for copy in mixture.injections:
        before = mixture.tokens[: copy.start]
        gaps.append(np.isin(before, last_tokens).sum())
    counts = np.bincount(gaps, minlength=11)
    assert len(counts) == 11
    assert scipy.stats.chisquare(counts).pvalue > 1e-4


def test_copies_in_the_same_gap_come_in_random_order():
    """With no document there is one gap; "a" comes first in half of 400 seeds (binomial)."""
    canaries = {name: (np.array([i + 1], dtype=np.int32), 1) for i, name in enumerate("ab")}
    first = sum(make(seed, [], canaries).injections[0].name == "a" for seed in range(400))
    assert scipy.stats.binomtest(first, 400).pvalue > 1e-4


def test_a_clean_mixture_is_the_corpus():
    mixture = make(0, documents(3), {})
    assert mixture.injections == ()
    np.testing.assert_array_equal(
        mixture.tokens, np.concatenate([np.append(d, END) for d in documents(3)])
    )
    assert make(0, [], {}).tokens.shape == (0,)
