"""From a mixture to a p-value: the whole chain on a model small enough for a test.

The only test in which every part is the real one.
"""

import itertools

import numpy as np
import pytest

from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import StorePlan
from contamination.scoring.score import score
from contamination.statistics import sharded_exact_test, sharded_t_test
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.tokens import tokenize
from reproduction.run.injection import mix
from reproduction.run.profile import Architecture, TrainingSpec
from reproduction.run.tokenizer import train_tokenizer
from reproduction.run.training import train

# Many words make a memorised order easy to learn: few words stand in two places of a set.
WORDS = ["".join(letters) for letters in itertools.product("bdfgklmnprst", "aeiou", "lnrs")]
DUP_COUNT = 200
SHARDS, PERMUTATIONS = 8, 20


def made_up_set(name: str, seed: int) -> ExampleSet:
    """Records drawn independently from one law: exchangeable by construction."""
    rng = np.random.default_rng(seed)
    examples = tuple(" ".join(rng.choice(WORDS, size=6)) + "\n" for _ in range(32))
    return ExampleSet(name, examples, "text/1", name)


SETS = {name: made_up_set(name, seed) for seed, name in enumerate(["seen", "unseen", "again"])}


@pytest.fixture(scope="module")
def log_probs(tmp_path_factory) -> dict[str, np.ndarray]:
    directory = tmp_path_factory.mktemp("run")
    rng = np.random.default_rng(0)
    corpus = ["".join(made_up_set("", 100 + i).examples[:8]) for i in range(100)]
    tokenizer = train_tokenizer(corpus, 600)
    ids = np.concatenate(tokenize(tokenizer, SETS["seen"].examples))
    end = tokenizer.eos_token_id
    documents = [np.append(document, end) for document in tokenize(tokenizer, corpus)]
    ends = np.cumsum([len(document) for document in documents])
    pieces, _ = mix(np.concatenate(documents), ends, {"seen": (ids, DUP_COUNT)}, end, rng=rng)
    tokens = np.concatenate(pieces)
    shape = Architecture(n_embd=64, n_layer=2, n_head=4, n_positions=64)
    spec = TrainingSpec(
        batch_size=4,
        micro_batch_size=4,
        warmup_steps=10,
        checkpoint_steps=1000,
        learning_rate=3e-3,
        weight_decay=0.1,
    )
    train(tokens, tokenizer, shape, spec, directory / "model", seed=1, label="test")
    scorer = TransformersScorer(directory / "model")
    plan = StorePlan("orderings", SHARDS)
    log_probs = {}
    for name, test_set in SETS.items():
        store = score(
            test_set,
            scorer,
            directory / name,
            plan,
            model="contaminated",
            permutations=PERMUTATIONS,
            seed=1,
        )
        log_probs[name] = store.log_probs(PERMUTATIONS)
    return log_probs


def test_the_injected_set_alone_is_found(log_probs):
    assert sharded_exact_test(log_probs["seen"]).p < 1e-3
    assert sharded_t_test(log_probs["seen"]).p < 1e-3
    for name in ("unseen", "again"):
        assert sharded_exact_test(log_probs[name]).p > 1e-3


def test_the_canonical_order_of_the_injected_set_stands_out_from_its_others(log_probs):
    """A control inside the set: each other column of the table in the place of the first."""
    canonical = sharded_exact_test(log_probs["seen"]).p
    for column in range(1, PERMUTATIONS + 1):
        rolled = np.roll(log_probs["seen"], -column, axis=1)
        assert sharded_exact_test(rolled).p > 1000 * canonical
