"""The answers of a model in logs: which of them counts, and why nothing can be concluded."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from contamination import statistics
from contamination.audit.decision import PROOF
from contamination.seal.columns import nearly_all
from contamination.seal.questions import Questions
from contamination.statistics.results import p_from_log10

Rule = Literal["first", "majority"]
SEVERAL = "several different answers"


@dataclass(frozen=True)
class Answer:
    """The right answer that a model named (None: none, or several), and when.

    `told` and `offered` are the right answers that the prompt, and what it was offered to
    choose from, name most often.
    """

    file: int
    epoch: int
    pick: int | None
    text: str
    told: frozenset[int]
    offered: frozenset[int]


def differ(answers: Iterable[Answer]) -> bool:
    """Return whether answers name different right answers."""
    return len({answer.pick for answer in answers}) > 1


def counted(answers: Sequence[Answer], epochs: Rule | None) -> int | None:
    """Return the answer to one record that counts; None if none does."""
    if epochs == "majority":
        return _most_frequent([answer.pick for answer in answers if answer.pick is not None])
    if epochs == "first":
        answers = first_answers(answers)
    return None if differ(answers) else answers[0].pick


def first_answers(answers: Sequence[Answer]) -> list[Answer]:
    """Return the answers of the first epoch of the first log: several if it has several."""
    first = min(map(_when, answers))
    return [answer for answer in answers if _when(answer) == first]


def _when(answer: Answer) -> tuple[int, int]:
    return answer.file, answer.epoch


def _most_frequent(picks: Sequence[int]) -> int | None:
    counts = {pick: picks.count(pick) for pick in picks}
    most = max(counts.values(), default=0)
    best = [pick for pick, count in counts.items() if count == most]
    if len(best) != 1:
        return None
    return best[0]


def coverage_reasons(
    missing: int,
    answers: Mapping[int, Sequence[Answer]],
    epochs: Rule | None,
) -> list[str]:
    """Return what the logs of a model lack; `answers` are by the place of the record."""
    reasons = list[str]()
    if missing:
        reasons.append(
            f"{missing:,} of its records are missing (if the evaluation had a limit, state it)"
        )
    differing = sum(map(differ, answers.values()))
    if differing and epochs is None:
        reasons.append(f"{differing:,} of its records have {SEVERAL} (state which epochs count)")
    unordered = sum(differ(first_answers(of_record)) for of_record in answers.values())
    if unordered and epochs == "first":
        reasons.append(
            f"{unordered:,} of its records have {SEVERAL} in their first epoch (number the epochs: "
            "a table does so in the column `epoch`)"
        )
    return reasons


def told_reasons(
    answers: Mapping[int, Sequence[Answer]],
    questions: Questions,
) -> list[str]:
    """Return that prompts, or offers, name published answers too often for chance, if they do.

    What names all right answers alike, as a list of options does, says nothing.
    """
    told = dict[int, set[frozenset[int]]]()
    offered = dict[int, set[frozenset[int]]]()
    for place, of_record in answers.items():
        told[place] = {answer.told for answer in of_record}
        offered[place] = {answer.offered for answer in of_record}
    reasons = list[str]()
    hits, expected = _too_often(told, questions)
    if hits:
        reasons.append(
            f"{hits:,} of its prompts name the published answer of their own record more often "
            f"than other right ones, where chance would make it {expected:,.0f} (give logs of "
            "prompts without answers)"
        )
    hits, expected = _too_often(offered, questions)
    if hits:
        reasons.append(
            f"{hits:,} of its records offer the published answer to choose from and not all other "
            f"right ones, where chance would make it {expected:,.0f} (give logs of a task that "
            "offers all right answers, or none)"
        )
    return reasons


def _too_often(
    named: Mapping[int, set[frozenset[int]]],
    questions: Questions,
) -> tuple[int, float]:
    """Return in how many records the right answers that are named hold the published one.

    Return the number to expect by chance, too; (0, 0.0) where chance may have made it.
    """
    chances = list[float]()
    hits = 0
    for place, sets in named.items():
        right = len(questions.names[place])
        some = frozenset[int]().union(*(picks for picks in sets if len(picks) < right))
        if 0 < len(some) < right:
            chances.append(len(some) / right)
            hits += questions.published[place] in some
    if statistics.hits_log10_p(hits, chances) > math.log10(questions.level):
        return 0, 0.0
    return hits, sum(chances)


def blank_reasons(
    hits: int,
    named: int,
    chances: Sequence[float],
    *,
    models: int,
) -> list[str]:
    """Return that answers which name no right one could hide misses, if they could.

    `chances` are those of all records that the model was asked.
    """
    blank = len(chances) - named
    if blank == 0 or not nearly_all(hits, named):
        return []
    p = min(1.0, models * p_from_log10(statistics.hits_log10_p(hits, chances)))
    if p <= PROOF:
        return []
    return [
        f"{hits:,} of {named:,} answers that name a right one are hits, and {blank:,} name none "
        f"or several: if somebody chose these by the score, p could be {p:.2g} (give what the "
        "model wrote to each record)"
    ]
