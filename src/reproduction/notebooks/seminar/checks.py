"""Automatic checks: one line for every answer, and a hint that fits the mistake.

Answers are compared with a tolerance. An exercise that was not tried is not an error, so the
notebook of a student runs to its end at any time.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.errors import InputError
from contamination.tables import write_csv
from reproduction.notebooks.seminar.exercises import EXERCISES

OPEN, RIGHT, WRONG = "open", "right", "wrong"
TOLERANCE = 1e-4  # relative: a p-value of four right digits is right
TABLE = "seminar_answers"


class Checks:
    """Checks the answers of one notebook: `check("1", answer_1, flips=10, heads=9)`.

    With `strict`, for machines, a wrong answer raises InputError, and so does `finish` while an
    exercise is open. `outcomes` has the outcome of every exercise ("open", "right" or "wrong") and
    the answer as text.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.outcomes = dict.fromkeys(EXERCISES, (OPEN, ""))

    def __call__(self, name: str, answer: object, **facts: Any) -> None:
        """Print whether an answer is right, else a hint; None is no answer yet.

        `facts` are what the answer is computed from, as the exercise names it. Raises InputError if
        there is no such exercise, or it needs other facts; and for a wrong answer if `strict`.
        """
        if name not in EXERCISES:
            raise InputError(f"no exercise {name!r}: there are {', '.join(EXERCISES)}")
        exercise = EXERCISES[name]
        if set(facts) != set(exercise.facts):
            raise InputError(
                f"exercise {name} is checked with {', '.join(exercise.facts) or 'no facts'}: "
                f"it was given {', '.join(facts) or 'none'}; correct the call of check"
            )
        if answer is None or answer is Ellipsis:
            self.outcomes[name] = (OPEN, "")
            print(f"Exercise {name}: not answered yet.")
            return
        hint = _find_mistake(name, answer, facts)
        message = f"✗ Exercise {name}: not yet. {hint}"
        if not hint:
            message = f"✓ Exercise {name}: right. {exercise.praise}"
        self.outcomes[name] = (WRONG if hint else RIGHT, " ".join(str(answer).split()))
        print(message)
        if self.strict and hint:
            raise InputError(message)

    def finish(self, results: Path | str) -> pd.DataFrame:
        """Write `results/tables/seminar_answers.csv`, say how many are right, return the table.

        The table has exercise, title, outcome and the answer as text, a row each. Raises InputError
        if `strict` and an exercise is not right.
        """
        rows = [(name, EXERCISES[name].title, *found) for name, found in self.outcomes.items()]
        table = pd.DataFrame(rows, columns=["exercise", "title", "outcome", "answer"])
        write_csv(table, Path(results), TABLE)
        missing = table.loc[table["outcome"] != RIGHT, "exercise"]
        print(f"{len(table) - len(missing)} of {len(table)} exercises are right.")
        if self.strict and len(missing):
            raise InputError(f"exercises {', '.join(missing)} are not right: answer them first")
        return table


def _find_mistake(name: str, answer: object, facts: dict[str, Any]) -> str:
    """Return the hint that fits a wrong answer; nothing for a right one."""
    expected, mistakes = EXERCISES[name].solve(**facts)
    if _same(answer, expected):
        return ""
    fitting = (hint for hint, wrong in mistakes.items() if _same(answer, wrong))
    return next(fitting, _of_another_kind(answer, expected) or EXERCISES[name].hint)


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
    if not np.isfinite(found).all():
        return "That is not a finite number: a division by zero, or a logarithm of zero?"
    return ""
