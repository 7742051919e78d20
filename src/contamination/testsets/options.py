"""Multiple-choice items: what the options of a record are, and the record with them rearranged.

An *arrangement* of an item is one order of its options under the fixed labels: the contents move,
the labels stay, and whatever names the right option moves along, so every arrangement asks the same
question and has the same answer. `items_of` alone decides which fields these are, for the test of
options and for sealing. What it cannot decide it refuses, and it decides by the options as a set:
a record is read in the same way, or refused, in all of its arrangements.
"""

import copy
import functools
import operator
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from contamination.errors import InputError
from contamination.testsets.example_set import LONGEST_TEXT, Declared, ExampleSet
from contamination.testsets.records import ID_FIELDS

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SCHEMES = (
    "question and choices, options or choice0, choice1 ...; ctx and endings; goal and sol1, sol2; "
    "input, A, B ...; question and mc1_targets"
)
QUESTIONS = (
    *("question", "question_stem", "input", "ctx", "goal", "sentence", "query", "premise"),
    *("startphrase", "prompt"),
)
ANSWERS = ("answerKey", "answer", "answer_index", "answer_idx")
_NUMBERS = tuple(map(str, range(27)))
# Options in fields of their own: their names, what counts them, their labels (none: letters), and
# the fields that name the right one.
_FAMILIES: tuple[tuple[str, Sequence[str], Sequence[str], Sequence[str]], ...] = (
    ("sol{}", _NUMBERS[1:3], (), ("label",)),  # PIQA
    ("{}", LETTERS, (), ("target", "answer")),  # Oren's MMLU, C-Eval
    ("choice{}", _NUMBERS[:26], (), ("answer",)),
    ("choice{}", _NUMBERS[1:], (), ("label",)),  # COPA
    ("option{}", _NUMBERS[1:], _NUMBERS[1:], ("answer",)),  # WinoGrande
    ("answer{}", LETTERS, _NUMBERS[1:], ("label",)),  # SocialIQA
    ("answer{}", _NUMBERS[:26], (), ("label",)),  # CosmosQA
    ("ending{}", _NUMBERS[:26], (), ("label",)),  # SWAG
    ("op{}", LETTERS.lower(), (), ("answer",)),  # MedMCQA
)
_ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
# "(A) ", "A. ", "[A] ", "**A** ", "A - ", "A.x", "A lamp", "ii) "; 1.5 and 1:30 have no label.
_LABEL = re.compile(
    r"[\W_]*(?:(?i:option|choice|answer)[\W_]*)?(?:([A-Za-z]|[IVX]{1,4}|[ivx]{1,4})"
    r"(?:[]).:*_>|、．｜]+|\s+[-–—](?=\s)|[\s/–—-]+(?=\w\w))"
    r"|(\d{1,2})(?:[]).:*_>|、]+(?=\s|[^\W\d])|\s+[-–—]\s+(?=[^\W\d])))\s*"
)
_LETTER = re.compile(
    r"\b(?i:options?|answers?|choices?)\b\s*(?i:is|are|was|:|=)?\s*[(\[*\"']{0,3}"
    r"([A-Z]|\d{1,2}|[a-z](?=[)\]*\"']))(?!\w)"
    rf"|\b(?i:(?:{'|'.join(_ORDINALS)}|last) (?:option|choice|answer))\b"
)
_LETTER_ALONE = re.compile(
    r"(?<!\w)[(\[]([A-Za-z])[)\]]|(?:\*\*\(?|[{]|#### ?)([A-Z])\b|\b([A-Z]) (?:is|was) (?:the )?"
    r"(?:in)?(?:correct|right|wrong|false|true|best)\b"
)
# Beside names of options: "option_2", "both A and C", "the second".
_BESIDE_NAMES = re.compile(
    r"(?i:(?:option|choice|answer)s?|ending|sol|op|and|or|both|the|is|correct)"
)

Record = Mapping[str, Any]
Path = tuple[str | int, ...]  # where in a record a value lies


