"""Each selection against scoring every text by itself, and against what is chosen for sure."""

import itertools
import math
import re
from collections.abc import Callable

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
from fakes.made_up_scorer import Historian, history

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


class Reader(Historian):
    """It may also give what `likes` says for each token of a text."""

    likes: Callable[[str], float | None] = staticmethod(lambda _: None)

    def token_logprobs(self, sequences, wanted=None):
        for index, values in super().token_logprobs(sequences, wanted):
            liked = self.likes(self.tokenizer.decode(sequences[index]))
            yield index, values if liked is None else np.full_like(values, liked)

    def knows(self, *texts: str) -> None:
        self.likes = lambda text: 0 if text in texts else None


@pytest.fixture
def reader(tokenizer) -> Reader:
    return Reader(tokenizer)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def rendered(item: Item, order) -> list[str]:
    lines = zip("ABCDEFGH", (item.options[i] for i in order), strict=False)
    options = [part for letter, option in lines for part in (f"{letter}.", f" {option}\n")]
    return [f"{item.question}\n", *options]


def after_first(tokenizer, *pieces: str) -> float:
    """Log-probability of what follows the first piece, each tokenised alone."""
    ids = tokenize(tokenizer, pieces)
    return float(history(np.concatenate(ids))[len(ids[0]) :].sum(dtype=np.float64))


def test_the_published_order_against_all_others(reader):
    table = option_order(reader, ITEMS, rng=rng())
    for i, item in enumerate(ITEMS):
        orders = itertools.permutations(range(len(item.options)))
        published, *others = [after_first(reader.tokenizer, *rendered(item, o)) for o in orders]
        assert table.loc[i, "option_order"] == pytest.approx(published - np.mean(others), rel=1e-5)
        assert np.ptp(others) > 0 or len(others) == 1
        at_least = 1 + sum(other >= published - 1e-6 for other in others)
        assert table.loc[i, "p"] == at_least / (1 + len(others))


def test_slot_guessing_scores_the_hidden_option(reader):
    table = slot_guessing(reader, ITEMS, rng=rng())
    hidden = set()
    for ids in reader.sequences:
        text = reader.tokenizer.decode(ids)
        item = next(item for item in ITEMS if text.startswith(item.question))
        letter, option = text.splitlines()[-1].split(". ")
        slot = "ABC".index(letter)
        assert option == item.options[slot] and slot != item.answer
        assert text.count(option) == 1
        assert all(f"{'ABC'[i]}. {o}\n" in text for i, o in enumerate(item.options) if i != slot)
        size = len(tokenize(reader.tokenizer, [f" {option}"])[0])
        wanted = history(ids)[-size:].mean(dtype=np.float64)
        assert table.loc[ITEMS.index(item), "slot_log_prob"] == pytest.approx(wanted)
        hidden.add((ITEMS.index(item), slot))
    assert (1, 0) in hidden and len(hidden) == 2


def test_a_model_that_runs_here_also_writes_it(float32, trained, tokenizer):
    scorer = TransformersScorer(trained)
    table = slot_guessing(scorer, ITEMS, rng=rng())
    assert table["slot_exact"].tolist() == [0, 0]
    assert table["slot_rouge_l_f1"].between(0, 1).all()
    # It goes on in one way whatever stands before; that made an option, it knows the option.
    ids = tokenize(tokenizer, [" lamp"])[0].tolist()
    following = dict(zip(ids, [*ids[1:], ids[0]], strict=True))

    def only_lamp(_, __, inputs, output):
        output.logits[:, -1] = -1e9
        for row, token in enumerate(inputs["input_ids"][:, -1].tolist()):
            output.logits[row, -1, following.get(token, ids[0])] = 0
        return output

    scorer.model.register_forward_hook(only_lamp, with_kwargs=True)
    table = slot_guessing(scorer, [Item("Q?", ("lamp", "cloud"), 1)], rng=rng())
    assert table.loc[0, "slot_exact"] == 1 and table.loc[0, "slot_rouge_l_f1"] == 1


@pytest.mark.parametrize("liked", ["A", "D", None])
def test_who_chooses_by_the_letter_alone_scores_chance(reader, liked):
    reader.likes = lambda text: -1.0 if text.endswith(f"Answer: {liked}") else -9.0
    shares = verbatim_choice(reader, [PARAPHRASED] * 2, rng=rng())
    assert shares.tolist() == pytest.approx([1 / 4, 1 / 4])


@pytest.mark.parametrize(("read", "share"), [(PARAPHRASED.answer, 1), (0, 0)])
def test_who_has_read_an_option_always_chooses_it(reader, read, share):
    def likes(text: str) -> float:
        *lines, answer = text.splitlines()
        return -9.0 * (
            f"{answer.removeprefix('Answer: ')}. {PARAPHRASED.options[read]}" not in lines
        )

    reader.likes = likes
    assert verbatim_choice(reader, [PARAPHRASED, ITEMS[0]], rng=rng())[0] == share


def test_a_cloze_ranks_the_answer_by_the_whole_passage(reader):
    table = cloze(reader, GAPS)
    for i, one in enumerate(GAPS):
        before, after = one.passage.split("[MASK]")
        blank = " " if before.endswith(" ") else ""
        start = before.removesuffix(" ")
        fills = (one.answer, *one.others)
        # Of the whole passage: what stands before the gap is the same for all fills.
        sums = [after_first(reader.tokenizer, "", start, f"{blank}{f}{after}") for f in fills]
        rank = 1 + sum(other >= sums[0] for other in sums[1:])
        assert table.loc[i, "cloze"] == pytest.approx(sums[0] - np.mean(sums[1:]), rel=1e-5)
        assert table.loc[i, "cloze_right"] == float(rank == 1)
        assert table.loc[i, "exposure"] == pytest.approx(math.log2(len(sums)) - math.log2(rank))
    assert table["cloze_right"].nunique() == 2


def test_exposure_of_a_canary_that_was_read_is_the_logarithm_of_all_there_are(reader):
    others = tuple(f"{a}{b}" for a in range(4) for b in range(4) if (a, b) != (2, 3))
    canary = Cloze("The number is [MASK]!", "23", others)
    reader.knows("The number is 23!")
    assert cloze(reader, [canary]).loc[0, "exposure"] == 4  # bits, of 16
    reader.knows("The number is 23!", "The number is 00!")  # ties count against it
    assert cloze(reader, [canary]).loc[0, ["exposure", "cloze_right"]].tolist() == [3, 0]


def test_a_model_that_knows_a_text_fills_its_gap(taught, members, non_members):
    def gaps(texts: list[str]) -> list[Cloze]:
        cut = [text.rsplit(" ", 2)[:2] for text in texts]
        words = dict.fromkeys(word for _, word in cut)
        return [Cloze(f"{start} [MASK]", w, tuple(words.keys() - {w})) for start, w in cut]

    known, unknown = cloze(taught, gaps(members[:8])), cloze(taught, gaps(non_members[:8]))
    assert known["cloze_exact"].mean() > 0.9 and known["cloze_right"].mean() > 0.9
    assert unknown["cloze_exact"].mean() < 0.3
    assert known["exposure"].mean() > 1 + unknown["exposure"].mean()


def test_what_cannot_be_asked_is_refused(reader):
    for passage, others in (("No gap.", ("b",)), ("[MASK]", ("a",)), ("[MASK]", ())):
        with pytest.raises(InputError, match=re.escape(repr(passage))):
            Cloze(passage, "a", others)
    reader.context = 8
    with pytest.raises(InputError, match=r"'The river \[MASK\] .*context is 8"):
        cloze(reader, GAPS)
