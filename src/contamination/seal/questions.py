"""The records of a sealed set that models were asked, and what their answers are called.

A record of a log is told by its id, else by its number; its prompt has to show the texts
that the set has there, and no other record of the set.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import chain

from contamination.errors import InputError
from contamination.seal.answers import count_mentions, named, said
from contamination.seal.draws import Drawn
from contamination.seal.files import SealedSet
from contamination.seal.labels import shown_labels
from contamination.seal.shots import Shots
from contamination.testsets.logs.record import LogRecord, leaves, text_of
from contamination.testsets.option_texts import LETTERS
from contamination.testsets.records import ID_FIELDS
from contamination.testsets.templates import Template, look_up, parse


class Questions:
    """The records of a sealed set that models were asked, and names of their answers.

    Attributes
    ----------
    records
        The records, as they were published.
    names
        For each record, the names of each of its right answers; empty if it has only
        one.
    published
        Place of each record with several answers -> which one the key drew.
    to_ask
        The places of these, as far as the limit goes.
    level
        Level of the seal.
    """

    def __init__(self, sealed: SealedSet, limit: int | None) -> None:
        records = sealed.test_set.records
        self.records = records
        self.name = sealed.seal.name
        self.level = sealed.seal.level
        self.count = _count_asked(self.name, len(records), limit)
        self.drawn = sealed.drawn
        self.answers_of = str(sealed.seal.answers_of)  # the field
        self.names = [_names(drawn, None) for drawn in sealed.drawn]
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
        template = parse(sealed.seal.template)
        texts = [_shown_texts(record, template, self.answers_of) for record in records]
        called = [sorted(set[str]().union(*names)) for names in self.names]
        self.shots = Shots(texts, ids, called)

    def place_of(self, record: LogRecord) -> int:
        """Return the place of a record of a log in the set: by its id, else number.

        Raises InputError where it is none of the set, or comes after the limit, and
        where the prompt shows another record of the set.
        """
        called = f"record {record.id or record.number!r}"
        # A table need not hold the text of its records.
        text = "" if record.row else text_of([record.prompt, record.doc])
        place = self.places.get(str(record.doc.get(self.key, record.id)))
        if place is None and (text or not self.places):
            place = record.number
        known = place is not None and 0 <= place < len(self.records)
        if place is None or not known or (text and not self.shots.is_in(text, place)):
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

    def is_published(self, text: str, place: int) -> bool:
        """Return whether a text is the published answer of a record, as a whole."""
        if said(text) == said(str(self.records[place][self.answers_of])):
            return True
        if place not in self.published:
            return False
        return said(text) in self.names[place][self.published[place]]

    def told_by(self, text: str, record: LogRecord, place: int) -> frozenset[int]:
        """Return the right answers that a text names most often; none if it names none.

        The text is the prompt of a record of a log, or what that offers to choose from.
        """
        line = _line(text)
        mentions = []
        for names in self.names_for(record, place):
            mentions.append(sum(count_mentions(name, line) for name in names))
        most = max(mentions, default=0)
        return frozenset(pick for pick, count in enumerate(mentions) if 0 < count == most)

    def named_by(self, record: LogRecord, place: int) -> int | None:
        """Return which right answer a model has named."""
        return named(record.completion, self.names_for(record, place))

    def names_for(self, record: LogRecord, place: int) -> list[set[str]]:
        """Return the names of each right answer, by the labels that a model saw."""
        drawn = self.drawn[place]
        labels: Mapping[str, str] | None = record.labels or None
        if labels is None and drawn.variants.items:
            labels = shown_labels(record.prompt, _options(drawn))
        if labels is None:
            return self.names[place]
        return _names(drawn, labels)


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


def _names(drawn: Drawn, labels: Mapping[str, str] | None) -> list[set[str]]:
    """Return the names of each right answer of a record, without those that two share.

    An option is called by its text, and by its label of a prompt. Where `labels` is None,
    it is called as the set was published.
    """
    names_of_each = list[set[str]]()
    for pick in range(len(drawn.variants.choices("answers"))):
        if not drawn.variants.items:
            names = {_published(drawn, pick)}
        elif labels is not None:
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


def _options(drawn: Drawn) -> list[str]:
    """Return the options of an item in the published order."""
    options = drawn.variants.items[0].options
    return [options[place] for place in drawn.variants.order(drawn.picks)]


def _right(drawn: Drawn, pick: int) -> int:
    answer = drawn.variants.items[pick].answer
    assert answer is not None  # `prepare` has refused it
    return answer


def _option(drawn: Drawn, pick: int) -> str:
    return drawn.variants.items[pick].options[_right(drawn, pick)]


def _shown_texts(record: Mapping[str, object], template: Template, answers_of: str) -> list[str]:
    """Return the texts of a record that every example shows, but its answer.

    Those of whole fields come first, and then those of lists and objects; the longest
    first of each.
    """
    whole = list[str]()
    inner = list[str]()
    for field in template.listed:
        name = field.typed if field.typed in record else field.name
        if name.partition("[")[0] == answers_of:
            continue
        value = look_up(record, name)
        if isinstance(value, str):
            whole.append(value)
        else:
            inner += [leaf for leaf in leaves(value) if isinstance(leaf, str)]
    return sorted(whole, key=len, reverse=True) + sorted(inner, key=len, reverse=True)


def _line(text: str) -> str:
    return " ".join(text.split())
