"""Models for benchmarks/gpu.py: random networks made on the device, and our scorer of one."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    GPT2Config,
    LlamaConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from contamination.randomness import random_stream
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer

START = "<start>"


class Shape(NamedTuple):
    """A configuration, and the most tokens of a sequence."""

    config: PreTrainedConfig
    longest: int


def gpt2(width: int, layers: int, heads: int, context: int, vocabulary: int = 50257) -> Shape:
    """Return a shape of GPT-2 as this project trains it."""
    config = GPT2Config(
        n_embd=width,
        n_layer=layers,
        n_head=heads,
        n_positions=context,
        vocab_size=vocabulary,
        activation_function="gelu",
        bos_token_id=0,
        eos_token_id=0,
    )
    return Shape(config, context)


def llama(
    width: int, layers: int, heads: int, key_heads: int, inner: int, vocabulary: int, longest: int
) -> Shape:
    """Return a shape of Llama, whose small ones share the weights of input and output."""
    config = LlamaConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=key_heads,
        intermediate_size=inner,
        vocab_size=vocabulary,
        max_position_embeddings=2048,
        tie_word_embeddings=width < 1024,
        bos_token_id=0,
        eos_token_id=0,
    )
    return Shape(config, longest)


SHAPES = {
    "135M": llama(576, 30, 9, 3, inner=1536, vocabulary=49152, longest=1024),  # SmolLM2
    "124M": gpt2(768, 12, 12, context=1024),
    "1.4B": gpt2(1536, 48, 24, context=2048),  # of Oren et al.
    "7B": llama(4096, 32, 32, 32, inner=11008, vocabulary=32000, longest=2048),  # Llama 2
}
TINY = {
    "tiny Llama": llama(64, 2, 4, 2, inner=128, vocabulary=512, longest=64),
    "tiny GPT-2": gpt2(64, 2, 4, context=64, vocabulary=512),
}


def make_network(
    shape: Shape, dtype: torch.dtype, device: torch.device, released: Path | None = None
) -> PreTrainedModel:
    """Return a network on the device: of the folder `released`, else with random weights.

    Parameters
    ----------
    shape
        Its configuration.
    dtype
        Precision of the weights.
    device
        Where random weights are drawn: a CPU draws those of the largest for minutes.
    released
        Folder of a released model of this shape.
    """
    if released is not None:
        return AutoModelForCausalLM.from_pretrained(released, dtype=dtype).to(device).eval()
    torch.manual_seed(0)
    with device:
        network = AutoModelForCausalLM.from_config(shape.config, dtype=dtype)
    return network.eval()


def open_scorer(
    network: PreTrainedModel, folder: Path, released: Path | None = None
) -> TransformersScorer:
    """Return the scorer that the command uses, with its defaults, around a network.

    Parameters
    ----------
    network
        Takes the place of weights that would be loaded.
    folder
        An empty one, for a model without weights.
    released
        Folder of the model that the network was loaded from.
    """
    if released is None:
        network.config.save_pretrained(folder)
        made_up_tokenizer().save_pretrained(folder)
        save_file({"none": torch.zeros(1)}, folder / "model.safetensors")
    precision = str(network.dtype).removeprefix("torch.")
    scorer = TransformersScorer(ModelSource(str(released or folder), precision=precision))
    # As `load_network` does, so that nothing looks for padding.
    object.__setattr__(network.config, "pad_token_id", None)
    scorer.model = network
    return scorer


def made_up_tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer of one token: the benchmark reads ids."""
    words = Tokenizer(WordLevel({START: 0}, unk_token=START))
    return PreTrainedTokenizerFast(tokenizer_object=words, bos_token=START, eos_token=START)


def random_sequences(shape: Shape, count: int) -> list[np.ndarray]:
    """Return sequences of half the most tokens to nearly all of them, int64."""
    rng = random_stream(0, "made-up tokens")
    sequences: list[np.ndarray] = []
    for _ in range(count):
        length = int(rng.integers(shape.longest // 2, shape.longest - 8))
        sequences.append(rng.integers(shape.config.vocab_size, size=length))
    return sequences


def released_shape(folder: Path) -> Shape:
    """Return the shape of a released model, of sequences of up to 1,024 tokens."""
    return Shape(AutoConfig.from_pretrained(folder), 1024)
