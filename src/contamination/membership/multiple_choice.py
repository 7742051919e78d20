"""Instance selection: which of several texts, or of several orders of options, is preferred?

- Option order (Ni et al. 2025; in the spirit of Fu's A8, which is about whole data sets).
- Slot guessing (Fu, A5; TS-Guessing of Deng et al. 2024): an option is hidden and to be said.
- Verbatim choice (DE-COP of Duarte et al. 2024; Fu, A4): a passage stands among its paraphrases.
- Cloze (Fu, A5): with names in a passage it is the name cloze of Chang et al. (2023); with a canary
  and the others of its format, the exposure of Carlini et al. (2019).

Paraphrases, names and canaries are given as input; none is made here.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from contamination.errors import InputError
from contamination.membership.generation import recited
from contamination.scoring.contract import Scorer
from contamination.scoring.local import TransformersScorer
from contamination.scoring.prefix import continuation_logprobs
from contamination.testsets.alternatives import distinct_orders
from contamination.testsets.options import LETTERS, Item
from contamination.testsets.tokens import tokenize

MASK = "[MASK]"

_Group = tuple[np.ndarray, list[np.ndarray]]  # a prompt, and what may follow it


def option_order(
    scorer: Scorer, items: Sequence[Item], *, orders: int = 24, rng: np.random.Generator
) -> pd.DataFrame:
    """Compare the published order of the options with others, a row per item.

    The text of an order is the question and a line "A. ..." for each option, where letters keep
    their places. Letters and options are tokenised alone, so that all orders have the same tokens.
    `orders` (at least 2) are scored of an item, the published one included: all k! of them if that
    is fewer, else a random choice. Errors as in `continuation_logprobs`.

    The column `option_order` is the log-probability (nats) of the published order less the mean
    over the others, larger is more likely a member; `p` is the share of the orders with at least
    the log-probability of the published one, itself included, exact if the order of options carries
    no information.
    """
    letters = tokenize(scorer.tokenizer, [f"{letter}." for letter in LETTERS])
    groups: list[_Group] = []
    for item in items:
        (question,) = tokenize(scorer.tokenizer, [item.question + "\n"])
        options = tokenize(scorer.tokenizer, [f" {option}\n" for option in item.options])
        lines = []
        for order in distinct_orders(len(options), range(len(options)), orders, rng=rng):
            pairs = zip(letters, (options[i] for i in order), strict=False)
            lines.append(np.concatenate(list(itertools.chain.from_iterable(pairs))))
        groups.append((question, lines))
    sums = _sums(scorer, groups)
    rows = [(one[0] - one[1:].mean(), _rank_of_first(one) / len(one)) for one in sums]
    return pd.DataFrame(rows, columns=["option_order", "p"])


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
    sums = [one.item() for one in _sums(scorer, groups)]
    table = pd.DataFrame({"slot_log_prob": np.array(sums) / [len(ids) for ids in expected]})
    if not isinstance(scorer, TransformersScorer):
        return table
    found = recited(scorer, asked, expected)
    return table.assign(slot_exact=found["verbatim"], slot_rouge_l_f1=found["rouge_l_f1"])


def verbatim_choice(
    scorer: Scorer, items: Sequence[Item], *, orders: int = 24, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Share of the orders of its options in which an item's verbatim text is chosen, (n,).

    DE-COP (Duarte et al. 2024; Fu, section 4.3.1, A4). An item's `answer` is the text as it may
    have been read, the other options are paraphrases of it, and the question asks which is
    verbatim. The prompt is the question, a line "A. ..." for each option, and "Answer:"; the letter
    with the largest log-probability is chosen, and letters that are equally likely share the
    choice. `orders` of the options are asked: all k! if that is no more, which takes out any
    liking for a letter, so that a choice by the letter alone scores 1/k; else a random choice.

    Larger is more likely a member. An unread text can be chosen as well, being better written than
    its paraphrases: a share says something only beside that of texts that were surely not read.
    Raises InputError for a prompt that exceeds the context; every item needs an answer.
    """
    letters = tokenize(scorer.tokenizer, [f" {letter}" for letter in LETTERS])
    groups: list[_Group] = []
    asked = []  # number of the item, place of its answer
    for number, item in enumerate(items):
        places = range(len(item.options))
        for order in distinct_orders(len(places), places, orders, rng=rng):
            shown = zip(LETTERS, (item.options[i] for i in order), strict=False)
            lines = "".join(f"{letter}. {option}\n" for letter, option in shown)
            (prompt,) = tokenize(scorer.tokenizer, [f"{item.question}\n{lines}Answer:"])
            groups.append((prompt, letters[: len(order)]))
            _require_room(scorer, item.question, groups[-1])
            asked.append((number, order.index(item.answer)))
    chosen: list[list[float]] = [[] for _ in items]
    for (number, place), sums in zip(asked, _sums(scorer, groups), strict=True):
        best = sums >= sums.max() - 1e-6 * abs(sums.max())
        chosen[number].append(best[place] / best.sum())
    return np.array([np.mean(shares) for shares in chosen])


