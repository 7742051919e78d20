"""The interface of a model that can be audited (Oren, section 2: log-probabilities alone)."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from contamination.errors import InputError

if TYPE_CHECKING:  # a contract needs no network
    from transformers import PreTrainedTokenizerBase


class Scorer(Protocol):
    """A causal language model, seen as a function from tokens to log-probabilities.

    Attributes
    ----------
    revision
        Names weights, tokenizer and precision: another revision, another store.
    context
        Most tokens that one window holds: the last is predicted from those before it.
    batch_tokens
        Tokens that the model works on at a time; calls with fewer leave it idle.
    """

    revision: str
    tokenizer: "PreTrainedTokenizerBase"
    context: int
    batch_tokens: int

    def token_logprobs(
        self, sequences: Sequence[np.ndarray], firsts: Sequence[int] | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (index of the sequence, log-probability of each of its tokens, float32, nats).

        The first token is conditioned on the start token alone. The order of results is
        free. With `firsts`, the tokens of each sequence before that position need no
        value: they may be NaN, which saves work.
        """


def start_token(tokenizer: "PreTrainedTokenizerBase") -> int:
    """Return the id put before a sequence: BOS, else EOS, else the vocabulary's first entry."""
    candidates = (tokenizer.bos_token_id, tokenizer.eos_token_id)
    return next((int(token) for token in candidates if token is not None), 0)


def require_scorer(model: object) -> None:
    """Raise InputError for a model that is none: neither a scorer nor what names one."""
    if not callable(getattr(model, "token_logprobs", None)):
        raise InputError(
            f"the model is {repr(model)[:60]}: give a scorer, or the name or path of a model"
        )
