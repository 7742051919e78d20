"""Log-probabilities after a prefix against a loop, for texts that fit and texts that do not."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from contamination.errors import InputError
from contamination.membership.signals import conditional_log_probs
from contamination.scoring.local import TransformersScorer
from fakes.made_up_scorer import MadeUpScorer, log_probs_of

CONTEXT = 16
PREFIX = np.array([7, 100, 31, 4, 250], dtype=np.int32)
ROOM = CONTEXT - len(PREFIX)


def random_ids(length: int) -> np.ndarray:
    return np.random.default_rng(length).integers(1, 300, length, dtype=np.int32)


@torch.inference_mode()
def reference(directory, ids) -> np.ndarray:
    """For each window of ROOM tokens: the start token, the prefix, what the window reads."""
    model = AutoModelForCausalLM.from_pretrained(directory).double().eval()
    values, begin = [], 0
    while len(values) < len(ids):
        while len(values) < min(begin + ROOM, len(ids)):
            t = len(values)
            stream = [model.config.bos_token_id, *PREFIX.tolist(), *ids[begin:t].tolist()]
            logits = model(torch.tensor([stream])).logits[0, -1]
            values.append(float(torch.log_softmax(logits, 0)[ids[t]]))
        begin += ROOM // 2
    return np.array(values)


def test_texts_of_any_length(float32, model_directory):
    sequences = [random_ids(n) for n in (1, 2, ROOM - 1, ROOM, ROOM + 1, 2 * ROOM, 57)]
    found = conditional_log_probs(TransformersScorer(model_directory), PREFIX, sequences)
    for ids, values in zip(sequences, found, strict=True):
        assert values.dtype == np.float32
        np.testing.assert_allclose(values, reference(model_directory, ids), rtol=0, atol=1e-3)


def test_the_prefix_matters(float32, model_directory):
    scorer = TransformersScorer(model_directory)
    ids = random_ids(9)
    (after,) = conditional_log_probs(scorer, PREFIX, [ids])
    ((_, plain),) = scorer.token_logprobs([ids])
    assert np.abs(after - plain).min() > 0.01


def test_any_scorer_will_do(tokenizer):
    sequences = [random_ids(5), random_ids(8)]
    found = conditional_log_probs(MadeUpScorer(tokenizer), PREFIX, sequences)
    for ids, values in zip(sequences, found, strict=True):
        wanted = log_probs_of(np.concatenate([PREFIX, ids]))[len(PREFIX) :]
        np.testing.assert_array_equal(values, wanted)


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        (PREFIX[:0], "the prefix has no token"),
        (random_ids(9), "the prefix has 9 tokens, more than half of the context of 16"),
    ],
)
def test_a_prefix_that_leaves_nothing_to_do_or_no_room(model_directory, prefix, message):
    with pytest.raises(InputError, match=message):
        conditional_log_probs(TransformersScorer(model_directory), prefix, [random_ids(4)])