@dataclass(frozen=True)
class Cloze:
    """A passage with one `[MASK]`, what stands there, and what else could stand there.

    Raises InputError for another number of gaps, and for fills that are missing, equal or empty.
    """

    passage: str
    answer: str
    others: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse what is no cloze."""
        fills = {self.answer, *self.others} - {""}
        if self.passage.count(MASK) != 1 or not 1 < len(fills) == 1 + len(self.others):
            raise InputError(f"{self.passage[:40]!r}: give {MASK} once, and other fills, each once")


def cloze(scorer: Scorer, passages: Sequence[Cloze]) -> pd.DataFrame:
    """How likely the answer is in its gap, among the others, a row per passage.

    Fills are ranked by the likelihood of the whole passage, larger for a member. Columns:

    - `cloze`: log-probability (nats) with the answer less the mean over the others.
    - `cloze_right`: 1 if the answer is likelier than all others, else 0. With names, the name cloze
      of Chang et al. (2023; Fu, section 4.3.2, A5), who have the name written.
    - `exposure`: log2 n - log2 rank, bits, of the answer among all n fills, rank 1 being the
      likeliest, ties counting against the answer: Carlini et al. (2019), who rank a canary among
      all others of its format. If the answer was drawn at random from the fills, 2^-exposure is an
      exact p-value of "not read".
    - `cloze_exact`, with a model that runs here: 1 if it writes the answer, token for token and
      greedily, after what stands before the gap, else 0.

    Raises InputError for a passage that exceeds the context.
    """
    answers, groups = [], []
    for one in passages:
        before, after = one.passage.split(MASK)
        # A tokenizer keeps a blank with the word that it precedes.
        blank = " " if before.endswith(" ") else ""
        (prompt,) = tokenize(scorer.tokenizer, [before.removesuffix(" ")])
        fills = [f"{blank}{fill}" for fill in (one.answer, *one.others)]
        groups.append((prompt, tokenize(scorer.tokenizer, [f"{fill}{after}" for fill in fills])))
        _require_room(scorer, one.passage, groups[-1])
        answers.append(fills[0])
    rows = []
    for sums in _sums(scorer, groups):
        rank = _rank_of_first(sums)
        rows.append((sums[0] - sums[1:].mean(), float(rank == 1), math.log2(len(sums) / rank)))
    table = pd.DataFrame(rows, columns=["cloze", "cloze_right", "exposure"])
    if isinstance(scorer, TransformersScorer):
        expected = tokenize(scorer.tokenizer, answers)
        prompts = [prompt for prompt, _ in groups]
        table["cloze_exact"] = recited(scorer, prompts, expected)["verbatim"]
    return table


def _sums(scorer: Scorer, groups: Sequence[_Group]) -> list[NDArray[np.float64]]:
    """Log-probability (nats) of each text that follows a prompt, by prompt."""
    values = dict(continuation_logprobs(scorer, groups))
    return [
        np.array([part.sum(dtype=np.float64) for part in values[i]]) for i in range(len(groups))
    ]


def _rank_of_first(sums: np.ndarray) -> int:
    """How many are at least as likely as the first; what differs by rounding alone is equal."""
    return int((sums >= sums[0] - 1e-6 * abs(sums[0])).sum())


def _require_room(scorer: Scorer, start: str, group: _Group) -> None:
    """Refuse a prompt whose beginning would be cut off, and for each rest elsewhere."""
    tokens = len(group[0]) + max(len(rest) for rest in group[1])
    if tokens > scorer.context:
        raise InputError(
            f"{start[:40]!r} has {tokens} tokens with what follows, but the context is "
            f"{scorer.context}; give shorter texts"
        )