@dataclass(frozen=True)
class _Layout:
    """Where a record has its options and what follows them.

    `columns` have a value for each option and move along; `gold` are fields that name the right
    option by "label", "index" or "text".
    """

    record: Record = field(default_factory=dict)
    options: Sequence[Path] = ()
    labels: Sequence[str] = ()
    columns: Sequence[Sequence[Path]] = ()
    gold: Sequence[tuple[Path, str]] = ()
    used: frozenset[str] = frozenset()  # names of all these fields, and of the question


@dataclass(frozen=True)
class Item:
    """A question, its options in the published order, and the index of the right one.

    `answer` is None where the record does not say. `lettered`: a shown field names an option by its
    letter, which would be wrong in another arrangement. Raises InputError for fewer than 2 options
    or more than 26, or an option without text.
    """

    question: str
    options: tuple[str, ...]
    answer: int | None
    layout: _Layout = field(default=_Layout(), repr=False, compare=False)
    lettered: bool = field(default=False, repr=False, compare=False)

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
        layout, record = self.layout, self.layout.record
        if sorted(order) != list(range(len(layout.options))):
            raise InputError(f"{list(order)} is no order of {len(layout.options)} options")
        values = {
            path: _get(record, column[source])
            for column in (layout.options, *layout.columns)
            for path, source in zip(column, order, strict=True)
        }
        place = -1 if self.answer is None else list(order).index(self.answer)
        for path, kind in layout.gold:  # of a known answer
            old = _get(record, path)
            label = layout.labels[place]
            if kind == "index":
                values[path] = type(old)(place)
            elif kind == "label":
                values[path] = label.lower() if str(old).strip().islower() else label
        return _changed(record, values)

    def with_options(self, texts: Sequence[str]) -> dict[str, Any]:
        """Return the record with these texts in the places of its options, the rest untouched."""
        return _changed(self.layout.record, dict(zip(self.layout.options, texts, strict=True)))


def begin_with_labels(options: Sequence[str]) -> bool:
    """Whether the texts of options begin with labels, "(A) ..." or "1. ...", each with its own.

    One may have none ("none of these"). In whatever order: what is decided by this must not depend
    on the published one.
    """
    found = [match for option in options if (match := _LABEL.match(option))]
    labels = {"".join(filter(None, match.groups())).upper() for match in found}
    schemes = (LETTERS, _NUMBERS, _NUMBERS[1:], _ROMAN)
    known = [{*scheme[: len(options)]} for scheme in schemes]
    return len(labels) >= max(2, len(options) - 1) and any(labels <= each for each in known)


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
    name, items, unclear = test_set.name, list[Item](), list[int]()
    if not test_set.records:
        raise InputError(
            f"{name}: a set of texts has no options to move; give records with fields, such as "
            f"{SCHEMES}"
        )
    read = functools.partial(_item, declared=test_set.declared, shown=shown)
    for number, record in enumerate(test_set.records, start=1):
        try:
            items.append(read(record))
        except _TwoWays:
            unclear.append(number)
        except InputError as error:
            raise InputError(f"{name}, record {number}: {error}") from error
    usual = None if shown is None else _usual_kinds(items)  # who seals can write it clearly
    for number in unclear:
        try:
            items.insert(number - 1, read(test_set.records[number - 1], usual=usual))
        except InputError as error:
            raise InputError(f"{name}, record {number}: {error}") from error
    labelled = [i for i, item in enumerate(items) if begin_with_labels(item.options)]
    if 2 * len(labelled) >= len(items):  # a single one is a slip; see `alternatives`
        raise InputError(
            f"{name}, record {labelled[0] + 1}: options begin with their labels "
            f"({items[labelled[0]].options[0][:20]!r}), which would move along; write texts alone"
        )
    _refuse_undeclared(items, test_set.declared, shown, name)
    return tuple(items)


