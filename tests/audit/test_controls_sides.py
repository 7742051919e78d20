"""Baselines of two sides: what they see, and that a part of many records has both sides."""

import numpy as np
import pytest

from contamination.audit.controls import sides
from contamination.audit.controls.sides import mark_table


@pytest.mark.parametrize("paired", [False, True])
def test_of_many_records_a_part_with_both_sides_is_compared(monkeypatch, paired):
    compared = []

    def recorded(texts):
        compared.extend(int(text.split()[-1]) for text in texts)
        return mark_table(texts)

    monkeypatch.setattr(sides, "mark_table", recorded)
    monkeypatch.setattr(sides, "MOST_RECORDS", 20)
    texts = [f"red stone {number}" for number in range(120)]
    published = np.arange(120) < (60 if paired else 118)
    strata = np.tile(np.arange(60), 2) if paired else np.zeros(120, dtype=int)
    control = sides.compare_sides(texts, published, strata, seed=0)
    assert set(control.p_values) == set(sides.FEATURES)
    assert 0 < control.p <= 1
    of_sides = np.bincount(published[compared]).tolist()  # held back, published
    assert of_sides == ([10, 10] if paired else [2, 10])
    assert len(np.unique(strata[compared])) == (10 if paired else 1)


WORDS = [
    "stone",
    "lamp",
    "river",
    "window",
    "garden",
    "copper",
    "letter",
    "winter",
    "hammer",
    "basket",
]


def written(style: str, count: int, *, rng: np.random.Generator) -> list[str]:
    """Return made-up questions with answers, which end in a full stop, in a style."""
    texts = []
    for _ in range(count):
        question, answer = (" ".join(rng.choice(WORDS, size=8)) for _ in range(2))
        styled = {
            "plain": f"{answer}.",
            "title": f"{answer.title()}.",
            "another sign": f"{answer}!",
            "no full stop": answer,
            "two blanks": f"{answer}.".replace(" ", "  ", 1),
        }
        texts.append(f"Is it so? It is.\nQuestion: {question}\nAnswer: {styled[style]}")
    return texts


@pytest.mark.parametrize(
    ("style", "seen"),
    [
        ("plain", False),
        ("title", True),
        ("another sign", True),
        ("no full stop", True),
        ("two blanks", True),
    ],
)
def test_a_way_of_writing_is_seen(style, seen):
    rng = np.random.default_rng(3)
    texts = written("plain", 40, rng=rng) + written(style, 40, rng=rng)
    published = np.arange(80) < 40
    control = sides.compare_sides(texts, published, np.zeros(80, dtype=int), seed=0)
    assert (control.p < 0.05) == seen
    if seen:
        assert control.p_values["one word or sign"] < 0.001
