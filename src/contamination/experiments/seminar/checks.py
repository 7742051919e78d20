"""Automatic checks: one line for every answer, and a hint that fits the mistake.

Answers are compared with a tolerance. An exercise that was not tried is not an error, so the
notebook of a student runs to its end at any time.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.errors import InputError
from contamination.experiments.seminar.exercises import EXERCISES, Exercise
from contamination.results.tables import write_csv

OPEN, RIGHT, WRONG = "open", "right", "wrong"
TOLERANCE = 1e-4  # relative: a p-value of four right digits is right
TABLE = "seminar_answers"


@dataclass(frozen=True)
class Outcome:
    """What became of one exercise: "open", "right" or "wrong", and the message to the student."""

    outcome: str
    message: str
    answer: str = ""


class Checks:
    """Checks the answers of one notebook: `check("1", answer_1, flips=10, heads=9)`.

    Parameters
    ----------
    strict : a wrong answer raises, and `finish` raises while an exercise is open: for machines.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.outcomes = {
            name: Outcome(OPEN, f"Exercise {name}: not answered yet.") for name in EXERCISES
        }

    def __call__(self, name: str, answer: object, **facts: Any) -> None:
        """Print whether an answer is right, else a hint.

        Parameters
        ----------
        name : of the exercise.
        answer : None while there is none.
        facts : what the answer is computed from, as the exercise names it.

        Raises
        ------
        InputError
            No such exercise, or other facts than it needs; a wrong answer if `strict`.
        """
        if name not in EXERCISES:
            raise InputError(f"no exercise {name!r}: there are {', '.join(EXERCISES)}")
        exercise = EXERCISES[name]
        if set(facts) != set(exercise.facts):
            raise InputError(
                f"exercise {name} is checked with {', '.join(exercise.facts) or 'no facts'}: "
                f"it was given {', '.join(facts) or 'none'}; correct the call of check"
            )
        self.outcomes[name] = outcome = _judge(name, exercise, answer, facts)
        print(outcome.message)
        if self.strict and outcome.outcome == WRONG:
            raise InputError(outcome.message)

    def table(self) -> pd.DataFrame:
        """Return exercise, title, outcome and the answer as text, one row each."""
        return pd.DataFrame(
            {
                "exercise": name,
                "title": EXERCISES[name].title,
                "outcome": outcome.outcome,
                "answer": outcome.answer,
            }
            for name, outcome in self.outcomes.items()
        )

    def finish(self, results: Path | str) -> pd.DataFrame:
        """Write `results/tables/seminar_answers.csv`, say how many are right, return the table.

        Raises
        ------
        InputError
            An exercise is not right, if `strict`.
        """
        table = self.table()
        write_csv(table, Path(results), TABLE)
        right = int((table["outcome"] == RIGHT).sum())
        print(f"{right} of {len(table)} exercises are right.")
        if self.strict and right < len(table):
            missing = table.loc[table["outcome"] != RIGHT, "exercise"]
            raise InputError(f"exercises {', '.join(missing)} are not right: answer them first")
        return table


def _judge(name: str, exercise: Exercise, answer: object, facts: dict[str, Any]) -> Outcome:
    if answer is None or answer is Ellipsis:
        return Outcome(OPEN, f"Exercise {name}: not answered yet.")
    shown = " ".join(str(answer).split())
    expected, mistakes = exercise.solve(**facts)
    if _same(answer, expected):
        return Outcome(RIGHT, f"✓ Exercise {name}: right. {exercise.praise}", shown)
    hint = next(
        (hint for wrong, hint in mistakes if _same(answer, wrong)),
        _of_another_kind(answer, expected) or exercise.hint,
    )
    return Outcome(WRONG, f"✗ Exercise {name}: not yet. {hint}", shown)


def _same(answer: object, expected: object) -> bool:
    if isinstance(expected, dict):
        return isinstance(answer, dict) and answer == expected
    found, wanted = _numbers(answer), _numbers(expected)
    return (
        found is not None
        and wanted is not None
        and found.shape == wanted.shape
        and bool(np.allclose(found, wanted, rtol=TOLERANCE, atol=0))
    )


def _numbers(value: object) -> np.ndarray | None:
    """Value as floats, None where it is something else; a single number in a list is a number."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return array.reshape(()) if array.size == 1 else array


def _of_another_kind(answer: object, expected: object) -> str:
    """Return what is wrong with the answer before its value is, or nothing."""
    if isinstance(expected, dict):
        fits = isinstance(answer, dict) and answer.keys() == expected.keys()
        return "" if fits else f"Give a dictionary with the keys {', '.join(expected)}."
    found, wanted = _numbers(answer), _numbers(expected)
    kind = "one number" if wanted is None or not wanted.ndim else f"{wanted.size} numbers"
    if found is None or (wanted is not None and found.shape != wanted.shape):
        return f"Give {kind}, not {type(answer).__name__} {str(answer)[:40]!r}."
    if not all(math.isfinite(number) for number in found.flat):
        return "That is not a finite number: a division by zero, or a logarithm of zero?"
    return ""
