"""Sets of multiple-choice items: how one is opened, and which template shows options."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.testsets.arrangements import (
    OPTIONS_TEMPLATE,
    plain_text,
)
from contamination.testsets.example_set import Declared, ExampleSet, check_texts
from contamination.testsets.option_texts import (
    LETTERS,
)
from contamination.testsets.options import Item, as_shown, items_of, read_items
from contamination.testsets.records import check_ids
from contamination.testsets.registry import entries
from contamination.testsets.sources import open_records, open_test_set, refuse_log
from contamination.testsets.templates import MOST_SHOWN, parse, render


def open_items(
    what: str | Path,
    *,
    template: str | None = None,
    declared: Declared = Declared(),  # noqa: B008 - frozen
    **where: Any,
) -> ExampleSet:
    """Open a set of items, for the order of their options.

    Further arguments are those of `contamination.testsets.sources.open_test_set`. A set
    that is not registered needs no template: its examples are the items by
    OPTIONS_TEMPLATE. Raises InputError for a set that cannot be opened; without a
    template, also for records that are no items.
    """
    if template is not None or str(what) in entries():
        test_set = open_test_set(what, template=template, **where)
        return replace(test_set, declared=declared)
    opened = open_records(what, **where)
    refuse_log(opened)
    chosen = opened.records[: opened.used]
    check_ids(chosen, opened.where)
    records = tuple(record for _, record in chosen)
    test_set = ExampleSet(opened.name, (), OPTIONS_TEMPLATE, "", records, declared)
    texts: list[str] = []
    for item in items_of(test_set):
        published = range(len(item.options))
        texts.append(plain_text(item, published))
    check_texts(texts, opened.where)
    revision = sha256_of(OPTIONS_TEMPLATE, *texts)
    return replace(test_set, examples=tuple(texts), revision=revision)


def shown_items(
    test_set: ExampleSet,
    template: str | None = None,
) -> tuple[str, tuple[Item, ...]]:
    """Return the template that shows all options of a set, and its items as it shows them.

    `template` is that of `option_variants`. Raises InputError for what `items_of`
    refuses, and for a template that hides options.
    """
    own = template or test_set.template
    items = read_items(test_set)
    if own == OPTIONS_TEMPLATE:
        return own, as_shown(items, test_set, ())
    if _shows_every_option(items, own, test_set.name):
        parsed = parse(own)
        shown = set(parsed.fields)
        for field in parsed.fields:
            shown.add(field.split(".")[0])
        return parsed.name, as_shown(items, test_set, shown)
    if template is None:
        return OPTIONS_TEMPLATE, as_shown(items, test_set, ())
    raise InputError(
        f"{test_set.name}: template {template[:MOST_SHOWN]!r} does not show every "
        "option; write one that does, or leave it out"
    )


def _shows_every_option(items: Sequence[Item], template: str, where: str) -> bool:
    """Return whether the text of every item shows all of its options.

    Marks are put in the places of the options, and looked for in the text.
    """
    marks = [f"<<option {letter}>>" for letter in LETTERS]
    marked = [("", item.with_options(marks[: len(item.options)])) for item in items]
    texts: tuple[str, ...] = ()
    with suppress(InputError):  # it names a field or a list entry that a record has not
        texts = render(marked, template, where)
    if not texts:
        return False
    for item, text in zip(items, texts, strict=True):
        if not all(mark in text for mark in marks[: len(item.options)]):
            return False
    return True
