"""Order of options and slot guessing against scoring every text by itself."""

import itertools

import numpy as np
import pytest

from contamination.errors import InputError
from contamination.membership.multiple_choice import Item, option_order, slot_guessing
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize
from fakes.made_up_scorer import MadeUpScorer

ITEMS = [
    Item("What is green?", ("apple", "river stone", "lamp"), 0),
    Item("Étude №3?", ("quiet", "cloud"), 1),
]
BIG = Item("Which?", ("apple", "river", "stone", "cloud", "lamp", "tower", "orbit", "maple"), 3)


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


def test_of_many_orders_some_are_drawn(tokenizer):
    scorer = Historian(tokenizer)
    table = option_order(scorer, [BIG], orders=10, rng=rng())
    texts = {tokenizer.decode(ids) for ids in scorer.sequences}
    assert len(scorer.sequences) == len(texts) == 10
    assert rendered(BIG, range(8)) in texts
    assert table.loc[0, "p"] >= 0.1
    again = option_order(Historian(tokenizer), [BIG], orders=10, rng=rng())
    other = option_order(Historian(tokenizer), [BIG], orders=10, rng=rng(1))
    assert table.equals(again) and not table.equals(other)


def test_an_order_that_was_read_is_preferred(tokenizer):
    scorer = Historian(tokenizer)
    scorer.known = tuple(rendered(item, range(len(item.options))) for item in ITEMS)
    table = option_order(scorer, ITEMS, rng=rng())
    assert (table["option_order"] > 0).all()
    assert table["p"].tolist() == [1 / 6, 1 / 2]


def test_orders_without_a_preference_are_all_equal(tokenizer):
    class Flat(MadeUpScorer):
        def token_logprobs(self, sequences, wanted=None):
            for index, ids in enumerate(sequences):
                yield index, np.full(len(ids), -2, dtype=np.float32)

    table = option_order(Flat(tokenizer), ITEMS, rng=rng())
    assert (table["option_order"] == 0).all() and (table["p"] == 1).all()


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


def test_a_wrong_option_is_hidden_at_random(tokenizer):
    scorer = Historian(tokenizer)
    slot_guessing(scorer, ITEMS[:1] * 40, rng=rng())
    last = {tokenizer.decode(ids).splitlines()[-1] for ids in scorer.sequences}
    assert last == {"B. river stone", "C. lamp"}


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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Item("Q?", ("one",), 0), "'Q\\?' has 1 options: give 2 to 26"),
        (lambda: Item("Q?", ("one", "two"), 2), "answer 2 is none of its 2 options"),
        (lambda: Item("Q?", ("one", "two"), -1), "answer -1 is none"),
    ],
)
def test_what_is_no_item_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_a_single_order_is_refused(tokenizer):
    with pytest.raises(InputError, match="1 orders: give 2 or more"):
        option_order(Historian(tokenizer), ITEMS, orders=1, rng=rng())
