"""Each selection against scoring every text by itself, and against what is chosen for sure."""

import itertools
import math

import numpy as np
import pytest

from contamination.errors import InputError
from contamination.membership.multiple_choice import (
    Cloze,
    Item,
    cloze,
    option_order,
    slot_guessing,
    verbatim_choice,
)
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize
from fakes.made_up_scorer import MadeUpScorer

ITEMS = [
    Item("What is green?", ("apple", "river stone", "lamp"), 0),
    Item("Étude №3?", ("quiet", "cloud"), 1),
]
PARAPHRASED = Item(
    "Which of these is verbatim?", ("lamp of stone", "the stony lamp", "a lamp", "lamp, stone"), 2
)
GAPS = [
    Cloze("The river [MASK] is quiet.", "maple", ("tower", "orbit stone", "lamp", "cloud")),
    Cloze("[MASK] it was.", "Green", ("Quiet", "Étude №3")),
    Cloze("Tower:\n[MASK]", "lamp", ("apple",)),
]


def history(ids: np.ndarray) -> np.ndarray:
    """Log-probabilities that depend on everything before a token, as those of a model do."""
    state, values = 1, []
    for token in ids.tolist():
        state = (31 * state + token) % 10_007
        values.append(-1 - state % 997 / 100)
    return np.array(values, dtype=np.float32)


class Historian(MadeUpScorer):
    """A scorer of `history`, which is certain of the texts in `known`."""

    known: tuple[str, ...] = ()

    def token_logprobs(self, sequences, wanted=None):
        for index, _ in super().token_logprobs(sequences, wanted):
            ids = sequences[index]
            certain = self.tokenizer.decode(ids) in self.known
            yield index, np.zeros(len(ids), dtype=np.float32) if certain else history(ids)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def rendered(item: Item, order) -> str:
    lines = [f"{letter}. {item.options[i]}\n" for letter, i in zip("ABCDEFGH", order, strict=False)]
    return f"{item.question}\n{''.join(lines)}"


def by_hand(tokenizer, item: Item) -> list[float]:
    """Log-probabilities of the options in every order, the published one first."""
    sums: list[float] = []
    for order in itertools.permutations(range(len(item.options))):
        pieces = [f"{item.question}\n"]
        for letter, i in zip("ABCDEFGH", order, strict=False):
            pieces += [f"{letter}.", f" {item.options[i]}\n"]
        ids = tokenize(tokenizer, pieces)
        values = history(np.concatenate(ids))
        sums.append(float(values[len(ids[0]) :].sum(dtype=np.float64)))
    return sums


def test_the_published_order_against_all_others(tokenizer):
    table = option_order(Historian(tokenizer), ITEMS, rng=rng())
    for i, item in enumerate(ITEMS):
        published, *others = by_hand(tokenizer, item)
        assert table.loc[i, "option_order"] == pytest.approx(published - np.mean(others), rel=1e-5)
        assert np.ptp(others) > 0 or len(others) == 1
        at_least = 1 + sum(other >= published - 1e-6 for other in others)
        assert table.loc[i, "p"] == at_least / (1 + len(others))


def test_an_order_that_was_read_is_preferred(tokenizer):
    scorer = Historian(tokenizer)
    scorer.known = tuple(rendered(item, range(len(item.options))) for item in ITEMS)
    table = option_order(scorer, ITEMS, rng=rng())
    assert (table["option_order"] > 0).all()
    assert table["p"].tolist() == [1 / 6, 1 / 2]


def test_slot_guessing_scores_the_hidden_option(tokenizer):
    scorer = Historian(tokenizer)
    table = slot_guessing(scorer, ITEMS, rng=rng())
    assert list(table) == ["slot_log_prob"]
    hidden = set()
    for ids in scorer.sequences:
        text = tokenizer.decode(ids)
        item = next(item for item in ITEMS if text.startswith(item.question))
        letter, option = text.splitlines()[-1].split(". ")
        slot = "ABC".index(letter)
        assert option == item.options[slot] and slot != item.answer
        assert text.count(option) == 1
        assert all(f"{'ABC'[i]}. {o}\n" in text for i, o in enumerate(item.options) if i != slot)
        size = len(tokenize(tokenizer, [f" {option}"])[0])
        row = ITEMS.index(item)
        wanted = history(ids)[-size:].mean(dtype=np.float64)
        assert table.loc[row, "slot_log_prob"] == pytest.approx(wanted)
        hidden.add((row, slot))
    assert (1, 0) in hidden and len(hidden) == 2


