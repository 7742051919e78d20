"""Multiple-choice items: what the options of a record are, and the record with them rearranged.

An *arrangement* of an item is one order of its options under the fixed labels: the contents move,
the labels stay, and whatever names the right option moves along, so every arrangement asks the same
question and has the same answer. `items_of` alone decides which fields these are, for the test of
options and for sealing. What it cannot decide it refuses, and it decides by the options as a set:
a record is read in the same way, or refused, in all of its arrangements.
"""

import copy
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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
# "(A) ", "A. ", "[A] ", "**A** ", "A - ", "A.x"; numbers need a blank, as 1.5 is no label.
_LABEL = re.compile(
    r"\s*[(\[*_]{0,2}(?:([A-Za-z])(?:[]).:*_]{1,3}|\s+[-–—](?=\s))|(\d{1,2})[]).:*_]{1,3}(?=\s))"
)
_LETTER = re.compile(
    r"\b(?i:options?|answers?|choices?)\b\s*(?i:is|are|was|:|=)?\s*[(\[*\"']{0,3}([A-Z]|\d{1,2})\b"
)
_LETTER_ALONE = re.compile(
    r"[(\[]([A-Z])[)\]]|\b([A-Z]) (?:is|was) (?:the )?(?:in)?"
    r"(?:correct|right|wrong|false|true|best)\b"
)

Record = Mapping[str, Any]
Path = tuple[str | int, ...]  # where in a record a value lies


@dataclass(frozen=True)
class _Layout:
    """Where a record has its options and what follows them.

    `columns` have a value for each option and move along; `gold` are fields that name the right
    option by "label", "index" or "text".
    """

    record: Record
    options: tuple[Path, ...]
    labels: tuple[str, ...]
    columns: tuple[tuple[Path, ...], ...]
    gold: tuple[tuple[Path, str], ...]
    used: frozenset[str]  # names of all these fields, and of the question


