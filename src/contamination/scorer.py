"""Per-token log-probabilities of sequences under a causal language model (Oren, section 3).

`Scorer` is all that the rest of the project knows of a model. `TransformersScorer` is the one for
models that run here. Sequences longer than the context are read in overlapping windows with stride
context / 2 (Oren, appendix A): every token is scored exactly once, nothing is cut off.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
import transformers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.hardware import has_bfloat16

ROWS_PER_SOFTMAX = 512  # rows of the [rows, vocabulary] float32 matrix that is alive at a time


class Scorer(Protocol):
    """What a model must offer to be audited."""

    @property
    def revision(self) -> str:
        """Name of the weights, the tokenizer and the precision: another revision, another store."""

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """Tokenizer of the model."""

    def token_logprobs(self, sequences: Sequence[np.ndarray]) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (index of the sequence, log-probability of each of its tokens, float32, nats).

        The first token is conditioned on the start token alone. The order of results is free.
        """


def model_revision(directory: Path, dtype: torch.dtype) -> str:
    """SHA-256 over the weights and the tokenizer of a local model, and its precision."""
    weights = sorted(directory.glob("*.safetensors"))
    if not weights:
        raise InputError(f"{directory}: no *.safetensors in it; train or fetch the model first")
    files = [*weights, directory / "config.json", directory / "tokenizer.json"]
    for file in files:
        if not file.is_file():
            raise InputError(f"{directory}: no {file.name} in it; train or fetch the model first")
    return sha256_of(*files, str(dtype))


def start_token(tokenizer: PreTrainedTokenizerBase) -> int:
    """Return the id put before a sequence: BOS, else EOS, else the vocabulary's first entry."""
    for candidate in (tokenizer.bos_token_id, tokenizer.eos_token_id):
        if candidate is not None:
            return int(candidate)
    return 0


class TransformersScorer:
    """A causal model from a local directory, scored in batches of at most `batch_tokens` tokens.

    The model runs in bfloat16 where the device computes in it, else in float32; logarithms are
    always taken in float32.
    """

    def __init__(self, directory: Path, *, batch_tokens: int = 4096) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.dtype = torch.bfloat16 if has_bfloat16(self.device) else torch.float32
        self.directory = directory
        model_files = model_revision(directory, self.dtype)
        self.tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
        self.start = start_token(self.tokenizer)
        self.revision = sha256_of(model_files, str(self.start))
        config = AutoConfig.from_pretrained(directory, local_files_only=True)
        if not hasattr(config, "max_position_embeddings"):
            raise InputError(f"{directory}: config.json states no max_position_embeddings")
        self.context = int(config.max_position_embeddings)
        self.batch_tokens = batch_tokens

    @cached_property
    def model(self) -> PreTrainedModel:
        """The network, loaded when the first sequence is scored: a full store never needs it."""
        transformers.utils.logging.disable_progress_bar()  # ours say more
        model = AutoModelForCausalLM.from_pretrained(
            self.directory, dtype=self.dtype, local_files_only=True, use_safetensors=True
        )
        model.to(self.device).eval()
        self._require_plain_head(model)
        return model

    @torch.inference_mode()
    def _require_plain_head(self, model: PreTrainedModel) -> None:
        """Refuse models that cap or scale their logits after the output layer."""
        ids = torch.arange(4, device=self.device)[None]
        hidden = model.base_model(input_ids=ids, use_cache=False).last_hidden_state
        if not torch.allclose(
            model.get_output_embeddings()(hidden).float(),
            model(input_ids=ids, use_cache=False).logits.float(),
            rtol=0.02,
            atol=0.02,
            equal_nan=True,  # damaged weights get their own message
        ):
            raise InputError(
                f"{self.directory}: this architecture changes its logits after the output layer, "
                "which the scorer does not do yet; use another model"
            )

    def token_logprobs(self, sequences: Sequence[np.ndarray]) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (index, float32 log-probabilities in nats) as batches finish, longest first."""
        windows = [w for i, ids in enumerate(sequences) for w in self._windows(i, len(ids))]
        windows.sort(key=lambda w: (w[1] - w[3], w), reverse=True)
        scores = [np.empty(len(ids), dtype=np.float32) for ids in sequences]
        missing = np.array([len(ids) for ids in sequences])
        while windows:
            width = windows[0][1] - windows[0][3]
            size = max(1, self.batch_tokens // width)
            batch, windows = windows[:size], windows[size:]
            for (index, stop, first, _), values in zip(
                batch, self._score(batch, sequences, width), strict=True
            ):
                scores[index][first:stop] = values
                missing[index] -= stop - first
                if missing[index] == 0:
                    yield index, scores[index]

    def _windows(self, index: int, length: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield (sequence, stop, first, start): inputs start..stop-1, targets first..stop-1 scored.

        Positions count the tokens of the sequence; the input at position t, which predicts token
        t, is token t-1, or the start token where t = 0.
        """
        stride = self.context // 2
        yield index, min(self.context, length), 0, 0
        for start in range(stride, length - self.context + stride, stride):
            yield index, min(start + self.context, length), start + self.context - stride, start

    @torch.inference_mode()
    def _score(
        self,
        batch: list[tuple[int, int, int, int]],
        sequences: Sequence[np.ndarray],
        width: int,
    ) -> list[np.ndarray]:
        inputs = np.full((len(batch), width), self.start, dtype=np.int64)  # [B, T]
        scored = np.zeros((len(batch), width), dtype=bool)
        targets = []
        for row, (index, stop, first, start) in enumerate(batch):
            ids = sequences[index]
            if start == 0:
                inputs[row, 1:stop] = ids[: stop - 1]  # the start token is there already
            else:
                inputs[row, : stop - start] = ids[start - 1 : stop - 1]
            scored[row, first - start : stop - start] = True
            targets.append(ids[first:stop])
        # Padding stands on the right, where a causal model cannot see it.
        hidden = self.model.base_model(
            input_ids=torch.from_numpy(inputs).to(self.device), use_cache=False
        ).last_hidden_state[torch.from_numpy(scored).to(self.device)]  # [N, d]
        wanted = torch.from_numpy(np.concatenate(targets).astype(np.int64)).to(self.device)
        head = self.model.get_output_embeddings()
        values = []
        for rows, token in zip(
            torch.split(hidden, ROWS_PER_SOFTMAX),
            torch.split(wanted, ROWS_PER_SOFTMAX),
            strict=True,
        ):
            logits = head(rows).float()  # [rows, V]
            picked = logits.gather(1, token[:, None])[:, 0]
            values.append(picked - logits.logsumexp(1))
        result = torch.cat(values).cpu().numpy()
        if not np.isfinite(result).all():
            raise InputError(
                "the model returned a log-probability that is not finite; its weights are damaged "
                "or overflow in this precision"
            )
        return np.split(result, np.cumsum([len(t) for t in targets])[:-1])
