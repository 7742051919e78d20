"""Test models by their answers in logs of evaluations: no model is needed.

H0: given the author's records, the answers of a model do not depend on which of their
right answers the key has published. Of k answers that the author calls right, the
published one is uniform, and independent over records. So where a model has named one
of the k, it is the published one with probability 1/k, whatever the model likes better,
and the number of such *hits* is a sum of independent coins: `statistics.hits_log10_p`
is exact. An answer that is none of the k says nothing. Which one was named,
`seal.answers` reads from what the model wrote, never from a score.

Three things make answers depend on the key without any training:

- A prompt that shows other records of the set with their published answers. Such a log
  is refused where its prompts are in it.
- A choice of records by their score. A model whose logs do not hold all records of the
  set, each once, is one of which nothing can be said.
- A choice among several answers to one record by their score. Answers that differ are
  counted, and nothing can be said unless a rule was stated (`Rule`) that does not look
  at scores.

A choice among whole logs, such as the best of ten runs, cannot be seen here.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from contamination import statistics
from contamination.audit.decision import strength
from contamination.audit.objections import Conclusion
from contamination.errors import InputError
from contamination.seal.answers import named, said
from contamination.seal.draws import Drawn
from contamination.seal.files import SealedSet
from contamination.seal.shots import Shots
from contamination.statistics.results import p_from_log10
from contamination.testsets.logs.record import Log, LogRecord, text_of
from contamination.testsets.option_texts import LETTERS
from contamination.testsets.records import ID_FIELDS
from contamination.testsets.templates import parse

Rule = Literal["first", "majority"]
SEVERAL = "several different answers"


@dataclass(frozen=True)
class ModelAnswers:
    """The test of one model by its answers.

    Attributes
    ----------
    records
        With several right answers, that the model was asked.
    admissible, hits, expected
        How often it named one of these, and the published one; the latter by chance.
    known_at_least
        Records whose published answer it knew, a lower bound. The bounds of all models
        hold together at the level of the seal: each is made at level / models.
    p, log10_p, holm_p
        One-sided, and after Holm's correction over all models.
    floor
        The least that holm_p can be, where every admissible answer is a hit.
    missing
        Records of the set, or that its logs say they have, and that are in none of
        them.
    repeated
        Records with more than one answer.
    differing
        Records whose answers differ.
    reason
        Why nothing can be said of this model; "" where nothing is in the way.
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
    reason: str

    def conclusion(self, level: float) -> Conclusion:
        """Return the verdict at a level, by the corrected p-value."""
        if self.reason:
            return "cannot say"
        if self.holm_p <= level or self.floor <= level:
            return strength(self.holm_p, level)
        return "cannot say"


