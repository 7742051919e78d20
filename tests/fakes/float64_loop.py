"""The reference for scoring: one forward pass in float64 for each token."""

from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM


def random_ids(length: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 300, length, dtype=np.int32)


def float64_loop(directory: Path, ids: np.ndarray, context: int, start: int = 0) -> np.ndarray:
    """Return log-probabilities of the tokens, (T,)."""
    rows = float64_distributions(directory, ids, context, start)
    return np.array([row[token] for row, token in zip(rows, ids, strict=True)])


@lru_cache(maxsize=1)
def _reference(weights: Path, changed: int) -> torch.nn.Module:
    """Return the model whose weights were written at that time, in float64."""
    # Fused experts do not compute in float64.
    model = AutoModelForCausalLM.from_pretrained(weights.parent, experts_implementation="eager")
    return model.double().eval()


@torch.inference_mode()
def float64_distributions(
    directory: Path, ids: np.ndarray, context: int, start: int = 0
) -> np.ndarray:
    """Return log-probabilities of the whole vocabulary before each token, [T, V].

    A loop moves along the windows of Oren's appendix A.
    """
    weights = Path(directory, "model.safetensors")
    model = _reference(weights, weights.stat().st_mtime_ns)
    stream = [start, *ids.tolist()]  # token t is stream[t + 1]
    result: list[np.ndarray] = []
    begin = 0
    while len(result) < len(ids):
        while len(result) < min(begin + context, len(ids)):
            t = len(result)
            inputs = torch.tensor([stream[begin : t + 1]])
            logits = model(inputs, use_cache=False).logits[0, -1].double()
            result.append(torch.log_softmax(logits, dim=0).numpy())
        begin += context // 2
    return np.array(result)


def scored(scorer, sequences) -> list[np.ndarray]:
    """Return what a scorer gives for each sequence, in order, checked for its form."""
    results = dict(scorer.token_logprobs(sequences))
    assert sorted(results) == list(range(len(sequences)))
    values = [results[index] for index in range(len(sequences))]
    assert [v.shape for v in values] == [ids.shape for ids in sequences]
    assert all(v.dtype == np.float32 for v in values)
    return values