@dataclass(frozen=True)
class Item:
    """A question, its options in the published order, and the index of the right one.

    `answer` is None where the record does not say. `lettered`: a shown field names an option by its
    letter, which would be wrong in another arrangement. Raises InputError for fewer than 2 options
    or more than 26, an option without text, or an answer that is none of the options.
    """

    question: str
    options: tuple[str, ...]
    answer: int | None
    layout: _Layout | None = field(default=None, repr=False, compare=False)
    lettered: bool = field(default=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse what is no multiple-choice item."""
        start, count = repr(self.question[:40]), len(self.options)
        if not 2 <= count <= len(LETTERS):
            raise InputError(f"{start} has {count} options: give 2 to {len(LETTERS)}")
        if empty := [i for i, option in enumerate(self.options) if not option.strip()]:
            raise InputError(
                f"{start}: option {LETTERS[empty[0]]} has no text; write it, or remove"
            )
        if self.answer is not None and not 0 <= self.answer < count:
            raise InputError(
                f"{start}: answer {self.answer} is none of its {count} options; count from 0"
            )

    @property
    def _read(self) -> _Layout:
        if self.layout is None:
            raise InputError("an item without its record cannot be written in another order")
        return self.layout

    def rearranged(self, order: Sequence[int]) -> dict[str, Any]:
        """Return the record with option order[i] in the place of option i, and what follows it.

        Raises InputError for what is no order of the options.
        """
        layout = self._read
        if sorted(order) != list(range(len(self.options))):
            raise InputError(f"{list(order)} is no order of {len(self.options)} options")
        made = copy.deepcopy(dict(layout.record))
        for column in (layout.options, *layout.columns):
            for path, source in zip(column, order, strict=True):
                _put(made, path, _get(layout.record, column[source]))
        if self.answer is not None:
            place = list(order).index(self.answer)
            for path, kind in layout.gold:
                old = _get(layout.record, path)
                if kind == "index":
                    _put(made, path, type(old)(place))
                elif kind == "label":
                    label = layout.labels[place]
                    _put(made, path, label.lower() if str(old).strip().islower() else label)
        return made

    def with_options(self, texts: Sequence[str]) -> dict[str, Any]:
        """Return the record with these texts in the places of its options, the rest untouched."""
        layout = self._read
        made = copy.deepcopy(dict(layout.record))
        for path, text in zip(layout.options, texts, strict=True):
            _put(made, path, text)
        return made


def begin_with_labels(options: Sequence[str]) -> bool:
    """Whether the texts of options begin with labels, "(A) ..." or "1. ...", each with its own.

    One may have none ("none of these"). In whatever order: what is decided by this must not depend
    on the published one.
    """
    found = [match for option in options if (match := _LABEL.match(option))]
    labels = {"".join(filter(None, match.groups())).upper() for match in found}
    known = ({*LETTERS[: len(options)]}, {*_NUMBERS[1 : len(options) + 1]})
    return len(labels) >= max(2, len(options) - 1) and any(labels <= each for each in known)


def items_of(test_set: ExampleSet, shown: Collection[str] | None = ()) -> tuple[Item, ...]:
    """Return the items of a test set, one for each record, in canonical order.

    Fields are read as `test_set.declared` says, and by the names that data sets use. Among the
    `shown` fields (None: all of a record) a field that looks as if it named the right option, or as
    if it were parallel to the options, must be declared.

    Raises InputError that names the record for what is no multiple-choice item: a line without
    fields, no options, options that are no texts, an answer that is none of them or could be read
    in two ways, what `Item` refuses; if the texts of options begin with their labels; and for a
    field that has to be declared, with the declaration.
    """
    name = test_set.name
    if not test_set.records:
        raise InputError(
            f"{name}: a set of texts has no options to move; give records with fields, such as "
            f"{SCHEMES}"
        )
    items = tuple(
        _item(record, test_set.declared, shown, f"{name}, record {number}")
        for number, record in enumerate(test_set.records, start=1)
    )
    labelled = [i for i, item in enumerate(items) if begin_with_labels(item.options)]
    if 2 * len(labelled) >= len(items):  # a single one is a slip; see `alternatives`
        raise InputError(
            f"{name}, record {labelled[0] + 1}: options begin with their labels "
            f"({items[labelled[0]].options[0][:20]!r}), which would move along; write texts alone"
        )
    _refuse_undeclared(items, test_set.declared, shown, name)
    return items


def _item(record: Record, declared: Declared, shown: Collection[str] | None, where: str) -> Item:
    """Read one record; `where` is what messages call it."""
    try:
        question, layout = _layout(record, declared)
        options = tuple(_text(_get(record, path)) for path in layout.options)
        Item(question, options, None)
        layout, answer = _with_answers(layout, options, declared)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    lettered = names_letter(question, len(options), alone=False) or any(
        isinstance(value, str)
        and name not in layout.used
        and (shown is None or name.partition(".")[0] in shown)
        and names_letter(value, len(options))
        for name, value in _fields(record)
    )
    return Item(question, options, answer, layout, lettered)


def names_letter(text: str, count: int, *, alone: bool = True) -> bool:
    """Whether a text names one of `count` options: "option B", and, if `alone`, "(B)" as well."""
    known = {*LETTERS[:count], *_NUMBERS[1 : count + 1]}
    found = [*_LETTER.finditer(text), *(_LETTER_ALONE.finditer(text) if alone else ())]
    return any(name in known for match in found for name in match.groups())


# --- which fields an item consists of -------------------------------------------------------------


def _layout(record: Record, declared: Declared) -> tuple[str, _Layout]:
    """Return the question and where the options are, without what names the right one."""
    asked = next((record[name] for name in QUESTIONS if record.get(name) not in (None, "")), None)
    found = None if declared.options else _known(record, asked)
    columns: list[tuple[Path, ...]] = []
    if declared.options:
        given = [_resolved(record, name) for name in declared.options]
        if all(isinstance(each, tuple) for each in given):  # a field for each option
            found = tuple(each for each in given if isinstance(each, tuple)), ()
        else:
            known = _known(record, asked, quiet=True)
            lists = [tuple(each) for each in given if isinstance(each, list)]
            found = known or (lists.pop(0), ())
            columns = [each for each in lists if each != found[0]]
    if found is None:
        known_fields = ", ".join(sorted(map(str, record)))[:200] or "no fields"
        raise InputError(
            f"no options found; it has {known_fields}, and items are written as {SCHEMES}; name "
            "other fields by --options"
        )
    options, labels = found
    if any(len(column) != len(options) for column in columns):
        raise InputError(f"a list of --options is not as long as the {len(options)} options")
    if isinstance(asked, Mapping):
        asked = asked.get("stem")
    if asked is None:
        raise InputError(
            f"no question found beside its options; call it one of {', '.join(QUESTIONS)}"
        )
    if labels and (len(labels) != len(options) or len({*labels}) < len(labels)):
        raise InputError(f"{len(options)} options have {len({*labels})} labels; give each its own")
    labels = labels or tuple(LETTERS[: len(options)])
    used = {_dotted(path) for path in options} | {_dotted(each[0]) for each in columns}
    for path in options:
        if len(path) > 2:  # in {text, label}
            used |= {_dotted((*path[:-1], "label")), _dotted((*path[:-2], "label"))}
    used |= {name for name, value in _fields(record) if value == asked}
    return str(asked), _Layout(record, options, labels, tuple(columns), (), frozenset(used))


_Found = tuple[tuple[Path, ...], tuple[str, ...]]  # options, and their labels (none: letters)


def _known(record: Record, asked: Any, *, quiet: bool = False) -> _Found | None:
    """Find options where data sets have them; None if there are none."""
    try:
        if isinstance(asked, Mapping) and "choices" in asked:
            return _listed(asked["choices"], ("question", "choices"))
        if isinstance(targets := record.get("mc1_targets"), Mapping):
            return _listed(targets.get("choices"), ("mc1_targets", "choices"))
        for name in ("choices", "options", "endings"):
            if name in record and asked is not None:
                return _listed(record[name], (name,))
    except InputError:
        if quiet:
            return None
        raise
    for pattern, counted, labels, _ in _FAMILIES:
        names = [pattern.format(each) for each in counted]
        if asked is not None and names[0] in record and names[1] in record:
            filled = [i for i, name in enumerate(names) if record.get(name) not in (None, "")]
            count = max(filled, default=0) + 1
            return tuple((name,) for name in names[:count]), tuple(labels[:count])
    return None


def _listed(value: Any, path: Path) -> _Found:
    """Options in a list of texts or of {text, label}, in {text: [], label: []}, or {A: "", B: ""}.

    Raises InputError for anything else, such as one text that holds all options.
    """
    name = _dotted(path)
    if isinstance(value, Mapping):
        if (count := len(value)) > 1 and sorted(value) == list(LETTERS[:count]):
            return tuple((*path, letter) for letter in sorted(value)), ()
        texts, labels = value.get("text"), value.get("label", [])
        if not isinstance(texts, list) or not isinstance(labels, list):
            raise InputError(f"{name!r} is no list of options and has no list 'text'")
        return tuple((*path, "text", i) for i in range(len(texts))), _labels(labels)
    if not isinstance(value, list):
        raise InputError(
            f"{name!r} is {type(value).__name__} {str(value)[:40]!r} and no list of options; write "
            "a list"
        )
    if not value or not any(isinstance(one, Mapping) for one in value):
        return tuple((*path, i) for i in range(len(value))), ()
    if not all(isinstance(one, Mapping) and "text" in one for one in value):
        raise InputError(f"an option in {name!r} has no 'text'; give --options {name}.FIELD")
    labels = [one["label"] for one in value if "label" in one]
    return tuple((*path, i, "text") for i in range(len(value))), _labels(labels)


def _labels(values: Sequence[Any]) -> tuple[str, ...]:
    if wrong := [v for v in values if isinstance(v, bool) or not isinstance(v, str | int)]:
        raise InputError(f"the label of an option is {wrong[0]!r}; write a letter or a number")
    return tuple(str(value).strip() for value in values)


def _text(value: Any) -> str:
    """Return an option as text; raises InputError for what is none, or none that can be kept."""
    if not isinstance(value, str | int | float):
        raise InputError(f"an option is {str(value)[:40]!r} and no text; write it, or remove it")
    text = str(value)
    if len(text) > LONGEST_TEXT:
        raise InputError(f"an option of {len(text):,} characters; the most are {LONGEST_TEXT:,}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"an option has half of a surrogate pair at {error.start}") from error
    return text


# --- what names the right option ------------------------------------------------------------------


def _with_answers(
    layout: _Layout, texts: Sequence[str], declared: Declared
) -> tuple[_Layout, int | None]:
    """Find what names the right option, by the names of data sets and the declared ones."""
    record, names = layout.record, [*declared.answer]
    if isinstance(record.get("mc1_targets"), Mapping) and layout.options[0][0] == "mc1_targets":
        names.append("mc1_targets.labels")
    elif layout.options[0][0] == "endings":
        names.append("label")
    else:
        own = [
            gold for pattern, counted, _, gold in _FAMILIES
            if layout.options[0] == (pattern.format(counted[0]),)
        ]  # fmt: skip
        names += own[0] if own else ANSWERS
    told: dict[str, int] = {}
    gold, columns = list[tuple[Path, str]](), list(layout.columns)
    for name in dict.fromkeys(names):
        if name in declared.other or (place := _resolved(record, name, missing=True)) is None:
            continue
        if isinstance(place, list):
            flags = [_get(record, path) for path in place]
            right = [i for i, flag in enumerate(flags) if flag in (True, 1)]
            wrong = [i for i, flag in enumerate(flags) if flag in (False, 0, None)]
            if len(right) != 1 or len(right) + len(wrong) != len(texts):
                raise InputError(
                    f"{name} {str(flags)[:40]!r} does not mark one of its {len(texts)} options as "
                    "right"
                )
            (told[name],) = right
            columns.append(tuple(place))
        elif (value := _get(record, place)) is not None and str(value).strip() not in ("", "-1"):
            kind, told[name] = _meaning(name, value, layout, texts)
            gold.append((place, kind))
    if len({*told.values()}) > 1:
        fields = " and ".join(map(repr, told))
        raise InputError(f"fields {fields} name different answers; correct one of them")
    if declared.options and not told and all(len(path) == 1 for path in layout.options):
        raise InputError(
            "nothing says which option is right but the name of its field, and that cannot move: "
            "write a list, or give --answer"
        )
    used = layout.used | {*names}
    layout = _Layout(
        record, layout.options, layout.labels, tuple(columns), tuple(gold), frozenset(used)
    )
    return layout, next(iter(told.values()), None)


def _meaning(name: str, value: Any, layout: _Layout, texts: Sequence[str]) -> tuple[str, int]:
    """Return how a value names the right option, and which; refuse what could mean two things.

    Whether it could is asked of all labels and indices and not of this one alone, since another
    arrangement writes another one: so no arrangement of an item is refused if one is accepted.
    """
    text, labels = str(value).strip(), layout.labels
    indices = list(_NUMBERS[: len(texts)])
    written, shown = {text.strip() for text in texts}, f"{name} {str(value)[:40]!r}"
    typed = isinstance(value, int) and not isinstance(value, bool)
    if typed and all(isinstance(_get(layout.record, path), str) for path in layout.options):
        written = set()  # a number among texts is none of them
    both = "could be an option's text, a label or an index; write the answer as a letter"
    label = text.upper() if text.islower() and labels[0] == "A" else text
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        if text in written:
            if text in indices or label in labels:
                raise InputError(f"{shown} {both} that is no option")
            return "text", [text.strip() for text in texts].index(text)
        if typed and {*labels} & {*_NUMBERS}:
            raise InputError(f"{shown} could be a label or an index; write the label as text")
        if label in labels:
            spellings = {*labels, *(each.lower() for each in labels)}
            if found := sorted(spellings & written):
                raise InputError(f"{shown} is a label, and so is option {found[0]!r}: {both}")
            return "label", labels.index(label)
        if text in indices and not isinstance(value, float):
            if found := sorted({*indices} & (written | {*labels})):
                raise InputError(f"{shown} is an index, and so is {found[0]!r}: {both}")
            return "index", indices.index(text)
    raise InputError(
        f"{shown} is none of its {len(texts)} options; give a label ({labels[0]} to {labels[-1]}), "
        "an index from 0, or the text"
    )


# --- what nobody has declared ---------------------------------------------------------------------


def _refuse_undeclared(
    items: Sequence[Item], declared: Declared, shown: Collection[str] | None, where: str
) -> None:
    """Refuse a field that looks, in half of its records, as if it followed the options."""
    seen: dict[str, int] = {}
    alike: dict[str, list[tuple[int, str, Any]]] = {}
    for number, item in enumerate(items, start=1):
        layout = item._read
        for name, value in _fields(layout.record):
            top = name.partition(".")[0]
            if (
                name in layout.used
                or {name, top} & {*declared.other, *ID_FIELDS}
                or (shown is not None and top not in shown)
                or value is None
                or (isinstance(value, str | int) and str(value).strip() in ("", "-1"))
            ):
                continue
            seen[name] = seen.get(name, 0) + 1
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
    count, labels = len(item.options), item._read.labels
    if isinstance(value, list | tuple):
        return "a list parallel to the options" if len(value) == count else None
    if "." in name and name.rpartition(".")[2] in labels:
        return "a list of fields by the labels of the options"
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value).strip().strip("()[]{}.:*_'\"").strip()
    if text.removesuffix(".0") in _NUMBERS[: count + 1]:
        return "an index of the right option"
    if (text.upper() in LETTERS[:count] and len(text) == 1) or text in labels:
        return "the letter of an option"
    if str(value).strip().casefold() in (option.strip().casefold() for option in item.options):
        return "the text of an option"
    return None


# --- fields by their names ------------------------------------------------------------------------


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


def _resolved(record: Record, name: str, *, missing: bool = False) -> Path | list[Path] | None:
    """Return where a field is; a list of places if it has a value for each of several options.

    A field that is not there raises InputError, or is None if it may be `missing`.
    """
    found: Any = record
    path: Path = ()
    for part in [name] if name in record else name.split("."):
        if isinstance(found, list) and all(isinstance(o, Mapping) and part in o for o in found):
            return [(*path, i, part) for i in range(len(found))]
        if not isinstance(found, Mapping) or part not in found:
            if missing:
                return None
            raise InputError(f"there is no field {name!r}; name one that every record has")
        path, found = (*path, part), found[part]
    return [(*path, i) for i in range(len(found))] if isinstance(found, list) else path


def _dotted(path: Path) -> str:
    return ".".join(key for key in path if isinstance(key, str))


def _get(record: Any, path: Path) -> Any:
    for key in path:
        record = record[key]
    return record


def _put(record: Any, path: Path, value: Any) -> None:
    _get(record, path[:-1])[path[-1]] = value
