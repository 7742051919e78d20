"""What an author states, and what each of their records could be published as.

Nothing here depends on what a key draws.
"""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from contamination.audit.battery import DEFAULT_TESTS
from contamination.audit.request import Request
from contamination.errors import InputError
from contamination.seal import beacon
from contamination.seal.draws import ALGORITHM, LISTS, Variants, canonical_json
from contamination.testsets.alternatives import (
    Keep,
    permitted_places,
    require_arrangements,
    shown_items,
)
from contamination.testsets.example_set import Declared, ExampleSet, make_test_set, render
from contamination.testsets.options import Item, items_of, names_letter
from contamination.testsets.records import ID_FIELDS, Record


class Statement(BaseModel):
    """What an author states and commits to before anything is drawn.

    Attributes
    ----------
    name, date : of the benchmark, with one commitment for each name; by default today (UTC).
    template : how a record becomes an example; it has to show options that may move, and wordings.
    options, declared : whether the options of items are permuted, too, and how they are found. All
        may move, numbers as well, but those that are about others: see `permitted_places`.
    wordings_of : the field that a wording fills; None: there are none. A record may then have a
        field `wordings`: a list of all its wordings, each a whole text of that field, equally many
        in all records that have any.
    answers_of : likewise the field that an answer fills, and a field `answers`: all right answers
        of a record, texts or whole numbers, each as that field would name it alone.
    tests, shards, permutations, arrangements, level : what a model is tested by, so that nobody
        chooses it after the draw; as in `contamination.audit.request.Request`.
    beacon_round : whose signature is mixed into the key; None: the author's secret alone draws.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    algorithm: Literal["contamination-seal/2"] = ALGORITHM
    name: Annotated[str, Field(pattern=r"^\w[\w .+-]{0,99}$")]
    date: datetime.date = Field(default_factory=lambda: datetime.datetime.now(datetime.UTC).date())
    template: str = "text/1"
    options: bool = True
    declared: Declared = Declared()
    wordings_of: str | None = None
    # Seals from before there were answers do not have the field.
    answers_of: Annotated[str | None, Field(exclude_if=lambda value: value is None)] = None
    tests: tuple[str, ...] = DEFAULT_TESTS
    shards: Annotated[int, Field(ge=1)] | None = None
    permutations: int = 25
    arrangements: int = 24
    level: Annotated[float, Field(gt=0, lt=1)] = 0.05
    beacon_round: Annotated[int, Field(ge=1, le=beacon.MOST_ROUNDS)] | None = None

    def request(self, directory: Path | str, name: str | None) -> Request:
        """Return the stated test of a model of that name, with its stores in a directory."""
        stated = {each: getattr(self, each) for each in ("tests", "shards", "permutations")}
        return Request(**stated, arrangements=self.arrangements, directory=directory, name=name)


def prepare(rows: Sequence[Record], stated: Statement, where: str) -> tuple[Variants, ...]:
    """Return the variants of an author's records; errors as `contamination.seal.files.seal_file`.

    An arrangement of the records is accepted or refused with all others.
    """
    found, seen = list[Variants](), dict[str, str]()
    for place, record in rows:
        try:
            found.append(_listed(record, stated))
        except InputError as error:
            raise InputError(f"{where}, {place}: {error}") from error
    if len(counts := {len(texts) for one in found if (texts := one.given("wordings"))}) > 1:
        raise InputError(
            f"{where}: records have {min(counts)} to {max(counts)} wordings; give each record "
            "that has any the same number"
        )
    placed = [(place, one.variant()) for (place, _), one in zip(rows, found, strict=True)]
    rendered = make_test_set(stated.name, placed, stated.template, where)
    if stated.options:
        try:
            found = _movable(replace(rendered, name=where, declared=stated.declared), found, stated)
        except InputError as error:
            alone = "or seal the order of records alone (--axis order)"
            raise InputError(f"{error}; {alone}") from error
    for (place, _), one in zip(rows, found, strict=True):
        if (first := seen.setdefault(_identity(one), place)) != place:
            raise InputError(f"{where}, {place}: the record of {first} again; remove it")
        texts = one.given("wordings")
        shown = [("", one.variant(picks={"wordings": i})) for i in range(len(texts))]
        if len({*render(shown, stated.template, where)}) < len(shown):
            raise InputError(
                f"{where}, {place}: template {stated.template[:80]!a} does not show "
                f"{stated.wordings_of!a}, which wordings fill; use one that does"
            )
    return tuple(found)


def _listed(record: Mapping[str, Any], stated: Statement) -> Variants:
    """Take the lists out of a record; the field that one fills stands there, or in its place."""
    canonical_json(record)
    shown, lists = dict(record), dict[str, tuple[str, tuple[Any, ...]]]()
    for what in LISTS:
        name: str | None = getattr(stated, f"{what}_of")
        if name is None:
            if what in record and what == "wordings":
                raise InputError(
                    "there are wordings, of which the key is to pick one: name the field that it "
                    "fills (--wordings-of), or remove them"
                )
        elif what in record:
            given = record[what]
            kinds = {type(one) for one in given} if isinstance(given, list) else set()
            texts = kinds == {str} and all(map(str.strip, given))
            numbers = kinds == {int} and what == "answers"
            if not (texts or numbers) or len({*given}) < max(2, len(given)):
                raise InputError(f"{what} is no list of 2 or more different texts; write one")
            if shown.get(name, given[0]) not in given:
                raise InputError(f"{name!a} is none of its {what}; list that one as well")
            names = [name if each == what and name not in shown else each for each in shown]
            shown = {each: shown.get(each) for each in names if each != what} | {name: given[0]}
            lists[what] = (name, tuple(given))
        elif name not in record:
            raise InputError(f"neither {name!a} nor {what!a} is there; give one")
    return Variants(shown, lists)


def _movable(rendered: ExampleSet, found: Sequence[Variants], stated: Statement) -> list[Variants]:
    """Add the items, and the places of each among which its options may move."""
    shown_items(rendered, stated.template)
    read = list[tuple[Item, ...]]()  # with the first answer of all, with the second ...
    for pick in range(max(1, *(len(one.given("answers")) for one in found))):
        last = ({"answers": min(pick, len(one.given("answers")) - 1)} for one in found)
        records = (one.variant(picks=picks) for one, picks in zip(found, last, strict=True))
        read.append(items_of(replace(rendered, records=tuple(records)), shown=None))
    free = permitted_places(read[0], Keep(habits=False))
    made = []
    for number, (one, places, *items) in enumerate(zip(found, free, *read, strict=True), start=1):
        where, item = f"{rendered.name}, record {number}", items[0]
        texts, answers = one.given("wordings"), one.given("answers")
        if item.lettered or any(names_letter(text, len(item.options)) for text in texts):
            raise InputError(
                f"{where}: a text names an option by its letter, which is another one when options "
                "move; name it by its text, or give --other FIELD if it means something else"
            )
        used = {name.partition(".")[0] for name in item.layout.used}
        if texts and one.lists["wordings"][0] in used and item.question not in texts:
            name = one.lists["wordings"][0]
            raise InputError(f"{where}: {name!a} is, or names, an option; word another field")
        if answers and len({each.answer for each in items[: len(answers)]}) < len(answers):
            raise InputError(
                f"{where}: answers name one option twice, or {stated.answers_of!a} names none; "
                "list each right option once, and give --answers the field that names it"
            )
        made.append(replace(one, items=tuple(items[: len(answers) or 1]), free=places))
    require_arrangements(rendered, free, stated.arrangements - 1)  # else no test could be made
    return made


def _identity(one: Variants) -> str:
    """What a record says, whatever its id, the order of its options and what would be picked."""
    options = one.items[0].options if one.items else ()
    order = sorted(one.free, key=options.__getitem__)
    lists = [
        sorted(one.variant(order, {what: i})[name] for i in range(len(given)))
        for what, (name, given) in one.lists.items()
    ]
    picked = {*ID_FIELDS, *(name for name, _ in one.lists.values())}
    said = {name: value for name, value in one.variant(order).items() if name not in picked}
    return canonical_json([said, *lists])
