import math
import zlib
from functools import partial
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from contamination.audit.controls.zlib import (
    zlib_option_test,
    zlib_scores,
    zlib_test,
)
from contamination.statistics import centred_successors, successor_scores
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.orderings import ordering, shard_bounds
from contamination.testsets.variants import VariantSet

WORDS = []
for start in "bdfgklmnprst":
    WORDS += [f"{start}anter", f"{start}olise", f"{start}uvid", f"{start}ec"]


def set_of(texts):
    return ExampleSet("made up", tuple(texts), "text/1", "r")


def passages(rng, n, group):
    """Records in groups that quote one passage of twelve words, each group together."""
    for _ in range(n // group):
        passage = " ".join(rng.choice(WORDS, 12))
        for _ in range(group):
            yield f"{passage} {' '.join(rng.choice(WORDS, 6))}\n"


SEVEN = [*passages(np.random.default_rng(0), 6, 2), "é日本\n"]


def size_of(text):
    return len(zlib.compress(text.encode(), level=9, wbits=-15))


@given(
    length=st.integers(0, 40_000),
    letters=st.sampled_from(["ab", "abcdefgh", "".join(map(chr, range(32, 127)))]),
    seed=st.integers(0, 99),
)
@example(length=212, letters="ab", seed=0)  # 512 bytes less those that zlib leaves alone
@example(length=16_382, letters="".join(map(chr, range(32, 127))), seed=0)  # a whole block
@settings(max_examples=40, deadline=None)
def test_a_small_window_gives_the_code_of_the_largest(length, letters, seed):
    rng = np.random.default_rng(seed)
    text = "".join(rng.choice(list(letters), length))
    pair = (text, text[: length // 2])  # whose second one is a match from afar
    scores = zlib_scores(set_of(pair), kind="orderings", shards=1, permutations=0, seed=0)
    assert scores[0, 0] == pytest.approx(-8 * math.log(2) * size_of("".join(pair)), rel=1e-14)


def test_scores_by_brute_force():
    """Bytes of every example given the one before: of orderings of the model, and of pairs."""
    of_seven = partial(zlib_scores, set_of(SEVEN), shards=2, permutations=5, seed=3)
    scores = of_seven(kind="orderings")
    assert scores.shape == (2, 6)
    sampled = of_seven(kind="successors")
    for shard, (start, stop) in enumerate(shard_bounds(7, 2)):
        sizes = np.empty((7, 7))
        for a, b in np.ndindex(7, 7):
            sizes[a, b] = size_of(SEVEN[a] + SEVEN[b]) - size_of(SEVEN[a])
        for index in range(6):
            order = ordering((start, stop), index, seed=3, dataset="r", shard=shard)
            total = size_of(SEVEN[order[0]]) + sum(sizes[a, b] for a, b in pairwise(order))
            assert scores[shard, index] == pytest.approx(-8 * total * math.log(2))
        pairs = -8 * math.log(2) * sizes[start:stop, start:stop]
        orders = list(permutations(range(stop - start)))
        every = successor_scores(centred_successors(pairs), orders)
        assert sampled[shard, 0] == pytest.approx(every[0])
        assert np.abs(sampled[shard][:, None] - every).min(axis=1).max() < 1e-9


@pytest.mark.parametrize("kind", ["successors", "orderings"])
def test_the_control_finds_shared_passages(kind):
    texts = list(passages(np.random.default_rng(2), 48, 2))
    found = zlib_test(set_of(texts), kind=kind, shards=4, permutations=25, seed=0)
    assert found.log10_p < -4


def test_alternatives_by_brute_force():
    texts = (("aa bb aa bb\n", "ab ab ba ab\n", "é日本\n"), ("x\n", "x\n", "x\n"))
    alternatives = VariantSet("made up", texts, "text/1", "options")
    sizes = [-size_of(text) for text in texts[0]]
    found = zlib_option_test(alternatives)
    assert found.test == "compressor" and found.shards == 2
    below = sum(size >= sizes[0] for size in sizes)
    assert found.p == pytest.approx(below / 3)  # the second record says nothing
