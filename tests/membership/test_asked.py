"""A model that has read texts gives them back, and one that has not does not."""

import numpy as np
import pytest

from contamination.errors import InputError
from contamination.membership import asked
from contamination.membership.api import word_neighbours
from contamination.membership.choice import text_among
from contamination.membership.columns import COLUMNS, OF_TEXTS
from contamination.membership.evaluate import auc
from contamination.randomness import random_stream
from contamination.scoring.generation import LocalGenerator, Sampling
from contamination.scoring.local import TransformersScorer
from contamination.testsets.options import Item
from fakes.made_up_scorer import MadeUpScorer

COLUMNS_OF_TEXTS = []
for name in OF_TEXTS:
    COLUMNS_OF_TEXTS += COLUMNS[name]


class Writer:
    """Goes on with `known` texts in `samples` equal texts, and else says something of its own."""

    def __init__(self, known: list[str]) -> None:
        self.known = known
        self.asked: list[tuple[int, Sampling]] = []

    def generate(self, prompts, sampling):
        self.asked.append((len(prompts), sampling))
        answers = []
        for prompt in prompts:
            answers.append([self.after(prompt, i) for i in range(sampling.samples)])
        return answers

    def after(self, prompt: str, number: int) -> str:
        for text in self.known:
            if text.startswith(prompt):
                return text[len(prompt) :]
        return f"nothing {number} " * (number + 1)


@pytest.fixture(scope="module")
def opened(trained) -> tuple[TransformersScorer, LocalGenerator]:
    scorer = TransformersScorer(trained)
    return scorer, LocalGenerator(scorer, "trained")


@pytest.fixture(scope="module")
def scored(opened, members, non_members):
    """Return the scores of 12 texts that the model has read and of 24 that it has not."""
    asked_texts = members[:12] + non_members[:24]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asked, "TOKENS", 16)  # more than half of a text has
        return asked.text_scores(OF_TEXTS, *opened, asked_texts, samples=4)


def test_the_table_has_a_column_of_every_score(scored):
    assert list(scored.columns) == COLUMNS_OF_TEXTS
    assert not scored.isna().any(axis=None)


@pytest.mark.parametrize("column", COLUMNS_OF_TEXTS)
def test_texts_that_were_learnt_by_heart_are_found(scored, column):
    assert auc(scored[column][:24], [1] * 12 + [0] * 12) > 0.85


@pytest.mark.parametrize("column", ["rouge_l", "agreement", "cloze"])
def test_texts_that_were_not_read_look_alike(scored, column):
    """Both halves are of unread texts: the AUC is within three standard errors of a half."""
    unread = scored[column][12:]
    assert auc(unread, [1, 0] * 12) == pytest.approx(0.5, abs=3 * 0.12)


def test_samples_are_compared_with_the_greedy_text(members):
    writer = Writer(members[:1])
    texts = [members[0], "one two three four five six"]
    table = asked.text_scores(["variation", "completion"], None, writer, texts, samples=3)
    assert table["cdd"].tolist() == [1, 1 / 3]
    assert table["verbatim"].tolist() == [1, 0]
    assert [sampling.samples for _, sampling in writer.asked] == [1, 3]
    assert writer.asked[0][1].temperature == 0


def test_a_text_that_a_score_cannot_take_has_none(tokenizer):
    texts = ["by a river", "orbit", "in 5 6", "by a stone"]
    table = asked.text_scores(OF_TEXTS, MadeUpScorer(tokenizer), Writer(texts), texts)
    assert table["cloze"].notna().tolist() == [True, False, False, True]
    assert table["verbatim"].notna().tolist() == [True, False, True, True]


