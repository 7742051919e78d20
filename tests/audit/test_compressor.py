import itertools
import math
import zlib

import numpy as np
import pytest

from contamination.audit.compressor import (
    compressor_alternatives,
    compressor_log_probs,
    compressor_successors,
    compressor_test,
)
from contamination.statistics import centred_successors, sharded_exact_test, successor_scores
from contamination.testsets.alternatives import AlternativeSet, option_alternatives
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.orderings import ordering, shard_bounds
from fakes.level import check_level

WORDS = [f"{start}{end}" for start in "bdfgklmnprst" for end in ("anter", "olise", "uvid", "ec")]


def set_of(texts, revision="r"):
    return ExampleSet("made up", tuple(texts), "text/1", revision)


def passages(rng, n, group):
    """Records in groups that quote one passage of twelve words, each group together."""
    for _ in range(n // group):
        passage = " ".join(rng.choice(WORDS, 12))
        for _ in range(group):
            yield f"{passage} {' '.join(rng.choice(WORDS, 6))}\n"


SEVEN = [*passages(np.random.default_rng(0), 6, 2), "é日本\n"]


def size_of(text):
    return len(zlib.compress(text.encode(), level=9, wbits=-15))


def test_scores_by_brute_force():
    """Bytes of every example given the one before, in the orderings that a model is scored in."""
    scores = compressor_log_probs(set_of(SEVEN), shards=2, permutations=5, seed=3)
    assert scores.shape == (2, 6)
    for shard, bounds in enumerate(shard_bounds(7, 2)):
        for index in range(6):
            order = ordering(bounds, index, seed=3, dataset="r", shard=shard)
            total = size_of(SEVEN[order[0]])
            for a, b in itertools.pairwise(order):
                total += size_of(SEVEN[a] + SEVEN[b]) - size_of(SEVEN[a])
            assert scores[shard, index] == pytest.approx(-8 * total * math.log(2))


def test_pairs_by_brute_force():
    """Of all ordered pairs in a shard, and the sum along an ordering is that of the ordering."""
    matrices = list(compressor_successors(set_of(SEVEN), shards=2))
    assert [len(matrix) for matrix in matrices] == [4, 3]
    nats = 8 * math.log(2)
    for (start, stop), matrix in zip(shard_bounds(7, 2), matrices, strict=True):
        for a, b in itertools.product(range(start, stop), repeat=2):
            expected = -nats * (size_of(SEVEN[a] + SEVEN[b]) - size_of(SEVEN[a]))
            found = matrix[a - start, b - start]
            assert np.isnan(found) if a == b else found == pytest.approx(expected)
    canonical = compressor_log_probs(set_of(SEVEN), shards=2, permutations=1, seed=0)[:, 0]
    for shard, (start, stop) in enumerate(shard_bounds(7, 2)):
        along = successor_scores(matrices[shard], [range(stop - start)])[0]
        assert canonical[shard] == pytest.approx(along - nats * size_of(SEVEN[start]))


def test_the_control_of_pairs_ranks_all_orderings():
    """In one shard of six, whose 720 orderings can be listed."""
    texts = list(passages(np.random.default_rng(1), 6, 2))
    (matrix,) = compressor_successors(set_of(texts), shards=1)
    orders = list(itertools.permutations(range(6)))
    scores = successor_scores(centred_successors(matrix), orders)
    exact = np.mean(scores >= scores[0] - 1e-9)
    found = compressor_test(set_of(texts), kind="successors", shards=1, permutations=1, seed=0)
    assert found.p == pytest.approx(exact, rel=0.2)
    assert (found.test, found.shards, found.permutations) == ("compressor", 1, 10_000)


@pytest.mark.parametrize("kind", ["successors", "orderings"])
def test_the_control_tells_shared_passages_from_shuffled_ones(kind):
    rng = np.random.default_rng(2)
    texts = list(passages(rng, 48, 2))
    settings = {"kind": kind, "shards": 4, "permutations": 25, "seed": 0}
    assert compressor_test(set_of(texts), **settings).log10_p < -4
    if kind == "orderings":
        assert compressor_test(set_of(texts), **settings | {"shards": 6}).log10_p < -5
    few, p = list(passages(rng, 12, 2)), []
    for trial in range(100):
        shuffled = set_of([few[i] for i in rng.permutation(12)], str(trial))
        p.append(compressor_test(shuffled, **settings | {"shards": 2}).p)
    check_level(p, 0.1)


def test_examples_that_do_not_differ_say_nothing():
    for text in ("", "same\n"):
        scores = compressor_log_probs(set_of([text] * 6), shards=2, permutations=5, seed=0)
        assert np.ptp(scores) == 0
        assert sharded_exact_test(scores).p == 1


def quiz(orders):
    """Questions of which two options share words and two others do, in the orders given."""
    rng, records = np.random.default_rng(8), []
    for number, order in enumerate(orders):
        a, b, *ends = (" ".join(rng.choice(WORDS, 3)) for _ in range(6))
        options = [f"{a} {ends[0]}", f"{a} {ends[1]}", f"{b} {ends[2]}", f"{b} {ends[3]}"]
        choices = [options[i] for i in order]
        records.append(("", {"question": f"Q{number}?", "choices": choices, "answer": 0}))
    return make_test_set("quiz", records, "{question}\n", "quiz.jsonl")


def test_alternatives_by_brute_force():
    texts = (("aa bb aa bb\n", "ab ab ba ab\n", "é日本\n"), ("x\n", "x\n", "x\n"))
    alternatives = AlternativeSet("made up", texts, "text/1", "r", "options", (3, 1))
    sizes = [[-size_of(text) for text in row] for row in texts]
    found = compressor_alternatives(alternatives)
    assert found.test == "compressor" and found.shards == 2
    below = sum(size >= sizes[0][0] for size in sizes[0])
    assert found.p == pytest.approx(below / 3)  # the second record says nothing


def test_the_compressor_finds_options_that_share_words_and_are_mostly_side_by_side():
    """Deflate writes a short distance in fewer bits, hence the many items."""
    rng = np.random.default_rng(9)
    beside = quiz([(0, 1, 2, 3)] * 100)
    shuffled = quiz([rng.permutation(4) for _ in range(100)])
    p = [compressor_alternatives(option_alternatives(s, seed=0)).p for s in (beside, shuffled)]
    assert p[0] < 1e-3 < 0.05 < p[1]


def test_calibrated_on_shuffled_records():
    rng = np.random.default_rng(4)
    texts, p = list(passages(rng, 16, 2)), []
    for trial in range(500):
        shuffled = set_of([texts[i] for i in rng.permutation(16)], str(trial))
        scores = compressor_log_probs(shuffled, shards=2, permutations=9, seed=0)
        p.append(sharded_exact_test(scores).p)
    check_level(p, 0.05)
