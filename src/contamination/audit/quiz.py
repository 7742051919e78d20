"""The questions of a quiz: which version is published, or which one comes next.

A random stream draws the place of the right version in each question.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from contamination.audit.request import CHOICES
from contamination.errors import InputError
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.option_texts import LETTERS
from contamination.testsets.orderings import shard_bounds
from contamination.testsets.variants import VariantSet

if TYPE_CHECKING:
    import numpy as np


class Question(NamedTuple):
    """A question, and the letter that answers it."""

    text: str
    letter: str


def questions_on_records(
    test_set: ExampleSet,
    shards: int,
    rng: "np.random.Generator",
) -> tuple[Question, ...]:
    """Return a question for each shard: which record comes after its first one.

    A shard has more than CHOICES records. The CHOICES records after its first one are
    the versions, whose places `rng` draws.
    """
    questions = []
    for start, _ in shard_bounds(len(test_set.examples), shards):
        cue = test_set.examples[start]
        following = test_set.examples[start + 1 : start + 1 + CHOICES]
        questions.append(_ask(following, rng, cue=cue))
    return tuple(questions)


def questions_on_options(
    variants: VariantSet,
    rng: "np.random.Generator",
) -> tuple[Question, ...]:
    """Return a question for each item that has CHOICES arrangements.

    Raises InputError if no item has.
    """
    questions = []
    for texts, distinct in zip(variants.texts, variants.distinct, strict=True):
        if distinct == CHOICES:
            questions.append(_ask(texts, rng))
    if not questions:
        raise InputError(
            f"{variants.name}: no item has {CHOICES} arrangements: it takes three "
            "options that may move"
        )
    return tuple(questions)


def _ask(
    versions: Sequence[str],
    rng: "np.random.Generator",
    *,
    cue: str = "",
) -> Question:
    """Return the question about some versions, of which the first one is right."""
    places = rng.permutation(CHOICES).tolist()
    shown = [versions[version] for version in places]
    return Question(question_text(shown, cue), LETTERS[places.index(0)])


def question_text(versions: Sequence[str], cue: str = "") -> str:
    """Return the question which version is published, or which comes after `cue`.

    Examples
    --------
    >>> question_text(["1, 2", "2, 1"]).splitlines()[2:4]
    ['Version A', '1, 2']
    """
    letters = LETTERS[: len(versions)]
    shown = []
    for letter, text in zip(letters, versions, strict=True):
        shown.append(f"Version {letter}\n{text.strip()}\n")
    if cue:
        introduction = (
            f"This is a record of a published test:\n\n{cue.strip()}\n\nOne of these comes next."
        )
        question = "Which version comes next in the published test?"
    else:
        introduction = (
            "One of these versions of a test item stands in the published test; in the "
            "others the options are in another order."
        )
        question = "Which version is the published one?"
    listed = "\n".join(shown)
    instruction = f"Answer with one letter ({', '.join(letters)})."
    return f"{introduction}\n\n{listed}\n{question} {instruction}\nAnswer:"
