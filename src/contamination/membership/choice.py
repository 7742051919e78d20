"""Scores by the option that a model prefers, or writes when it was not shown.

- DE-COP of Duarte et al. (2024; Fu, section 4.3.1, A4): a text stands among its paraphrases, and
  the model is asked for the letter of the text as it was published. In an item of a test set the
  published answer takes that place. Every option stands in every place equally often, so that a
  liking for a letter does not count.
- Slot guessing (TS-Guessing of Deng et al. 2024; Fu, section 4.3.2, A5): a wrong option is hidden,
  and the model is to write it. It cannot be inferred from the question.

A model may prefer a published text because it is better written. So a share says something only
in comparison with that of texts that were surely not read.
"""

from collections.abc import Sequence

import numpy as np

from contamination.errors import InputError
from contamination.testsets.option_texts import LETTERS
from contamination.testsets.options import Item

ROUNDING = 1e-6  # relative: log-probabilities this close differ by the engine alone
ASKED = "Which of the following texts was published word for word?"


def rotations(count: int) -> list[list[int]]:
    """Return `count` orders of as many options in which each stands once in every place.

    Examples
    --------
    >>> rotations(3)
    [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
    """
    places = list(range(count))
    return [places[start:] + places[:start] for start in places]


def choice_prompt(question: str, options: Sequence[str]) -> str:
    """Return the question, a line for each option, and "Answer:", which a letter follows."""
    lines = [f"{letter}. {option}\n" for letter, option in zip(LETTERS, options, strict=False)]
    return f"{question}\n{''.join(lines)}Answer:"


def chosen_share(log_probs: np.ndarray, places: Sequence[int]) -> float:
    """Return the share of orders in which the letter of the published option is the likeliest.

    Parameters
    ----------
    log_probs
        Log-probability (nats) of each letter, (orders, options). Equally likely letters
        share the choice, so that a model that knows nothing scores one over the number
        of options.
    places
        Place of the published option in each order, (orders,).
    """
    best = log_probs.max(axis=1, keepdims=True)
    chosen = log_probs >= best - ROUNDING * np.abs(best)
    shares = chosen / chosen.sum(axis=1, keepdims=True)
    return float(shares[np.arange(len(places)), list(places)].mean())


def text_among(text: str, others: Sequence[str]) -> Item:
    """Return the item of DE-COP: a text, which is the answer, and paraphrases of it."""
    return Item(ASKED, (text, *others), 0)


def published_answer(item: Item) -> int:
    """Return the place of the answer of an item. Raises InputError where it has none."""
    if item.answer is None:
        raise InputError(f"{item.question[:40]!r} does not say which option is right; write it")
    return item.answer


def hidden_option(item: Item, rng: np.random.Generator) -> int:
    """Draw the place of a wrong option."""
    answer = published_answer(item)
    return int(rng.choice([place for place in range(len(item.options)) if place != answer]))


def slot_prompt(item: Item, hidden: int) -> str:
    """Return the question, the options but the hidden one, and last the letter of that one."""
    lines = []
    for place, option in enumerate(item.options):
        if place != hidden:
            lines.append(f"{LETTERS[place]}. {option}\n")
    return f"{item.question}\n{''.join(lines)}{LETTERS[hidden]}."
