"""The network that is trained: GPT-2 as transformers builds it, and its loss.

Both are written for what is slow on a CPU: torch's fused attention over a short
context, and a float32 matrix [tokens, vocabulary] that goes through memory once for
every operation of the loss.
"""

from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, GPT2Config, PreTrainedModel

from contamination.device import has_bfloat16
from reproduction.run.profile import Architecture

SHORT = 512  # tokens of a context up to which plain products are clearly faster on a CPU
# float32 logits at a time: in the cache of a CPU
BLOCK = {"cpu": 1 << 18, "cuda": 1 << 27}


def gpt2_config(shape: Architecture, vocabulary: int, end_of_text: int) -> GPT2Config:
    """Return the configuration of transformers, without dropout: text is read once.

    Parameters
    ----------
    shape
        Widths and layers.
    vocabulary
        Number of tokens.
    end_of_text
        Id of the token that starts and ends texts.
    """
    return GPT2Config(
        vocab_size=vocabulary,
        **asdict(shape),
        # GPT-2's own "gelu_new" approximates this one by tanh, within 0.0005. On a CPU
        # torch takes five times as long for tanh.
        activation_function="gelu",
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=end_of_text,
        eos_token_id=end_of_text,
    )


def plain_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    **_: Any,
) -> tuple[Tensor, None]:
    """Return causal attention, [rows, tokens, ...], of [rows, heads, tokens, d].

    For rows without padding, of which transformers gives no mask. Several heads may
    share a key.

    Parameters
    ----------
    module
        The layer; it is not read.
    query, key, value
        [rows, heads, tokens, d]; keys may have fewer heads.
    attention_mask
        None, for rows without padding.
    scaling
        Factor of the products of queries and keys.
    """
    rows, heads, tokens, width = query.shape
    heads_per_key = heads // key.shape[1]
    if heads_per_key > 1:
        key = key.repeat_interleave(heads_per_key, dim=1)
        value = value.repeat_interleave(heads_per_key, dim=1)
    hidden = torch.full((tokens, tokens), -torch.inf, dtype=query.dtype).triu(1)
    # Scales and adds what is hidden within the product.
    scores = torch.baddbmm(
        hidden,
        query.flatten(0, 1),
        key.flatten(0, 1).transpose(-1, -2),
        alpha=scaling,
    )
    seen = torch.softmax(scores, dim=-1) @ value.flatten(0, 1)
    return seen.view(rows, heads, tokens, width).transpose(1, 2), None


AttentionInterface.register("plain", plain_attention)


def training_attention(device: torch.device, context: int) -> str:
    """Name the attention that trains fastest (twice as fast here, forward and backward)."""
    if device.type == "cpu" and context <= SHORT:
        return "plain"
    return "sdpa"


class NextTokenLoss(torch.nn.Module):
    """The mean loss (nats) of all tokens of ids [rows, tokens] but the first of a row.

    `model` must have an output layer without bias and logits that nothing changes, as
    GPT-2 has.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> Tensor:
        """Return the loss, a float32 scalar."""
        rough = has_bfloat16(ids.device)
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=rough):
            hidden = self.model.base_model(input_ids=ids[:, :-1], use_cache=False)[0]
        dtype = torch.bfloat16 if rough else hidden.dtype
        weight = self.model.get_output_embeddings().weight.to(dtype)
        rows = hidden.flatten(0, 1).to(dtype)
        targets = ids[:, 1:].flatten()
        loss: Tensor = _CrossEntropy.apply(rows, weight, targets)  # type: ignore[no-untyped-call]
        return loss


class _CrossEntropy(torch.autograd.Function):
    """Mean cross-entropy of hidden @ weight.T, whose gradients are computed with it.

    Logits become probabilities a block at a time, in float32 and in place. Torch's own
    `linear_cross_entropy` returns the loss of bfloat16 inputs in bfloat16, two digits
    of it.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
        logits = hidden @ weight.T
        count, vocabulary = logits.shape
        rows = max(1, BLOCK.get(logits.device.type, BLOCK["cpu"]) // vocabulary)
        blocks = torch.split(logits, rows)
        targets_of_blocks = torch.split(targets, rows)
        total = torch.zeros((), device=logits.device)
        for block, tokens in zip(blocks, targets_of_blocks, strict=True):
            values = block.float()
            top = values.amax(1, keepdim=True)
            picked = values.gather(1, tokens[:, None])
            sums = values.sub_(top).exp_().sum(1, keepdim=True)
            total += (sums.log() + top - picked).sum()
            share = torch.full_like(picked, 1 / count)
            values.div_(sums * count).scatter_add_(1, tokens[:, None], -share)
            block.copy_(values)
        ctx.save_for_backward(logits @ weight, logits.T @ hidden)
        return total / count

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        hidden, weight = ctx.saved_tensors
        return hidden * gradient, weight * gradient, None