def test_a_model_that_runs_here_also_writes_it(float32, trained, tokenizer):
    scorer = TransformersScorer(trained)
    table = slot_guessing(scorer, ITEMS, rng=rng())
    assert list(table) == ["slot_log_prob", "slot_exact", "slot_rouge_l_f1"]
    assert table["slot_exact"].tolist() == [0, 0]
    assert table["slot_rouge_l_f1"].between(0, 1).all()
    # It goes on in one way whatever stands before; that made an option, it knows the option.
    ids = tokenize(tokenizer, [" lamp"])[0].tolist()
    following = dict(zip(ids, [*ids[1:], ids[0]], strict=True))
    assert len(ids) == len(following)

    def only_lamp(_, __, inputs, output):
        last = inputs["input_ids"][:, -1].tolist()
        output.logits[:, -1] = -1e9
        for row, token in enumerate(last):
            output.logits[row, -1, following.get(token, ids[0])] = 0
        return output

    scorer.model.register_forward_hook(only_lamp, with_kwargs=True)
    table = slot_guessing(scorer, [Item("Q?", ("lamp", "cloud"), 1)], rng=rng())
    assert table.loc[0, "slot_exact"] == 1 and table.loc[0, "slot_rouge_l_f1"] == 1


def test_the_verbatim_choice_is_made_in_every_arrangement(tokenizer):
    scorer = Historian(tokenizer)
    (share,) = verbatim_choice(scorer, [PARAPHRASED], rng=rng())
    hits = []
    for order in itertools.permutations(range(4)):
        lines = [f"{'ABCD'[i]}. {PARAPHRASED.options[j]}\n" for i, j in enumerate(order)]
        prompt = f"{PARAPHRASED.question}\n{''.join(lines)}Answer:"
        sums = []
        for letter in "ABCD":
            one, other = tokenize(tokenizer, [prompt, f" {letter}"])
            values = history(np.concatenate([one, other]))
            sums.append(values[len(one) :].sum(dtype=np.float64))
        hits.append(order[int(np.argmax(sums))] == PARAPHRASED.answer)
    assert share == pytest.approx(np.mean(hits)) and 0 < share < 1
    assert len({ids.tobytes() for ids in scorer.sequences}) == 24 * 4


def test_a_cloze_ranks_the_answer_by_the_whole_passage(tokenizer):
    table = cloze(Historian(tokenizer), GAPS)
    assert list(table) == ["cloze", "cloze_right", "exposure"]
    for i, one in enumerate(GAPS):
        before, after = one.passage.split("[MASK]")
        blank = " " if before.endswith(" ") else ""
        sums = []
        for fill in (one.answer, *one.others):
            parts = tokenize(tokenizer, [before.removesuffix(" "), f"{blank}{fill}{after}"])
            # Of the whole passage: what stands before the gap is the same for all fills.
            sums.append(history(np.concatenate(parts)).sum(dtype=np.float64))
        rank = 1 + sum(other >= sums[0] for other in sums[1:])
        assert table.loc[i, "cloze"] == pytest.approx(sums[0] - np.mean(sums[1:]), rel=1e-5)
        assert table.loc[i, "cloze_right"] == float(rank == 1)
        assert table.loc[i, "exposure"] == pytest.approx(math.log2(len(sums)) - math.log2(rank))
    assert table["cloze_right"].nunique() == 2


def test_exposure_of_a_canary_that_was_read_is_the_logarithm_of_all_there_are(tokenizer):
    others = tuple(f"{a}{b}" for a in range(4) for b in range(4) if (a, b) != (2, 3))
    canary = Cloze("The number is [MASK]!", "23", others)
    scorer = Historian(tokenizer)
    scorer.known = ("The number is 23!",)
    assert cloze(scorer, [canary]).loc[0, "exposure"] == 4  # bits, of 16
    scorer.known = ("The number is 23!", "The number is 00!")  # ties count against it
    assert cloze(scorer, [canary]).loc[0, ["exposure", "cloze_right"]].tolist() == [3, 0]


