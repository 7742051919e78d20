"""Tokens of examples, made so that every ordering of them is comparable.

Each example is tokenised once, alone, without special tokens and with its separator. An ordering is
a concatenation of these arrays, so all orderings score exactly the same multiset of tokens and the
difference between two of them is the order alone (Oren, section 2).
"""

from collections.abc import Sequence

import numpy as np
from transformers import PreTrainedTokenizerBase


def id_type(tokenizer: PreTrainedTokenizerBase) -> np.dtype:
    """Return the smallest unsigned type that holds every id of the vocabulary, for files."""
    return np.dtype(np.uint16 if len(tokenizer) <= 1 << 16 else np.uint32)


def tokenize(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[np.ndarray]:
    """Return the token ids of every text alone, int32, without special tokens.

    A text that spells a special token (such as ``<|endoftext|>``) is encoded as plain text.
    """
    encoded = tokenizer(
        list(texts), add_special_tokens=False, split_special_tokens=True, verbose=False
    )
    return [np.asarray(ids, dtype=np.int32) for ids in encoded["input_ids"]]
