"""Multiple-choice items: what the options of a record are, and the record with them rearranged.

A data set writes its options in one of a few schemes; `items_of` finds which. An *arrangement* of
an item is one order of its options under the fixed labels: the contents move, the labels stay, and
the gold answer moves along, so every arrangement asks the same question and has the same answer.
"""

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from contamination.errors import InputError
from contamination.testsets.example_set import ExampleSet

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SCHEMES = (
    "question and choices, options or choice0, choice1 ...; ctx and endings; goal and sol1, sol2; "
    "input, A, B ...; question and mc1_targets"
)
_LABEL = re.compile(r"\s*(?:\((\w{1,2})\)|(\w{1,2})[.):])\s")  # "(A) ", "A. ", "A) ", "1: "

Record = Mapping[str, Any]
Path = tuple[str | int, ...]  # where in a record a value lies


@dataclass(frozen=True)
class Item:
    """A question, its options in the published order, and the index of the right one.

    `answer` is None where the record does not tell. Raises InputError for fewer than 2 options or
    more than 26, an option without text, or an answer that is none of the options.
    """

    question: str
    options: tuple[str, ...]
    answer: int | None

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


def begin_with_labels(options: Sequence[str]) -> bool:
    """Whether the texts of options begin with labels, "(A) ..." or "1. ...", each with its own.

    In whatever order: what is decided by this must not depend on the published one.
    """
    found = [_LABEL.match(option) for option in options]
    labels = sorted("".join(filter(None, match.groups())).upper() for match in found if match)
    numbers = sorted(str(i + 1) for i in range(len(options)))
    return labels in (list(LETTERS[: len(options)]), numbers)


@dataclass(frozen=True)
class _Gold:
    """A field that tells the right option: by its index, its label, its text, or flags for all."""

    path: Path
    kind: str


@dataclass(frozen=True)
class _Layout:
    """Where a record has its options, what these are called, and which fields tell the answer."""

    options: tuple[Path, ...]
    labels: tuple[str, ...]
    gold: tuple[_Gold, ...]
    item: Item


def items_of(test_set: ExampleSet) -> tuple[Item, ...]:
    """Return the items of a test set, one for each record, in canonical order.

    Raises InputError that names the record for what is no multiple-choice item: a line without
    fields, no options, what `Item` refuses; and if the texts of options begin with their labels.
    """
    if not test_set.records:
        raise InputError(
            f"{test_set.name}: a set of texts has no options to move; give records with fields, "
            f"such as {SCHEMES}"
        )
    items = tuple(
        item_of(record, f"{test_set.name}, record {number}")
        for number, record in enumerate(test_set.records, start=1)
    )
    labelled = [i for i, item in enumerate(items) if begin_with_labels(item.options)]
    if 2 * len(labelled) >= len(items):  # a single one is a slip; see `alternatives`
        raise InputError(
            f"{test_set.name}, record {labelled[0] + 1}: options begin with their labels "
            f"({items[labelled[0]].options[0][:20]!r}), which would move along; write texts alone"
        )
    return items


def item_of(record: Record, where: str) -> Item:
    """Return the item of one record; `where` is what messages call it."""
    try:
        return _layout(record).item
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def rearranged(record: Record, order: Sequence[int]) -> dict[str, Any]:
    """Return a record of the same scheme with option order[i] in the place of option i.

    The fields that tell the answer follow it; all others, and the record given, stay as they are.
    Raises InputError for a record without options, or what is no order of them.
    """
    layout = _layout(record)
    if sorted(order) != list(range(len(layout.options))):
        raise InputError(f"{list(order)} is no order of {len(layout.options)} options")
    made = copy.deepcopy(dict(record))
    for path, source in zip(layout.options, order, strict=True):
        _put(made, path, _get(record, layout.options[source]))
    if layout.item.answer is not None:
        place = list(order).index(layout.item.answer)
        for gold in layout.gold:
            _put(made, gold.path, _told(layout, gold, _get(record, gold.path), place, order))
    return made


def with_options(record: Record, texts: Sequence[str]) -> dict[str, Any]:
    """Return the record with these texts in the places of its options, the answer untouched."""
    made = copy.deepcopy(dict(record))
    for path, text in zip(_layout(record).options, texts, strict=True):
        _put(made, path, text)
    return made


def template_of_item(record: Record) -> str:
    """Return a template that shows the question of a record, every option, and the answer if told.

    Raises InputError as `item_of`.
    """
    layout = _layout(record)
    asked = (name for name, value in record.items() if str(value) == layout.item.question)
    lists = {path[:-1] for path in layout.options if isinstance(path[-1], int)}
    options = [f"{_name(path)}:\n" for path in lists] or [_name(path) for path in layout.options]
    gold = [_name(one.path) for one in layout.gold if one.kind != "flags"][:1]
    fields = [next(asked, "question[stem]"), *options, *gold]
    return "".join(f"{{{field}}}\n" for field in fields)


def _name(path: Path) -> str:
    """Return what a template calls a field, or a part of one."""
    name, *keys = path
    return f"{name}{''.join(f'[{key}]' for key in keys)}"


def _told(layout: _Layout, gold: _Gold, value: Any, place: int, order: Sequence[int]) -> Any:
    """Return what a field says once the right option is at `place`."""
    if gold.kind == "label":
        return layout.labels[place]
    if gold.kind == "index":
        return type(value)(place)
    if gold.kind == "flags":
        return [value[source] for source in order]
    return value  # its text


