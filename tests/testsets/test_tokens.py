"""Every ordering scores the same tokens; the tokenizer is the same every time it is trained."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tokenizers.processors import TemplateProcessing
from transformers import AutoTokenizer

from contamination.errors import InputError
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.orderings import ordering, shard_bounds
from contamination.testsets.tokens import tokenize, tokenize_set
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


def _joined(ids: Sequence[np.ndarray]) -> list[int]:
    return np.concatenate(ids).tolist()


def test_every_ordering_is_the_same_multiset_of_tokens(bpe) -> None:
    ids = tokenize(bpe, TEXTS)
    bounds = shard_bounds(len(TEXTS), 1)[0]
    canonical = _joined(ids)
    for index in range(1, 20):
        order = ordering(bounds, index, seed=0, dataset="d", shard=0)
        shuffled = _joined([ids[i] for i in order])
        assert Counter(shuffled) == Counter(canonical)
        assert shuffled != canonical
        # What is scored is the text of the shuffled set, to the byte.
        assert bpe.decode(shuffled) == "".join(TEXTS[i] for i in order)


def test_examples_are_tokenised_alone(bpe) -> None:
    """Tokens of an example do not depend on its neighbours, in a batch or in the text."""
    together = tokenize(bpe, TEXTS)
    for text, ids in zip(TEXTS, together, strict=True):
        np.testing.assert_array_equal(tokenize(bpe, [text])[0], ids)
        assert ids.dtype == np.int32
        assert len(ids) > 0
    assert bpe.eos_token_id not in _joined(together)


def test_a_saved_tokenizer_gives_the_same_tokens_and_special_ones_are_plain_text(
    bpe, tmp_path: Path
) -> None:
    bpe.save_pretrained(tmp_path / "saved")
    loaded = AutoTokenizer.from_pretrained(tmp_path / "saved")
    for a, b in zip(tokenize(bpe, TEXTS + AWKWARD), tokenize(loaded, TEXTS + AWKWARD), strict=True):
        np.testing.assert_array_equal(a, b)
    assert loaded.bos_token_id == loaded.eos_token_id == bpe.convert_tokens_to_ids(END_OF_TEXT)
    for tokenizer in (bpe, loaded):
        (ids,) = tokenize(tokenizer, AWKWARD[:1])
        assert tokenizer.eos_token_id not in ids
        assert tokenizer.decode(ids) == AWKWARD[0]


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
@example(AWKWARD[0])
@example(AWKWARD[1])
@example(AWKWARD[2])
@example(AWKWARD[3])
def test_any_text_survives(bpe, text: str) -> None:
    assert bpe.decode(tokenize(bpe, [text])[0]) == text


def test_training_twice_gives_the_same_bytes(bpe, tmp_path: Path) -> None:
    saved = []
    for name, tokenizer in (("a", bpe), ("b", train_tokenizer(iter(TEXTS), 350))):
        tokenizer.save_pretrained(tmp_path / name)
        files = sorted((tmp_path / name).iterdir())
        saved.append([(file.name, file.read_bytes()) for file in files])
    assert saved[0] == saved[1]
    assert "tokenizer.json" in [name for name, _ in saved[0]]


def test_an_example_without_a_token_is_refused(bpe) -> None:
    with pytest.raises(InputError, match="example 1 has no token"):
        tokenize_set(bpe, ExampleSet("d", ("a\n", ""), "text/1", "r"))
