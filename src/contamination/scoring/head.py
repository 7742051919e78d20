"""The output layer of a model: hidden states to log-probabilities, and whether it is understood.

It runs on a few hundred positions at a time, in the precision of the model. The
log-sum-exp over the vocabulary is taken in float32. The logit of the token itself is
computed once more in float32 and put in the place of the rounded one: of the error that
a bfloat16 output layer adds, that is most.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:  # importing it takes longer than importing torch
    from transformers import PreTrainedModel

Transform = Callable[[Tensor], Tensor]
# float32 logits that stay in the cache of a core between one operation and the next
CACHED = {"cpu": 1 << 18}
CAPS = ("final_logit_softcapping", "logits_soft_cap", "output_logit_soft_cap")
SCALES = ("logit_scale", "lm_head_multiplier")


def logit_transform(config: Any) -> Transform | None:
    """Return what an architecture does to its logits after the output layer, on float32 [N, V].

    Gemma, RecurrentGemma and xLSTM cap them softly, Cohere and Falcon-H1 multiply and
    Granite divides them by a constant.
    """
    text = config.get_text_config()
    cap = _first_set(text, CAPS)
    if cap:
        return lambda logits: logits.div_(cap).tanh_().mul_(cap)
    scale = _first_set(text, SCALES)
    if scale:
        return lambda logits: logits.mul_(scale)
    divisor = getattr(text, "logits_scaling", None)
    if divisor:
        return lambda logits: logits.div_(divisor)
    return None


def _first_set(config: Any, names: tuple[str, ...]) -> Any:
    """Return the first of these settings that is there and not zero; None without."""
    for name in names:
        value = getattr(config, name, None)
        if value:
            return value
    return None


class Head:
    """The output layer of a model as a function (hidden states, tokens) -> log-probabilities.

    Parameters
    ----------
    layer
        The output layer. Its weights may be quantised or lie on another device.
    transform
        Applied in place to float32 logits; None changes nothing.
    rows
        Number of positions whose logits are alive at a time.
    """

    def __init__(
        self,
        layer: torch.nn.Module,
        transform: Transform | None,
        *,
        rows: int,
    ) -> None:
        self.layer = layer
        self.transform = transform
        self.rows = rows
        # Quantised weights are packed integers, offloaded ones a placeholder: neither
        # can be read.
        self._plain: torch.nn.Linear | None = None
        if type(layer) is torch.nn.Linear and layer.weight.is_floating_point():
            self._plain = layer if layer.weight.device.type != "meta" else None
        self._buffer: Tensor | None = None

    def __call__(self, hidden: Tensor, tokens: Tensor) -> Tensor:
        """Return log-probabilities (nats), float32, of tokens [N] given hidden states [N, d].

        Tokens [N, K] are K for each hidden state, whose logits are computed once.
        """
        columns = tokens[:, None] if tokens.ndim == 1 else tokens
        result = torch.empty(columns.shape, dtype=torch.float32, device=hidden.device)
        elements = CACHED.get(hidden.device.type)
        for part, logits in self.blocks(hidden, columns, elements=elements):
            picked = logits.gather(1, columns[part].to(logits.device))
            # In place: a second matrix of this size costs more than the arithmetic.
            top = logits.amax(1, keepdim=True)
            total = logits.sub_(top).exp_().sum(1, keepdim=True)
            result[part] = (picked - top - total.log_()).to(hidden.device)
        return result.reshape(tokens.shape)

    def blocks(
        self, hidden: Tensor, tokens: Tensor | None, *, elements: int | None = None
    ) -> Iterator[tuple[slice, Tensor]]:
        """Yield (rows, float32 logits [n, V]) of states [N, d]; the next block overwrites them.

        Of `tokens` [N, K] the logits are exact, and the output layer takes 1 / K of its
        rows at once. A block has about `elements` numbers: what stays in the
        processor's cache while the caller works on it. None is all rows of the output
        layer.
        """
        columns = 1 if tokens is None else tokens.shape[1]
        size = max(1, self.rows // columns)
        for start in range(0, len(hidden), size):
            states = hidden[start : start + size]
            if self._plain is not None:
                # State models hand over more digits than it takes.
                states = states.to(self._plain.weight.dtype)
            raw = self.layer(states)
            step = len(raw)
            if elements:
                step = max(1, elements // raw.shape[1])
            for first in range(0, len(raw), step):
                block = raw[first : first + step]
                part = slice(start + first, start + first + len(block))
                exact = None if tokens is None else tokens[part]
                yield part, self._finished(block, hidden[part], exact)
            # Before the next: fresh memory takes as long as half of the product.
            del raw, block

    def _finished(self, raw: Tensor, hidden: Tensor, tokens: Tensor | None) -> Tensor:
        """Return the float32 logits of the architecture, those of `tokens` exact."""
        logits = raw
        if raw.dtype != torch.float32:
            logits = self._buffer_of(raw)[: len(raw)].copy_(raw)
            if self._plain is not None and tokens is not None:
                _put_exact(logits, self._plain, hidden, tokens.to(raw.device))
        if self.transform is None:
            return logits
        return self.transform(logits)

    def _buffer_of(self, raw: Tensor) -> Tensor:
        """Return the float32 buffer for logits of this vocabulary."""
        if self._buffer is None or self._buffer.shape[1] != raw.shape[1]:
            shape = (self.rows, raw.shape[1])
            self._buffer = torch.empty(shape, dtype=torch.float32, device=raw.device)
        return self._buffer


def _put_exact(
    logits: Tensor,
    layer: torch.nn.Linear,
    hidden: Tensor,
    tokens: Tensor,
) -> None:
    """Compute the logits of `tokens` [n, K] in float32, and put them in their places."""
    weight = layer.weight[tokens].float()
    states = hidden.to(weight.device).float()
    exact = (states[:, None] * weight).sum(2)
    if layer.bias is not None:
        exact += layer.bias[tokens].float()
    logits.scatter_(1, tokens, exact)


@torch.inference_mode()
def objection(
    network: "PreTrainedModel", head: Head, device: torch.device, length: int
) -> str | None:
    """Return what speaks against scoring with this network, or None.

    Parameters
    ----------
    network
        A causal network, as transformers loads it.
    head
        Output layer of the network.
    device
        Device that takes the inputs.
    length
        Number of tokens of the texts that are tried.

    Notes
    -----
    Transformers loads encoders as causal models too, whose "probability" of a token has
    seen the token; and an architecture may change its logits behind the output layer.
    So two texts of `length` tokens that differ in the last alone go through the network
    as a whole and through its parts. NaN is no objection here: damaged weights show in
    the scores.
    """
    vocabulary = network.config.get_text_config().vocab_size
    spacing = vocabulary // (length + 1)
    ids = torch.arange(length + 1, device=device) * spacing
    texts = torch.stack([ids[:-1], torch.cat([ids[:-2], ids[-1:]])])
    theirs = network(input_ids=texts, use_cache=False).logits
    if torch.isnan(theirs).any():
        return None
    if len(ids.unique()) > 1 and (theirs == theirs[0, 0]).all():
        return "its logits are the same whatever it reads; give the weights that belong to it"
    unit = max(torch.finfo(dtype).eps for dtype in (network.dtype, theirs.dtype))
    if not _same(theirs[0, :-1], theirs[1, :-1], unit):
        return "it sees the tokens that it is to predict; give a causal language model"
    output = network.base_model(input_ids=texts, use_cache=False)
    hidden = getattr(output, "last_hidden_state", None)
    # That of a quantised layer may be unknown.
    width = getattr(head.layer, "in_features", None)
    if hidden is None or head.layer is None or width not in (None, hidden.shape[-1]):
        return "its output layer cannot be separated from the rest of it; use another model"
    parts = [part.clone() for _, part in head.blocks(hidden.flatten(0, 1), None)]
    if not _same(torch.cat(parts), theirs.flatten(0, 1), unit):
        return "it changes its logits after the output layer in an unknown way; use another model"
    return None


def _same(ours: Tensor, theirs: Tensor, unit: float) -> bool:
    """Return whether logits are equal up to a few roundings of numbers spaced by `unit` at 1."""
    if ours.shape != theirs.shape:
        return False
    theirs = theirs.float()
    ours = ours.float().to(theirs.device)
    largest = float(theirs[theirs.isfinite()].abs().max())
    return torch.allclose(ours, theirs, rtol=2 * unit, atol=max(unit, 1e-4) * largest)