def names_letter(text: str, count: int, *, alone: bool = True) -> bool:
    """Whether a text names one of `count` options: "option B", and, if `alone`, "(B)" as well."""
    known = {*LETTERS[:count], *_NUMBERS[1 : count + 1]}
    found = [*_LETTER.finditer(text), *(_LETTER_ALONE.finditer(text) if alone else ())]
    names = [next(filter(None, match.groups()), None) for match in found]
    return any(name is None or name.upper() in known for name in names)  # None: an ordinal


class _TwoWays(InputError):
    """An answer that could be an option's text, a label or an index."""


def _usual_kinds(items: Sequence[Item]) -> dict[str, str]:
    """Return how each field names the right option, if it does so in one way in all of the items.

    No arrangement of the items changes that, so it may decide what could be read in two ways.
    """
    found = {(_dotted(path), kind) for item in items for path, kind in item.layout.gold}
    names = Counter(name for name, _ in found)
    return {name: kind for name, kind in found if names[name] == 1}


def _item(
    record: Record,
    declared: Declared,
    shown: Collection[str] | None,
    usual: Mapping[str, str] | None = None,
) -> Item:
    """Read one record: its question and options, then what names the right one."""
    asked = next((record[name] for name in QUESTIONS if record.get(name) not in (None, "")), None)
    asked = asked.get("stem") if isinstance(asked, Mapping) else asked
    options, parallel, given, names = _options(record, declared)
    if asked is None:
        raise InputError(f"no question found beside options; call it one of {', '.join(QUESTIONS)}")
    item = Item(str(asked), tuple(_text(_get(record, path)) for path in options), None)
    count, columns = len(options), [*parallel]
    labels = [str(label).strip() for label in given or LETTERS[:count]]
    if (
        any(isinstance(label, bool) or not isinstance(label, str | int) for label in given)
        or len({*labels} - {""}) < count
        or len(labels) > count
    ):
        raise InputError(f"{count} options have the labels {labels}; give each one of its own")
    if any(len(column) != count for column in columns):
        raise InputError(f"a list of --options is not as long as the {count} options")
    told: dict[str, int] = {}
    gold = list[tuple[Path, str]]()
    typed = all(isinstance(_get(record, path), str) for path in options)
    names = tuple(name for name in (*declared.answer, *names) if name not in declared.other)
    for name in dict.fromkeys(names):
        places = _places(record, name)
        values = [_get(record, path) for path in places]
        if len(places) > 1:
            if values.count(1) != 1 or sum(map(values.count, (0, 1, None))) != count:
                raise InputError(
                    f"{name} {str(values)[:40]!r} does not mark one of its {count} options as right"
                )
            told[name] = values.index(1)
            columns.append(places)
        elif values and values[0] is not None and str(values[0]).strip() not in ("", "-1"):
            known = (usual or {}).get(name)
            kind, told[name] = _meaning(name, values[0], item.options, labels, known, typed=typed)
            gold.append((places[0], kind))
    if len({*told.values()}) > 1:
        fields = " and ".join(map(repr, told))
        raise InputError(f"fields {fields} name different answers; correct one of them")
    if declared.options and not told and all(len(path) == 1 for path in options):
        raise InputError(
            "nothing says which option is right but the name of its field, and that cannot move: "
            "write a list, or give --answer"
        )
    used = {*names} | {name for name, value in _fields(record) if value == asked}
    used |= {_dotted(path) for path in (*options, *(column[0] for column in columns))}
    used.add(f"{_dotted(options[0]).rpartition('.')[0]}.label")
    lettered = names_letter(item.question, count, alone=False) or any(
        isinstance(text, str) and names_letter(text, count)
        for name, value in _fields(record)
        if name not in used
        and not {name, name.partition(".")[0]} & {*declared.other}
        and (shown is None or name.partition(".")[0] in shown)
        for text in (value if isinstance(value, list) else [value])
    )
    layout = _Layout(record, options, labels, columns, gold, frozenset(used))
    return replace(item, answer=next(iter(told.values()), None), layout=layout, lettered=lettered)


