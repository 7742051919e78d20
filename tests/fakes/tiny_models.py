"""Tiny random models of many architectures, in which every token depends on those before it."""

import json
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM

SIZES = {"vocab_size": 300, "hidden_size": 32, "num_hidden_layers": 2}


def usual(context: int) -> dict[str, object]:
    """Return the options that most architectures take."""
    ids = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None}
    shape = {"num_attention_heads": 4, "intermediate_size": 48, "max_position_embeddings": context}
    return SIZES | shape | ids


def grouped(context: int) -> dict[str, object]:
    """Return the options of architectures whose heads share keys."""
    return usual(context) | {"num_key_value_heads": 2, "head_dim": 8}


def common(context: int, window: int) -> dict[str, tuple[str, dict[str, object]]]:
    """Return (model type, options) by name, with sliding windows of that many tokens."""
    sliding = grouped(context) | {"sliding_window": window}
    gpt2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": context, "vocab_size": 300}
    caps = {"final_logit_softcapping": 5.0, "attn_logit_softcapping": 9.0}
    return {
        "GPT-2": ("gpt2", gpt2),
        "Llama": ("llama", grouped(context)),
        "GPT-NeoX": ("gpt_neox", usual(context)),
        "Mistral": ("mistral", sliding),
        "Gemma 2": ("gemma2", sliding | caps | {"query_pre_attn_scalar": 8}),
        "BLOOM": ("bloom", {"vocab_size": 300, "hidden_size": 32, "n_layer": 2, "n_head": 4}),
        "Mamba": ("mamba", SIZES | {"state_size": 4}),
    }


def save_model(
    directory: Path,
    tokenizer,
    kind: str,
    options: dict[str, object],
    model_class=AutoModelForCausalLM,
    *,
    biases: bool = False,
) -> Path:
    """Save a random model, with random biases or those of its initialisation; return where."""
    config = AutoConfig.for_model(kind, **options)
    torch.manual_seed(0)
    make = getattr(model_class, "from_config", model_class)
    model = make(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if biases and name.endswith("bias"):
                parameter.normal_()
            elif parameter.ndim >= 2:
                parameter.mul_(4 if kind in ("mamba", "rwkv") else 8)  # a state adds up errors, too
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def configure(directory: Path, name: str = "config.json", **changes: object) -> None:
    """Write other values into a JSON file of a model; None takes one out."""
    file = directory / name
    fields = json.loads(file.read_text()) | changes
    kept = {key: value for key, value in fields.items() if value is not None}
    file.write_text(json.dumps(kept))
