"""Multiple-choice items: what the options of a record are, and the record with them rearranged.

An *arrangement* of an item is one order of its options under the fixed labels: the contents move,
the labels stay, and whatever names the right option moves along, so every arrangement asks the same
question and has the same answer. `items_of` alone decides which fields these are, for the test of
options and for sealing. What it cannot decide it refuses, and it decides by the options as a set:
a record is read in the same way, or refused, in all of its arrangements.
"""

import copy
import functools
import itertools
import operator
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from contamination.errors import InputError
from contamination.testsets.example_set import Declared, ExampleSet
from contamination.testsets.option_texts import (
    LETTERS,
    NUMBERS,
    begin_with_labels,
    names_letter,
    to_declare,
)
from contamination.testsets.templates import kept_text, no_text

QUESTIONS = (
    *("question", "question_stem", "input", "ctx", "goal", "sentence", "query", "premise"),
    *("startphrase", "prompt"),
)
# As `Declared.other`: every field but those that are about options. No command line can hold it.
ALL_OTHERS = "\0"
ANSWERS = ("answerKey", "answer", "answer_index", "answer_idx")
# What data sets call their options: a list, or fields of their own and what counts them; the labels
# of such fields (none: letters); and the fields that name the right one.
_LAYOUTS: tuple[tuple[str, Sequence[str], Sequence[str], Sequence[str]], ...] = (
    ("question.choices", (), (), ANSWERS),  # CommonsenseQA
    ("mc1_targets.choices", (), (), ("mc1_targets.labels",)),  # TruthfulQA
    ("choices", (), (), ANSWERS),  # MMLU, ARC
    ("options", (), (), ANSWERS),  # MMLU-Pro, MedQA
    ("endings", (), (), ("label",)),  # HellaSwag
    ("sol{}", NUMBERS[1:3], (), ("label",)),  # PIQA
    ("{}", LETTERS, (), ("target", "answer")),  # Oren's MMLU, C-Eval
    ("choice{}", NUMBERS[:26], (), ("answer",)),
    ("choice{}", NUMBERS[1:], (), ("label",)),  # COPA
    ("option{}", NUMBERS[1:], NUMBERS[1:], ("answer",)),  # WinoGrande
    ("answer{}", LETTERS, NUMBERS[1:], ("label",)),  # SocialIQA
    ("answer{}", NUMBERS[:26], (), ("label",)),  # CosmosQA
    ("ending{}", NUMBERS[:26], (), ("label",)),  # SWAG
    ("op{}", LETTERS.lower(), (), ("answer",)),  # MedMCQA
)
SCHEMES = ", ".join(name.format(*counted[:1]) for name, counted, *_ in _LAYOUTS)
Record = Mapping[str, Any]
Path = tuple[str | int, ...]  # where in a record a value lies


