"""A released model as the beginning of training: its weights and tokenizer, beside the run.

What a pretrained model learns from a few copies is nearer to the paper's 1.4 billion parameters
(Oren, section 4.1) than what a small model learns from scratch.
"""

import torch

from contamination.errors import InputError
from contamination.files import replacing
from contamination.scoring import loading
from contamination.scoring.models import find_model
from reproduction.run.profile import Released, RunFiles


def copy_released(run: RunFiles) -> None:
    """Write the weights, in float32, and the tokenizer of the released model of a profile.

    Raises InputError if the profile trains from scratch, and as `unpack` and `load_network` of
    `contamination.scoring.loading`.
    """
    if not isinstance(shape := run.profile.model, Released):
        raise InputError(f"profile {run.profile.name} trains its models from scratch")
    entry = find_model(shape.released)
    source = loading.unpack(loading.ModelSource(entry.id, revision=entry.revision), torch.float32)
    network = loading.load_network(
        source, loading.load_config(source), torch.float32, torch.device("cpu")
    )
    with replacing(run.released) as temporary:
        network.save_pretrained(temporary)
        loading.load_tokenizer(source).save_pretrained(temporary)
