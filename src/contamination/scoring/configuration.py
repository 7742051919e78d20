"""The configuration of a model: its kind, its context and its size."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from transformers import PreTrainedConfig
from transformers.initialization import no_init_weights
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from contamination.errors import InputError
from contamination.files import read_json
from contamination.scoring.cost import Shape
from contamination.scoring.load_errors import explain_load_errors
from contamination.scoring.model_source import ModelSource, refuse_kernels

if TYPE_CHECKING:  # importing it takes longer than importing torch
    from transformers import PreTrainedModel

# Ten times what published models have; more would take for ever to lay out.
MOST_LAYERS = 10_000
LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
# Keys of a config.json by which a model is opened, where they say enough.
OPENING = (
    "model_type",
    "model_name",
    "tokenizer_class",
    "max_position_embeddings",
    "num_hidden_layers",
    "attn_implementation",
    "_attn_implementation",
)
# Keys that leave the context to the class of its architecture, as a second length does.
READ_BY_CLASS = ("auto_map", "text_config", "is_encoder_decoder")
ROPES = ("rope_parameters", "rope_scaling")  # keys of a config.json, the second of old ones
# Kinds of these by which a model reads as many tokens as it states.
KEEPING_LENGTH = (None, "default", "linear", "dynamic", "yarn", "llama3")


def read_config(source: ModelSource) -> Any:
    """Return the configuration of the model, without defaults if the file needs none.

    Raises InputError as `load_config`.
    """
    config = stated_config(source)
    if config is None:
        return load_config(source)
    _require_usable(config, source)
    return config


def stated_config(source: ModelSource) -> PreTrainedConfig | None:
    """Return what config.json states, or None unless it states the context by itself.

    The class of a configuration adds the defaults of its architecture. That of Llama
    imports the code of the network, which takes longer than importing torch: a command
    that finds its stores full does without both.
    """
    file = Path(source.name) / "config.json"
    if source.trust_remote_code or not file.is_file():
        return None
    try:
        stated = read_json(file)
    except InputError:  # whoever loads it says what is wrong
        return None
    if any(type(stated.get(name)) is not int for name in (LENGTHS[0], "num_hidden_layers")):
        return None
    if any(stated.get(name) for name in (*LENGTHS[1:], *READ_BY_CLASS)):
        return None
    if _is_shortened(stated):
        return None
    if str(stated.get("model_type")) not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return None
    kept = {key: stated[key] for key in OPENING if key in stated}
    with explain_load_errors(source.name, reads_config=True):
        return PreTrainedConfig.from_dict(kept, name_or_path=source.name)


def _is_shortened(stated: Mapping[str, Any]) -> bool:
    """Return whether positions may keep a model from reading as many tokens as it states."""
    for name in ROPES:
        rope = stated.get(name) or {}
        kind = rope.get("rope_type", rope.get("type")) if isinstance(rope, dict) else "unknown"
        if kind not in KEEPING_LENGTH:
            return True
    return False


def load_config(source: ModelSource) -> Any:
    """Load the configuration of the model.

    Raises InputError if there is nothing of that name, no access to it, it is no causal
    language model, or it has more layers than any model or attention kernels from the
    hub.
    """
    with explain_load_errors(source.name, reads_config=True):
        config = transformers.AutoConfig.from_pretrained(**source.location)
    _require_usable(config, source)
    if not _is_causal(config):
        raise InputError(
            f"{source.name}: {config.model_type} is not a causal language model",
        )
    return config


def _require_usable(config: Any, source: ModelSource) -> None:
    """Raise InputError for more layers than any model has, or kernels from the hub."""
    layers = getattr(config.get_text_config(), "num_hidden_layers", 0)
    if layers > MOST_LAYERS:
        raise InputError(
            f"{source.name}: config.json describes {layers:,} layers; give the one "
            "that belongs to the weights"
        )
    refuse_kernels(getattr(config, "_attn_implementation", None), source.name)


def _is_causal(config: Any) -> bool:
    """Return whether a configuration is that of a causal language model."""
    if getattr(config, "is_encoder_decoder", False):
        return False
    if type(config) in transformers.MODEL_FOR_CAUSAL_LM_MAPPING:
        return True
    own_classes = getattr(config, "auto_map", None) or {}
    return "AutoModelForCausalLM" in own_classes


def context_length(source: ModelSource, config: Any) -> int:
    """Return the tokens in a window: what the model allows, or the smaller number asked for.

    Raises InputError if the configuration states no limit and none was asked for, or
    more was asked for than it allows.
    """
    limit = _longest_context(config)
    if limit is not None and limit < 2:
        raise InputError(
            f"{source.name}: config.json states a context of {limit} tokens, and 2 are the "
            "least; take the publisher's file again"
        )
    context = limit if source.context is None else source.context
    if context is None:
        raise InputError(
            f"{source.name}: config.json states no context length; give one (context)",
        )
    if not 2 <= context <= (limit or context):
        most = limit or "any number of"
        raise InputError(
            f"context is {context}: {source.name} reads 2 to {most} tokens at once",
        )
    return context


def _longest_context(config: Any) -> int | None:
    """Return the most tokens that a model reads at once.

    It is None if its configuration has no limit.
    """
    text = config.get_text_config()
    rope = getattr(text, "rope_parameters", None) or {}
    if rope.get("rope_type") == "longrope":
        # A longer window changes all others of its batch.
        return int(rope["original_max_position_embeddings"])
    for name in LENGTHS:
        length = getattr(text, name, None)
        if length:
            return int(length)
    return None


def count_parameters(config: Any) -> int:
    """Count the parameters of a model from its configuration, tied ones once.

    Raises InputError if no network can be built from it.
    """
    return sum(parameter.numel() for parameter in _without_memory(config).parameters())


def model_shape(config: Any) -> Shape:
    """Count the weights of a model from its configuration, without memory (meta device).

    Raises InputError if no network can be built from it.
    """
    return network_shape(_without_memory(config))


def network_shape(model: "PreTrainedModel") -> Shape:
    """Count the weights of a network by what they are for."""
    layer = model.get_output_embeddings()
    matrices = 0
    for weights in model.parameters():
        if weights.ndim >= 2:
            matrices += weights.numel()
    tables: dict[int, int] = {}  # tied weights once
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding) or module is layer:
            tables[id(module.weight)] = module.weight.numel()
    text = model.config.get_text_config()
    return Shape(
        body=matrices - sum(tables.values()),
        head=layer.weight.numel(),
        channels=text.num_hidden_layers * text.hidden_size,
    )


def _without_memory(config: Any) -> "PreTrainedModel":
    """Return the network of a configuration, whose weights have shapes and no values."""
    named = str(config.name_or_path)
    # Drawing first values takes longer than building, even of weights that have none.
    explained = explain_load_errors(named, reads_config=True)
    with explained, torch.device("meta"), no_init_weights():
        network = transformers.AutoModelForCausalLM.from_config(config)
        network.tie_weights()
    return network
