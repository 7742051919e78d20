"""The reading of an author's records: what of each a key may draw, and what is refused.

Nothing here depends on what a key draws.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from contamination.errors import InputError
from contamination.seal.division import check_division
from contamination.seal.draws import Statement, Variants, canonical_json
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.item_sets import shown_items
from contamination.testsets.option_texts import names_letter
from contamination.testsets.options import Item, items_of
from contamination.testsets.records import ID_FIELDS, Record
from contamination.testsets.templates import parse
from contamination.testsets.variants import (
    FixedOptions,
    permitted_places,
    require_arrangements,
)


def prepare(
    rows: Sequence[Record],
    stated: Statement,
    where: str,
) -> tuple[Variants, ...]:
    """Return the variants of an author's records, whose source is `where`.

    Raises InputError for records that `contamination.seal.files.seal_file` refuses.

    >>> rows = [("line 1", {"text": "a"}), ("line 2", {"text": "b"})]
    >>> stated = Statement(name="set", template="{text}", options=False)
    >>> [variants.record for variants in prepare(rows, stated, "set.jsonl")]
    [{'text': 'a'}, {'text': 'b'}]
    """
    prepared = list[Variants]()
    seen = dict[str, str]()
    for place, record in rows:
        try:
            prepared.append(_without_lists(record, stated))
            _refuse_repeated(record, place, seen)
        except InputError as error:
            raise InputError(f"{where}, {place}: {error}") from error
    placed = []
    for (place, _), variants in zip(rows, prepared, strict=True):
        placed.append((place, variants.variant({})))
    rendered = make_test_set(stated.name, placed, stated.template, where)
    _check_wordings(prepared, stated, where)
    if stated.options:
        try:
            named = replace(rendered, name=where, declared=stated.declared)
            prepared = _with_options(named, prepared, stated)
        except InputError as error:
            alone = "or seal the order of records alone"
            raise InputError(f"{error}; {alone}", parameter="axis") from error
    check_division(prepared, stated, where)
    return tuple(prepared)


def _check_wordings(prepared: Sequence[Variants], stated: Statement, where: str) -> None:
    """Raise InputError for unequal numbers of wordings, and for wordings not shown."""
    counts = {len(variants.choices("wordings")) for variants in prepared} - {0}
    if len(counts) > 1:
        raise InputError(
            f"{where}: records have {min(counts)} to {max(counts)} wordings; give each "
            "record that has any the same number"
        )
    if counts and stated.wordings_of not in parse(stated.template).fields:
        raise InputError(
            f"{where}: template {stated.template[:80]!a} does not show "
            f"{stated.wordings_of!a}, which wordings fill; use one that does"
        )


def _refuse_repeated(
    record: Mapping[str, Any],
    place: str,
    seen: dict[str, str],
) -> None:
    """Raise InputError for a record that was seen, up to its id; else note its place."""
    fields = {name: record[name] for name in record if name not in ID_FIELDS}
    first = seen.setdefault(canonical_json(fields), place)
    if first != place:
        raise InputError(f"the record of {first} again; remove it")


def _without_lists(record: Mapping[str, Any], stated: Statement) -> Variants:
    """Return the variants of a record, which has the first entry of each list."""
    canonical_json(record)  # refuses what JSON cannot say
    shown = dict(record)
    lists = dict[str, tuple[str, tuple[Any, ...]]]()
    if stated.wordings_of is None and "wordings" in record:
        raise InputError(
            "there are wordings, of which the key is to pick one: name the field that "
            "it fills (wordings_of), or remove them",
            parameter="wordings_of",
        )
    filled = {"wordings": stated.wordings_of, "answers": stated.answers_of}
    for kind, name in filled.items():
        if name is None or kind not in record:
            continue
        values = record[kind]
        if not _is_choice(values, numbers_too=kind == "answers"):
            raise InputError(
                f"{kind} is no list of 2 or more different texts; write one",
            )
        if shown.get(name, values[0]) not in values:
            raise InputError(f"{name!a} is none of its {kind}; list that one as well")
        shown = _with_first(shown, kind, name, values[0])
        lists[kind] = (name, tuple(values))
    return Variants(shown, lists)


def _is_choice(values: Any, *, numbers_too: bool) -> bool:
    """Return whether a value lists two or more different texts or whole numbers."""
    if not isinstance(values, list):
        return False
    types = {type(value) for value in values}
    are_texts = types == {str} and all(value.strip() for value in values)
    are_numbers = types == {int} and numbers_too
    if not (are_texts or are_numbers):
        return False
    return len(values) >= 2 and len(set(values)) == len(values)


def _with_first(
    record: Mapping[str, Any],
    kind: str,
    name: str,
    first: Any,
) -> dict[str, Any]:
    """Return a record with the first entry of a list in the field `name`, which it fills.

    The list (`kind`) is left out; the field takes its place where the record lacks it.
    """
    shown = dict[str, Any]()
    for field_name, value in record.items():
        if field_name != kind:
            shown[field_name] = value
        elif name not in record:
            shown[name] = first
    shown[name] = first
    return shown


def _with_options(
    rendered: ExampleSet,
    prepared: Sequence[Variants],
    stated: Statement,
) -> list[Variants]:
    """Return the variants with the places of each among which its options may move."""
    shown_items(rendered, stated.template)
    items_by_answer = _items_by_answer(rendered, prepared)
    free = permitted_places(items_by_answer[0], FixedOptions(habits=False))
    movable = list[Variants]()
    for number, (variants, places) in enumerate(zip(prepared, free, strict=True)):
        answers = _answer_count(variants)
        items = tuple(of_answer[number] for of_answer in items_by_answer[:answers])
        where = f"{rendered.name}, record {number + 1}"
        _refuse_unclear(variants, items, stated, where)
        several = dict(variants.several)
        if places:
            several["options"] = ("", places)
        movable.append(replace(variants, several=several, items=items))
    # Else no test could be made.
    require_arrangements(rendered, free, stated.arrangements - 1)
    return movable


def _items_by_answer(
    rendered: ExampleSet,
    prepared: Sequence[Variants],
) -> list[tuple[Item, ...]]:
    """Return the items with the first answer of each record, the second, and so on."""
    most = max(_answer_count(variants) for variants in prepared)
    items_by_answer = list[tuple[Item, ...]]()
    for pick in range(most):
        records = []
        for variants in prepared:
            answer = pick % _answer_count(variants)
            records.append(variants.variant({"answers": answer}))
        answered = replace(rendered, records=tuple(records))
        items_by_answer.append(items_of(answered, shown=None))
    return items_by_answer


def _answer_count(variants: Variants) -> int:
    """Return the number of right answers of a record: 1 where it lists none."""
    return max(1, len(variants.choices("answers")))


def _refuse_unclear(
    variants: Variants,
    items: Sequence[Item],
    stated: Statement,
    where: str,
) -> None:
    """Raise InputError for texts that would say something else where options move.

    `items` are the record, read with each of its answers.
    """
    wordings = variants.choices("wordings")
    count = len(items[0].options)
    if items[0].lettered or any(names_letter(wording, count) for wording in wordings):
        raise InputError(
            f"{where}: a text names an option by its letter, which is another one when "
            "options move; name it by its text, or declare FIELD as other if it means "
            "something else",
            parameter="other",
        )
    outer_names = {name.partition(".")[0] for name in items[0].used}
    fills_item = stated.wordings_of in outer_names
    if wordings and fills_item and items[0].question not in wordings:
        raise InputError(
            f"{where}: {stated.wordings_of!a} is, or names, an option; word another field",
        )
    different = {item.answer for item in items}
    if variants.choices("answers") and len(different) < len(items):
        raise InputError(
            f"{where}: answers name one option twice, or {stated.answers_of!a} names "
            "none; list each right option once, and name the field that it fills",
            parameter="answers_of",
        )