@dataclass(frozen=True)
class Item:
    """A question, its options in the published order, and the index of the right one.

    Raises InputError for fewer than 2 options or more than 26, or an option without text.

    Attributes
    ----------
    answer : None where the record does not say.
    lettered : a shown field names an option by its letter, wrong in another arrangement.
    record, labels : what it was read from, and what the record calls the options.
    columns : places in the record of the options, then of what moves along with each.
    gold : fields that name the right option, how ("label", "index" or "text"), and what they say if
        it stands in each place.
    used : names of all these fields, and of the question.
    """

    question: str
    options: tuple[str, ...]
    answer: int | None
    lettered: bool = field(default=False, repr=False, compare=False)
    record: Record = field(default_factory=dict, repr=False, compare=False)
    columns: Sequence[Sequence[Path]] = field(default=(), repr=False, compare=False)
    labels: Sequence[str] = field(default=(), repr=False, compare=False)
    gold: Sequence[tuple[Path, str, Sequence[Any]]] = field(default=(), repr=False, compare=False)
    used: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse what is no multiple-choice item."""
        start, count = repr(self.question[:40]), len(self.options)
        if not 2 <= count <= len(LETTERS):
            raise InputError(f"{start} has {count} options: give 2 to {len(LETTERS)}")
        if empty := [i for i, option in enumerate(self.options) if not option.strip()]:
            raise InputError(f"{start}: option {LETTERS[empty[0]]} has no text; write or remove it")

    def rearranged(self, order: Sequence[int]) -> dict[str, Any]:
        """Return the record with option order[i] in the place of option i, and what follows it.

        Raises InputError for what is no order of the options.
        """
        if sorted(order) != list(range(len(self.options))):
            raise InputError(f"{list(order)} is no order of {len(self.options)} options")
        values = {
            path: _get(self.record, column[source])
            for column in self.columns
            for path, source in zip(column, order, strict=True)
        }
        if self.answer is not None:
            place = [*order].index(self.answer)
            values |= {path: says[place] for path, way, says in self.gold if way != "text"}
        return _changed(self.record, values)

    def with_options(self, texts: Sequence[str]) -> dict[str, Any]:
        """Return the record with these texts in the places of its options, the rest untouched."""
        return _changed(self.record, dict(zip(self.columns[0], texts, strict=True)))


def items_of(test_set: ExampleSet, shown: Collection[str] | None = ()) -> tuple[Item, ...]:
    """Return the items of a test set, one for each record, in canonical order.

    Fields are read as `test_set.declared` says, and by the names that data sets use. Among the
    `shown` fields (None: all of a record) a field that looks as if it named the right option, or as
    if it were parallel to the options, must be declared. An answer that could be read in two ways
    is read as all others are, unless all fields are shown.

    Raises InputError that names the record for what is no multiple-choice item: a line without
    fields, no options, options that are no texts, an answer that is none of them or could be read
    in two ways, what `Item` refuses; if the texts of options begin with their labels; and for a
    field that has to be declared, with the declaration.
    """
    name, declared = test_set.name, test_set.declared
    if not test_set.records:
        raise InputError(
            f"{name}: a set of texts has no options to move; give records with a question and "
            f"options ({SCHEMES})"
        )
    usual = {} if shown is None else _usual_ways(test_set)  # who seals can write clearly
    items = list[Item]()
    for number, record in enumerate(test_set.records, start=1):
        try:
            items.append(_item(record, declared, usual))
        except InputError as error:
            raise InputError(f"{name}, record {number}: {error}") from error
    labelled = [i for i, item in enumerate(items) if begin_with_labels(item.options)]
    if 2 * len(labelled) >= len(items):  # a single one is a slip; see `variants`
        raise InputError(
            f"{name}, record {labelled[0] + 1}: options begin with their labels "
            f"({items[labelled[0]].options[0][:20]!r}), which would move along; write texts alone"
        )
    beside = [_beside(item, declared, shown) for item in items]
    _refuse_undeclared(items, beside, name)
    return tuple(
        replace(item, lettered=_lettered(item, fields))
        for item, fields in zip(items, beside, strict=True)
    )


def _lettered(item: Item, beside: Record) -> bool:
    """Whether the question, or a field beside the options, names one by its letter."""
    count = len(item.options)
    values = [value if isinstance(value, list) else [value] for value in beside.values()]
    return names_letter(item.question, count, alone=False) or any(
        names_letter(str(one), count) for one in itertools.chain(*values)
    )


def _usual_ways(test_set: ExampleSet) -> dict[str, str]:
    """Return how each field names the right option, if it does so in one way in all of the items.

    No arrangement of the items changes that, so it may decide what could be read in two ways.
    """
    found = set[tuple[str, str]]()
    for record in test_set.records:
        with suppress(InputError):  # such as one that could be read in two ways
            found |= {(_dotted(p), way) for p, way, _ in _item(record, test_set.declared, {}).gold}
    names = Counter(name for name, _ in found)
    return {name: way for name, way in found if names[name] == 1}


def _item(record: Record, declared: Declared, usual: Mapping[str, str]) -> Item:
    """Read one record: its question and options, then what names the right one."""
    asked = next((record[name] for name in QUESTIONS if record.get(name) not in (None, "")), None)
    asked = asked.get("stem") if isinstance(asked, Mapping) else asked
    columns, labels, answers = _layout(record, declared)
    if asked is None:
        raise InputError(f"no question found beside options; call it one of {', '.join(QUESTIONS)}")
    if problem := no_text(asked):
        raise InputError(f"the question is {problem}; write a text")
    options = [_get(record, path) for path in columns[0]]
    item, count = Item(str(asked), tuple(map(_text, options)), None), len(options)
    labels = [str(label).strip() for label in labels or LETTERS[:count]]
    if len(labels) > count or len({*labels} - {""}) < count:
        raise InputError(f"{count} options have the labels {labels}; give each one of its own")
    if any(len(column) != count for column in columns):
        raise InputError(
            f"a list of options is not as long as the {count} options", parameter="options"
        )
    told, gold = dict[str, int](), list[tuple[Path, str, Sequence[Any]]]()
    names = {*declared.answer, *answers} - {*declared.other}
    for name in sorted(names):
        places = _places(record, name)
        values = [_get(record, path) for path in places]
        if len(places) > 1:
            if values.count(1) != 1 or sum(map(values.count, (0, 1, None))) != count:
                raise InputError(
                    f"{name} {str(values)[:40]!r} does not mark one of its {count} options as right"
                )
            told[name] = values.index(1)
            columns.append(places)
        elif any(map(_says, values)):
            way, says = _way(name, values[0], options, labels, usual.get(name))
            told[name] = says.index(str(values[0]).strip())
            gold.append((places[0], way, [*map(type(values[0]), says)] if way == "index" else says))
    if len({*told.values()}) > 1:
        fields = " and ".join(map(repr, told))
        raise InputError(f"fields {fields} name different answers; correct one of them")
    if declared.options and not told and all(len(path) == 1 for path in columns[0]):
        raise InputError(
            "nothing says which option is right but the name of its field, and that cannot move: "
            "write a list, or declare the answer",
            parameter="answer",
        )
    used = names | {name for name, value in _fields(record) if value == asked}
    used |= {_dotted(path) for column in columns for path in column}
    used.add(f"{_dotted(columns[0][0]).rpartition('.')[0]}.label")
    known: dict[str, Any] = {"record": record, "columns": columns, "labels": labels, "gold": gold}
    return replace(item, answer=next(iter(told.values()), None), used=frozenset(used), **known)


def _layout(
    record: Record, declared: Declared
) -> tuple[list[list[Path]], Sequence[Any], Sequence[str]]:
    """Find options where they are declared, else where data sets have them.

    Returns the columns, the labels, and the names of fields that may name the right option.
    """
    given = [_places(record, name) for name in declared.options]
    if [] in given:
        missing = declared.options[given.index([])]
        raise InputError(f"there is no field {missing!r}; name one that every record has")
    if given and all(len(places) == 1 for places in given):  # a field for each option
        return [[path for (path,) in given]], (), ANSWERS
    lists = [places for places in given if len(places) > 1]
    for name, counted, labels, answers in _LAYOUTS:
        fields = [name.format(each) for each in counted]
        if not fields:
            found = _places(record, f"{name}.text") or _places(record, name)
            labels = [_get(record, path) for path in _places(record, f"{name}.label")]
            plain = all(isinstance(_get(record, path), str | int | float) for path in found)
            if len(found) < 2 or (lists and not plain):
                continue
        elif {*fields[:2]} <= record.keys():
            filled = [i for i, each in enumerate(fields) if record.get(each) not in (None, "")]
            found = [(each,) for each in fields[: max(filled, default=0) + 1]]
        else:
            continue
        columns = [found, *(places for places in lists if places != found)]
        return columns, labels[: len(found)] if fields else labels, answers
    if lists:
        return lists, (), ANSWERS
    raise InputError(
        f"no options found; it has {', '.join(sorted(map(str, record)))[:200] or 'no fields'}, and "
        f"options are called {SCHEMES}; name other fields as options",
        parameter="options",
    )


def _text(value: Any) -> str:
    """Return an option as text; raises InputError for what is none, or none that can be kept."""
    if not isinstance(value, str | int | float) or no_text(value):
        raise InputError(f"an option is {str(value)[:40]!r}; write a text")
    return kept_text(str(value), "an option")


def _says(value: Any) -> bool:
    """Whether a field says something; -1 is an answer that is not known."""
    return value is not None and str(value).strip() not in ("", "-1")


def _way(
    name: str, value: Any, options: Sequence[Any], labels: Sequence[str], usual: str | None
) -> tuple[str, list[str]]:
    """Return the way in which a field names the right option, and what it would say of each.

    A value that could be read in two ways is refused, unless all other records of the set name
    theirs in one (`usual`). Whether it could is asked of all that it might say and not of this one
    alone, since another arrangement says another: so no arrangement is refused if one is accepted.
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
            f"{name} {str(value)[:40]!r} is none of its {len(options)} options; give a label "
            f"({labels[0]} to {labels[-1]}), an index from 0, or the text"
        )
    way = usual if usual in able else able[0]
    says = ways.pop(way)
    if way == "label" and not number:
        del ways["index"]  # "2" is the label 2 where labels are numbers
    might = {text} if way == "text" else {*says}
    if usual != way and might & {*itertools.chain(*ways.values())}:
        raise InputError(
            f"{name} {str(value)[:40]!r} could be an option's text, a label or an index; write the "
            "answer as a letter that is no option, or a label as text"
        )
    return way, says


