"""Multiple-choice items: the options of a record, and the record rearranged.

An *arrangement* of an item is one order of its options under the fixed labels: the
contents move, the labels stay, and whatever names the right option moves along, so
every arrangement asks the same question and has the same answer. `items_of` alone
decides which fields these are, for the test of options and for sealing. What it cannot
decide it refuses, and it decides by the options as a set: a record is read in the same
way, or refused, in all of its arrangements.
"""

import itertools
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from contamination.errors import InputError
from contamination.testsets.answer_fields import Gold, right_answer, says_something
from contamination.testsets.example_set import Declared, ExampleSet
from contamination.testsets.item_fields import (
    SCHEMES,
    Path,
    Record,
    dotted,
    fields_of,
    find_columns,
    value_at,
    with_values,
)
from contamination.testsets.option_texts import (
    LETTERS,
    begin_with_labels,
    names_letter,
    tells_apart,
    to_declare,
)
from contamination.testsets.templates import kept_text, no_text

QUESTIONS = (
    "question",
    "question_stem",
    "input",
    "ctx",
    "goal",
    "sentence",
    "query",
    "premise",
    "startphrase",
    "prompt",
)
# As `Declared.other`: every field but those that are about options. No command line can
# hold it.
ALL_OTHERS = "\0"


@dataclass(frozen=True)
class Item:
    """A question, its options in the published order, and the index of the right one.

    Raises InputError for fewer than 2 options or more than 26, or an option without
    text.

    Attributes
    ----------
    answer
        Index of the right option; None if the record does not say.
    lettered
        A shown field names an option by its letter, wrong in another arrangement.
    record, labels
        The record from which the item was read, and its labels of the options.
    columns
        Places of the options in the record, then of the values that move along with
        each option.
    gold
        Fields that name the right option; how they do so ("label", "index" or "text");
        and their value for each place where the right option may stand.
    used
        Names of all these fields, and of the question.
    """

    question: str
    options: tuple[str, ...]
    answer: int | None
    lettered: bool = field(default=False, repr=False, compare=False)
    record: Record = field(default_factory=dict, repr=False, compare=False)
    columns: Sequence[Sequence[Path]] = field(default=(), repr=False, compare=False)
    labels: Sequence[str] = field(default=(), repr=False, compare=False)
    gold: Sequence[Gold] = field(default=(), repr=False, compare=False)
    used: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse what is no multiple-choice item."""
        start = repr(self.question[:40])
        count = len(self.options)
        if not 2 <= count <= len(LETTERS):
            raise InputError(f"{start} has {count} options: give 2 to {len(LETTERS)}")
        for letter, option in zip(LETTERS, self.options, strict=False):
            if not option.strip():
                raise InputError(
                    f"{start}: option {letter} has no text; write or remove it",
                )

    def rearranged(self, order: Sequence[int]) -> dict[str, Any]:
        """Return the record with option order[i] in place i, and what moves along.

        Raises InputError for what is no order of the options.
        """
        if sorted(order) != list(range(len(self.options))):
            raise InputError(f"{list(order)} is no order of {len(self.options)} options")
        values = dict[Path, Any]()
        for column in self.columns:
            for path, source in zip(column, order, strict=True):
                values[path] = value_at(self.record, column[source])
        if self.answer is not None:
            place = list(order).index(self.answer)
            for path, way, says in self.gold:
                if way != "text":
                    values[path] = says[place]
        return with_values(self.record, values)

    def with_options(self, texts: Sequence[str]) -> dict[str, Any]:
        """Return the record with these texts in the places of its options."""
        return with_values(self.record, dict(zip(self.columns[0], texts, strict=True)))


def items_of(
    test_set: ExampleSet,
    shown: Collection[str] | None = (),
) -> tuple[Item, ...]:
    """Return the items of a test set, one for each record, in canonical order.

    Fields are read as `test_set.declared` says, and by the names that data sets use.
    Among the `shown` fields (None: all of a record) a field that looks as if it named
    the right option, or as if it were parallel to the options, must be declared. An
    answer that could be read in two ways is read as all others are, unless all fields
    are shown.

    Raises InputError that names the record for what is no multiple-choice item: a line
    without fields, no options, options that are no texts, an answer that is none of
    them or could be read in two ways, what `Item` refuses; if the texts of options
    begin with their labels; and for a field that has to be declared, with the
    declaration.
    """
    items = read_items(test_set, clear=shown is None)  # who seals can write clearly
    return as_shown(items, test_set, shown)


def read_items(test_set: ExampleSet, *, clear: bool = False) -> list[Item]:
    """Return the items of a test set as `items_of` does, whatever fields are shown.

    `clear` refuses each answer that could be read in two ways.
    """
    name = test_set.name
    if not test_set.records:
        raise InputError(
            f"{name}: a set of texts has no options to move; give records with a "
            f"question and options ({SCHEMES})"
        )
    read = list[Item | None]()
    for record in test_set.records:
        item = None
        with suppress(InputError):  # such as one that could be read in two ways
            item = _item(record, test_set.declared, {})
        read.append(item)
    usual = {} if clear else _usual_ways(read)
    items = list[Item]()
    rows = zip(test_set.records, read, strict=True)
    for number, (record, item) in enumerate(rows, start=1):
        try:
            items.append(item or _item(record, test_set.declared, usual))
        except InputError as error:
            raise InputError(f"{name}, record {number}: {error}") from error
    labelled = [i for i, item in enumerate(items) if begin_with_labels(item.options)]
    if 2 * len(labelled) >= len(items):  # a single one is a slip; see `variants`
        raise InputError(
            f"{name}, record {labelled[0] + 1}: options begin with their labels "
            f"({items[labelled[0]].options[0][:20]!r}), which would move along; write "
            "texts alone"
        )
    return items


def as_shown(
    items: Sequence[Item], test_set: ExampleSet, shown: Collection[str] | None
) -> tuple[Item, ...]:
    """Return what `read_items` read, with what the `shown` fields say of letters.

    Raises InputError as `items_of` for a field that has to be declared.
    """
    declared = test_set.declared
    other_fields = [_other_fields(item, declared, shown) for item in items]
    _refuse_undeclared(items, other_fields, test_set.name)
    lettered = list[Item]()
    for item, fields in zip(items, other_fields, strict=True):
        lettered.append(replace(item, lettered=_lettered(item, fields)))
    return tuple(lettered)


def _lettered(item: Item, other_fields: Record) -> bool:
    """Return whether the question, or another field, names an option by its letter."""
    count = len(item.options)
    if names_letter(item.question, count, alone=False):
        return True
    for value in other_fields.values():
        texts = value if isinstance(value, list) else [value]
        if any(names_letter(str(text), count) for text in texts):
            return True
    return False


def _usual_ways(items: Sequence[Item | None]) -> dict[str, str]:
    """Return how each field names the right option, where all items do so in one way.

    No arrangement of the items changes that, so it may decide what could be read in two
    ways: the records of which no item was read.
    """
    ways_of = dict[str, set[str]]()
    for item in items:
        for path, way, _ in item.gold if item else ():
            ways_of.setdefault(dotted(path), set()).add(way)
    return {name: next(iter(ways)) for name, ways in ways_of.items() if len(ways) == 1}


def _item(record: Record, declared: Declared, usual: Mapping[str, str]) -> Item:
    """Read one record: its question and options, then what names the right one."""
    columns, own_labels, answers = find_columns(record, declared)
    question = _checked_question(record)
    options = [value_at(record, path) for path in columns[0]]
    item = Item(str(question), tuple(map(_text, options)), None)
    labels = _labels(own_labels, len(options))
    if any(len(column) != len(options) for column in columns):
        raise InputError(
            f"a list of options is not as long as the {len(options)} options",
            parameter="options",
        )
    names = {*declared.answer, *answers} - {*declared.other}
    right = right_answer(record, names, options, labels, usual)
    has_own_fields = all(len(path) == 1 for path in columns[0])
    if declared.options and not right.marks and has_own_fields:
        raise InputError(
            "nothing says which option is right but the name of its field, and that "
            "cannot move: write a list, or declare the answer",
            parameter="answer",
        )
    all_columns = columns + right.flags
    return replace(
        item,
        answer=next(iter(right.marks.values()), None),
        record=record,
        columns=all_columns,
        labels=labels,
        gold=right.gold,
        used=_used_fields(record, question, all_columns) | names,
    )


def _labels(own_labels: Sequence[Any], count: int) -> list[str]:
    """Return the labels of the options, letters without own ones.

    Raises InputError unless each option has one of its own.
    """
    labels = [str(label).strip() for label in own_labels or LETTERS[:count]]
    if len(labels) > count or len({*labels} - {""}) < count:
        raise InputError(
            f"{count} options have the labels {labels}; give each one of its own",
        )
    return labels


def _used_fields(
    record: Record, question: Any, columns: Sequence[Sequence[Path]]
) -> frozenset[str]:
    """Return the names of the fields of the question, of the columns and of the labels."""
    used = {name for name, value in fields_of(record) if value == question}
    for column in columns:
        used.update(map(dotted, column))
    used.add(f"{dotted(columns[0][0]).rpartition('.')[0]}.label")
    return frozenset(used)


def _checked_question(record: Record) -> Any:
    """Return the question of a record; raise InputError without one, or for no text."""
    question = _question(record)
    if question is None:
        raise InputError(
            f"there are options, but no question; call it one of {', '.join(QUESTIONS)}",
        )
    problem = no_text(question)
    if problem:
        raise InputError(f"the question is {problem}; write a text")
    return question


def _question(record: Record) -> Any:
    """Return the question of a record, by the names that data sets use; None without."""
    for name in QUESTIONS:
        value = record.get(name)
        if value in (None, ""):
            continue
        return value.get("stem") if isinstance(value, Mapping) else value
    return None


def _text(value: Any) -> str:
    """Return an option as text; InputError for what is none, or cannot be kept."""
    if not isinstance(value, str | int | float) or no_text(value):
        raise InputError(f"an option is {str(value)[:40]!r}; write a text")
    return kept_text(str(value), "an option")


def _other_fields(
    item: Item,
    declared: Declared,
    shown: Collection[str] | None,
) -> dict[str, Any]:
    """Return the fields of a record that are shown and of which nothing is known."""
    if ALL_OTHERS in declared.other:
        return {}
    fields = dict[str, Any]()
    for name, value in fields_of(item.record):
        outer = name.partition(".")[0]
        is_known = name in item.used or name in declared.other or outer in declared.other
        is_shown = shown is None or outer in shown
        if says_something(value) and is_shown and not is_known:
            fields[name] = value
    return fields


def _refuse_undeclared(
    items: Sequence[Item],
    other_fields: Sequence[Record],
    where: str,
) -> None:
    """Refuse a field that looks, in half of its records, as if it followed options."""
    most_options = max(len(item.options) for item in items)
    for name in dict.fromkeys(itertools.chain(*other_fields)):
        values = [str(fields[name]) for fields in other_fields if name in fields]
        is_id = tells_apart(name, values, most_options)
        records = 0
        alike = list[tuple[int, Any, Literal["answer", "options"]]]()
        rows = zip(items, other_fields, strict=True)
        for number, (item, fields) in enumerate(rows, start=1):
            if name not in fields:
                continue
            records += 1
            option = to_declare(name, fields[name], item.options, item.labels, tells_apart=is_id)
            if option is not None:
                alike.append((number, fields[name], option))
        if alike and 2 * len(alike) >= records:
            number, value, option = alike[0]
            raise InputError(
                f"{where}, record {number}: {name!r} looks like names of options, or "
                f"an entry for each ({str(value)[:40]!r}), and would stay as it is "
                f"when they move; give {option}={name}, or declare {name} as other if "
                "it says nothing of them",
                parameter=option,
            )