class _Found(NamedTuple):
    """Options of a record, what moves along, labels, and the fields that may name the answer."""

    options: Sequence[Path]
    columns: Sequence[Sequence[Path]] = ()
    labels: Sequence[Any] = ()
    answers: Sequence[str] = ANSWERS


def _options(record: Record, declared: Declared) -> _Found:
    """Find options where they are declared, else where data sets have them."""
    given = [_places(record, name) for name in declared.options]
    if not all(given):
        missing = declared.options[given.index([])]
        raise InputError(f"there is no field {missing!r}; name one that every record has")
    if given and all(len(places) == 1 for places in given):  # a field for each option
        return _Found([path for (path,) in given])
    lists = [places for places in given if len(places) > 1]
    for name in ("question.choices", "mc1_targets.choices", "choices", "options", "endings"):
        found = _places(record, f"{name}.text") or _places(record, name)
        if len(found) == 1 and isinstance(inner := _get(record, found[0]), Mapping):
            by_letter = sorted(inner) == list(LETTERS[: len(inner)])
            found = [(*found[0], letter) for letter in sorted(inner)] if by_letter else []
        plain = all(isinstance(_get(record, path), str | int | float) for path in found)
        if len(found) > 1 and (plain or not lists):
            labels = [_get(record, path) for path in _places(record, f"{name}.label")]
            answers = {"mc1_targets.choices": ("mc1_targets.labels",), "endings": ("label",)}
            columns = [places for places in lists if places != found]
            return _Found(found, columns, labels, answers.get(name, ANSWERS))
    for pattern, counted, letters, names in _FAMILIES:
        fields = [pattern.format(each) for each in counted]
        if {*fields[:2]} <= record.keys():
            filled = [i for i, name in enumerate(fields) if record.get(name) not in (None, "")]
            found = [(name,) for name in fields[: max(filled, default=0) + 1]]
            return _Found(found, lists, letters[: len(found)], names)
    if lists:
        return _Found(lists[0], lists[1:])
    raise InputError(
        f"no options found; it has {', '.join(sorted(map(str, record)))[:200] or 'no fields'}, and "
        f"items are written as {SCHEMES}; name other fields by --options"
    )


def _text(value: Any) -> str:
    """Return an option as text; raises InputError for what is none, or none that can be kept."""
    if not isinstance(value, str | int | float) or len(str(value)) > LONGEST_TEXT:
        raise InputError(
            f"an option is {str(value)[:40]!r}; write a text of at most {LONGEST_TEXT:,} characters"
        )
    text = str(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"an option has half of a surrogate pair at {error.start}") from error
    return text


def _meaning(
    name: str,
    value: Any,
    texts: Sequence[str],
    labels: Sequence[str],
    usual: str | None,
    *,
    typed: bool,
) -> tuple[str, int]:
    """Return how a value names the right option, and which; refuse what could mean two things.

    Whether it could is asked of all labels and indices and not of this one alone, since another
    arrangement writes another one: so no arrangement of an item is refused if one is accepted.
    `usual`: the way in which all other records of the set name it, which decides. `typed`: all
    options are texts, so a number is none of them.
    """
    number = isinstance(value, int) and not isinstance(value, bool)
    text = str(value).strip() if number or isinstance(value, str | float) else ""
    label = text.upper() if text.islower() and labels[0] == "A" else text
    options, indices = [text.strip() for text in texts], list(_NUMBERS[: len(texts)])
    written = set() if number and typed else {*options}
    spellings = {*labels, *(each.lower() for each in labels)}
    # Each with what it could be confused with.
    ways = {
        "text": (text, [*options] if written else [], {text, label} & {*indices, *labels}),
        "label": (label, labels, spellings & written),
        "index": (text, indices, {*indices} & {*written, *labels}),
    }
    able = [kind for kind, (said, known, _) in ways.items() if said in known]
    if not able:
        raise InputError(
            f"{name} {str(value)[:40]!r} is none of its {len(texts)} options; give a label "
            f"({labels[0]} to {labels[-1]}), an index from 0, or the text"
        )
    kind = usual if usual in able else able[0]
    said, known, clash = ways[kind]
    if usual != kind and (clash or (number and kind != "text" and {*labels} & {*_NUMBERS})):
        raise _TwoWays(
            f"{name} {str(value)[:40]!r} could be an option's text, a label or an index; write the "
            "answer as a letter that is no option, or a label as text"
        )
    return kind, known.index(said)


