"""Hits on what was drawn: the law of their number, and how many records must have been known."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats

from contamination.errors import InputError
from contamination.statistics import hits_log10_p, known_at_least, quiz_test

CHANCES = (1 / 2, 1 / 3, 1 / 4, 1 / 2, 1 / 5, 1, 1 / 3, 0.9)


def test_the_law_is_that_of_all_outcomes():
    outcomes = list(itertools.product((0, 1), repeat=len(CHANCES)))
    chance = []
    for outcome in outcomes:
        factors = np.where(outcome, CHANCES, 1 - np.array(CHANCES))
        chance.append(math.prod(factors))
    for hits in range(len(CHANCES) + 1):
        wanted = sum(p for each, p in zip(outcomes, chance, strict=True) if sum(each) >= hits)
        assert 10 ** hits_log10_p(hits, CHANCES) == pytest.approx(wanted)
    assert hits_log10_p(0, []) == 0
    assert hits_log10_p(1500, [0.25] * 1500) == pytest.approx(1500 * math.log10(0.25))


@pytest.mark.parametrize("chances", [CHANCES, (0.25,) * 12, (0.5,) * 40, (0.1,) * 30 + (0.5,) * 10])
@pytest.mark.parametrize("level", [0.05, 0.3])
def test_the_bound_holds_whichever_records_are_known(chances, level):
    """Its coverage in closed form, for the known records that make it worst and best."""
    n = len(chances)
    q = scipy.stats.poisson_binom(list(chances)).ppf(1 - level)
    bounds = [known_at_least(hits, chances, level=level) for hits in range(n + 1)]
    assert all(hits - q <= bound <= hits for hits, bound in enumerate(bounds))
    assert bounds == sorted(bounds)
    for known in range(n + 1):
        for rest in (sorted(chances)[known:], sorted(chances)[: n - known]):
            law = scipy.stats.poisson_binom(rest).pmf(range(n - known + 1)) if rest else [1.0]
            wrong = sum(p for heads, p in enumerate(law) if bounds[known + heads] > known)
            assert wrong <= level + 1e-12


def test_the_bound_says_more_than_hits_beyond_the_quantile():
    """All of a hundred named, one of four each: two could be luck, not thirty-two."""
    assert known_at_least(100, [0.25] * 100) == 98
    assert known_at_least(25, [0.25] * 100) == 0
    assert np.diff([known_at_least(hits, [0.5] * 50) for hits in range(51)]).min() >= 0


def test_the_quiz_counts_hits_of_one_chance_in_so_many():
    for hits in range(8):
        found = quiz_test(np.arange(7) < hits, choices=4, test="t", alpha=0.05)
        assert found.p == pytest.approx(scipy.stats.binom.sf(hits - 1, 7, 1 / 4))
        assert found.known_at_least == known_at_least(hits, [1 / 4] * 7, level=0.05)


@pytest.mark.parametrize(
    ("hits", "chances", "named"),
    [
        (1, [0.0], "chances"),
        (1, [1.5], "chances"),
        (0, [np.nan], "chances"),
        (1, [[0.5]], "chances"),
        (3, [0.5], "hits is 3"),
        (-1, [0.5], "hits is -1"),
    ],
)
def test_what_is_no_count_or_chance_is_refused(hits, chances, named):
    for function in (hits_log10_p, known_at_least):
        with pytest.raises(InputError, match=named):
            function(hits, chances)
