"""Hidden states to log-probabilities, without a [tokens, vocabulary] matrix in float32.

The output layer runs on a few hundred positions at a time, in the precision of the model, and only
on positions whose token is scored. The log-sum-exp over the vocabulary is taken in float32. The
logit of the token itself is computed once more in float32 and put in the place of the rounded one:
of the error that a bfloat16 output layer adds, that is most.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

Transform = Callable[[Tensor], Tensor]


def logit_transform(config: Any) -> Transform | None:
    """Return what an architecture does to its logits after the output layer, on float32 [N, V].

    Gemma, RecurrentGemma and xLSTM cap them softly, Cohere and Falcon-H1 multiply and Granite
    divides them by a constant.
    """
    text = config.get_text_config()
    for name in ("final_logit_softcapping", "logits_soft_cap", "output_logit_soft_cap"):
        if cap := getattr(text, name, None):
            return lambda logits: logits.div_(cap).tanh_().mul_(cap)
    for name in ("logit_scale", "lm_head_multiplier"):
        if scale := getattr(text, name, None):
            return lambda logits: logits.mul_(scale)
    if scaling := getattr(text, "logits_scaling", None):
        return lambda logits: logits.div_(scaling)
    return None


class Head:
    """The output layer of a model as a function (hidden states, tokens) -> log-probabilities.

    The weights of `layer` may be quantised or lie on another device. `transform` is applied in
    place to float32 logits; `rows` is the number of positions whose logits are alive at a time.
    """

    def __init__(self, layer: torch.nn.Module, transform: Transform | None, *, rows: int) -> None:
        self.layer = layer
        self.transform = transform
        self.rows = rows
        # Quantised weights are packed integers, offloaded ones a placeholder: neither can be read.
        self._plain: torch.nn.Linear | None = None
        if type(layer) is torch.nn.Linear and layer.weight.is_floating_point():
            self._plain = layer if layer.weight.device.type != "meta" else None
        self._buffer: Tensor | None = None

    def __call__(self, hidden: Tensor, tokens: Tensor) -> Tensor:
        """Log-probabilities (nats), float32, of tokens [N] given hidden states [N, d].

        Tokens [N, K] are K for each hidden state, whose logits are computed once.
        """
        each = tokens[:, None] if tokens.ndim == 1 else tokens
        result = torch.empty(each.shape, dtype=torch.float32, device=hidden.device)
        step = max(1, self.rows // each.shape[1])  # no more rows of the layer's weights than that
        for start in range(0, len(hidden), step):
            part = slice(start, start + step)
            wanted = each[part] if self._plain is None else each[part].to(self._plain.weight.device)
            logits = self.logits(hidden[part], wanted)
            picked = logits.gather(1, wanted.to(logits.device))
            # In place: a second matrix of this size costs more than the arithmetic.
            top = logits.amax(1, keepdim=True)
            total = logits.sub_(top).exp_().sum(1, keepdim=True)
            result[part] = (picked - top - total.log_()).to(hidden.device)
        return result.reshape(tokens.shape)

    def logits(self, hidden: Tensor, tokens: Tensor | None = None) -> Tensor:
        """Logits, float32 [n, V], of at most `rows` hidden states; the next call overwrites them.

        Those of `tokens` [n, K], if given, are exact.
        """
        return self._finished(self._raw(hidden), hidden, tokens)

    def blocks(
        self, hidden: Tensor, tokens: Tensor, *, elements: int
    ) -> Iterator[tuple[slice, Tensor]]:
        """Yield (rows, their float32 logits [n, V]), some `elements` numbers at a time.

        So small a block stays in the processor's cache while the caller works on it; the next one
        overwrites it. The logits of `tokens` [N, K] are exact.
        """
        for start in range(0, len(hidden), self.rows):
            raw = self._raw(hidden[start : start + self.rows])
            step = max(1, elements // raw.shape[1])
            for first in range(0, len(raw), step):
                block = raw[first : first + step]
                rows = slice(start + first, start + first + len(block))
                yield rows, self._finished(block, hidden[rows], tokens[rows].to(raw.device))
            del raw, block  # before the next: fresh memory takes as long as half of the product

    def _raw(self, hidden: Tensor) -> Tensor:
        if self._plain is not None:  # state models hand over more digits than it takes
            hidden = hidden.to(self._plain.weight.dtype)
        return self.layer(hidden)  # type: ignore[no-any-return]

    def _finished(self, raw: Tensor, hidden: Tensor, tokens: Tensor | None) -> Tensor:
        if raw.dtype == torch.float32:
            return raw if self.transform is None else self.transform(raw)
        if self._buffer is None or self._buffer.shape[1] != raw.shape[1]:
            shape = (self.rows, raw.shape[1])
            self._buffer = torch.empty(shape, dtype=torch.float32, device=raw.device)
        logits = self._buffer[: len(raw)].copy_(raw)
        if self._plain is not None and tokens is not None:
            weight = self._plain.weight[tokens].float()
            exact = (hidden.to(weight.device).float()[:, None] * weight).sum(2)
            if self._plain.bias is not None:
                exact += self._plain.bias[tokens].float()
            logits.scatter_(1, tokens, exact)
        return logits if self.transform is None else self.transform(logits)


@torch.inference_mode()
def objection(
    network: PreTrainedModel, head: Head, device: torch.device, length: int
) -> str | None:
    """Return what speaks against scoring with this network, or None.

    Transformers loads encoders as causal models too, whose "probability" of a token has seen the
    token; and an architecture may change its logits behind the output layer. So two texts of
    `length` tokens that differ in the last alone go through the network as a whole and through its
    parts. NaN is no objection here: damaged weights show in the scores.
    """
    vocabulary = network.config.get_text_config().vocab_size
    ids = torch.arange(length + 1, device=device) * (vocabulary // (length + 1))
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
    width = getattr(head.layer, "in_features", None)  # that of a quantised layer may be unknown
    if hidden is None or head.layer is None or width not in (None, hidden.shape[-1]):
        return "its output layer cannot be separated from the rest of it; use another model"
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
