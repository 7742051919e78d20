"""Fields of a record that name the right option of an item."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from contamination.errors import InputError
from contamination.testsets.item_fields import Path, Record, places_of, value_at
from contamination.testsets.option_texts import NUMBERS

# A field that names the right option, how it does, and what it says for each place.
Gold = tuple[Path, str, Sequence[Any]]


@dataclass
class RightAnswer:
    """The right option of an item, according to the fields of its record.

    Attributes
    ----------
    marks
        The place of the right option, by the name of the field that says so.
    gold
        Fields that name the right option, as in `Item.gold`.
    flags
        The places of fields that have a flag for each option, which move along.
    """

    marks: dict[str, int] = field(default_factory=dict)
    gold: list[Gold] = field(default_factory=list)
    flags: list[list[Path]] = field(default_factory=list)


def right_answer(
    record: Record,
    names: Iterable[str],
    options: Sequence[Any],
    labels: Sequence[str],
    usual: Mapping[str, str],
) -> RightAnswer:
    """Return the right option according to those of the named fields that are there.

    `usual` says how a field names the right option in all other records of the set.
    Raises InputError for a field that names none of the options, that could be read in
    two ways, or that names another one than the others.
    """
    right = RightAnswer()
    for name in sorted(names):
        places = places_of(record, name)
        if len(places) > 1:
            right.marks[name] = _marked_place(record, name, places, len(options))
            right.flags.append(places)
        elif places and says_something(value_at(record, places[0])):
            value = value_at(record, places[0])
            way, says = _way_of(name, value, options, labels, usual.get(name))
            right.marks[name] = says.index(str(value).strip())
            typed = [type(value)(index) for index in says] if way == "index" else says
            right.gold.append((places[0], way, typed))
    if len({*right.marks.values()}) > 1:
        fields = " and ".join(map(repr, right.marks))
        raise InputError(f"fields {fields} name different answers; correct one of them")
    return right


def _marked_place(record: Record, name: str, places: Sequence[Path], count: int) -> int:
    """Return which of the options a list of 0 and 1 marks as right."""
    values = [value_at(record, path) for path in places]
    known = values.count(0) + values.count(1) + values.count(None)
    if values.count(1) != 1 or known != count:
        raise InputError(
            f"{name} {str(values)[:40]!r} does not mark one of its {count} options as right"
        )
    return values.index(1)


def says_something(value: Any) -> bool:
    """Return whether a field says something; -1 is an answer that is not known."""
    return value is not None and str(value).strip() not in ("", "-1")


def _way_of(
    name: str,
    value: Any,
    options: Sequence[Any],
    labels: Sequence[str],
    usual: str | None,
) -> tuple[str, list[str]]:
    """Return how a field names the right option, and what it would say of each.

    A value that could be read in two ways is refused, unless all other records of the
    set name theirs in one (`usual`). Whether it could is asked of all that it might say
    and not of this one alone, since another arrangement says another: so no arrangement
    is refused if one is accepted.
    """
    number = isinstance(value, int) and not isinstance(value, bool)
    text = str(value).strip() if number or isinstance(value, str | float) else ""
    small = text.islower() and labels[0] == "A"
    texts = [str(option).strip() for option in options]
    if number and all(isinstance(option, str) for option in options):
        texts = []  # a number is no text
    ways = {
        "text": texts,
        "label": [label.lower() if small else label for label in labels],
        "index": [*NUMBERS[: len(options)]],
    }
    able = [way for way, says in ways.items() if text in says]
    if not able:
        raise InputError(
            f"{name} {str(value)[:40]!r} is none of its {len(options)} options; give a "
            f"label ({labels[0]} to {labels[-1]}), an index from 0, or the text"
        )
    way = usual if usual in able else able[0]
    if usual != way and _has_second_reading(text, way, ways, number=number):
        raise InputError(
            f"{name} {str(value)[:40]!r} could be an option's text, a label or an "
            "index; write the answer as a letter that is no option, or a label as text"
        )
    return way, ways[way]


def _has_second_reading(
    text: str, way: str, ways: Mapping[str, Sequence[str]], *, number: bool
) -> bool:
    """Return whether what a field may say in one way says something in another one, too."""
    others = [other for other in ways if other != way]
    if way == "label" and not number:
        others.remove("index")  # "2" is the label 2 where labels are numbers
    elsewhere = set[str]()
    for other in others:
        elsewhere.update(ways[other])
    return not elsewhere.isdisjoint([text] if way == "text" else ways[way])
