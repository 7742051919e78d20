"""Multiple-choice sets: is the published order of options preferred, is a hidden option known?

- Option order (Ni et al. 2025; in the spirit of Fu's A8, which is about whole data sets): nothing
  but having read the item makes the published order of its options likelier than another. Every
  order has the same tokens.
- Slot guessing (Fu, A5; TS-Guessing of Deng et al. 2024): an option is hidden, and the model is to
  say it.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from contamination.errors import InputError
from contamination.membership.generation import compare, continuations
from contamination.scoring.contract import Scorer
from contamination.scoring.local import TransformersScorer
from contamination.scoring.prefix import continuation_logprobs
from contamination.testsets.tokens import tokenize

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Item:
    """A question, its options in the published order, and the index of the right one."""

    question: str
    options: tuple[str, ...]
    answer: int

    def __post_init__(self) -> None:
        """Refuse what is no multiple-choice item."""
        if not 2 <= len(self.options) <= len(LETTERS):
            raise InputError(
                f"{self.question[:40]!r} has {len(self.options)} options: give 2 to {len(LETTERS)}"
            )
        if not 0 <= self.answer < len(self.options):
            raise InputError(
                f"{self.question[:40]!r}: answer {self.answer} is none of its "
                f"{len(self.options)} options; count from 0"
            )


def option_order(
    scorer: Scorer, items: Sequence[Item], *, orders: int = 24, rng: np.random.Generator
) -> pd.DataFrame:
    """Compare the published order of the options with others, a row per item.

    The text of an order is the question and a line "A. ..." for each option, where letters keep
    their places. Letters and options are tokenised alone, so that all orders have the same tokens.
    `orders` are scored of an item, the published one included: all k! of them if that is fewer,
    else a random choice. Raises InputError for fewer than 2 orders, and as `continuation_logprobs`
    does.

    The column `option_order` is the log-probability (nats) of the published order less the mean
    over the others, larger is more likely a member; `p` is the share of the orders with at least
    the log-probability of the published one, itself included, exact if the order of options carries
    no information.
    """
    if orders < 2:
        raise InputError(f"{orders} orders: give 2 or more, the published one included")
    groups = []
    for item in items:
        (question,) = tokenize(scorer.tokenizer, [item.question + "\n"])
        letters = tokenize(scorer.tokenizer, [f"{letter}." for letter in LETTERS])
        options = tokenize(scorer.tokenizer, [f" {option}\n" for option in item.options])
        lines = [
            np.concatenate([part for pair in zip(letters, order, strict=False) for part in pair])
            for order in (
                [options[i] for i in chosen] for chosen in _orders(len(options), orders, rng)
            )
        ]
        groups.append((question, lines))
    rows = {}
    for index, values in continuation_logprobs(scorer, groups):
        sums = np.array([part.sum(dtype=np.float64) for part in values])
        # Orders that differ by rounding alone count as equal.
        ties = sums >= sums[0] - 1e-6 * abs(sums[0])
        rows[index] = {"option_order": sums[0] - sums[1:].mean(), "p": float(ties.mean())}
    return pd.DataFrame([rows[i] for i in range(len(items))])


def _orders(k: int, most: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Up to `most` distinct orders of k options, the published one first."""
    published = tuple(range(k))
    if math.factorial(k) <= most:
        return list(itertools.permutations(published))
    found = {published: None}
    while len(found) < most:
        found[tuple(rng.permutation(k).tolist())] = None
    return list(found)


def slot_guessing(
    scorer: Scorer, items: Sequence[Item], *, rng: np.random.Generator, most: int = 32
) -> pd.DataFrame:
    """Hide a wrong option of each item and see whether the model knows it, a row per item.

    The prompt is the question, the other options with their letters, and last the letter of the
    hidden one, which is drawn at random: a wrong option cannot be reasoned out from the question.

    The column `slot_log_prob` is the mean log-probability (nats) of the tokens of the option, at
    most `most`; with a model that runs here there are also `slot_exact` (1 if it writes the option
    token for token, else 0) and `slot_rouge_l_f1`. Larger is more likely a member.
    """
    prompts, hidden = [], []
    for item in items:
        slot = int(rng.choice([i for i in range(len(item.options)) if i != item.answer]))
        shown = [f"{LETTERS[i]}. {option}\n" for i, option in enumerate(item.options) if i != slot]
        prompts.append(f"{item.question}\n{''.join(shown)}{LETTERS[slot]}.")
        hidden.append(f" {item.options[slot]}")
    asked = tokenize(scorer.tokenizer, prompts)
    expected = [ids[:most] for ids in tokenize(scorer.tokenizer, hidden)]
    groups = [(prompt, [option]) for prompt, option in zip(asked, expected, strict=True)]
    values = dict(continuation_logprobs(scorer, groups))
    means = [float(values[i][0].mean(dtype=np.float64)) for i in range(len(items))]
    table = pd.DataFrame({"slot_log_prob": means})
    if not isinstance(scorer, TransformersScorer):
        return table
    written = continuations(scorer, asked, new_tokens=max(len(ids) for ids in expected))
    found = [compare(scorer, ids, option) for (ids,), option in zip(written, expected, strict=True)]
    return table.assign(
        slot_exact=[float(one.exact) for one in found],
        slot_rouge_l_f1=[one.rouge_l.f1 for one in found],
    )