@dataclass(frozen=True)
class _Answer:
    """The right answer that a model named (None: none, or several), and when."""

    file: int
    epoch: int
    pick: int | None


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
        The set.
    logs
        Logs of any number of models.
    epochs
        Which of several different answers to one record counts. "first": that of the
        first log and its first epoch. "majority": that of most epochs; none if two are
        as frequent. None: nothing can be said of a model that has any.
    limit
        The logs are of evaluations of the first so many records; None: of all.

    Raises
    ------
    InputError
        A seal without answers, a limit above the number of its records, a log of other
        records, one of records after the limit, and prompts that show other records of the set.
    """
    if not sealed.listed("answers"):
        raise InputError(
            f"{sealed.seal.name}: no record has several answers of which the key drew "
            "one, so logs say nothing; seal a set that has"
        )
    questions = _Questions(sealed, limit)
    answers: dict[str, dict[int, list[_Answer]]] = {}  # of each model, by place
    unread: dict[str, int] = {}  # records of each model that its logs claim and lack
    for file, log in enumerate(logs):
        places_held: dict[str, set[int]] = {}
        for record in log.records:
            place = questions.place_of(record)
            places_held.setdefault(record.model, set()).add(place)
            of_model = answers.setdefault(record.model, {})
            if place in questions.to_ask:
                pick = questions.named_by(record, place)
                answer = _Answer(file, record.epoch, pick)
                of_model.setdefault(place, []).append(answer)
        for model, places in places_held.items():
            lost = max(0, (log.claimed or 0) - len(places))
            unread[model] = unread.get(model, 0) + lost
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
    return [replace(row, holm_p=float(p)) for row, p in pairs]


def _count_hits(
    model: str,
    answers: Mapping[int, Sequence[_Answer]],
    questions: "_Questions",
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
    differing = 0
    repeated = 0
    for place, of_record in answers.items():
        pick = _counted(of_record, epochs)
        if pick is not None:
            picks[place] = pick
        differing += _differ(of_record)
        repeated += len(of_record) > 1
    hits = sum(questions.published[place] == pick for place, pick in picks.items())
    chances = [1 / len(questions.names[place]) for place in picks]
    log10_p = statistics.hits_log10_p(hits, chances)
    level = questions.level / models
    missing = max(lost, len(questions.to_ask) - len(answers))
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
        repeated=repeated,
        differing=differing,
        reason=_reason(missing, differing, epochs),
    )


def _reason(missing: int, differing: int, epochs: Rule | None) -> str:
    reasons = list[str]()
    if missing:
        reasons.append(
            f"{missing:,} of its records are missing (if the evaluation had a limit, state it)"
        )
    if differing and epochs is None:
        reasons.append(
            f"{differing:,} of its records have {SEVERAL} (state which epochs count)",
        )
    return " and ".join(reasons)


def _differ(answers: Sequence[_Answer]) -> bool:
    return len({answer.pick for answer in answers}) > 1


def _counted(answers: Sequence[_Answer], epochs: Rule | None) -> int | None:
    """Return the answer to one record that counts; None if none does."""
    if epochs == "first":
        return min(answers, key=_when).pick
    picks = [answer.pick for answer in answers if answer.pick is not None]
    if epochs == "majority":
        return _most_frequent(picks)
    if _differ(answers):
        return None
    return answers[0].pick


def _when(answer: _Answer) -> tuple[int, int]:
    return answer.file, answer.epoch


def _most_frequent(picks: Sequence[int]) -> int | None:
    counts = {pick: picks.count(pick) for pick in picks}
    most = max(counts.values(), default=0)
    best = [pick for pick, count in counts.items() if count == most]
    if len(best) != 1:
        return None
    return best[0]


class _Questions:
    """The records of a sealed set that models were asked, and names of their answers.

    Attributes
    ----------
    names
        Of each record, what each of its right answers is called; empty where there is
        one.
    published
        Of each record that has several, which one the key drew.
    to_ask
        The places of these, as far as the limit goes.
    level
        Of the seal.
    """

    def __init__(self, sealed: SealedSet, limit: int | None) -> None:
        records = sealed.test_set.records
        self.name = sealed.seal.name
        self.level = sealed.seal.level
        self.count = _count_asked(self.name, len(records), limit)
        self.drawn = sealed.drawn
        self.names = [_names(drawn, {}) for drawn in sealed.drawn]
        self.published: dict[int, int] = {}
        for place, drawn in enumerate(sealed.drawn):
            if drawn.variants.choices("answers"):
                self.published[place] = drawn.picks["answers"]
        self.to_ask = {place for place in self.published if place < self.count}
        self.key = next((name for name in ID_FIELDS if name in records[0]), "")
        ids = [str(record.get(self.key, "")) for record in records]
        self.places: dict[str, int] = {}
        repeated = {name for name, count in Counter(ids).items() if count > 1}
        for place, name in enumerate(ids):
            if name not in repeated:
                self.places[name] = place
        # A record is recognised by the longest text that every example shows of it.
        shown = sorted(parse(sealed.seal.template).fields - {sealed.seal.answers_of})
        self.texts = [_longest(record, shown) for record in records]
        called = [sorted(set[str]().union(*names)) for names in self.names]
        self.shots = Shots(self.texts, ids, called)

    def place_of(self, record: LogRecord) -> int:
        """Return the place of a record of a log in the set: by its id, else number.

        Raises InputError where it is none of the set, or comes after the limit, and
        where the prompt shows another record of the set.
        """
        called = f"record {record.id or record.number!r}"
        text = _line(text_of([record.prompt, record.doc]))
        place = self.places.get(str(record.doc.get(self.key, record.id)))
        if place is None and (text or not self.places):
            place = record.number
        known = place is not None and 0 <= place < len(self.texts)
        if place is None or not known or (text and self.texts[place] not in text):
            raise InputError(
                f"{record.place}: {called} is not one of {self.name} as it was "
                "published; give logs of this set alone, with its ids or in its order"
            )
        if place >= self.count:
            raise InputError(
                f"{record.place}: {called} stands after the first {self.count:,}; "
                "give the limit that the evaluation had",
                parameter="limit",
            )
        other = self.shots.shown(record.prompt, place)
        if other is not None:
            raise InputError(
                f"{record.place}: the prompt shows another record of {self.name} as well "
                f"(number {other + 1:,}), maybe with its answer; give logs without "
                "examples from this set"
            )
        return place

    def named_by(self, record: LogRecord, place: int) -> int | None:
        """Return which right answer a model has named, by the letters of its prompt."""
        if not record.labels:
            return named(record.completion, self.names[place])
        return named(record.completion, _names(self.drawn[place], record.labels))


def _count_asked(name: str, records: int, limit: int | None) -> int:
    """Return how many records of a set were asked; raise InputError for a limit above it."""
    if limit is None:
        return records
    if limit > records:
        raise InputError(
            f"limit is {limit:,}, and {name} has {records:,} records: leave it out",
            parameter="limit",
        )
    return limit


def _names(drawn: Drawn, labels: Mapping[str, str]) -> list[set[str]]:
    """Return the names of each right answer of a record, without those that two share.

    An option is called by its text, and by its label: of a prompt if `labels` has
    those, else as published.
    """
    names_of_each = list[set[str]]()
    for pick in range(len(drawn.variants.choices("answers"))):
        if not drawn.variants.items:
            names = {_published(drawn, pick)}
        elif labels:
            option = _option(drawn, pick)
            names = {option}
            for label, text in labels.items():
                if said(text) == said(option):
                    names.add(label)
        else:
            names = {
                _option(drawn, pick),
                _letter(drawn, pick),
                _published(drawn, pick),
            }
        names_of_each.append({said(name) for name in names})
    counts = Counter(chain.from_iterable(names_of_each))
    shared = {name for name, count in counts.items() if count > 1}
    return [names - shared - {""} for names in names_of_each]


def _published(drawn: Drawn, pick: int) -> str:
    """Return an answer as the field that it fills would have it."""
    variants = drawn.variants
    answer_field = variants.several["answers"][0]
    return str(variants.variant({**drawn.picks, "answers": pick})[answer_field])


def _letter(drawn: Drawn, pick: int) -> str:
    """Return the letter of a right option in the published order."""
    order = drawn.variants.order({**drawn.picks, "answers": pick})
    return LETTERS[order.index(_right(drawn, pick))]


def _right(drawn: Drawn, pick: int) -> int:
    answer = drawn.variants.items[pick].answer
    assert answer is not None  # `prepare` has refused it
    return answer


def _option(drawn: Drawn, pick: int) -> str:
    return drawn.variants.items[pick].options[_right(drawn, pick)]


def _longest(record: Mapping[str, object], fields: Iterable[str]) -> str:
    values = [record[name] for name in fields]
    texts = [_line(value) for value in values if isinstance(value, str)]
    return max(texts, key=len, default="")


def _line(text: str) -> str:
    return " ".join(text.split())
