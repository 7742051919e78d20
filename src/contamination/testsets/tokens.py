"""Byte-level BPE trained on the corpus, and the tokenisation that makes every ordering comparable.

Each example is tokenised once, alone, without special tokens and with its separator. An ordering is
a concatenation of these arrays, so all orderings score exactly the same multiset of tokens and the
difference between two of them is the order alone (Oren, section 3).
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from contamination.files import replacing

END_OF_TEXT = "<|endoftext|>"


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """Train a GPT-2-style byte-level BPE with `vocabulary` entries, end-of-text included."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe, bos_token=END_OF_TEXT, eos_token=END_OF_TEXT
    )


def save_tokenizer(tokenizer: PreTrainedTokenizerBase, directory: Path) -> None:
    """Write the tokenizer where `transformers.AutoTokenizer` finds it."""
    with replacing(directory) as temporary:
        tokenizer.save_pretrained(temporary)


def id_type(tokenizer: PreTrainedTokenizerBase) -> np.dtype:
    """Return the smallest unsigned type that holds every id of the vocabulary, for files."""
    return np.dtype(np.uint16 if len(tokenizer) <= 1 << 16 else np.uint32)


def tokenize(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[np.ndarray]:
    """Token ids of every text alone, int32, without special tokens.

    A text that spells a special token (such as ``<|endoftext|>``) is encoded as plain text.
    """
    encoded = tokenizer(
        list(texts), add_special_tokens=False, split_special_tokens=True, verbose=False
    )
    return [np.asarray(ids, dtype=np.int32) for ids in encoded["input_ids"]]