def _refuse_undeclared(
    items: Sequence[Item], declared: Declared, shown: Collection[str] | None, where: str
) -> None:
    """Refuse a field that looks, in half of its records, as if it followed the options."""
    seen = Counter[str]()
    alike: dict[str, list[tuple[int, str, Any]]] = {}
    for number, item in enumerate(items, start=1):
        for name, value in _fields(item.layout.record):
            top = name.partition(".")[0]
            hidden = {name, top} & {*declared.other} or (shown is not None and top not in shown)
            said = value is not None and str(value).strip() not in ("", "-1")
            if said and not hidden and name not in item.layout.used:
                seen[name] += 1
                if what := _looks(name, value, item):
                    alike.setdefault(name, []).append((number, what, value))
    for name, found in alike.items():
        if 2 * len(found) >= seen[name]:
            number, what, value = found[0]
            option = "options" if what.startswith("a list") else "answer"
            raise InputError(
                f"{where}, record {number}: {name!r} looks like {what} ({str(value)[:40]!r}) and "
                f"would stay as it is when options move; give --{option} {name}, or --other {name} "
                "if it says nothing of them"
            )


def _looks(name: str, value: Any, item: Item) -> str | None:
    """Say what a field of an item looks like that names an option, or goes with each of them."""
    count, texts = len(item.options), [option.strip().casefold() for option in item.options]
    if isinstance(value, list | tuple):
        if len(value) == count:
            return "a list parallel to the options"
        named = [_names_options(str(one), item) or str(one).casefold() in texts for one in value]
        return "a list of right options" if value and all(named) else None
    if "." in name and name.rpartition(".")[2] in {*item.layout.labels, *_NUMBERS[: count + 1]}:
        return "a list of fields by the labels of the options"
    if isinstance(value, bool):
        return "a flag of one of two options" if count == 2 else None
    if not isinstance(value, str | int | float):
        return None
    text = str(value).strip().casefold()
    if text in texts or _LABEL.sub("", text, count=1) in texts:
        return "the text of an option"
    if any(len(text.split(separator)) == count for separator in "|\t"):
        return "a list parallel to the options"
    known = name not in ID_FIELDS and _names_options(str(value), item)  # ids are numbers
    return "the letter or index of an option" if known else None


def _names_options(text: str, item: Item) -> bool:
    """Whether a text is names of options alone: "(B)", "2.0", "option_2", "A, C", "AC", "0100"."""
    count = len(item.options)
    if re.fullmatch(f"[01]{{{count}}}", text.strip()):
        return True
    known = {*item.layout.labels, *LETTERS[:count], *_NUMBERS[: count + 1], *_ROMAN[:count]}
    known |= {word.upper() for word in (*_ORDINALS[:count], "last")}
    words = [w for w in re.findall(r"[^\W\d_]+|\d+", text) if not _BESIDE_NAMES.fullmatch(w)]
    return bool(words) and all(
        w in known or w.upper() in known or (w.isupper() and {*w} <= {*LETTERS[:count]})
        for w in words
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
    """Return where a field is, one place for each entry of a list; none if it is not there."""
    found: Any = record
    path: Path = ()
    for part in [name] if name in record else name.split("."):
        if isinstance(found, list) and all(isinstance(o, Mapping) and part in o for o in found):
            return [(*path, i, part) for i in range(len(found))]
        if not isinstance(found, Mapping) or part not in found:
            return []
        path, found = (*path, part), found[part]
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
