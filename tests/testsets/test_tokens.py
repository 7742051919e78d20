"""Tokens are those of the text and nothing else, of whatever text and however often."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from contamination.errors import InputError
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.tokens import tokenize, tokenize_set, without_sampling
from reproduction.run.tokenizer import END_OF_TEXT, train_tokenizer

TEXTS = [
    f"Example {i}: the quick brown fox jumps over {i * i} lazy dogs, naïvely, at 中文 {i}.\n"
    for i in range(30)
]
AWKWARD = [
    f"Two {END_OF_TEXT} in {END_OF_TEXT}{END_OF_TEXT} one text\n",
    "   leading, trailing and\t\ttabs   \n\n\n",
    "emoji 👩‍👩‍👧 and combining e\u0301 and \u2028 and \x00 and \x7f\n",
    "\n",
]


@pytest.fixture(scope="module")
def bpe():
    return train_tokenizer(TEXTS, 350)


def test_special_tokens_are_plain_text(bpe) -> None:
    (ids,) = tokenize(bpe, AWKWARD[:1])
    assert bpe.eos_token_id == bpe.convert_tokens_to_ids(END_OF_TEXT)
    assert bpe.eos_token_id not in ids
    assert bpe.decode(ids) == AWKWARD[0]


def test_no_start_token_is_added(bpe) -> None:
    """Llama's tokenizer and its like put BOS before every text unless told not to."""
    eager = train_tokenizer(TEXTS, 350)
    eager.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{END_OF_TEXT} $A", special_tokens=[(END_OF_TEXT, eager.eos_token_id)]
    )
    assert eager(TEXTS[0])["input_ids"][0] == eager.eos_token_id
    for a, b in zip(tokenize(eager, TEXTS), tokenize(bpe, TEXTS), strict=True):
        np.testing.assert_array_equal(a, b)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives(bpe, text: str) -> None:
    for each, ids in zip([*AWKWARD, text], tokenize(bpe, [*AWKWARD, text]), strict=True):
        assert bpe.decode(ids) == each


def test_an_example_without_a_token_is_refused(bpe) -> None:
    with pytest.raises(InputError, match="example 1 has no token"):
        tokenize_set(bpe, ExampleSet("d", ("a\n", ""), "text/1", "r"))


def _with_dropout() -> PreTrainedTokenizerFast:
    sampling = train_tokenizer(TEXTS, 350)
    sampling.backend_tokenizer.model.dropout = 0.2
    return sampling


def _with_sampling() -> PreTrainedTokenizerFast:
    pieces = [("<unk>", -9.0), *((piece, -2.0) for piece in ("t", "h", "e", "th", "he", "the"))]
    unigram = models.Unigram(pieces, unk_id=0)
    sampling = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(unigram))
    sampling.backend_tokenizer.model.alpha = 0.3
    return sampling


@pytest.mark.parametrize("make", [_with_dropout, _with_sampling])
def test_segmentation_is_not_drawn_at_random(make) -> None:
    texts = ["the quick brown fox jumps over the lazy dogs"] * 20
    drawn = {tuple(ids) for ids in tokenize(make(), texts)}
    steady = {tuple(ids) for ids in tokenize(without_sampling(make()), texts)}
    assert len(drawn) > 1
    assert len(steady) == 1


def test_a_tokenizer_whose_draws_cannot_be_switched_off_is_refused(bpe) -> None:
    class Drawing:
        name_or_path = "folder/of/it"

        def __call__(self, texts, **_):
            return {"input_ids": rng.integers(9, size=(len(texts), 5)).tolist()}

    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="folder/of/it"):
        without_sampling(Drawing())
