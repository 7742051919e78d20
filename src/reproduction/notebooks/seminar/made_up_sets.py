"""Made-up test sets for a class, and ways to spoil them.

Every record is drawn from short lists of words, so a small model speaks the language
after seconds of training, and nobody can know an answer without having read it. Test
sets can be spoiled on purpose: segmented wrongly, or in an order that carries
information.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from contamination.files import sha256_of
from contamination.testsets.example_set import ExampleSet, make_test_set

WORDS = """
Mara Jonas Ines Tariq Olga Pavel Wanda Felix Greta Hugo Amina Boris Carla Dario Edith Farid Lotte
Milo Nadia Oskar /
baker weaver sailor painter miller farmer teacher tailor mason potter porter singer doctor
gardener printer smith /
copper silver wooden broken yellow narrow heavy painted paper velvet rusty purple marble folded
striped hollow /
kettle lantern violin ladder basket mirror anchor whistle blanket hammer compass candle bucket
feather trumpet ribbon saddle teapot button parcel /
under behind beside above inside near /
bridge chapel market tower harbour stable library fountain cellar orchard bakery station garden
theatre quarry museum /
Ardel Brenna Cusk Dorran Elvane Fenwick Gallow Hestle Ivory Jarrow Kelmore Lunden Morrick Norvale
Ostrand Pellan
"""
NAMES, TRADES, QUALITIES, THINGS, RELATIONS, PLACES, TOWNS = map(
    str.split,
    WORDS.split("/"),
)
TEMPLATE = "question/1"  # two physical lines, and still one example


def made_up_set(
    name: str,
    count: int,
    *,
    rng: np.random.Generator,
    towns: Sequence[str] = TOWNS,
) -> ExampleSet:
    """Draw records with the fields question, answer and town, independently.

    Their order is exchangeable: no record knows its neighbours.

    Parameters
    ----------
    name
        Name of the set.
    count
        Number of its records.
    rng
        Draws the words.
    towns
        Towns of which one is drawn for each record.
    """
    names = rng.choice(NAMES, size=count)
    trades = rng.choice(TRADES, size=count)
    qualities = rng.choice(QUALITIES, size=count)
    things = rng.choice(THINGS, size=count)
    relations = rng.choice(RELATIONS, size=count)
    place_qualities = rng.choice(QUALITIES, size=count)
    places = rng.choice(PLACES, size=count)
    drawn_towns = rng.choice(towns, size=count)
    numbered = []
    for i in range(count):
        thing = f"the {qualities[i]} {things[i]}"
        place = f"the {place_qualities[i]} {places[i]} in {drawn_towns[i]}"
        record = {
            "question": f"Where did {names[i]} the {trades[i]} leave {thing}?",
            "answer": f"{relations[i]} {place}",
            "town": str(drawn_towns[i]),
        }
        numbered.append((f"record {i + 1}", record))
    return make_test_set(name, numbered, TEMPLATE, name)


# --- sets that are spoiled on purpose -------------------------------------------------


def by_physical_line(test_set: ExampleSet) -> ExampleSet:
    """Return every line of the file as an example, as a careless script does."""
    lines = "".join(test_set.examples).splitlines(keepends=True)
    return _spoiled(test_set, "read by line", lines, ())


def sorted_by(test_set: ExampleSet, field: str) -> ExampleSet:
    """Sort the records by one of their fields."""

    def value(index: int) -> str:
        return str(test_set.records[index][field])

    order = sorted(range(len(test_set.records)), key=value)
    examples = [test_set.examples[i] for i in order]
    records = tuple(test_set.records[i] for i in order)
    return _spoiled(test_set, f"sorted by {field}", examples, records)


def numbered(test_set: ExampleSet) -> ExampleSet:
    """Return the examples with "1. ", "2. " and so on before them."""
    examples = [f"{i}. {text}" for i, text in enumerate(test_set.examples, start=1)]
    return _spoiled(test_set, "numbered", examples, test_set.records)


def _spoiled(
    test_set: ExampleSet,
    how: str,
    examples: Sequence[str],
    records: tuple[dict[str, object], ...],
) -> ExampleSet:
    """Return the set with other examples, under a name and a revision of its own."""
    return replace(
        test_set,
        name=f"{test_set.name} {how}",
        examples=tuple(examples),
        revision=sha256_of(test_set.revision, how),
        records=records,
    )
