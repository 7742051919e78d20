"""White-box scores of an ordering: its loss, its gradient, and its loss after a step on it.

Each is a fixed function of a token sequence and of the same initial weights, so it treats all
orderings of a shard alike.
"""

import numpy as np
import torch
from transformers import PreTrainedModel

STEP = 0.1  # Euclidean length of the step, in the space of all weights


def mean_loss(model: PreTrainedModel, tokens: np.ndarray, start: int, context: int) -> torch.Tensor:
    """Mean loss (nats) of a sequence [tokens], read in blocks of `context` as in training."""
    ids = torch.from_numpy(np.concatenate([[start], tokens]).astype(np.int64))
    total = torch.zeros(())
    for begin in range(0, len(tokens), context):
        block = ids[begin : begin + context + 1]
        logits = model(block[None, :-1], use_cache=False).logits[0]
        total = total + torch.nn.functional.cross_entropy(logits, block[1:], reduction="sum")
    return total / len(tokens)


def white_box_scores(
    model: PreTrainedModel, tokens: np.ndarray, start: int, context: int
) -> tuple[float, float, float]:
    """Return (minus loss, minus log gradient norm, minus loss after a step); larger is better.

    The weights are those of before when it returns.
    """
    weights = [p for p in model.parameters() if p.requires_grad]
    loss = mean_loss(model, tokens, start, context)
    gradient = torch.autograd.grad(loss, weights)
    norm = torch.sqrt(sum((g.double().square().sum() for g in gradient), start=torch.zeros(())))
    kept = [p.detach().clone() for p in weights]
    with torch.no_grad():
        for weight, g in zip(weights, gradient, strict=True):
            weight -= STEP / float(norm) * g
        after = float(mean_loss(model, tokens, start, context))
        for weight, old in zip(weights, kept, strict=True):
            weight.copy_(old)
    return -float(loss.detach()), -float(norm.log()), -after
