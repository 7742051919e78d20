"""Places of the options of an item, and of its right answer, in a record."""

import copy
import functools
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from contamination.errors import InputError
from contamination.testsets.example_set import Declared
from contamination.testsets.option_texts import LETTERS, NUMBERS
from contamination.testsets.records import are_mappings

Record = Mapping[str, Any]
Path = tuple[str | int, ...]  # where in a record a value lies
ANSWERS = ("answerKey", "answer", "answer_index", "answer_idx")


class Layout(NamedTuple):
    """The names that a kind of data sets gives to the options of an item.

    Attributes
    ----------
    name
        Name of a list; or a pattern with {} that gives a field for each option.
    counted
        Values of {} in the pattern, one for each option; empty for a list.
    labels
        Labels of the options that have fields; empty means letters.
    answers
        Fields that may name the right option.
    """

    name: str
    counted: Sequence[str] = ()
    labels: Sequence[str] = ()
    answers: Sequence[str] = ANSWERS

    @property
    def fields(self) -> list[str]:
        """The names of the fields of the options; empty for a list."""
        return [self.name.format(number) for number in self.counted]

    @property
    def shown(self) -> str:
        """The name in messages: the list, or the field of the first option."""
        return self.name.format(*self.counted[:1])


LAYOUTS = (
    Layout("question.choices"),  # CommonsenseQA
    Layout("mc1_targets.choices", answers=("mc1_targets.labels",)),  # TruthfulQA
    Layout("choices"),  # MMLU, ARC
    Layout("options"),  # MMLU-Pro, MedQA
    Layout("endings", answers=("label",)),  # HellaSwag
    Layout("sol{}", NUMBERS[1:3], answers=("label",)),  # PIQA
    Layout("{}", LETTERS, answers=("target", "answer")),  # Oren's MMLU, C-Eval
    Layout("choice{}", NUMBERS[:26], answers=("answer",)),
    Layout("choice{}", NUMBERS[1:], answers=("label",)),  # COPA
    Layout("option{}", NUMBERS[1:], NUMBERS[1:], answers=("answer",)),  # WinoGrande
    Layout("answer{}", LETTERS, NUMBERS[1:], answers=("label",)),  # SocialIQA
    Layout("answer{}", NUMBERS[:26], answers=("label",)),  # CosmosQA
    Layout("ending{}", NUMBERS[:26], answers=("label",)),  # SWAG
    Layout("op{}", LETTERS.lower(), answers=("answer",)),  # MedMCQA
)
SCHEMES = ", ".join(layout.shown for layout in LAYOUTS)


class Columns(NamedTuple):
    """The places of the options in a record.

    Attributes
    ----------
    columns
        Places of the options, then of the values that move along with each option.
    labels
        Labels of the options in the record; empty means letters.
    answers
        Names of fields that may name the right option.
    """

    columns: list[list[Path]]
    labels: Sequence[Any]
    answers: Sequence[str]


def find_columns(record: Record, declared: Declared) -> Columns:
    """Return where options are: as declared, else where data sets have them.

    Raises InputError for a declared field that is not there, and if no options are
    found.
    """
    declared_places = [places_of(record, name) for name in declared.options]
    if [] in declared_places:
        missing = declared.options[declared_places.index([])]
        raise InputError(
            f"there is no field {missing!r}; name one that every record has",
        )
    lists = [places for places in declared_places if len(places) > 1]
    if declared_places and not lists:  # a field for each option
        options = [places[0] for places in declared_places]
        return Columns([options], (), ANSWERS)
    for layout in LAYOUTS:
        if layout.counted:
            options = _options_in_fields(record, layout)
            labels: Sequence[Any] = layout.labels[: len(options)]
        else:
            options = _options_in_list(record, layout, only_plain=bool(lists))
            places = places_of(record, f"{layout.name}.label")
            labels = [value_at(record, path) for path in places]
        if options:
            others = [places for places in lists if places != options]
            return Columns([options, *others], labels, layout.answers)
    if lists:
        return Columns(lists, (), ANSWERS)
    names = ", ".join(sorted(map(str, record)))[:200] or "no fields"
    raise InputError(
        f"no options found; it has {names}, and options are called {SCHEMES}; name "
        "other fields as options",
        parameter="options",
    )


def _options_in_list(record: Record, layout: Layout, *, only_plain: bool) -> list[Path]:
    """Return the places of options in a list.

    With `only_plain` they must be texts or numbers.
    """
    places = places_of(record, f"{layout.name}.text") or places_of(record, layout.name)
    if len(places) < 2:
        return []
    if only_plain:
        values = [value_at(record, path) for path in places]
        if not all(isinstance(value, str | int | float) for value in values):
            return []
    return places


def _options_in_fields(record: Record, layout: Layout) -> list[Path]:
    """Return the places of options that have a field each, up to the last that is filled."""
    fields = layout.fields
    if not {*fields[:2]} <= record.keys():
        return []
    filled = [i for i, name in enumerate(fields) if record.get(name) not in (None, "")]
    count = max(filled, default=0) + 1
    return [(name,) for name in fields[:count]]


def fields_of(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the fields of a record, inner ones as `choices.text`.

    Fields within a list come as a list.
    """
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from fields_of(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and value and are_mappings(value):
        keys = dict[str, None]()
        for inner in value:
            keys.update(dict.fromkeys(inner))
        for key in keys:
            yield f"{name}.{key}", [inner.get(key) for inner in value]
    else:
        yield name, value


def places_of(record: Record, name: str) -> list[Path]:
    """Return where a field is, or its entries in a list or by letter.

    There are none if the field is missing.
    """
    value: Any = record
    path: Path = ()
    parts = [name] if name in record else name.split(".")
    for part in parts:
        if isinstance(value, list) and are_mappings(value, part):
            return [(*path, number, part) for number in range(len(value))]
        if not isinstance(value, Mapping) or part not in value:
            return []
        path = (*path, part)
        value = value[part]
    if isinstance(value, Mapping) and {*value} == {*LETTERS[: len(value)]}:
        return [(*path, letter) for letter in sorted(value)]
    if isinstance(value, list):
        return [(*path, i) for i in range(len(value))]
    return [path]


def dotted(path: Path) -> str:
    """Return a place as messages and declarations name it, `choices.text`."""
    return ".".join(key for key in path if isinstance(key, str))


def value_at(record: Any, path: Path) -> Any:
    """Return what lies at a place."""
    return functools.reduce(operator.getitem, path, record)


def with_values(record: Record, values: Mapping[Path, Any]) -> dict[str, Any]:
    """Return a record with other values at some places."""
    copied = copy.deepcopy(dict(record))
    for path, value in values.items():
        value_at(copied, path[:-1])[path[-1]] = value
    return copied
