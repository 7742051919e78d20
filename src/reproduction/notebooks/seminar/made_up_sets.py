"""A made-up world in questions and answers: the language of the seminar's tiny model.

Every record is drawn from short lists of words, so a small model speaks the language after seconds
of training, and nobody can know an answer without having read it. Records of one document share
their town, as paragraphs of real text share a topic; the records of a test set do not.

Test sets can be spoiled on purpose: segmented wrongly, or in an order that carries information. A
model that has read none of them may prefer their canonical order all the same, and then a small
p-value says nothing of contamination (Oren, section 4.3, leave such sets out).
"""

from dataclasses import replace

import numpy as np

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.testsets.example_set import ExampleSet

NAMES = (
    *("Mara", "Jonas", "Ines", "Tariq", "Olga", "Pavel", "Wanda", "Felix", "Greta", "Hugo"),
    *("Amina", "Boris", "Carla", "Dario", "Edith", "Farid", "Lotte", "Milo", "Nadia", "Oskar"),
)
TRADES = (
    *("baker", "weaver", "sailor", "painter", "miller", "farmer", "teacher", "tailor"),
    *("mason", "potter", "porter", "singer", "doctor", "gardener", "printer", "smith"),
)
QUALITIES = (
    *("copper", "silver", "wooden", "broken", "yellow", "narrow", "heavy", "painted"),
    *("paper", "velvet", "rusty", "purple", "marble", "folded", "striped", "hollow"),
)
THINGS = (
    *("kettle", "lantern", "violin", "ladder", "basket", "mirror", "anchor", "whistle"),
    *("blanket", "hammer", "compass", "candle", "bucket", "feather", "trumpet", "ribbon"),
    *("saddle", "teapot", "button", "parcel"),
)
RELATIONS = ("under", "behind", "beside", "above", "inside", "near")
PLACES = (
    *("bridge", "chapel", "market", "tower", "harbour", "stable", "library", "fountain"),
    *("cellar", "orchard", "bakery", "station", "garden", "theatre", "quarry", "museum"),
)
TOWNS = (
    *("Ardel", "Brenna", "Cusk", "Dorran", "Elvane", "Fenwick", "Gallow", "Hestle"),
    *("Ivory", "Jarrow", "Kelmore", "Lunden", "Morrick", "Norvale", "Ostrand", "Pellan"),
)
TEMPLATE = "question/1"  # two physical lines, and still one example

Record = dict[str, str]


def made_up_records(
    count: int, *, rng: np.random.Generator, towns: tuple[str, ...] = TOWNS
) -> list[Record]:
    """Draw records with the fields question, answer and town, independently of each other.

    The order of the list is exchangeable: no record knows its neighbours. Raises InputError if
    fewer than one record is wanted.
    """
    if count < 1:
        raise InputError(f"{count} records wanted: ask for at least 1")
    columns = (NAMES, TRADES, QUALITIES, THINGS, RELATIONS, QUALITIES, PLACES, towns)
    drawn = [rng.choice(words, size=count) for words in columns]
    return [
        {
            "question": f"Where did {name} the {trade} leave the {quality} {thing}?",
            "answer": f"{relation} the {other} {place} in {town}",
            "town": str(town),
        }
        for name, trade, quality, thing, relation, other, place, town in zip(*drawn, strict=True)
    ]


def made_up_documents(count: int, size: int, *, rng: np.random.Generator) -> list[list[Record]]:
    """Draw training documents of `size` records each, all of one document in the same town.

    Raises InputError if fewer than one document, or fewer than one record in each, is wanted.
    """
    if count < 1:
        raise InputError(f"{count} documents wanted: ask for at least 1")
    return [
        made_up_records(size, rng=rng, towns=(str(town),)) for town in rng.choice(TOWNS, size=count)
    ]


def by_physical_line(test_set: ExampleSet) -> ExampleSet:
    """Take every line of the file for an example, as a careless script does."""
    lines = "".join(test_set.examples).splitlines(keepends=True)
    return _spoiled(test_set, "read by line", tuple(lines), ())


def sorted_by(test_set: ExampleSet, field: str) -> ExampleSet:
    """Sort the records by one of their fields; raises InputError if they have no such field."""
    if not test_set.records or field not in test_set.records[0]:
        raise InputError(f"{test_set.name}: the records have no field {field!r} to sort by")
    pairs = zip(test_set.records, test_set.examples, strict=True)
    ordered = sorted(pairs, key=lambda pair: str(pair[0][field]))
    records, examples = zip(*ordered, strict=True)
    return _spoiled(test_set, f"sorted by {field}", examples, records)


def numbered(test_set: ExampleSet) -> ExampleSet:
    """Put "1. ", "2. " and so on before the examples."""
    examples = tuple(f"{i}. {text}" for i, text in enumerate(test_set.examples, start=1))
    return _spoiled(test_set, "numbered", examples, test_set.records)


def _spoiled(
    test_set: ExampleSet,
    how: str,
    examples: tuple[str, ...],
    records: tuple[dict[str, object], ...],
) -> ExampleSet:
    name, revision = f"{test_set.name} {how}", sha256_of(test_set.revision, how)
    return replace(test_set, name=name, examples=examples, revision=revision, records=records)