def test_the_gain_of_a_gap_is_that_of_whole_passages(tokenizer):
    texts = ["by the river a stone lay here", "in a tower there was an apple here"]
    table = asked.cloze_scores(MadeUpScorer(tokenizer), texts)
    scorer = MadeUpScorer(tokenizer)
    whole = {}
    for key in ("stone", "apple"):
        ids = tokenizer(f"by the river a {key} lay here", add_special_tokens=False)["input_ids"]
        ((_, values),) = scorer.token_logprobs([np.array(ids)])
        before = len(tokenizer("by the river a", add_special_tokens=False)["input_ids"])
        whole[key] = values[before:].sum(dtype=np.float64)
    assert table["cloze"][0] == pytest.approx(whole["stone"] - whole["apple"], rel=1e-5)
    assert table["cloze_first"][0] == float(whole["stone"] > whole["apple"])


class Small(MadeUpScorer):
    """Reads 64 tokens at once."""

    context = 64


def test_a_long_context_is_cut_before_the_gap(tokenizer):
    texts = ["by the river " * 40 + "a stone lay here", "in a tower there was an apple here"]
    kept = asked.cloze_scores(Small(tokenizer), texts)
    whole = asked.cloze_scores(MadeUpScorer(tokenizer), texts)
    # A made-up scorer looks at one token before each, which is there in both.
    assert kept["cloze"].tolist() == pytest.approx(whole["cloze"].tolist())


class KnowsLetter(MadeUpScorer):
    """Gives the letter of the line that holds `published` 50 nats more."""

    published = " apple"

    def token_logprobs(self, sequences, firsts=None):
        for index, values in super().token_logprobs(sequences, firsts):
            *lines, last = self.tokenizer.decode(sequences[index]).split("\n")
            (letter,) = [line[0] for line in lines if line[2:] == self.published]
            if last.endswith(f" {letter}"):
                values[-1] += np.float32(50)
            yield index, values


def test_the_published_answer_is_chosen_in_every_order(tokenizer):
    items = [Item("Which fruit?", ("stone", "apple", "lamp"), answer) for answer in (1, 0)]
    assert asked.choice_scores(KnowsLetter(tokenizer), items)["choice"].tolist() == [1, 0]


def test_a_hidden_option_comes_back(tokenizer):
    items = [Item("Which?", ("stone lamp", "apple", "stone lamp"), 1)]
    writer = Writer(["Which?\nB. apple\nC. stone lamp\nA. stone lamp\nand more"])
    writer.known.append("Which?\nA. stone lamp\nB. apple\nC. stone lamp\nand more")
    table = asked.item_scores(["slot"], MadeUpScorer(tokenizer), writer, items)
    assert table["slot_rouge_l"].tolist() == [1]
    assert table["slot"][0] < 0


def test_a_text_among_changed_copies_is_an_item():
    copies = word_neighbours("a red stone lay there", 3, rng=random_stream(0, "copies"))
    item = text_among("a red stone lay there", copies)
    assert item.options[item.answer] == "a red stone lay there"


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda *of: asked.text_scores(["poetry"], *of, ["a b"]), "poetry"),
        (lambda *of: asked.text_scores([], *of, ["a b"]), "completion"),
        (lambda *of: asked.text_scores(["choice"], *of, ["a b"]), "choice"),
        (lambda *of: asked.text_scores(["completion"], *of, ["orbit", ""]), "text 0: 'orbit'"),
        (lambda *of: asked.text_scores(["cloze"], *of, ["by a river", "a b"]), "'river'"),
        (lambda *of: asked.text_scores(["cloze"], *of, []), "no text"),
        (lambda *of: asked.item_scores(["cloze"], *of, []), "cloze"),
        (lambda *of: asked.choice_scores(of[0], [Item("Q?", ("a", "b"), None)]), "'Q\\?'"),
        (
            lambda *of: asked.choice_scores(of[0], [Item("Q? " * 99, ("a", "b"), 0)]),
            "shorter texts",
        ),
    ],
)
def test_bad_input_is_named(call, named, tokenizer):
    with pytest.raises(InputError, match=named):
        call(Small(tokenizer), Writer([]))
