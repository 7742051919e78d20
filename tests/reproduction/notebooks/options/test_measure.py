"""A planted run, small: single records are found by the order of options and by no other order."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import GPT2LMHeadModel

from contamination.audit.battery import OPTION_TEST
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.testsets.example_set import make_test_set
from contamination.testsets.tokens import id_type, tokenize
from reproduction.notebooks.options.evaluation import ORDER, axis_outcomes
from reproduction.notebooks.options.measure import score_axes
from reproduction.notebooks.options.planting import Cell, plant
from reproduction.run.fine_tuning import fine_tune
from reproduction.run.network import gpt2_config
from reproduction.run.profile import Architecture
from reproduction.run.tokenizer import train_tokenizer

CONTEXT, ITEMS, COPIES = 64, 30, 16
# Words of their own for every item: where a word has been read once, what follows is one thing.
WORDS = [a + b + c for a in "bdfgklmnprst" for b in "aeiou" for c in "lnrs"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Return a corpus directory of 200 documents, its tokenizer, and a set of items."""
    rng = np.random.default_rng(12)
    lines = [" ".join(rng.choice(WORDS, 12)) + "\nA.\nB.\nC.\nD.\nAnswer: A\n" for _ in range(200)]
    tokenizer = train_tokenizer(lines, 600)
    parts = [np.append(ids, tokenizer.eos_token_id) for ids in tokenize(tokenizer, lines)]
    tokens, ends = np.concatenate(parts), np.cumsum([len(ids) for ids in parts])
    folder = tmp_path_factory.mktemp("corpus")
    tokens.astype(id_type(tokenizer)).tofile(folder / "tokens.bin")
    np.save(folder / "ends.npy", ends)
    tokenizer.save_pretrained(folder / "tokenizer")
    words = rng.permutation(WORDS)[: 5 * ITEMS].reshape(ITEMS, 5)
    records = [
        ("", {"input": f"{question}?", "A": a, "B": b, "C": c, "D": d, "target": "ABCD"[place]})
        for (question, a, b, c, d), place in zip(
            words.tolist(), rng.integers(4, size=ITEMS), strict=True
        )
    ]
    items = make_test_set("items", records, "mmlu/1", "items")
    return SimpleNamespace(
        corpus=folder, tokens=tokens, ends=ends, tokenizer=tokenizer, items=items
    )


def test_scattered_copies_are_seen_by_the_options_alone(corpus, tmp_path) -> None:
    tokenizer, items, base = corpus.tokenizer, corpus.items, tmp_path / "base"
    torch.manual_seed(0)
    shape = Architecture(n_embd=64, n_layer=2, n_head=4, n_positions=CONTEXT)
    network = GPT2LMHeadModel(gpt2_config(shape, len(tokenizer), tokenizer.eos_token_id))
    network.save_pretrained(base)
    tokenizer.save_pretrained(base)
    blocks, _ = plant(
        {Cell("single", COPIES): tokenize(tokenizer, items.examples)},
        corpus.tokens,
        corpus.ends,
        context=CONTEXT,
        end_of_text=tokenizer.eos_token_id,
        rng=random_stream(0, "test"),
    )
    # A fresh network learns to read first: so it goes through the text more than once.
    planted = fine_tune(
        base, list(blocks), tmp_path / "planted", epochs=5, learning_rate=3e-3, seed=0, batch_size=4
    )
    found = {}
    for name, directory in (("planted", planted), ("clean", base)):
        scorer = TransformersScorer(directory)
        stores = score_axes(items, scorer, tmp_path, model=name, permutations=3, seed=0)
        assert stores[OPTION_TEST].alternatives().shape == (ITEMS, 4)
        assert stores[ORDER].header.shards == ITEMS // 10
        found[name] = axis_outcomes(stores).set_index("test")["log10_p"]
    assert found["planted"][OPTION_TEST] < -4
    assert found["planted"][ORDER] > -2
    assert min(found["clean"][axis] for axis in (OPTION_TEST, ORDER)) > -2
