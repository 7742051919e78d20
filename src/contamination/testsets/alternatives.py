"""The texts of one record of which one was published: the arrangements of its options.

The null hypothesis of every test on them: the published arrangement of an item was drawn uniformly
from those that are *permitted*, independently over items. What may move is decided by the options
as a set, never by the order in which they stand, and what may not stays where it was published. So
every permitted arrangement of an item permits the same ones, and the null is exact given what
stays. `permitted_places` has the rules.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.randomness import random_stream
from contamination.testsets.example_set import TEMPLATES, ExampleSet, parse, render
from contamination.testsets.options import (
    LETTERS,
    Item,
    begin_with_labels,
    items_of,
    rearranged,
    with_options,
)
from contamination.testsets.registry import entries
from contamination.testsets.sources import open_test_set

OPTIONS_TEMPLATE = "options/1"  # question, "A. ..." lines, "Answer: A" where the answer is known
NO_FIELD = "{{}}"  # a template that fits every record
FEWEST = 2  # items that must be able to move

# Options that are about the others, and those that custom puts last.
_ABOUT_OTHERS = re.compile(
    r"^\W*(all|any|both|either|neither|none|one|two|three|each|some|most)( or more| the)?"
    r"( of)?( the)?( other| remaining)? "
    r"(above|below|these|those|them|options?|answers?|choices?|statements?|alternatives?|following)\b"
    r"|^\W*(all|any|both|either|neither|none|nothing|other|others|unknown|n/?a)\W*$"
    r"|^\W*(all|both|neither|none)( answers| options)? (is|are) (correct|true|false|wrong|right)\b"
    r"|\b(all|any|both|either|none|neither|some|more than one|two) of (the )?above\b"
    r"|\b(not enough|not sufficient|insufficient) information\b"
    r"|\b(cannot|can not|can't|impossible to) (be )?"
    r"(determined?|said|say|tell|told|known?|inferred|predicted|answered)\b"
    r"|^\W*(it |this )?(depends|varies)\W*$|^\W*no (correct |right )?answer\b"
    r"|^\W*((i|we) )?(don'?t|do not) know\W*$|^\W*not (sure|given|known|stated|applicable)\W*$"
    r"|^\W*i have no comment\W*$",
    re.IGNORECASE,
)
# Letters, numerals or numbers of other options, or of statements: "A and C", "(i) only", "2, 3".
_NAME = r"\(?(?:[A-J]|[a-j](?=[),. ]|$)|[IVXivx]{1,4}|\d)\)?\.?"
_NAMES = re.compile(
    rf"^\W*(([Bb]oth|[Nn]either|[Ee]ither|[Oo]nly|[Ss]tatements?|[Oo]ptions?|[Aa]nswers?|[Cc]hoices?)[\s:]+)*"
    rf"{_NAME}(\s*(,|and|or|nor|&|/|\+)+\s*{_NAME})*(\s+(only|alone|above|are correct))?\W*$"
    r"|\b([Oo]ptions?|[Aa]nswers?|[Cc]hoices?|[Ss]tatements?) \(?([A-J]|[IVX]{1,4}|\d)\b"
    r"|\b([Bb]oth|[Nn]either|[Ee]ither) \(?[A-Ja-j]\)? (and|or|nor) \(?[A-Ja-j]\)?(\W|$)"
)
_WORDS_OF_NUMBERS = (
    "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen"
    "|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
    "|hundreds?|thousands?|millions?|billions?|trillions?|half|quarter|once|twice|first|second"
    "|third|fourth|fifth|january|february|march|april|may|june|july|august|september|october"
    "|november|december|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|am|pm|bce?|ad|ce"
)
_NUMBER = re.compile(rf"\d|\b({_WORDS_OF_NUMBERS})\b", re.IGNORECASE)


@dataclass(frozen=True)
class Keep:
    """What must keep its place besides what the sense of an item keeps there.

    Attributes
    ----------
    answer : the right option stays at its letter, and wrong ones alone move. It takes out a skewed
        share of gold letters, and a model's liking for a letter; items whose answer is not known do
        not move.
    numbers : an item whose options are all numbers, amounts or dates does not move: authors sort
        them.
    repeated : an item does not move if another one has the same options, in whatever order ("True,
        True", "True, False" ...): one habit set both orders.
    """

    answer: bool = False
    numbers: bool = True
    repeated: bool = True


@dataclass(frozen=True)
class AlternativeSet:
    """The alternatives of every record of a set, the published one first.

    Attributes
    ----------
    texts : N texts of each of n records, separator included; rows with fewer distinct ones repeat
        each of them equally often.
    template : name/version of the rendering, or the template itself.
    revision : SHA-256 of the template and all texts.
    what : "options" (arrangements) or "wordings" (an author's own).
    distinct : how many different alternatives stand in a row; 1 where nothing may move.
    """

    name: str
    texts: tuple[tuple[str, ...], ...]
    template: str
    revision: str
    what: Literal["options", "wordings"]
    distinct: tuple[int, ...]

    @property
    def moving(self) -> int:
        """How many records have an alternative to what was published."""
        return sum(count > 1 for count in self.distinct)


def open_items(what: str | Path, *, template: str | None = None, **where: Any) -> ExampleSet:
    """Open a set of items as `contamination.testsets.sources.open_test_set` does.

    One that is not registered needs no template: its examples are the items by OPTIONS_TEMPLATE.
    Raises InputError as that and, without a template, as `items_of`.
    """
    if template is not None or str(what) in entries():
        return open_test_set(what, template=template, **where)
    found = open_test_set(what, template=NO_FIELD, **where)
    texts = tuple(_plain(item, range(len(item.options))) for item in items_of(found))
    return replace(
        found,
        examples=texts,
        template=OPTIONS_TEMPLATE,
        revision=sha256_of(OPTIONS_TEMPLATE, *texts),
    )


def option_alternatives(
    test_set: ExampleSet,
    *,
    permutations: int = 23,
    seed: int,
    keep: Keep | Sequence[Sequence[int]] = Keep(),
    template: str | None = None,
) -> AlternativeSet:
    """Render the published arrangement of every item and others, N = permutations + 1 in a row.

    Parameters
    ----------
    test_set : with records; see `contamination.testsets.options.items_of`.
    permutations : other arrangements beside the published one. 23 are all of four options.
    seed : of the choice, where there are more than N.
    keep : what does not move; see `Keep` and `permitted_places`. Or the places of each item that
        options may move among, where a key has moved them (`contamination.testsets.sealed`).
    template : how an arrangement becomes text. None takes the set's own if that shows every option,
        else OPTIONS_TEMPLATE.

    Returns
    -------
    AlternativeSet
        Rows as `option_orders` draws them.

    Raises
    ------
    InputError
        As `items_of`, for a template that hides options, or if fewer than two items can move.
    """
    items = items_of(test_set)
    orders = option_orders(items, permutations=permutations, seed=seed, keep=keep)
    distinct = tuple(len(set(rows)) for rows in orders)
    if (able := sum(count > 1 for count in distinct)) < FEWEST:
        raise InputError(
            f"{test_set.name}: the options of {able} of {len(items)} items may move, and the "
            f"test needs {FEWEST}: the others are numbers, name each other, stand in another item "
            "too, or are too few"
        )
    records, own = test_set.records, template or test_set.template
    if own != OPTIONS_TEMPLATE and not _shows_options(test_set, items, own):
        if template is not None:
            shown = template if template in TEMPLATES else repr(template[:80])
            raise InputError(
                f"{test_set.name}: template {shown} does not show every option; write one that "
                f"does, or leave it out"
            )
        own = OPTIONS_TEMPLATE
    if own == OPTIONS_TEMPLATE:
        label, texts = (
            own,
            [
                tuple(_plain(item, order) for order in rows)
                for item, rows in zip(items, orders, strict=True)
            ],
        )
    else:
        label, _ = parse(own)
        texts = [
            _rendered([rearranged(record, order) for order in dict.fromkeys(rows)], own, len(rows))
            for record, rows in zip(records, orders, strict=True)
        ]
    revision = sha256_of(label, *itertools.chain.from_iterable(texts))
    return AlternativeSet(test_set.name, tuple(texts), label, revision, "options", distinct)


def _rendered(records: Sequence[dict[str, object]], template: str, count: int) -> tuple[str, ...]:
    """Render the distinct arrangements of a record, and repeat them until there are `count`."""
    texts = render([("arrangement", record) for record in records], template, "rearranged")
    return texts * (count // len(texts))


def option_orders(
    items: Sequence[Item],
    *,
    permutations: int,
    seed: int,
    keep: Keep | Sequence[Sequence[int]],
) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Draw arrangements: N = permutations + 1 orders of each item, the published one first.

    Entry i of an order is the index of the option that stands in place i. Let g be the number of
    permitted arrangements of an item, and d the largest divisor of N that is at most g. The
    published arrangement and d - 1 others, drawn without replacement, stand N / d times each. Given
    this set of d, the published one is uniform over it if it was uniform over all g, so a row is
    uniform over its N columns, and tests that are exact for N exchangeable columns stay so. `keep`
    as in `option_alternatives`. Raises InputError for no permutations.
    """
    if permutations < 1:
        raise InputError(f"permutations is {permutations}: give at least 1, better 23")
    rows, seen = [], Counter[str]()
    free = permitted_places(items, keep) if isinstance(keep, Keep) else keep
    for item, places in zip(items, free, strict=True):
        # By content, not by place: what is drawn says nothing about the order of the records.
        identity = sha256_of(repr(item))
        seen[identity] += 1
        count = permutations + 1
        total = math.factorial(len(places))
        drawn = max(d for d in range(1, min(count, total) + 1) if count % d == 0)
        published = tuple(range(len(item.options)))
        found = {published: None}
        if drawn == total:
            found |= {
                _moved(published, places, moved): None for moved in itertools.permutations(places)
            }
        elif drawn > 1:
            rng = random_stream(seed, "arrangements", identity, seen[identity])
            while len(found) < drawn:
                found[_moved(published, places, rng.permutation(places).tolist())] = None
        rows.append(tuple(found) * (count // drawn))
    return tuple(rows)


def _moved(
    published: tuple[int, ...], places: Sequence[int], contents: Sequence[int]
) -> tuple[int, ...]:
    order = list(published)
    for place, content in zip(places, contents, strict=True):
        order[place] = content
    return tuple(order)


def permitted_places(items: Sequence[Item], keep: Keep) -> list[tuple[int, ...]]:
    """Return the places among which the options of each item may be permuted.

    None of an item if two options are equal, if options begin with their labels or one names labels
    of others ("A and C", "I only"), or as `Keep.numbers` and `Keep.repeated` say. Otherwise all but
    those of options about the others ("none of these") or that custom puts last ("cannot be
    determined"), and that of the right answer under `Keep.answer`.
    """
    kinds = Counter(_as_set(item) for item in items)
    return [
        () if keep.repeated and kinds[_as_set(item)] > 1 else _places(item, keep) for item in items
    ]


def _as_set(item: Item) -> tuple[str, ...]:
    return tuple(sorted(_plain_text(option) for option in item.options))


def _plain_text(option: str) -> str:
    return " ".join(option.casefold().split()).rstrip(".")


def _places(item: Item, keep: Keep) -> tuple[int, ...]:
    options = item.options
    if len(set(map(_plain_text, options))) < len(options) or begin_with_labels(options):
        return ()
    numbers = are_numbers(options)
    if numbers and keep.numbers:
        return ()
    if not numbers and any(map(_NAMES.search, options)):
        return ()
    if keep.answer and item.answer is None:
        return ()
    return tuple(
        place
        for place, option in enumerate(options)
        if (numbers or not _ABOUT_OTHERS.search(option))
        and not (keep.answer and place == item.answer)
    )


def are_numbers(options: Sequence[str]) -> bool:
    """Whether options differ in numbers, amounts or dates alone, whatever unit they have."""
    if not all(_NUMBER.search(option) for option in options):
        return False
    rests = {
        tuple(
            word.removesuffix("s")
            for word in re.findall(r"[^\W\d_]+", option.casefold())
            if not re.fullmatch(_WORDS_OF_NUMBERS, word)
        )
        for option in options
    }
    return len(rests) == 1


def _shows_options(test_set: ExampleSet, items: Sequence[Item], template: str) -> bool:
    """Whether a template shows every option of every item, found by putting others in."""
    marked = [[f"<<option {place}>>" for place in range(len(item.options))] for item in items]
    records = [
        ("", with_options(record, texts))
        for record, texts in zip(test_set.records, marked, strict=True)
    ]
    try:
        shown = render(records, template, test_set.name)
    except InputError:  # it names a field or a list entry that a record has not
        return False
    return all(
        all(text in example for text in texts) for texts, example in zip(marked, shown, strict=True)
    )


def _plain(item: Item, order: Sequence[int]) -> str:
    """Text of an arrangement by OPTIONS_TEMPLATE."""
    lines = [f"{letter}. {item.options[i]}" for letter, i in zip(LETTERS, order, strict=False)]
    if item.answer is not None:
        lines.append(f"Answer: {LETTERS[list(order).index(item.answer)]}")
    return "\n".join([item.question, *lines]) + "\n"
