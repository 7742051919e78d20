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

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from contamination import statistics
from contamination.audit.conclusion import Conclusion
from contamination.errors import InputError
from contamination.seal.files import SealedSet
from contamination.seal.variants import Drawn
from contamination.statistics.results import p_from_log10
from contamination.testsets.example_set import parse
from contamination.testsets.harness import LogRecord, text_of
from contamination.testsets.option_texts import LETTERS
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
    place_of, names = _places(sealed), list(map(_names, sealed.drawn))
    found: dict[str, dict[int, int | None]] = {}
    for one in logs:
        place, answers = place_of(one), found.setdefault(one.model, {})
        if names[place] and answers.get(place) is None:
            answers[place] = _named(one.answers, names[place])
    rows = []
    for model, answers in found.items():
        told = {place: each for place, each in answers.items() if each is not None}
        hits = sum(sealed.drawn[place].picks["answers"] == each for place, each in told.items())
        chances = [1 / len(names[place]) for place in told]
        log10_p = statistics.hits_log10_p(hits, chances)
        row = ModelAnswers(
            model=model,
            records=len(answers),
            admissible=len(told),
            hits=hits,
            expected=sum(chances),
            known_at_least=statistics.known_at_least(hits, chances, level=sealed.seal.level),
            p=p_from_log10(log10_p),
            log10_p=log10_p,
            holm_p=1.0,  # below, when all are known
            floor=min(1.0, len(found) * math.prod(chances)),
        )
        rows.append(row)
    adjusted = statistics.adjust(log10_p=[row.log10_p for row in rows], method="holm").p
    return [replace(row, holm_p=float(p)) for row, p in zip(rows, adjusted, strict=True)]


def _places(sealed: SealedSet) -> Callable[[LogRecord], int]:
    """Return what finds the published place of the record that was asked: by id, else number."""
    records, name = sealed.test_set.records, sealed.seal.name
    key = next((field for field in ID_FIELDS if field in records[0]), "")
    ids = {str(record.get(key)): place for place, record in enumerate(records) if key}
    # A record is recognised by the longest text that every example shows of it.
    shown = sorted(parse(sealed.seal.template).fields - {sealed.seal.answers_of})
    said = [[_line(one[each]) for each in shown if isinstance(one[each], str)] for one in records]
    texts, searched = [max(each, key=len, default="") for each in said], Counter[str]()

    def place_of(one: LogRecord) -> int:
        text, prompt = _line(text_of([one.prompt, one.doc])), _line(one.prompt)
        place = ids.get(str(one.doc.get(key, one.id)))
        if place is None and (text or not ids):
            place = one.number
        if place is None or not 0 <= place < len(texts) or (text and texts[place] not in text):
            raise InputError(
                f"{one.place}: record {one.id or one.number!r} is not one of {name} as it was "
                "published; give logs of this set alone, with its ids or in its order"
            )
        searched[one.model] += 1
        others = texts if searched[one.model] <= SEARCHED else ()
        if any(other in prompt and other not in texts[place] for other in others):
            raise InputError(
                f"{one.place}: the prompt shows other records of {name} as well, maybe with their "
                "answers; give logs without examples from this set"
            )
        return place

    return place_of


def _names(drawn: Drawn) -> list[set[str]]:
    """Return what each right answer of a record is called; an option also by text and letter."""
    one, found = drawn.variants, []
    for pick in range(len(one.given("answers"))):
        picks = {**drawn.picks, "answers": pick}
        names = {str(one.variant(picks)[one.several["answers"][0]])}
        if one.items:
            options, answer = one.items[pick].options, one.items[pick].answer
            assert answer is not None  # `prepare` has refused it
            names |= {options[answer], LETTERS[one.order(picks).index(answer)]}
        found.append({_said(name) for name in names})
    twice = Counter(name for names in found for name in names)
    return [{name for name in names if twice[name] == 1} for names in found]


def _named(answers: Sequence[str], names: Sequence[set[str]]) -> int | None:
    """Return which right answer is given: by the whole of a text, or as the only one in it."""
    for text in answers:
        whole = [pick for pick, each in enumerate(names) if _said(text) in each]
        found = whole or [p for p, each in enumerate(names) if any(_in(n, text) for n in each)]
        if len(found) == 1:
            return found[0]
    return None


def _in(name: str, text: str) -> bool:
    """Whether a name stands in a text as a word; a letter as a capital alone."""
    letter = len(name) == 1
    pattern = rf"(?<![\w.]){re.escape(name.upper() if letter else name)}(?!\w|\.\w)"
    return re.search(pattern, _line(text), 0 if letter else re.IGNORECASE) is not None


def _line(text: str) -> str:
    return " ".join(text.split())


def _said(text: str) -> str:
    """Return an answer without what does not change it."""
    return _line(text).casefold().strip(" .,;:!?\"'`*()[]")
