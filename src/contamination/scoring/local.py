"""`TransformersScorer`: a causal model that runs on this machine's devices.

The network runs over whole batches; its output layer only where a token is scored.
While a GPU computes one batch, the results of earlier ones come back.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from contamination.device import free_bytes, has_bfloat16
from contamination.errors import InputError
from contamination.scoring import loading
from contamination.scoring.contract import Scorer, start_token
from contamination.scoring.head import Head, logit_transform, objection
from contamination.scoring.load_errors import is_out_of_memory
from contamination.scoring.loading import ModelSource
from contamination.scoring.models import ModelEntry
from contamination.scoring.processes import processes
from contamination.scoring.room import batch_room, fits_surely, head_rows, must_spread
from contamination.scoring.unpacking import unpack
from contamination.scoring.windows import Window, assemble, padded, take_batch, windows

if TYPE_CHECKING:  # importing it takes longer than importing torch
    from transformers import PreTrainedModel

BATCH_TOKENS = {"cpu": 4096, "cuda": 65536}  # more hide no more work; a GPU may take less
LOGITS = {"cpu": 1 << 24, "cuda": 1 << 28}  # of the float32 [rows, vocabulary] buffer
IN_FLIGHT = 2  # batches whose results are still on the device

# (hidden states [N, d], the tokens that they predict [N], those that they have just
# read [N]) to float32 [N, ...]
Output = Callable[[Tensor, Tensor, Tensor], Tensor]
# Index of the sequence, the tokens scored, their values.
WindowValues = tuple[int, slice, np.ndarray]


class TransformersScorer:
    """A causal model of transformers, fulfilling `contamination.scoring.contract.Scorer`.

    One that exceeds the device of a process is spread over all of them. Raises
    InputError if it exceeds all of them, or there is no causal language model of that
    name.

    Parameters
    ----------
    source
        Place of the model; a path or hub id is a `ModelSource` with its defaults.
    batch_tokens
        Most tokens of a batch, padding included; halved whenever memory runs out. None
        is 4,096 on a CPU, and on a GPU what its free memory takes, at most 65,536.
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
            self._states = loading.settled_states(source)
            config = loading.read_config(source)
            self.context = loading.context_length(source, config)
            self.source = source
            # Whether the network is over all devices: then one process works, and no
            # other.
            self.spread = not fits_surely(source, self.dtype, self.device) and must_spread(
                source, self.config, self.dtype, self.device
            )
            self.tokenizer = loading.load_tokenizer(source)
            self.start = start_token(self.tokenizer)
            self.revision = loading.identity(source, config, self.dtype, self.start)
        usual = BATCH_TOKENS.get(self.device.type, BATCH_TOKENS["cpu"])
        self.batch_tokens = batch_tokens or usual
        self._by_bytes = batch_tokens is None

    @cached_property
    def config(self) -> Any:
        """The configuration with the defaults of its architecture, loaded late like `model`."""
        return loading.load_config(self.source)

    @cached_property
    def model(self) -> "PreTrainedModel":
        """The network, loaded late: a full store never needs it.

        Files that changed are refused.
        """
        if not self.spread:  # files may fit that lack most of what is described
            self.spread = must_spread(self.source, self.config, self.dtype, self.device)
        device = None if self.spread else self.device
        return loading.load_named(
            self.source,
            self.config,
            self.dtype,
            self.start,
            device=device,
            revision=self.revision,
            states=self._states,
        )

    @cached_property
    def body(self) -> torch.nn.Module:
        """The network without its output layer: token ids to hidden states."""
        body: torch.nn.Module = self.model.base_model
        if self.source.compile:
            body.compile(dynamic=True)
        return body

    @cached_property
    def entry(self) -> torch.device:
        """Device that takes the inputs; weights that wait on disk are on none."""
        device: torch.device = self.model.device
        return self.device if device.type == "meta" else device

    @cached_property
    def head(self) -> Head:
        """The output layer, checked to reproduce the logits of a causal model."""
        model = self.model
        rows = head_rows(
            free_bytes(self.device, spread=self.spread),
            self.config.get_text_config().vocab_size,
            itemsize=self.dtype.itemsize,
            most=LOGITS.get(self.device.type, LOGITS["cpu"]),
        )
        with loading.explain_load_errors(self.source.name):
            # The first time that it computes.
            layer = model.get_output_embeddings()
            head = Head(layer, logit_transform(self.config), rows=rows)
            reason = objection(model, head, self.entry, min(self.context, 8))
        if reason:
            raise InputError(
                f"{self.source.name}: the model is of no use here, because {reason}",
            )
        return head

    def load(self) -> None:
        """Load and check the network now; InputError if it cannot be used."""
        _ = self.head

    def token_logprobs(
        self, sequences: Sequence[np.ndarray], firsts: Sequence[int] | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (index, float32 log-probabilities in nats) as batches finish, longest first."""
        return self.token_values(sequences, firsts, self._log_probabilities)

    def _log_probabilities(
        self,
        hidden: Tensor,
        targets: Tensor,
        read: Tensor,
    ) -> Tensor:
        return self.head(hidden, targets)

    def token_values(
        self,
        sequences: Sequence[np.ndarray],
        firsts: Sequence[int] | None,
        output: Output,
        columns: tuple[int, ...] = (),
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (index, what `output` says of each token, float32 of shape (tokens,) + columns).

        Windows of equal inputs and targets are read once: a shard of three examples has
        but six orderings.

        Parameters
        ----------
        sequences, firsts
            Same as in `token_logprobs`.
        output
            A function of the hidden state that predicts a token.
        columns
            Shape of what it returns for one token.
        """
        self.require_known_tokens(sequences)
        wholes: list[np.ndarray] = []
        for ids in sequences:
            wholes.append(np.full((len(ids), *columns), np.nan, dtype=np.float32))
        scored = list(windows(map(len, sequences), self.context, firsts))
        alike = self._equal_windows(scored, sequences)
        forward = partial(self._forward, sequences=sequences, output=output)
        owners = [window.sequence for window in scored]
        yield from assemble(wholes, owners, self._parts(alike, forward))

    def _equal_windows(
        self, scored: Sequence[Window], sequences: Sequence[np.ndarray]
    ) -> dict[Window, list[Window]]:
        """Return the windows of equal inputs and targets, by the first of them."""
        equal: dict[tuple[bytes, bytes], list[Window]] = {}
        for window in scored:
            ids = sequences[window.sequence]
            inputs = window.inputs(ids, self.start)
            targets = ids[window.scored]
            key = (inputs.tobytes(), targets.tobytes())
            equal.setdefault(key, []).append(window)
        return {same[0]: same for same in equal.values()}

    def _parts(
        self,
        alike: Mapping[Window, Sequence[Window]],
        forward: Callable[[list[Window]], Tensor],
    ) -> Iterator[WindowValues]:
        """Yield what each window contributes to its sequence."""
        for batch, values in self.results(list(alike), forward):
            start = 0
            for window in batch:
                stop = start + window.stop - window.first
                for same in alike[window]:
                    yield same.sequence, same.scored, values[start:stop]
                start = stop

    def require_known_tokens(self, sequences: Sequence[np.ndarray]) -> None:
        """Refuse ids that the network has no row for: a GPU would fail without saying why."""
        largest = int(np.concatenate([[self.start], *sequences]).max())
        size = self.config.get_text_config().vocab_size
        if largest >= size:
            raise InputError(
                f"{self.source.name}: the tokenizer gave token {largest}, but the "
                f"model knows {size} tokens; put its own tokenizer there"
            )

    def room(self, row: int, *, keeps_keys: bool = False) -> int:
        """Return the tokens of a batch, by the free memory of a GPU unless they were given.

        `row` counts the tokens of the longest row; `keeps_keys` says whether keys and
        values of all layers stay on the device.
        """
        free = free_bytes(self.device, spread=self.spread) if self._by_bytes else None
        if free is None:
            return self.batch_tokens
        return batch_room(
            free,
            self.model.config,
            row=row,
            itemsize=self.dtype.itemsize,
            most=self.batch_tokens,
            block=self.head.rows * self.config.get_text_config().vocab_size,
            keeps_keys=keeps_keys,
        )

    def results(
        self,
        scored: list[Window],
        forward: Callable[[list[Window]], Tensor],
        *,
        keeps_keys: bool = False,
    ) -> Iterator[tuple[list[Window], np.ndarray]]:
        """Run `forward`, batch to values of its tokens, a few batches ahead of their results.

        `keeps_keys` says whether it keeps the keys and values of all layers.
        """
        if not scored:
            return
        # What runs out of memory while it is loaded is not helped by halving.
        self.load()
        left = sorted(scored, key=_by_width)
        room = self.room(left[-1].width, keeps_keys=keeps_keys)
        running: deque[Running] = deque()
        while left:
            batch = take_batch(left, room)
            started = self._start(batch, forward)
            if started is None:
                self._halve(batch)
                room = self.batch_tokens
                left.extend(reversed(batch))
                ahead = 0
            else:
                running.append(started)
                ahead = IN_FLIGHT
            while len(running) > ahead:
                yield self._collect(running.popleft())
        while running:
            yield self._collect(running.popleft())

    def _start(
        self, batch: list[Window], forward: Callable[[list[Window]], Tensor]
    ) -> "Running | None":
        """Compute a batch and start the copy of its results.

        Return None if it does not fit into memory.

        When this returns, no traceback holds the tensors of a batch that did not fit.
        """
        try:
            return self.fetch(batch, forward(batch))
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
        return None

    def _halve(self, batch: list[Window]) -> None:
        """Make batches half as large as one that did not fit.

        Raises InputError if it was one window.
        """
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        width = batch[0].width
        half = len(batch) // 2
        if not half:
            raise InputError(
                f"one window of {width} tokens does not fit into memory; use a shorter context"
            )
        self.batch_tokens = width * half

    @torch.inference_mode()
    def _forward(
        self, batch: list[Window], sequences: Sequence[np.ndarray], output: Output
    ) -> Tensor:
        rows: list[np.ndarray] = []
        for window in batch:
            rows.append(window.inputs(sequences[window.sequence], self.start))
        # On the right, where a causal model cannot see it.
        ids = padded(rows, self.start)
        places: list[np.ndarray] = []  # of the scored tokens in the batch, row after row
        targets: list[np.ndarray] = []
        for row, window in enumerate(batch):
            columns = np.arange(window.first - window.start, window.width)
            places.append(row * ids.shape[1] + columns)
            targets.append(sequences[window.sequence][window.scored])
        inputs = self.send(ids)
        positions = self.send(np.concatenate(places))
        hidden = self.body(input_ids=inputs, use_cache=False).last_hidden_state
        hidden = hidden.flatten(0, 1).index_select(0, positions.to(hidden.device))
        read = inputs.flatten().index_select(0, positions)
        predicted = self.send(np.concatenate(targets))
        return output(hidden, predicted.to(hidden.device), read.to(hidden.device))

    def send(self, array: np.ndarray) -> Tensor:
        """Start the copy of integers to the device that takes the inputs."""
        tensor = torch.from_numpy(array.astype(np.int64, copy=False))
        if self.device.type == "cuda":
            tensor = tensor.pin_memory()  # else the copy waits for the device
        return tensor.to(self.entry, non_blocking=True)

    def fetch(self, batch: list[Window], values: Tensor) -> "Running":
        """Start the copy of a batch's results to the host."""
        if values.device.type != "cuda":
            return Running(batch, values.cpu(), None)
        host = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
        host.copy_(values, non_blocking=True)
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(values.device))
        return Running(batch, host, event)

    def _collect(self, running: "Running") -> tuple[list[Window], np.ndarray]:
        """Return the batch and its results once they have arrived."""
        if running.arrived is not None:
            running.arrived.synchronize()
        values = running.values.numpy()
        if not np.isfinite(values).all():
            raise InputError(
                f"{self.source.name} returned a log-probability that is not finite; "
                f"its weights are damaged or overflow in {self.dtype}"
            )
        return running.batch, values


class Running(NamedTuple):
    """A batch whose results are on their way to the host.

    The event says when they are there.
    """

    batch: list[Window]
    values: Tensor
    arrived: torch.cuda.Event | None


def _by_width(window: Window) -> tuple[int, Window]:
    """Return what windows are sorted by: a batch then holds hardly any padding."""
    return window.width, window


def open_scorer(entry: ModelEntry) -> Scorer:
    """Open a model here, with its weights still unread.

    Code that comes with it is not run.
    """
    source = ModelSource(entry.id, revision=entry.revision, context=entry.context)
    return TransformersScorer(source)