def _beside(item: Item, declared: Declared, shown: Collection[str] | None) -> dict[str, Any]:
    """Return what a record says in fields that are shown and of which nothing is known."""
    return {
        name: value
        for name, value in _fields(item.record)
        if _says(value) and name not in item.used
        if not {name, name.partition(".")[0]} & {*declared.other}
        if shown is None or name.partition(".")[0] in shown
        if ALL_OTHERS not in declared.other
    }


def _refuse_undeclared(items: Sequence[Item], beside: Sequence[Record], where: str) -> None:
    """Refuse a field that looks, in half of its records, as if it followed the options."""
    for name in dict.fromkeys(itertools.chain(*beside)):
        said = [(i, fields[name]) for i, fields in enumerate(beside) if name in fields]
        alike = [
            (i, value, to)
            for i, value in said
            if (to := to_declare(name, value, items[i].options, items[i].labels))
        ]
        if alike and 2 * len(alike) >= len(said):
            i, value, option = alike[0]
            raise InputError(
                f"{where}, record {i + 1}: {name!r} looks like names of options, or an entry for "
                f"each ({str(value)[:40]!r}), and would stay as it is when they move; give "
                f"{option}={name}, or declare {name} as other if it says nothing of them",
                parameter=option,
            )


def _fields(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the fields of a record, inner ones as `choices.text`; those in a list, as a list."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _fields(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        for key in dict.fromkeys(key for one in value for key in one):
            yield f"{name}.{key}", [one.get(key) for one in value]
    else:
        yield name, value


def _places(record: Record, name: str) -> list[Path]:
    """Return where a field is, or its entries in a list or by letter; none if it is not there."""
    found: Any = record
    path: Path = ()
    for part in [name] if name in record else name.split("."):
        if isinstance(found, list) and all(isinstance(o, Mapping) and part in o for o in found):
            return [(*path, i, part) for i in range(len(found))]
        if not isinstance(found, Mapping) or part not in found:
            return []
        path, found = (*path, part), found[part]
    if isinstance(found, Mapping) and {*found} == {*LETTERS[: len(found)]}:
        return [(*path, letter) for letter in sorted(found)]
    return [(*path, i) for i in range(len(found))] if isinstance(found, list) else [path]


def _dotted(path: Path) -> str:
    return ".".join(key for key in path if isinstance(key, str))


def _get(record: Any, path: Path) -> Any:
    return functools.reduce(operator.getitem, path, record)


def _changed(record: Record, values: Mapping[Path, Any]) -> dict[str, Any]:
    """Return a record with other values at some places."""
    made = copy.deepcopy(dict(record))
    for path, value in values.items():
        _get(made, path[:-1])[path[-1]] = value
    return made
