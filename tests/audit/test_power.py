"""Simulated power: more records, more copies, and only what studies measured."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contamination.audit.power import (
    MOST_RECORDS,
    WANTED,
    Effect,
    detection_probability,
    load_effects,
    power_in_words,
    records_needed,
    simulate_power,
)
from contamination.audit.registry import TESTS

ROOT = Path(__file__).parents[2]

SHARD_SIZE = 10


def simulated(shards, test="successor", orderings=400, tokens=30):
    """Power at 0.05 of a set of so many shards of ten, whose scores are noise.

    Each record has so many tokens.
    """
    scores = np.random.default_rng(0).normal(size=(40, 400))[:shards, :orderings]
    bounds = [(SHARD_SIZE * i, SHARD_SIZE * (i + 1)) for i in range(shards)]
    header = SimpleNamespace(
        seed=1,
        dataset_revision="r",
        shards=shards,
        bounds=bounds,
        example_tokens=(tokens,) * SHARD_SIZE * shards,
    )
    found = simulate_power(TESTS[test], SimpleNamespace(header=header), scores)
    return [each.at(0.05) for each in found]


def test_copies_of_larger_sets_are_found_more_often():
    rates = []
    for shards in (4, 10, 40):
        rates.append([power.probability for power in simulated(shards)])
    assert (np.diff(rates, axis=0) > -0.02).all()


def test_only_what_studies_measured_has_a_power():
    assert simulated(10, "sharded_t") == simulated(10, "successor", 5) == []
    assert simulated(10, tokens=1) == []  # such as one letter a record
    assert simulated(10)[0].records == 100


def test_simulated_power_is_about_that_of_the_normal_law():
    for power, effect in zip(simulated(40), load_effects()[:4], strict=False):
        expected = detection_probability(effect, 360, level=0.05)
        assert power.probability == pytest.approx(expected, abs=0.06)


@pytest.mark.parametrize(
    "effect", load_effects(), ids=lambda e: f"{e.test}-{e.model[:3]}-{e.copies}"
)
def test_the_records_needed_are_the_fewest_that_reach_the_wanted_power(effect):
    share = 1 - 1 / SHARD_SIZE
    needed = records_needed(effect, level=0.05, shard_size=SHARD_SIZE)
    if needed is None:
        assert detection_probability(effect, MOST_RECORDS * share, level=0.05) < WANTED
        return
    assert detection_probability(effect, needed * share, level=0.05) >= WANTED
    if needed > SHARD_SIZE:
        assert detection_probability(effect, needed * share * 0.89, level=0.05) < WANTED


def test_no_number_of_records_is_enough_where_studies_disagree():
    effect = Effect("successor", "a model", 1, 2, 20, mean=0.01, scale=0.1)
    assert records_needed(effect, level=0.05, shard_size=SHARD_SIZE) is None


def test_studies_that_disagree_make_a_power_less_sure():
    """The mean alone would promise what half of the studies did not find."""
    same = Effect("t", "a model", 4, 8, 96, mean=0.3, scale=0.01)
    spread = Effect("t", "a model", 4, 8, 96, mean=0.3, scale=0.3)
    sure, unsure = (detection_probability(each, 90, level=0.05) for each in (same, spread))
    assert sure > 0.85 > unsure + 0.1


def test_a_left_out_study_lies_within_what_the_others_predict():
    """The 90% intervals of docs/measurements/power_calibration.csv cover as often as they say."""
    table = pd.read_csv(ROOT / "docs" / "measurements" / "power_calibration.csv")
    covered = table["found"].between(table["low"], table["high"])
    assert stats.binom.cdf(covered.sum(), len(covered), 0.9) > 0.01
    expected = (table["predicted"] * table["sets"]).sum()
    assert table["found"].sum() == pytest.approx(expected, rel=0.25)
    four = table[table["left_out"].str.startswith("frontier") & (table["copies"] == 4)]
    assert (four["predicted"] < 0.5).all()  # one study alone predicted 0.70 of them


def test_power_in_words_names_each_kind_of_model_once():
    words = power_in_words(simulated(10))
    assert words.count("pretrained") == 1 and "1 copy" in words and "4 copies" in words
    assert power_in_words([]) == ""