def _layout(record: Record) -> _Layout:
    """Find the options of a record."""
    question, options, labels, gold = _scheme(record)
    texts = tuple(str(_get(record, path)) for path in options)
    labels = labels or tuple(LETTERS[: len(options)])
    item = Item(question, texts, None)
    found = [_gold(path, _get(record, path), labels, texts) for path in gold if _has(record, path)]
    told = [each for each in found if each is not None]
    answers = {answer for _, answer in told}
    if len(answers) > 1:
        fields = " and ".join(repr(one.path[0]) for one, _ in told)
        raise InputError(f"fields {fields} tell different answers; correct one of them")
    item = replace(item, answer=answers.pop() if answers else None)
    return _Layout(options, labels, tuple(one for one, _ in told), item)


_Scheme = tuple[str, tuple[Path, ...], tuple[str, ...], list[Path]]


def _scheme(record: Record) -> _Scheme:
    """Question, paths of the options, their labels (none: letters), and paths of gold answers."""
    question = record.get("question", record.get("question_stem", record.get("input")))
    answers: list[Path] = [("answerKey",), ("answer",), ("answer_index",), ("answer_idx",)]
    if isinstance(question, Mapping) and isinstance(question.get("choices"), list):
        return _listed(question["choices"], ("question", "choices"), str(question["stem"]), answers)
    if isinstance(targets := record.get("mc1_targets"), Mapping) and question is not None:
        options: tuple[Path, ...] = tuple(
            ("mc1_targets", "choices", i) for i in range(len(targets["choices"]))
        )
        return str(question), options, (), [("mc1_targets", "labels")]
    for field, asked in (
        ("choices", question),
        ("options", question),
        ("endings", record.get("ctx")),
    ):
        if asked is not None and isinstance(value := record.get(field), Mapping | list):
            gold: list[Path] = [("label",)] if field == "endings" else answers
            return _listed(value, (field,), str(asked), gold)
    if "goal" in record and "sol1" in record:
        return str(record["goal"]), (("sol1",), ("sol2",)), (), [("label",)]
    if question is not None and "A" in record and "B" in record:
        names = _run(record, list(LETTERS))
        return str(question), tuple((name,) for name in names), (), [("target",), ("answer",)]
    if question is not None and "choice0" in record:
        names = _run(record, [f"choice{i}" for i in range(len(LETTERS))])
        return str(question), tuple((name,) for name in names), (), [("answer",)]
    known = ", ".join(sorted(record))[:200] or "no fields"
    raise InputError(f"no options found; it has {known}, and items are written as {SCHEMES}")


def _listed(value: Any, path: Path, question: str, gold: list[Path]) -> _Scheme:
    """Options in a list of texts, in a list of {text, label}, or in {text: list, label: list}."""
    if isinstance(value, Mapping):
        if not isinstance(texts := value.get("text"), list):
            raise InputError(f"{path[0]!r} is no list of options and has no list 'text'")
        labels = tuple(map(str, value.get("label", ())))
        options: list[Path] = [(*path, "text", i) for i in range(len(texts))]
    elif value and all(isinstance(one, Mapping) for one in value):
        if not all("text" in one for one in value):
            raise InputError(f"an option in {path[0]!r} has no 'text'")
        labels = tuple(str(one["label"]) for one in value if "label" in one)
        options = [(*path, i, "text") for i in range(len(value))]
    else:
        labels, options = (), [(*path, i) for i in range(len(value))]
    if labels and len(set(labels)) < len(options):
        raise InputError(
            f"{len(options)} options have {len(set(labels))} labels; give each its own"
        )
    return question, tuple(options), labels, gold


def _run(record: Record, names: Sequence[str]) -> list[str]:
    """Return the first of the names, as far as the record has them and they hold anything."""
    found = [name for name in names if record.get(name) not in (None, "")]
    return (
        found if found == list(names[: len(found)]) else list(names[: 1 + names.index(found[-1])])
    )


def _gold(
    path: Path, value: Any, labels: Sequence[str], texts: Sequence[str]
) -> tuple[_Gold, int] | None:
    """Tell how a field names the right option, and which it is; None if it says nothing."""
    shown = f"{'.'.join(map(str, path))} {str(value)[:40]!r}"
    if isinstance(value, list):
        if len(value) != len(texts) or sum(map(bool, value)) != 1:
            raise InputError(f"{shown} does not mark one of its {len(texts)} options as right")
        return _Gold(path, "flags"), [bool(flag) for flag in value].index(True)
    text = str(value).strip()
    if value is None or text in ("", "-1"):  # hidden, as in the test sets of HellaSwag and PIQA
        return None
    if text in labels:
        return _Gold(path, "label"), list(labels).index(text)
    index = int(text) if re.fullmatch(r"\d{1,2}", text) and int(text) < len(texts) else None
    named = texts.index(value) if isinstance(value, str) and value in texts else None
    if index is not None and named not in (None, index):
        raise InputError(
            f"{shown} is the text of option {LETTERS[named or 0]} and the index of option "
            f"{LETTERS[index]}; write the answer as a letter"
        )
    if index is not None and not isinstance(value, bool | float):
        return _Gold(path, "index"), index
    if named is not None:
        return _Gold(path, "text"), named
    raise InputError(
        f"{shown} is none of its {len(texts)} options; give a label ({labels[0]} to {labels[-1]}), "
        f"an index from 0, or the text"
    )


def _has(record: Any, path: Path) -> bool:
    for key in path:
        if not isinstance(record, Mapping) or key not in record:
            return False
        record = record[key]
    return True


def _get(record: Any, path: Path) -> Any:
    for key in path:
        record = record[key]
    return record


def _put(record: Any, path: Path, value: Any) -> None:
    _get(record, path[:-1])[path[-1]] = value