def test_a_model_that_knows_a_text_fills_its_gap(taught, members, non_members):
    """The last word of each text stands in the gap, the last words of the others beside it."""

    def gaps(texts: list[str]) -> list[Cloze]:
        cut = [text.rsplit(" ", 2)[:2] for text in texts]
        words = dict.fromkeys(word for _, word in cut)
        return [
            Cloze(f"{start} [MASK]", word, tuple(w for w in words if w != word))
            for start, word in cut
        ]

    known, unknown = cloze(taught, gaps(members[:8])), cloze(taught, gaps(non_members[:8]))
    assert list(known) == ["cloze", "cloze_right", "exposure", "cloze_exact"]
    assert known["cloze_exact"].mean() > 0.9 and known["cloze_right"].mean() > 0.9
    assert unknown["cloze_exact"].mean() < 0.3
    assert known["exposure"].mean() > 1 + unknown["exposure"].mean()


@pytest.mark.parametrize(
    ("ask", "named"),
    [
        (lambda s: Cloze("No gap.", "a", ("b",)), r"'No gap\.'"),
        (lambda s: Cloze("[MASK]", "a", ("a",)), "answer"),
        (lambda s: option_order(s, ITEMS, orders=1, rng=rng()), "1 orders"),
        (lambda s: cloze(s, GAPS), r"'The river \[MASK\] .*context is 8"),
    ],
)
def test_what_cannot_be_asked_is_refused(tokenizer, ask, named):
    scorer = Historian(tokenizer)
    scorer.context = 8
    with pytest.raises(InputError, match=named):
        ask(scorer)


class LikesText(MadeUpScorer):
    """Chooses the letter before the text that it has read."""

    def __init__(self, tokenizer, read: str) -> None:
        super().__init__(tokenizer)
        self.read = read

    def token_logprobs(self, sequences, wanted=None):
        for index, ids in enumerate(sequences):
            *lines, answer = self.tokenizer.decode(ids).splitlines()
            hit = f"{answer.removeprefix('Answer: ')}. {self.read}" in lines
            yield index, np.full(len(ids), 0 if hit else -9, dtype=np.float32)


class LikesLetter(MadeUpScorer):
    """Finds the letter `liked` likely after any prompt; None finds all letters equally likely."""

    def __init__(self, tokenizer, liked: str | None) -> None:
        super().__init__(tokenizer)
        self.liked = liked

    def token_logprobs(self, sequences, wanted=None):
        for index, ids in enumerate(sequences):
            hit = self.tokenizer.decode(ids).endswith(f"Answer: {self.liked}")
            values = np.full(len(ids), -9, dtype=np.float32)
            values[-len(tokenize(self.tokenizer, [" A"])[0]) :] = -1 if hit else -9
            yield index, values


@pytest.mark.parametrize("liked", ["A", "D", None])
def test_who_chooses_by_the_letter_alone_scores_chance(tokenizer, liked):
    shares = verbatim_choice(LikesLetter(tokenizer, liked), [PARAPHRASED] * 2, rng=rng())
    assert shares.tolist() == pytest.approx([1 / 4, 1 / 4])


def test_who_knows_the_verbatim_text_always_chooses_it(tokenizer):
    knows = LikesText(tokenizer, PARAPHRASED.options[2])
    assert verbatim_choice(knows, [PARAPHRASED], rng=rng()).tolist() == [1]
    misled = LikesText(tokenizer, PARAPHRASED.options[0])
    assert verbatim_choice(misled, [PARAPHRASED, ITEMS[0]], rng=rng())[0] == 0


def test_every_order_has_the_same_tokens_and_reads_as_one_text(tokenizer):
    scorer = Historian(tokenizer)
    option_order(scorer, ITEMS[:1], rng=rng())
    orders = list(itertools.permutations(range(3)))
    assert len(scorer.sequences) == len(orders)
    assert len({tuple(sorted(ids.tolist())) for ids in scorer.sequences}) == 1
    texts = {tokenizer.decode(ids) for ids in scorer.sequences}
    assert texts == {rendered(ITEMS[0], order) for order in orders}
    (whole,) = tokenize(tokenizer, [rendered(ITEMS[0], orders[0])])
    assert whole.tolist() in [ids.tolist() for ids in scorer.sequences]
