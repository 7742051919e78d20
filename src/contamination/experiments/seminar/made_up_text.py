"""A made-up world in questions and answers: the language of the seminar's tiny model.

Every record is drawn from short lists of words, so a small model speaks the language after seconds
of training, and nobody can know an answer without having read it. Records of one document share
their town, as paragraphs of real text share a topic; the records of a test set do not.
"""

import numpy as np

from contamination.errors import InputError

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

    The order of the list is exchangeable: no record knows its neighbours.

    Raises
    ------
    InputError
        Fewer than one record is wanted.
    """
    if count < 1:
        raise InputError(f"{count} records wanted: ask for at least 1")
    columns = (NAMES, TRADES, QUALITIES, THINGS, RELATIONS, QUALITIES, PLACES, towns)
    drawn = [rng.choice(words, size=count) for words in columns]
    return [_record(*map(str, words)) for words in zip(*drawn, strict=True)]


def _record(
    name: str,
    trade: str,
    quality: str,
    thing: str,
    relation: str,
    other: str,
    place: str,
    town: str,
) -> Record:
    return {
        "question": f"Where did {name} the {trade} leave the {quality} {thing}?",
        "answer": f"{relation} the {other} {place} in {town}",
        "town": town,
    }


def made_up_documents(count: int, size: int, *, rng: np.random.Generator) -> list[list[Record]]:
    """Draw training documents of `size` records each, all of one document in the same town.

    Raises
    ------
    InputError
        Fewer than one document, or fewer than one record in each, is wanted.
    """
    if count < 1:
        raise InputError(f"{count} documents wanted: ask for at least 1")
    return [
        made_up_records(size, rng=rng, towns=(str(town),)) for town in rng.choice(TOWNS, size=count)
    ]
