"""Every score of one text against numbers by hand; what was read of it has tests of its own."""

import math
import zlib
from dataclasses import replace

import numpy as np
import pytest

from contamination.errors import InputError
from contamination.membership import scores
from contamination.membership.scores import TOP, TokenStatistics

E = math.exp
NAN = math.nan
# Five tokens, of which the first has no score.
READ = TokenStatistics(
    log_probs=np.array([-9, -1, -2, -4, -8], dtype=np.float32),
    rank=np.array([1, 1, 5, 6, 40]),
    rank_off_by_one=np.array([NAN, 6, 7, 1, 2]),
    mean=np.array([0, -3, -3, -3, -3]),
    std=np.array([1, 2, 1, 1, 4]),
    top_entropy=np.outer([9, 1, 1, 2, 4], np.arange(1, len(TOP) + 1)),
    text="Étude №3 " * 9,
    lower=np.array([-7.0, -2, -6]),
    neighbours=[np.array([-9.0, -4]), np.array([-9.0, -5, -7])],  # means of -4 and -6
    reference=(-1.5, -3.0),
)
BY_HAND = {
    "loss": -15 / 4,
    "ppl_1": -1,
    "ppl_3": -7 / 3,
    "ppl_4": -15 / 4,
    "ppl_5": NAN,
    "min_k_0.1": -8,
    "min_k_49": -8,
    "min_k_50": -6,
    "min_k_100": -15 / 4,
    "min_prob_50": (E(-8) + E(-4)) / 2,
    "min_k_pp_50": (-1.25 - 1) / 2,  # of 1, 1, -1 and -1.25
    "min_k_pp_100": -0.25 / 4,
    "mem_4": 1 / 4,
    "mem_5": 2 / 4,
    "mem_off_by_one_5": 3 / 4,  # ranks from 0
    "mem_off_by_one_6": 4 / 4,
    "entropy": -3,
    "entropy_5": -2,
    "entropy_25": -10,
    "zlib": -15 / 4 / len(zlib.compress(("Étude №3 " * 9).encode())),
    "lowercase": 4 / (15 / 4),
    "neighbour": -15 / 4 + 5,
    "reference_difference": 1.5,
    "reference_ratio": 2,
}


@pytest.mark.parametrize("name", BY_HAND)
def test_a_score_by_its_name(name):
    found = scores.score_named(name).compute(READ)
    assert found == pytest.approx(BY_HAND[name], rel=1e-6, nan_ok=True)


def test_edges():
    def value(name: str, **parts: object) -> float:
        return scores.score_named(name).compute(replace(READ, **parts))

    assert math.isnan(value("lowercase", lower=np.array([-7.0])))
    assert np.isfinite(value("min_k_pp_20", std=np.zeros(5)))
    assert np.isfinite(value("lowercase", log_probs=np.zeros(5)))
    found = scores.log_prob_per_byte(READ.log_probs, "né")  # the first token, too
    assert found == pytest.approx(-24 / 3)


@pytest.mark.parametrize(
    "name", ["ppl_0", "mem_0", "mem_2.5", "entropy_7", "min_k", "min_k_101", "loss_3", "luck"]
)
def test_a_score_that_does_not_exist_is_refused(name):
    with pytest.raises(InputError, match=f"'{name}'"):
        scores.score_named(name)


@pytest.mark.parametrize("name", [5, None, ["loss"], b"loss"])
def test_a_name_of_a_score_that_is_no_text_is_refused(name):
    with pytest.raises(InputError, match="min_k_20"):
        scores.score_named(name)
