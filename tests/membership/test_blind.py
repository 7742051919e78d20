"""Blind baselines: planted differences are found, chance is not, and labels do not leak."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contamination.membership.blind import (
    BASELINES,
    auc_over_folds,
    bag_of_words,
    blind_layout,
    blind_rows,
    blind_table,
    latest_year,
)
from contamination.scoring.status import OK

VOCABULARY = np.array([f"w{i}" for i in range(300)])
ZIPF = 1 / np.arange(1, 301)
SEEDS = 40


def rng_of(*seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def texts_of(rng: np.random.Generator, count: int, shift: float = 0.0) -> list[str]:
    """Draw texts of 40 words; `shift` makes every second word rarer, and the others more common."""
    weights = ZIPF * np.exp(shift * (-1.0) ** np.arange(len(ZIPF)))
    return [" ".join(rng.choice(VOCABULARY, 40, p=weights / weights.sum())) for _ in range(count)]


def sides(count: int) -> np.ndarray:
    return np.arange(2 * count) < count


def test_a_planted_shift_in_vocabulary_is_found_by_the_words_alone() -> None:
    rng = rng_of(0)
    texts = texts_of(rng, 80, -0.8) + texts_of(rng, 80)
    rows = blind_rows(texts, sides(80), benchmark="b", split="s", rng=rng)
    table = blind_table(rows).set_index("baseline")
    assert table.loc["bag_of_words", "auc"] > 0.9
    assert table.loc["bag_of_words", "auc_low"] > 0.85
    assert table.loc["dates", "auc"] == 0.5  # no text mentions a year


def test_the_interval_of_exchangeable_sides_holds_one_half_as_often_as_it_says() -> None:
    # Folds share training texts: as if they were independent, it would hold 0.5 four times in five.
    held = 0
    for seed in range(SEEDS):
        rng = rng_of(seed, 3)
        texts = texts_of(rng, 60)
        found = blind_rows(texts, sides(30), benchmark="b", split="s", rng=rng, folds=6)
        _, low, high = auc_over_folds(found["bag_of_words"], sides(30), found["fold"])
        held += low <= 0.5 <= high
    low, high = stats.binom.ppf([0.001, 0.999], SEEDS, 0.95)
    assert low <= held <= high


def test_no_text_is_judged_by_its_own_label_or_words() -> None:
    rng = rng_of(4)
    texts = texts_of(rng, 40)
    members = sides(20)
    fold = np.arange(40) % 4
    before = bag_of_words(texts, members, fold)
    flipped = members ^ (fold == 2)
    after = bag_of_words(texts, flipped, fold)
    assert np.array_equal(before[fold == 2], after[fold == 2])
    assert all((before[fold == i] != after[fold == i]).all() for i in (0, 1, 3))
    # Neither vocabulary nor the rarity of words comes from the texts that are judged.
    first = np.flatnonzero(fold == 2)[0]
    texts[first] = " ".join(["new", *VOCABULARY[:20]])
    again = bag_of_words(texts, members, fold)
    others = (fold == 2) & (np.arange(40) != first)
    assert np.array_equal(before[others], again[others])


@pytest.mark.parametrize(
    ("text", "year"),
    [
        ("born 1987, died in 2016.", 2016),
        ("2039 is a year, and 2040, 2048 and 1024 are none", 2039),
        ("no year, 1499", 0),
    ],
)
def test_the_latest_year(text: str, year: int) -> None:
    assert latest_year(text) == year


def test_the_auc_over_folds_is_of_pairs_within_a_fold() -> None:
    rng = rng_of(9)
    scores = rng.integers(0, 6, 30).astype(float)
    members = rng.random(30) < 0.5
    fold = np.arange(30) % 3
    members[:6] = [True] * 3 + [False] * 3
    aucs = []
    for i in range(3):
        pairs = product(scores[(fold == i) & members], scores[(fold == i) & ~members])
        aucs.append(np.mean([(a > b) + (a == b) / 2 for a, b in pairs]))
    value, low, high = auc_over_folds(scores, members, fold)
    assert value == pytest.approx(np.mean(aucs))
    half = stats.t.ppf(0.975, 2) * np.std(aucs, ddof=1) * np.sqrt(1 / 3 + 1 / 2)
    assert low == pytest.approx(max(0, value - half))
    assert high == pytest.approx(min(1, value + half))
    # What a classifier adds to all scores of its fold does not count.
    assert auc_over_folds(scores + 100.0 * fold, members, fold) == (value, low, high)


def test_a_table_of_several_sets_and_of_one_that_cannot_be_had() -> None:
    rng = rng_of(10)
    rows = [
        blind_rows(texts_of(rng, 24), sides(12), benchmark="here", split="a", rng=rng),
        blind_rows((), (), benchmark="hub", split="b", rng=rng, status="not run here: no network"),
        blind_rows(["x y"] * 3, [1, 1, 0], benchmark="hub", split="c", rng=rng),
    ]
    table = blind_table(pd.concat(rows))
    assert table["baseline"].tolist() == [*BASELINES, "", ""]
    assert table["status"][:4].tolist() == [*[OK] * 3, "not run here: no network"]
    assert "2 members and 1 non-members" in table["status"][4]
    measured, others = table[:3], table[3:]
    assert measured[["members", "non_members"]].to_numpy().tolist() == [[12, 12]] * 3
    assert others.iloc[:, 3:8].isna().all(axis=None)
    shown = blind_layout(table)
    assert shown.iloc[0, :3].tolist() == ["here", "a", "12"]
    assert len(shown) == 1
