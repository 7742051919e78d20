"""Questions about somebody else: which have a twin, and that chance chooses its name."""

import numpy as np
import pytest
from scipy.stats import chisquare

from reproduction.notebooks.wikimia.renamed import renamed_twins

NAMES = {"he": ("Tim", "Bob", "Carl"), "she": ("Ann", "Eve")}
QUESTIONS = [
    f"On Monday it rained. {name} sold {i} hats. How many has {pronoun} left?"
    for pronoun, names in NAMES.items()
    for i, name in enumerate(names)
]

# What stands in lower case somewhere is no name.
LOWER = "lastly nobody asked how many hats."


def twins_of(*more: str, seed: int = 0) -> list[tuple[str, str]]:
    return renamed_twins([*QUESTIONS, LOWER, *more], rng=np.random.default_rng(seed))


def test_a_twin_differs_by_the_name_of_somebody_called_alike() -> None:
    twins = twins_of("Tim's dog ate what Tim left. How old is his dog?")
    assert len(twins) == len(QUESTIONS) + 1
    for published, renamed in twins:
        changed = set(zip(published.split(), renamed.split(), strict=True))
        ((old, new),) = {(a.removesuffix("'s"), b.removesuffix("'s")) for a, b in changed if a != b}
        (called,) = [names for names in NAMES.values() if old in names]
        assert new in called


@pytest.mark.parametrize(
    "text",
    [
        "Tim gave Bob a hat. How many has he left?",  # two persons
        "Nobody knows. How many has he left?",  # none: "nobody" stands in lower case
        "Tim sold hats to her. How many has he left?",  # either pronoun
        "Tim sold two hats. How many are left?",  # no pronoun
        "Lastly she sold nobody a hat.",  # no subject
    ],
)
def test_questions_that_are_not_about_one_person_have_no_twin(text: str) -> None:
    assert text not in dict(twins_of(text))


def test_who_is_called_he_and_she_is_left_out() -> None:
    both = ["Kim sold two hats. Has he more?", "Kim sold two hats. Has she more?"]
    assert len(twins_of(*both)) == len(QUESTIONS)


def test_every_other_question_gives_its_name_equally_often() -> None:
    drawn = [dict(twins_of(seed=seed))[QUESTIONS[0]] for seed in range(400)]
    bob = sum("Bob" in text for text in drawn)
    carl = sum("Carl" in text for text in drawn)
    assert bob + carl == 400
    assert chisquare([bob, carl]).pvalue > 1e-6
