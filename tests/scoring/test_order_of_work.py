"""The place and time of a computation say nothing about the canonical order, nor does rounding."""

import shutil
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
import torch
from transformers import GPT2LMHeadModel

from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.scoring.stores import base
from contamination.testsets.example_set import ExampleSet
from fakes.level import check_level, null_set, p_value
from fakes.made_up_scorer import MadeUpScorer, log_probs_of

DRIFT = -0.5  # nats of every token by which each answer is below the one before it
ROUNDING = 2.0**-18  # nats of every token by which neighbouring places in a batch differ
PLACES = 6  # of a batch, as many as a shard has orderings


class Drifting(MadeUpScorer):
    def token_logprobs(
        self, sequences: Sequence[np.ndarray], firsts: Sequence[int] | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        for index, ids in enumerate(sequences):
            self.scored += 1
            yield index, log_probs_of(ids) + np.float32(DRIFT * self.scored)


@pytest.mark.parametrize(
    ("test", "shards", "m"),
    [("permutation", 1, 19), ("sharded_t", 8, 5), ("boundary", 2, 19), ("successor", 3, 0)],
)
def test_a_drifting_scorer_keeps_the_level(tokenizer, tmp_path, test, shards, m):
    p = [
        p_value(test, Drifting(tokenizer), null_set(4 * shards, i), tmp_path / f"{i}", shards, m)
        for i in range(50)
    ]
    check_level(p, 0.05, 0.25, 0.5)


WIDE = pytest.mark.parametrize(
    ("precision", "batch_tokens"), [("float32", None), ("float32", 60), ("bfloat16", None)]
)
SUMS = [("permutation", 1), ("sharded_exact", 5), ("sharded_t", 5)]
TOKENS = [("token_standardised", 5), ("boundary", 5)]
PAIRS = [("successor", 4), ("min_p", 4)]


def same(text: str, number: int = 0) -> ExampleSet:
    return ExampleSet("same", (text,) * 20, "text/1", f"data-{number}")


@pytest.fixture(scope="module")
def directory(make_model):
    return make_model(512, width=64)


@pytest.fixture(scope="module")
def forgetful(directory, tmp_path_factory):
    """Return a model that knows only the token before."""
    model = GPT2LMHeadModel.from_pretrained(directory)
    with torch.no_grad():
        model.transformer.wpe.weight.zero_()
        for layer in model.transformer.h:
            layer.attn.c_proj.weight.zero_()
    target = tmp_path_factory.mktemp("forgetful")
    shutil.copytree(directory, target, dirs_exist_ok=True)
    model.save_pretrained(target)
    return target


def opened(directory, precision: str, batch_tokens: int | None) -> TransformersScorer:
    source = ModelSource(str(directory), precision=precision)
    return TransformersScorer(source, batch_tokens=batch_tokens)


@WIDE
def test_identical_records_are_ties(directory, tmp_path, precision, batch_tokens):
    scorer = opened(directory, precision, batch_tokens)
    for text in ("yes\n", "A B C D\n"):
        for test, shards in SUMS + PAIRS:  # a token's place in the ordering is more than rounding
            assert p_value(test, scorer, same(text), tmp_path / text / test, shards, 9) == 1


@WIDE
def test_what_a_model_does_not_condition_on_is_a_tie(forgetful, tmp_path, precision, batch_tokens):
    scorer = opened(forgetful, precision, batch_tokens)
    for test, shards in TOKENS + PAIRS:  # a sum holds the one example behind the start token, too
        assert p_value(test, scorer, null_set(20, 0), tmp_path / test, shards, 9) == 1


class RoundsByPlace(MadeUpScorer):
    """Finds every token as likely as all others, but for rounding by the place in a batch."""

    def token_logprobs(
        self, sequences: Sequence[np.ndarray], firsts: Sequence[int] | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        for index, ids in enumerate(sequences):
            self.scored += 1
            rounding = ROUNDING * (self.scored % PLACES)
            yield index, np.full(len(ids), -1 - rounding, dtype=np.float32)


@pytest.mark.parametrize(("test", "shards", "m"), [("successor", 5, 0), ("sharded_exact", 8, 5)])
def test_what_differs_by_rounding_alone_is_a_tie(tokenizer, tmp_path, test, shards, m):
    scorer = RoundsByPlace(tokenizer)
    assert p_value(test, scorer, null_set(4 * shards, 0), tmp_path, shards, m) == 1


def test_rounding_keeps_the_level_even_where_it_decides(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(base, "RESOLUTION", dict.fromkeys(base.RESOLUTION, 0.0))
    p = []
    for i in range(50):
        scorer = RoundsByPlace(tokenizer)
        p.append(p_value("sharded_exact", scorer, null_set(32, i), tmp_path / f"{i}", 8, 5))
    check_level(p, 0.05, 0.25, 0.5)
