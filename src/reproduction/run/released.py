"""A released model as the beginning of training: its weights and tokenizer, beside the run.

What a pretrained model learns from a few copies is nearer to the paper's 1.4 billion parameters
(Oren, section 4.1) than what a small model learns from scratch.
"""

from pathlib import Path

import torch
from transformers import PreTrainedTokenizerBase

from contamination.files import replacing
from contamination.scoring import loading
from contamination.scoring.models import find_model
from reproduction.run.profile import Released


def copy_released(shape: Released, target: Path) -> PreTrainedTokenizerBase:
    """Write the weights of a released model, in float32, and its tokenizer, which is returned.

    Raises InputError as `unpack` and `load_network` of `contamination.scoring.loading`.
    """
    entry = find_model(shape.released)
    source = loading.unpack(loading.ModelSource(entry.id, revision=entry.revision), torch.float32)
    network = loading.load_network(
        source, loading.load_config(source), torch.float32, torch.device("cpu")
    )
    tokenizer = loading.load_tokenizer(source)
    with replacing(target) as temporary:
        network.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
    return tokenizer
