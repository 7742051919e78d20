"""The GPT-2 architecture at any size, up to the 1.4 billion parameters of Oren (section 4.1)."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from contamination.pretraining.profile import Architecture


def gpt2_config(shape: Architecture, vocabulary: int, end_of_text: int) -> GPT2Config:
    """Return the transformers configuration; no dropout, since the corpus is seen only once."""
    return GPT2Config(
        vocab_size=vocabulary,
        n_embd=shape.n_embd,
        n_layer=shape.n_layer,
        n_head=shape.n_head,
        n_positions=shape.n_positions,
        activation_function="gelu_pytorch_tanh",  # GPT-2's own gelu_new, in one kernel
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=end_of_text,
        eos_token_id=end_of_text,
    )


def parameter_count(shape: Architecture, vocabulary: int) -> int:
    """Count the trainable parameters by building the model without memory (meta device)."""
    with torch.device("meta"):
        model = GPT2LMHeadModel(gpt2_config(shape, vocabulary, 0))
    return sum(p.numel() for p in model.parameters())
