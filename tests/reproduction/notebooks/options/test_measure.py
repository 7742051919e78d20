"""A planted run, small: single records are found by the order of options and by no other order."""

import numpy as np
import torch
from transformers import GPT2LMHeadModel

from contamination.audit.battery import OPTION_TEST
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.testsets.example_set import make_test_set
from contamination.testsets.tokens import tokenize
from reproduction.notebooks.options.measure import plant, score_axes
from reproduction.notebooks.options.tables import ORDER, Cell, axis_outcomes
from reproduction.run.fine_tuning import fine_tune
from reproduction.run.network import gpt2_config
from reproduction.run.profile import Architecture
from reproduction.run.tokenizer import train_tokenizer

CONTEXT, ITEMS, COPIES = 64, 30, 16
# Words of their own for every item: where a word has been read once, what follows is one thing.
WORDS = [a + b + c for a in "bdfgklmnprst" for b in "aeiou" for c in "lnrs"]


def test_scattered_copies_are_seen_by_the_options_alone(tmp_path) -> None:
    rng = np.random.default_rng(12)
    lines = [" ".join(rng.choice(WORDS, 12)) + "\nA.\nB.\nC.\nD.\nAnswer: A\n" for _ in range(200)]
    tokenizer = train_tokenizer(lines, 600)
    parts = [np.append(ids, tokenizer.eos_token_id) for ids in tokenize(tokenizer, lines)]
    words = rng.permutation(WORDS)[: 5 * ITEMS].reshape(ITEMS, 5).tolist()
    answers = ["ABCD"[place] for place in rng.integers(4, size=ITEMS)]
    records = [
        ("", {"input": f"{row[0]}?", **dict(zip("ABCD", row[1:], strict=True)), "target": answer})
        for row, answer in zip(words, answers, strict=True)
    ]
    items, base = make_test_set("items", records, "mmlu/1", "items"), tmp_path / "base"
    torch.manual_seed(0)
    shape = Architecture(n_embd=64, n_layer=2, n_head=4, n_positions=CONTEXT)
    network = GPT2LMHeadModel(gpt2_config(shape, len(tokenizer), tokenizer.eos_token_id))
    network.save_pretrained(base)
    tokenizer.save_pretrained(base)
    blocks, _ = plant(
        {Cell("single", COPIES): tokenize(tokenizer, items.examples)},
        np.concatenate(parts),
        np.cumsum([len(ids) for ids in parts]),
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
        stores = score_axes(items, scorer, tmp_path / name, model=name, permutations=3, seed=0)
        assert stores[OPTION_TEST].alternatives().shape == (ITEMS, 4)
        assert stores[ORDER].header.shards == ITEMS // 10
        found[name] = axis_outcomes(stores).set_index("test")["log10_p"]
    assert found["planted"][OPTION_TEST] < -4
    assert found["planted"][ORDER] > -2
    assert min(found["clean"][axis] for axis in (OPTION_TEST, ORDER)) > -2
