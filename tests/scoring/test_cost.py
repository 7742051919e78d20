"""Tokens and FLOPs against counting by hand, and against what PyTorch itself counts."""

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForCausalLM

from contamination.scoring import cost
from contamination.scoring.cost import Workload, sequence_workload, workload
from contamination.scoring.loading import model_shape
from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import StorePlan


def test_long_sequences_are_read_in_windows():
    """20 tokens, context 8, stride 4: windows 0-8, 4-12, 8-16, 12-20."""
    work = workload(StorePlan("orderings", 1), [10, 10], permutations=1, context=8)
    assert work == Workload(sequences=2, scored=40, read=64, windows=8, attended=2 * 4 * 36)


def test_successors_are_read_after_a_predecessor_that_is_read_once():
    """One shard of 3 examples of 2, 5 and 9 tokens, of which 4 are scored."""
    work = workload(StorePlan("successors", 1, 4), [2, 5, 9], permutations=1, context=16)
    attended = 3 + 15 + 45  # of the predecessors
    for before, after in [(2, 4), (2, 4), (5, 2), (5, 4), (9, 2), (9, 4)]:
        attended += sum(before + t for t in range(1, after + 1))
    assert work == Workload(
        sequences=3, scored=2 * (2 + 4 + 4), read=16 + 20, windows=6, attended=attended
    )


@pytest.mark.parametrize(
    ("examples", "shards", "permutations", "share"),
    [(4, 2, 25, 2 / 26), (3, 1, 999, 6 / 1_000), (400, 50, 25, 1.0), (2, 1, 1, 0.75)],
)
def test_equal_orderings_are_forecast_once(examples, shards, permutations, share):
    """Two draws of two orderings: 1.5 are different on average."""
    forecast = cost.distinct_share(examples, shards, permutations)
    assert forecast == pytest.approx(share, rel=1e-3)


def test_the_scorer_reads_what_was_predicted(model_directory):
    scorer = TransformersScorer(model_directory, batch_tokens=1)  # no padding
    widths = []
    assert scorer.head.rows > 0  # its check reads four tokens, before these are counted
    embedding = scorer.model.get_input_embeddings()
    embedding.register_forward_pre_hook(lambda _, inputs: widths.append(inputs[0].shape[1]))
    lengths = [5, 16, 17, 61]
    # No two have a window in common: those are read once.
    sequences = [np.arange(i, n + i, dtype=np.int32) for i, n in enumerate(lengths, 1)]
    scored = sum(len(values) for _, values in scorer.token_logprobs(sequences))
    work = sequence_workload(lengths, 1, scorer.context)
    assert work.scored == scored
    assert work.read == sum(widths)
    assert work.windows == len(widths)


def test_flops_are_those_that_pytorch_counts(model_directory):
    """All positions scored; PyTorch counts the whole square of the attention, we half of it."""
    config = AutoConfig.from_pretrained(model_directory)
    model = AutoModelForCausalLM.from_pretrained(model_directory, attn_implementation="eager")
    length = 12
    shape = model_shape(config)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(torch.zeros(1, length, dtype=torch.long), use_cache=False)
    work = Workload(sequences=1, scored=length, read=length, windows=1, attended=length**2)
    assert shape.flops(work) == counter.get_total_flops()
