"""Tokens of examples, made so that every ordering of them is comparable.

Each example is tokenised once, alone, with its separator, and without special tokens
unless the set asks for them. An ordering is a concatenation of these arrays, so all
orderings score exactly the same multiset of tokens and the difference between two of
them is the order alone (Oren, section 2).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from contamination.errors import InputError
from contamination.testsets.example_set import ExampleSet

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# Of the models of `tokenizers`: BPE, then Unigram.
RANDOM = ("dropout", "alpha", "nbest_size")
PROBE = "Undoubtedly incomprehensible 12345678 überraschend неизвестность международный. " * 8
PROBES = 3  # times that it is tokenised
CHUNK = 1 << 20  # characters whose tokens are lists of Python numbers at a time


@dataclass(frozen=True, eq=False)
class TokenisedSet:
    """A test set with the token ids of every example, int32."""

    test_set: ExampleSet
    ids: tuple[np.ndarray, ...]

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Tokens of each example, in canonical order."""
        return tuple(map(len, self.ids))


def without_sampling(tokenizer: "PreTrainedTokenizerBase") -> "PreTrainedTokenizerBase":
    """Return the tokenizer with random segmentation switched off.

    That is BPE dropout or the sampling of Unigram, of tokenizers that can switch it
    off. Raises InputError for another one that gives a text other tokens each time: so
    would be its p-value.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    model = getattr(backend, "model", None)
    for name in RANDOM:
        if getattr(model, name, None):
            setattr(model, name, None)
    try:
        first, *others = tokenize(tokenizer, [PROBE] * PROBES)
    except InputError:  # a vocabulary without these characters may still read a test set
        return tokenizer
    if not all(np.array_equal(first, other) for other in others):
        raise InputError(
            f"{tokenizer.name_or_path}: the tokenizer gives a text other tokens each "
            "time; take dropout or sampling (dropout, enable_sampling) out of its files"
        )
    return tokenizer


def tokenize_set(
    tokenizer: "PreTrainedTokenizerBase",
    test_set: ExampleSet,
) -> TokenisedSet:
    """Tokenise every example alone; raises InputError for one without a token."""
    ids = tuple(tokenize(tokenizer, test_set.examples, special=test_set.started))
    if not all(map(len, ids)):
        empty = next(number for number, tokens in enumerate(ids) if len(tokens) == 0)
        raise InputError(
            f"{test_set.name}: example {empty} has no token; end it with a separator",
        )
    return TokenisedSet(test_set, ids)


def id_type(tokenizer: "PreTrainedTokenizerBase") -> np.dtype:
    """Return the smallest unsigned type that holds every id of the vocabulary, for files."""
    return np.dtype(np.uint16 if len(tokenizer) <= 1 << 16 else np.uint32)


def tokenize(
    tokenizer: "PreTrainedTokenizerBase", texts: Sequence[str], *, special: bool = False
) -> list[np.ndarray]:
    """Return the token ids of every text alone, int32.

    A text that spells a special token (such as ``<|endoftext|>``) is encoded as plain
    text.

    Parameters
    ----------
    tokenizer
        Tokenizer of the model.
    texts
        Any number of texts.
    special
        Whether to add the tokens that the tokenizer puts around a text.

    Raises
    ------
    InputError
        If the tokenizer fails.
    """
    tokens: list[np.ndarray] = []
    for run in consecutive([len(text) for text in texts], CHUNK):
        try:
            encoded = tokenizer(
                [texts[i] for i in run],
                add_special_tokens=special,
                split_special_tokens=True,
                verbose=False,
                return_attention_mask=False,
            )
        except BaseException as error:
            # An interrupt goes on; a panic is an error of the tokenizer's own code.
            is_panic = type(error).__name__ == "PanicException"
            if not isinstance(error, Exception) and not is_panic:
                raise
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise InputError(
                f"{tokenizer.name_or_path}: the tokenizer cannot read the texts "
                f"({reason}); put the model's own tokenizer there"
            ) from error
        tokens += [np.asarray(ids, dtype=np.int32) for ids in encoded["input_ids"]]
    return tokens


def consecutive(sizes: Sequence[int], least: int) -> Iterator[range]:
    """Yield runs of indices, each as short as its sizes add up to `least`.

    The last may be less.

    Examples
    --------
    >>> list(consecutive([3, 3, 5, 1], least=5))
    [range(0, 2), range(2, 3), range(3, 4)]
    """
    start = 0
    total = 0
    for stop, size in enumerate(sizes, start=1):
        total += size
        if total >= least or stop == len(sizes):
            yield range(start, stop)
            start = stop
            total = 0
