"""Neighbours: words moved, or tokens of a fill-mask model that is made here, tiny and random."""

import re
from collections import Counter

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, BertTokenizer

from contamination.errors import InputError
from contamination.membership import neighbours as module
from contamination.membership.neighbours import (
    MaskedLM,
    blank_neighbours,
    character_neighbours,
    word_neighbours,
)

WORDS = ["the", "cat", "sat", "on", "mat", "dog", "ran", "red", "big", "old", "sun", "moon"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXT = "The cat  sat on\nthe MAT dog ran red big old sun moon the cat sat on the mat"


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    torch.manual_seed(0)
    tokenizer = BertTokenizer({w: i for i, w in enumerate([*SPECIAL, *WORDS, "##s"])})
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 16, "max_position_embeddings": 14}
    config = BertConfig(vocab_size=len(tokenizer), **sizes)
    path = tmp_path_factory.mktemp("fill-mask")
    BertForMaskedLM(config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def perturb(directory) -> MaskedLM:
    return MaskedLM(directory)


def neighbours(perturb, text: str, count: int, seed: int = 0) -> list[str]:
    return perturb(text, count, rng=np.random.default_rng(seed))


def pieces(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text)


def test_a_tenth_of_the_tokens_is_another_and_the_rest_stays(perturb):
    """The text is longer than the model reads at once, so both windows are masked."""
    assert len(pieces(TEXT)) == 19
    places = set()
    for made in neighbours(perturb, TEXT, 80):
        before, after = pieces(TEXT), pieces(made)
        assert len(before) == len(after)
        changed = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
        assert len(changed) == 2
        assert all(after[i] in [*WORDS, "s"] for i in changed)
        assert all(after[i] != before[i].lower() for i in changed)
        assert re.findall(r"\s+", made) == re.findall(r"\s+", TEXT)
        places |= set(changed)
    assert min(places) == 0 and max(places) == 18


def test_substitutes_are_drawn_from_the_models_distribution(perturb, monkeypatch):
    """With one candidate, it is the most probable token but the masked one itself."""
    monkeypatch.setattr(module, "CANDIDATES", 1)
    model, tokenizer = perturb._model, perturb._tokenizer
    ids = tokenizer("cat sat")["input_ids"]
    best = {}
    for position in (1, 2):
        masked = torch.tensor([ids])
        masked[0, position] = tokenizer.mask_token_id
        with torch.inference_mode():
            logits = model(input_ids=masked).logits[0, position]
        ranked = [i for i in logits.argsort(descending=True).tolist() if i >= len(SPECIAL)]
        best[position] = tokenizer.decode([next(i for i in ranked if i != ids[position])])
    best = {position: token.removeprefix("##") for position, token in best.items()}
    wanted = {f"{best[1]} sat", f"cat {best[2]}"}
    assert set(neighbours(perturb, "cat sat", 30)) == wanted


def test_a_neighbour_swaps_or_leaves_out_one_word_in_ten():
    text = "a b\nc  d e"
    made = Counter(neighbours(word_neighbours, text, 400))
    swaps = {"b a\nc  d e", "a c\nb  d e", "a b\nd  c e", "a b\nc  e d"}
    losses = {"b\nc  d e", "a c  d e", "a b\nd e", "a b\nc  e"}
    assert {" ".join(one.split()) for one in made} == {" ".join(t.split()) for t in swaps | losses}
    assert swaps <= made.keys()  # spaces and line ends stay
    assert 150 < sum(made[one] for one in swaps) < 250


def test_a_neighbour_swaps_or_leaves_out_one_character_in_ten():
    text = "abcde\nfg hij"  # ten letters: one change
    made = set(neighbours(character_neighbours, text, 400))
    swaps = {text[:i] + text[i + 1] + text[i] + text[i + 2 :] for i in (0, 1, 2, 3, 6, 9, 10)}
    across = {"abcdf\neg hij", "abcde\nfh gij"}  # the next letter stands behind a blank
    losses = {text[:i] + text[i + 1 :] for i in (0, 1, 2, 3, 4, 6, 7, 9, 10)}
    assert made == swaps | across | losses


def test_a_neighbour_doubles_one_gap_in_ten():
    doubled = {"a  b\nc  d", "a b\n\nc  d", "a b\nc   d"}
    assert set(neighbours(blank_neighbours, "a b\nc  d", 100)) == doubled
    long = " ".join("w" * 41)
    assert {len(made) - len(long) for made in neighbours(blank_neighbours, long, 50)} == {4}


@pytest.mark.parametrize(
    ("how", "text", "named"),
    [
        (word_neighbours, " word\n", "' word"),
        (blank_neighbours, "word", "'word'"),
        (character_neighbours, "x ", "'x '"),
        (None, "  ", "no token"),
    ],
)
def test_a_text_without_neighbours_is_named(perturb, how, text, named):
    with pytest.raises(InputError, match=named):
        neighbours(how or perturb, text, 1)


def test_a_model_that_fills_no_mask_is_refused(directory, model_directory, tokenizer, tmp_path):
    BertForMaskedLM.from_pretrained(directory).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)  # which has no mask
    for model in (tmp_path, model_directory):
        with pytest.raises(InputError, match=model.name):
            MaskedLM(model)
