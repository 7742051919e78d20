"""Test models by what they have answered, in logs that anybody has written: no model is needed.

H0: given the author's records, the answers of a model do not depend on which of their right answers
the key has published. Of k answers that the author calls right, the published one is uniform, and
independent over records. So where a model has named one of the k, it is the published one with
probability 1/k, whatever the model likes better, and the number of such *hits* is a sum of
independent coins: `statistics.hits_log10_p` is exact. An answer that is none of the k says nothing,
and neither does one that could be read as two of them. Which of several answers to one record
counts is decided by the author's list, which does not depend on the key.

The exception: a prompt that shows other records of the set with their published answers makes
answers depend on the key without any training. Such a log is refused where its prompts are in it.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from contamination import statistics
from contamination.audit.conclusion import Conclusion
from contamination.errors import InputError
from contamination.seal.draws import Drawn, Variants
from contamination.seal.files import SealedSet
from contamination.statistics.results import p_from_log10
from contamination.testsets.example_set import fields_of
from contamination.testsets.logs import LogRecord
from contamination.testsets.options import LETTERS
from contamination.testsets.records import ID_FIELDS

SEARCHED = 20  # prompts of each model, for other records


@dataclass(frozen=True)
class ModelAnswers:
    """What the answers of one model amount to.

    Attributes
    ----------
    records : with several right answers, that the model was asked.
    admissible, hits, expected : how often it named one of these, and the published one; the latter
        by chance.
    known_at_least : records whose published answer it knew, a lower bound at the level of the seal.
    p, log10_p, holm_p : one-sided, and after Holm's correction over all models.
    floor : the least that holm_p can be, where every admissible answer is a hit.
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

    def conclusion(self, level: float) -> Conclusion:
        """Judge the corrected p-value at a level."""
        if self.holm_p <= level:
            return "proven"
        return "no evidence" if self.floor <= level else "cannot say"


def audit_logs(sealed: SealedSet, logs: Iterable[LogRecord]) -> list[ModelAnswers]:
    """Test every model of the logs, in the order in which they first come.

    Raises InputError for a seal without answers, a log of other records, and prompts that show
    other records of the set.
    """
    if not sealed.listed("answers"):
        raise InputError(
            f"{sealed.seal.name}: no record has several answers of which the key drew one, so logs "
            "say nothing; seal a set that has (contamination seal --answers)"
        )
    place_of = _places(sealed)
    names = [_names(sealed.variants[each.number], each) for each in sealed.drawn]
    found: dict[str, dict[int, int | None]] = {}
    for one in logs:
        place, answers = place_of(one), found.setdefault(one.model, {})
        if names[place] and answers.get(place) is None:
            answers[place] = _named(one.answers, names[place])
    rows = []
    for answers in found.values():
        told = {place: each for place, each in answers.items() if each is not None}
        hits = sum(sealed.drawn[place].picks["answers"] == each for place, each in told.items())
        rows.append((len(answers), hits, [1 / len(names[place]) for place in told]))
    log10_p = [statistics.hits_log10_p(hits, chances) for _, hits, chances in rows]
    holm_p = statistics.adjust(log10_p=log10_p, method="holm").p
    return [
        ModelAnswers(
            model=model,
            records=records,
            admissible=len(chances),
            hits=hits,
            expected=sum(chances),
            known_at_least=statistics.known_at_least(hits, chances, level=sealed.seal.level),
            p=p_from_log10(log10),
            log10_p=log10,
            holm_p=float(after),
            floor=min(1.0, len(rows) * float(np.prod(chances))),
        )
        for model, (records, hits, chances), log10, after in zip(
            found, rows, log10_p, holm_p, strict=True
        )
    ]


def _places(sealed: SealedSet) -> Callable[[LogRecord], int]:
    """Return what finds the published place of the record that was asked: by id, else number."""
    records, name = sealed.test_set.records, sealed.seal.name
    key = next((field for field in ID_FIELDS if field in records[0]), "")
    ids = {str(record.get(key)): place for place, record in enumerate(records) if key}
    shown = fields_of(sealed.seal.template) - {sealed.seal.answers_of}
    texts = [
        max(
            (_line(record[field]) for field in shown if isinstance(record[field], str)),
            key=len,
            default="",
        )
        for record in records
    ]
    searched = Counter[str]()

    def place_of(one: LogRecord) -> int:
        text, prompt = _line(one.text), _line(one.prompt)
        place = ids.get(str(one.doc.get(key, one.id)))
        if place is None and (text or not ids):
            place = one.number
        if place is None or not 0 <= place < len(texts) or (text and texts[place] not in text):
            raise InputError(
                f"{one.place}: record {one.id or one.number!r} is not one of {name} as it was "
                "published; give logs of this set alone, with its ids or in its order"
            )
        searched[one.model] += bool(prompt)
        if prompt and searched[one.model] <= SEARCHED:
            for other in texts:
                if other in prompt and other not in texts[place]:
                    raise InputError(
                        f"{one.place}: the prompt shows another record of {name} as well "
                        f"({other[:40]!a}), and its answer may be the published one; give logs "
                        "without examples from this set"
                    )
        return place

    return place_of


def _names(one: Variants, drawn: Drawn) -> list[set[str]]:
    """Return what each right answer of a record is called; an option also by text and label."""
    found = []
    for pick, _ in enumerate(one.given("answers")):
        record = one.variant(drawn.sources, {**drawn.picks, "answers": pick})
        names = {str(record[one.lists["answers"][0]])}
        if one.items:
            answer = one.items[pick].answer
            assert answer is not None
            place = one.order(drawn.sources).index(answer)
            names |= {one.items[pick].options[answer], LETTERS[place]}
        found.append({_said(name) for name in names})
    twice = Counter(name for names in found for name in names)
    return [{name for name in names if twice[name] == 1} for names in found]


def _named(answers: Sequence[str], names: Sequence[set[str]]) -> int | None:
    """Return which right answer is given: the whole of a text, or the only one that it contains."""
    for text in answers:
        whole = [pick for pick, each in enumerate(names) if _said(text) in each]
        inside = {
            pick: part for pick, each in enumerate(names) for part in each if _contains(text, part)
        }
        longest = [
            pick
            for pick, part in inside.items()
            if not any(part != other and part in other for other in inside.values())
        ]
        if len(which := whole or longest) == 1:
            return which[0]
    return None


def _contains(text: str, name: str) -> bool:
    """Whether a name stands in a text as a word; a letter only as a capital."""
    pattern = rf"(?<![\w.]){re.escape(name.upper() if len(name) == 1 else name)}(?!\w|\.\w)"
    return re.search(pattern, _line(text), 0 if len(name) == 1 else re.IGNORECASE) is not None


def _line(text: str) -> str:
    return " ".join(text.split())


def _said(text: str) -> str:
    """Return an answer without what does not change it."""
    return _line(text).casefold().strip(" .,;:!?\"'`*()[]")
