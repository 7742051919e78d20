"""Test models by their answers in logs of evaluations: no model is needed.

H0: given the author's records, the answers of a model do not depend on which of their
right answers the key has published. Of k answers that the author calls right, the
published one is uniform, and independent over records. So where a model has named one
of the k, it is the published one with probability 1/k, whatever the model likes better,
and the number of such *hits* is a sum of independent coins: `statistics.hits_log10_p`
is exact. An answer that is none of the k says nothing. Which one was named,
`seal.answers` reads from what the model wrote, never from a score.

Five things make answers depend on the key without any training:

- A prompt that shows other records of the set with their published answers. Such a log
  is refused where its prompts are in it.
- A prompt that shows the published answer of its own record. Prompts are tested by the
  law of hits, as answers are: the published one may not be the right answer that they
  name most often in too many records for chance.
- A choice that offers the published answer and not every other right one, such as
  continuations of which the likeliest counts: who knows what is right takes the
  published one, for want of another. What was offered is tested by the same law.
- A choice of records by their score. A model whose logs do not hold all records of the
  set, each once, is one of which nothing can be said. Nor can it where nearly all
  answers that name a right one are hits, and those that name none could have been
  misses before somebody blanked them: as misses they would leave too few hits.
- A choice among several answers to one record by their score. Answers that differ are
  counted, and nothing can be said unless a rule was stated (`Rule`) that does not look
  at scores.

A choice among whole logs, such as the best of ten runs, cannot be seen here.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from contamination import statistics
from contamination.audit.decision import strength
from contamination.audit.objections import Conclusion
from contamination.errors import InputError, brief
from contamination.seal.columns import refuse_unclear
from contamination.seal.doubts import (
    Answer,
    Rule,
    blank_reasons,
    counted,
    coverage_reasons,
    differ,
    told_reasons,
)
from contamination.seal.files import SealedSet
from contamination.seal.questions import Questions
from contamination.statistics.results import p_from_log10
from contamination.testsets.logs.record import Log

MOST_QUOTED = 60  # characters of an answer


@dataclass(frozen=True)
class ModelAnswers:
    """The test of one model by its answers.

    Attributes
    ----------
    records
        Number of records with several right answers that the model was asked.
    admissible, hits, expected
        Number of times that the model named one of these answers, number of times that
        it named the published one, and the number of these to expect by chance.
    known_at_least
        Lower bound on the number of records whose published answer the model knew. The
        bounds of all models hold together at the level of the seal: each is made at
        level / models.
    p, log10_p, holm_p
        One-sided p-value, its log10, and p after Holm's correction over all models.
    floor
        The least that holm_p can be, where every admissible answer is a hit.
    missing
        Number of records of the set (or of those that the logs claim to have) that are
        in none of the model's logs.
    repeated
        Number of records with more than one answer.
    differing
        Number of records whose answers differ.
    unnamed
        The beginning of the first answer that names no right answer, or several; ""
        where each names one.
    reason
        Why nothing can be concluded about this model; "" if something can.
    """

    model: str
    records: int
    admissible: int
    hits: int
    expected: float
    known_at_least: int
    p: float
    log10_p: float
    holm_p: float
    floor: float
    missing: int
    repeated: int
    differing: int
    unnamed: str = field(compare=False)  # the same answer reads as each format writes it
    reason: str

    def conclusion(self, level: float) -> Conclusion:
        """Return the verdict at a level, by the corrected p-value."""
        return "cannot say" if self.reason else strength(self.holm_p, level)


def audit_logs(
    sealed: SealedSet,
    logs: Iterable[Log],
    *,
    epochs: Rule | None = None,
    limit: int | None = None,
) -> list[ModelAnswers]:
    """Test every model of the logs, in the order in which they first come.

    Parameters
    ----------
    sealed
        The sealed set.
    logs
        Logs of any number of models.
    epochs
        Which of several different answers to one record counts. "first": the one of the
        first log and its first epoch. "majority": the one of most epochs; none if two
        are equally frequent. None: nothing can be concluded about a model that has such
        a record.
    limit
        Number of first records that the logged evaluations used; None is all.

    Raises
    ------
    InputError
        A seal without answers, a limit above the number of its records, a log of other
        records, one of records after the limit, prompts that show other records of the
        set, a table of which another column may be what the model wrote, and names of
        models that differ by blanks alone.
    """
    if not sealed.listed("answers"):
        raise InputError(
            f"{sealed.seal.name}: no record has several answers of which the key drew "
            "one, so logs say nothing; seal a set that has"
        )
    questions = Questions(sealed, limit)
    answers, unread = _read_answers(logs, questions)
    _refuse_like_names(answers)
    rows = []
    for model, of_model in answers.items():
        row = _count_hits(
            model,
            of_model,
            questions,
            epochs,
            lost=unread[model],
            models=len(answers),
        )
        rows.append(row)
    adjusted = statistics.adjust(log10_p=[row.log10_p for row in rows], method="holm")
    pairs = zip(rows, adjusted.p, strict=True)
    return [_corrected(row, float(p), questions.level) for row, p in pairs]


def _read_answers(
    logs: Iterable[Log], questions: Questions
) -> tuple[dict[str, dict[int, list[Answer]]], dict[str, int]]:
    """Return the answers of each model, by place, and how many records its logs claim and lack."""
    answers: dict[str, dict[int, list[Answer]]] = {}
    unread: dict[str, int] = {}
    named_after = dict[str, Path | None]()
    for file, log in enumerate(logs):
        _refuse_same_path_names(log, named_after)
        places = [questions.place_of(record) for record in log.records]
        refuse_unclear(log, places, questions)
        places_held: dict[str, set[int]] = {}
        for record, place in zip(log.records, places, strict=True):
            places_held.setdefault(record.model, set()).add(place)
            of_model = answers.setdefault(record.model, {})
            if place in questions.to_ask:
                pick = questions.named_by(record, place)
                told = questions.told_by(record.prompt, record, place)
                offered = questions.told_by(record.offered, record, place)
                answer = Answer(file, record.epoch, pick, record.completion, told, offered)
                of_model.setdefault(place, []).append(answer)
        for model, held in places_held.items():
            lost = max(0, (log.claimed or 0) - len(held))
            unread[model] = unread.get(model, 0) + lost
    return answers, unread


def _refuse_same_path_names(log: Log, named_after: dict[str, Path | None]) -> None:
    """Raise InputError where a model has its name of a path, and another log has it, too.

    `named_after` are the paths of the models so far; None where a log says the name itself.
    """
    for model in dict.fromkeys(record.model for record in log.records):
        path = log.named_after.get(model)
        first = named_after.setdefault(model, path)
        if first != path:
            raise InputError(
                f"{path or first} does not say which model answered, and another log has answers "
                f"of a model {model!r}, too; give logs that name their model (a table: in the "
                "column `model`), or give the file another name"
            )


def _refuse_like_names(models: Iterable[str]) -> None:
    """Raise InputError for names of models that look the same in a table."""
    seen: dict[str, str] = {}
    for model in models:
        first = seen.setdefault(" ".join(model.split()), model)
        if first != model:
            raise InputError(
                f"the models {first!r} and {model!r} differ by blanks alone; give both one name, "
                "or other names"
            )


def _count_hits(
    model: str,
    answers: Mapping[int, Sequence[Answer]],
    questions: Questions,
    epochs: Rule | None,
    *,
    lost: int,
    models: int,
) -> ModelAnswers:
    """Count the hits of one model; `holm_p` is 1 until all models are known.

    `answers` are by the place of the record, `lost` counts records that its logs claim
    to have and lack, and `models` those of all logs.
    """
    picks = {}
    for place, of_record in answers.items():
        pick = counted(of_record, epochs)
        if pick is not None:
            picks[place] = pick
    hits = sum(questions.published[place] == pick for place, pick in picks.items())
    chances = [1 / len(questions.names[place]) for place in picks]
    log10_p = statistics.hits_log10_p(hits, chances)
    level = questions.level / models
    missing = max(lost, len(questions.to_ask) - len(answers))
    reasons = coverage_reasons(missing, answers, epochs)
    reasons += told_reasons(answers, questions)
    if not reasons and log10_p <= math.log10(questions.level):
        chance_of_all = [1 / len(questions.names[place]) for place in answers]
        reasons += blank_reasons(hits, len(picks), chance_of_all, models=models)
    return ModelAnswers(
        model=model,
        records=len(answers),
        admissible=len(picks),
        hits=hits,
        expected=sum(chances),
        known_at_least=statistics.known_at_least(hits, chances, level=level),
        p=p_from_log10(log10_p),
        log10_p=log10_p,
        holm_p=1.0,
        floor=min(1.0, models * math.prod(chances)),
        missing=missing,
        repeated=sum(len(of_record) > 1 for of_record in answers.values()),
        differing=sum(map(differ, answers.values())),
        unnamed=_first_unnamed(answers.values()),
        reason=" and ".join(reasons),
    )


def _corrected(row: ModelAnswers, holm_p: float, level: float) -> ModelAnswers:
    """Return the test of a model with its corrected p-value, and whether it had enough answers."""
    reason = row.reason
    if not reason and min(holm_p, row.floor) > level:
        reason = (
            f"{row.admissible:,} answers that name exactly one right answer are too few for a "
            f"p-value of {level:g}"
        )
        if row.unnamed:
            reason += f"; another answer is {row.unnamed!r}"
    return replace(row, holm_p=holm_p, reason=reason)


def _first_unnamed(answers: Iterable[Sequence[Answer]]) -> str:
    """Return the beginning of the first answer that names no right answer, or several."""
    for of_record in answers:
        for answer in of_record:
            if answer.pick is None:
                return brief(answer.text, MOST_QUOTED)
    return ""
