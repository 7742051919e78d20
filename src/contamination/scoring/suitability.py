"""What a network must show before its numbers are believed: causality, and logits we understand.

Transformers loads encoders (BERT) as causal models too, and their "probability" of a token has seen
the token; and an architecture may change its logits behind the output layer.
"""

import torch
from torch import Tensor
from transformers import PreTrainedModel

from contamination.scoring.head import Head


@torch.inference_mode()
def objection(
    network: PreTrainedModel, head: Head, device: torch.device, length: int
) -> str | None:
    """Return what speaks against scoring with this network, or None.

    Two texts of `length` tokens that differ in the last alone go through the network as a whole and
    through its parts. NaN is no objection here: damaged weights are told by the scores.
    """
    vocabulary = network.config.get_text_config().vocab_size
    ids = torch.arange(length + 1, device=device) * (vocabulary // (length + 1))
    texts = torch.stack([ids[:-1], torch.cat([ids[:-2], ids[-1:]])])
    theirs = network(input_ids=texts, use_cache=False).logits
    if torch.isnan(theirs).any():
        return None
    unit = max(torch.finfo(dtype).eps for dtype in (network.dtype, theirs.dtype))
    if not _same(theirs[0, :-1], theirs[1, :-1], unit):
        return "it sees the tokens that it is to predict; give a causal language model"
    hidden = getattr(
        network.base_model(input_ids=texts, use_cache=False), "last_hidden_state", None
    )
    if (
        hidden is None
        or head.layer is None
        or hidden.shape[-1] != getattr(head.layer, "in_features", hidden.shape[-1])
    ):
        return "its output layer cannot be told from the rest of it; use another model"
    parts = [head.logits(part).clone() for part in hidden.flatten(0, 1).split(head.rows)]
    if not _same(torch.cat(parts), theirs.flatten(0, 1), unit):
        return "it changes its logits after the output layer in an unknown way; use another model"
    return None


def _same(ours: Tensor, theirs: Tensor, unit: float) -> bool:
    """Whether logits are equal up to a few roundings of numbers spaced by `unit` at 1."""
    theirs = theirs.float()
    largest = float(theirs[theirs.isfinite()].abs().max())
    return ours.shape == theirs.shape and torch.allclose(
        ours.float().to(theirs.device), theirs, rtol=2 * unit, atol=max(unit, 1e-4) * largest
    )
