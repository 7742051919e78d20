"""What is varied: every experiment changes one thing, and what cannot be compared is refused."""

from typing import Any

import pytest

from contamination.errors import InputError
from contamination.experiments.controlled.plan import RATE, SIZE, TIMES, Plan

GIVEN: dict[str, Any] = {
    "sizes": (300, 100),
    "learning_rate": 1e-3,
    "other_rates": (1e-4, 1e-5),
    "fixed_tokens": 100,
    "occurrences": (1, 4),
}


def test_every_experiment_changes_one_thing() -> None:
    runs = Plan(**GIVEN).runs
    assert [(r.corpus_tokens, r.learning_rate) for r in runs[SIZE]] == [(100, 1e-3), (300, 1e-3)]
    assert [(r.corpus_tokens, r.learning_rate) for r in runs[RATE]] == [
        (100, 1e-3),
        (100, 1e-4),
        (100, 1e-5),
    ]
    assert {r.occurrences for r in (*runs[SIZE], *runs[RATE])} == {(1,)}
    (times,) = runs[TIMES]
    assert (times.corpus_tokens, times.learning_rate, times.occurrences) == (100, 1e-3, (1, 4))


def test_a_run_of_two_experiments_is_one_and_names_are_directories() -> None:
    runs = Plan(**GIVEN).runs
    assert runs[RATE][0] == runs[SIZE][0]
    every = {run for found in runs.values() for run in found}
    assert len({run.name for run in every}) == len(every) == 5


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"sizes": (100,)}, r"sizes \[100\]: give two or more positive numbers"),
        ({"sizes": (100, 100)}, "sizes .*: give two"),
        ({"occurrences": (0, 1)}, "occurrences .*: give two"),
        ({"other_rates": ()}, r"learning_rate and other_rates \[0.001\]: give two"),
        ({"other_rates": (1e-3,)}, "other_rates .*: give two"),
        ({"fixed_tokens": 200}, r"fixed_tokens 200: give one of the sizes \[300, 100\]"),
    ],
)
def test_what_cannot_be_compared(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        Plan(**(GIVEN | changed))
