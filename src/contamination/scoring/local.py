"""`TransformersScorer`: a causal model that runs on this machine's devices.

The network runs over whole batches; its output layer only where a token is scored, on a few hundred
positions at a time, in the precision of the model. The log-sum-exp over the vocabulary is taken in
float32. The logit of the token itself is computed once more in float32 and put in the place of the
rounded one: of the error that a bfloat16 output layer adds, that is most. While a GPU computes one
batch, the results of earlier ones come back.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from contamination.device import has_bfloat16, memories
from contamination.errors import InputError
from contamination.scoring import loading
from contamination.scoring.contract import Scorer, start_token
from contamination.scoring.loading import ModelSource
from contamination.scoring.models import ModelEntry
from contamination.scoring.processes import processes
from contamination.scoring.unpacking import unpack
from contamination.scoring.windows import Window, assemble, padded, take_batch, windows

BATCH_TOKENS = {"cpu": 4096, "cuda": 65536}  # where more tokens no longer make it faster
LOGITS = {"cpu": 1 << 24, "cuda": 1 << 28}  # of the float32 [rows, vocabulary] buffer
ROOM = 0.8  # of the memory for weights; the rest is for batches
IN_FLIGHT = 2  # batches whose results are still on the device

# (hidden states [N, d], the tokens that they predict [N], those that they have just read [N]) to
# float32 [N, ...]
Output = Callable[[Tensor, Tensor, Tensor], Tensor]
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
        for part, logits in self.blocks(hidden, each):
            picked = logits.gather(1, each[part].to(logits.device))
            # In place: a second matrix of this size costs more than the arithmetic.
            top = logits.amax(1, keepdim=True)
            total = logits.sub_(top).exp_().sum(1, keepdim=True)
            result[part] = (picked - top - total.log_()).to(hidden.device)
        return result.reshape(tokens.shape)

    def blocks(
        self, hidden: Tensor, tokens: Tensor | None, *, elements: int | None = None
    ) -> Iterator[tuple[slice, Tensor]]:
        """Yield (rows, their float32 logits [n, V]); the next block overwrites them.

        The logits of `tokens` [N, K], if given, are exact: the output layer then takes 1 / K of its
        rows at once. The block has some `elements` numbers: what stays in the processor's cache
        while the caller works on it.
        """
        size = max(1, self.rows // (1 if tokens is None else tokens.shape[1]))
        for start in range(0, len(hidden), size):
            states = hidden[start : start + size]
            if self._plain is not None:  # state models hand over more digits than it takes
                states = states.to(self._plain.weight.dtype)
            raw = self.layer(states)
            step = max(1, elements // raw.shape[1]) if elements else len(raw)
            for first in range(0, len(raw), step):
                block = raw[first : first + step]
                part = slice(start + first, start + first + len(block))
                exact = None if tokens is None else tokens[part]
                yield part, self._finished(block, hidden[part], exact)
            del raw, block  # before the next: fresh memory takes as long as half of the product

    def _finished(self, raw: Tensor, hidden: Tensor, tokens: Tensor | None) -> Tensor:
        if raw.dtype == torch.float32:
            return raw if self.transform is None else self.transform(raw)
        if self._buffer is None or self._buffer.shape[1] != raw.shape[1]:
            shape = (self.rows, raw.shape[1])
            self._buffer = torch.empty(shape, dtype=torch.float32, device=raw.device)
        logits = self._buffer[: len(raw)].copy_(raw)
        if self._plain is not None and tokens is not None:
            tokens = tokens.to(raw.device)
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
    parts = [part.clone() for _, part in head.blocks(hidden.flatten(0, 1), None)]
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


class TransformersScorer:
    """A causal model of transformers, fulfilling `contamination.scoring.contract.Scorer`.

    One that exceeds the device of a process is spread over all of them. Raises InputError if it
    exceeds all of them, and as `contamination.scoring.loading.load_config` does.

    Parameters
    ----------
    source : where the model comes from; a path or hub id is a `ModelSource` with its defaults.
    batch_tokens : most tokens of a batch, padding included; halved whenever memory runs out.
    """

    def __init__(
        self, source: ModelSource | Path | str, *, batch_tokens: int | None = None
    ) -> None:
        source = source if isinstance(source, ModelSource) else ModelSource(str(source))
        self.device = processes().device
        auto = torch.bfloat16 if has_bfloat16(self.device) else torch.float32
        self.dtype = getattr(torch, source.precision, auto)  # there is no torch.auto
        source = loading.pin_commit(unpack(source, self.dtype))
        with loading.explain_load_errors(source.name), loading.unchanged(source):
            self.config = loading.load_config(source)
            self.context = loading.context_length(source, self.config)
            self.source = source
            # Whether the network is over all devices: then one process works, and no other.
            self.spread = must_spread(source, self.config, self.dtype, self.device)
            self.tokenizer = loading.load_tokenizer(source)
            self.start = start_token(self.tokenizer)
            self.revision = loading.identity(self.source, self.config, self.dtype, self.start)
        self.batch_tokens = batch_tokens or BATCH_TOKENS.get(self.device.type, BATCH_TOKENS["cpu"])

    @cached_property
    def model(self) -> PreTrainedModel:
        """The network, loaded late: a full store never needs it. Files that changed are refused."""
        device = None if self.spread else self.device
        return loading.load_named(
            self.source, self.config, self.dtype, self.start, device=device, revision=self.revision
        )

    @cached_property
    def body(self) -> torch.nn.Module:
        """The network without its output layer: token ids to hidden states."""
        body: torch.nn.Module = self.model.base_model
        if self.source.compile:
            body.compile(dynamic=True)
        return body

    @property
    def entry(self) -> torch.device:
        """Device that takes the inputs; weights that wait on disk are on none."""
        device: torch.device = self.model.device
        return self.device if device.type == "meta" else device

    @cached_property
    def head(self) -> Head:
        """The output layer, checked to reproduce the logits of a causal model."""
        model = self.model
        room = LOGITS.get(self.device.type, LOGITS["cpu"])
        rows = max(1, room // self.config.get_text_config().vocab_size)
        with loading.explain_load_errors(self.source.name):  # the first time that it computes
            head = Head(model.get_output_embeddings(), logit_transform(self.config), rows=rows)
            reason = objection(model, head, self.entry, min(self.context, 8))
        if reason:
            raise InputError(f"{self.source.name}: the model is of no use here, because {reason}")
        return head

    def load(self) -> None:
        """Load and check the network now; raises InputError as the scoring would."""
        _ = self.head

    def token_logprobs(
        self, sequences: Sequence[np.ndarray], firsts: Sequence[int] | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (index, float32 log-probabilities in nats) as batches finish, longest first."""
        return self.token_values(
            sequences, firsts, lambda hidden, targets, _: self.head(hidden, targets)
        )

    def token_values(
        self,
        sequences: Sequence[np.ndarray],
        firsts: Sequence[int] | None,
        output: Output,
        columns: tuple[int, ...] = (),
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (index, what `output` says of each token, float32 of shape (tokens,) + columns).

        As `token_logprobs`, for any function of the hidden state that predicts a token. Windows of
        equal inputs and targets are read once: a shard of three examples has but six orderings.
        """
        self.require_known_tokens(sequences)
        scores = [np.full((len(ids), *columns), np.nan, dtype=np.float32) for ids in sequences]
        scored = list(windows(map(len, sequences), self.context, firsts))
        equal: dict[tuple[bytes, bytes, int], list[Window]] = {}
        for window in scored:
            ids = sequences[window.sequence]
            inputs, targets = window.inputs(ids, self.start), ids[window.scored]
            key = inputs.tobytes(), targets.tobytes(), window.first - window.start
            equal.setdefault(key, []).append(window)
        alike = {same[0]: same for same in equal.values()}

        def parts() -> Iterator[tuple[int, slice, np.ndarray]]:
            forward = partial(self._forward, sequences=sequences, output=output)
            for batch, values in self.results(list(alike), forward):
                stop = 0
                for window in batch:
                    part = values[stop : (stop := stop + window.stop - window.first)]
                    for same in alike[window]:
                        yield same.sequence, same.scored, part

        yield from assemble(scores, [window.sequence for window in scored], parts())

    def require_known_tokens(self, sequences: Sequence[np.ndarray]) -> None:
        """Refuse ids that the network has no row for: a GPU would fail without saying why."""
        largest = max([self.start, *(int(ids.max()) for ids in sequences if len(ids))])
        size = self.config.get_text_config().vocab_size
        if largest >= size:
            raise InputError(
                f"{self.source.name}: the tokenizer gave token {largest}, but the model knows "
                f"{size} tokens; put its own tokenizer there"
            )

    def results(
        self, asked: list[Window], forward: Callable[[list[Window]], Tensor]
    ) -> Iterator[tuple[list[Window], np.ndarray]]:
        """Run `forward`, batch to values of its tokens, a few batches ahead of their results."""
        if asked:
            self.load()  # what runs out of memory while it is loaded is not helped by halving
        left = sorted(asked, key=lambda window: (window.width, window))
        running: deque[tuple[list[Window], Tensor, torch.cuda.Event | None]] = deque()
        while left:
            batch, fits = take_batch(left, self.batch_tokens), True
            try:
                running.append((batch, *self.fetch(forward(batch))))
            except RuntimeError as error:
                if not loading.is_out_of_memory(error):
                    raise
                fits = False
            if not fits:  # outside of the except block, whose traceback holds the tensors
                if self.device.type == "cuda":
                    torch.cuda.empty_cache()
                width, half = batch[0].width, len(batch) // 2
                if not half:
                    told = f"one window of {width} tokens does not fit into memory"
                    raise InputError(f"{told}; use a shorter context")
                self.batch_tokens = width * half
                left.extend(reversed(batch))
            while len(running) > (IN_FLIGHT if fits else 0):
                yield self._collect(*running.popleft())
        while running:
            yield self._collect(*running.popleft())

    @torch.inference_mode()
    def _forward(
        self, batch: list[Window], sequences: Sequence[np.ndarray], output: Output
    ) -> Tensor:
        rows = [window.inputs(sequences[window.sequence], self.start) for window in batch]
        ids = padded(rows, self.start)  # on the right, where a causal model cannot see it
        flat = [
            row * ids.shape[1] + np.arange(window.first - window.start, window.width)
            for row, window in enumerate(batch)
        ]
        targets = [sequences[window.sequence][window.scored] for window in batch]
        inputs, positions = self.send(ids), self.send(np.concatenate(flat))
        hidden = self.body(input_ids=inputs, use_cache=False).last_hidden_state
        hidden = hidden.flatten(0, 1).index_select(0, positions.to(hidden.device))
        read = inputs.flatten().index_select(0, positions)
        device = hidden.device
        return output(hidden, self.send(np.concatenate(targets)).to(device), read.to(device))

    def send(self, array: np.ndarray) -> Tensor:
        """Start the copy of integers to the device that takes the inputs."""
        tensor = torch.from_numpy(array.astype(np.int64, copy=False))
        if self.device.type == "cuda":
            tensor = tensor.pin_memory()  # else the copy waits for the device
        return tensor.to(self.entry, non_blocking=True)

    def fetch(self, values: Tensor) -> tuple[Tensor, torch.cuda.Event | None]:
        """Start the copy of results to the host; the event says when it has arrived."""
        if values.device.type != "cuda":
            return values.cpu(), None
        host = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
        host.copy_(values, non_blocking=True)
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(values.device))
        return host, event

    def _collect(
        self, batch: list[Window], values: Tensor, event: torch.cuda.Event | None
    ) -> tuple[list[Window], np.ndarray]:
        if event is not None:
            event.synchronize()
        result = values.numpy()
        if not np.isfinite(result).all():
            raise InputError(
                f"{self.source.name} returned a log-probability that is not finite; its weights "
                f"are damaged or overflow in {self.dtype}"
            )
        return batch, result


def must_spread(source: ModelSource, config: Any, dtype: torch.dtype, device: torch.device) -> bool:
    """Whether the weights exceed the device of a process, and are to be spread over all devices.

    On a CPU processes share the memory. What comes with code of its own is not measured. Raises
    InputError if the weights exceed all devices together, and as `model_shape`.
    """
    if source.trust_remote_code:
        return False
    weights, devices = loading.count_parameters(config) * dtype.itemsize, memories(device)
    gpu = device.type == "cuda"
    own = min(devices) if gpu else devices[0] / int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if weights <= ROOM * sum(devices):
        return weights > ROOM * own
    raise InputError(
        f"{source.name}: its weights take {weights / 1e9:,.3g} GB, and {len(devices)} device(s) "
        f"({device.type}) have {sum(devices) / 1e9:,.3g} GB of memory, {ROOM:.0%} of it for "
        "weights; take a smaller one, or a machine with more"
    )


def open_scorer(entry: ModelEntry) -> Scorer:
    """Open a model here, with its weights still unread; code that comes with it is not run."""
    return TransformersScorer(ModelSource(entry.id, revision=entry.revision, context=entry.context))
