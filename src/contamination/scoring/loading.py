"""Weights and tokenizer of a causal model: hub id, local directory or GGUF file.

Safetensors are taken before pickled weights, which torch then reads as data only. Code
that comes with a model is not run unless asked for.
"""

import os
import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from huggingface_hub import hf_hub_download
from huggingface_hub.errors import EntryNotFoundError
from transformers import PreTrainedConfig

from contamination.errors import InputError
from contamination.files import FileState, read_json, sha256_of
from contamination.scoring import checkpoint
from contamination.scoring.checkpoint import (
    ADAPTER,
    INDEX,
    changed_files_error,
    others_of,
    unmerged,
    weights_of,
)
from contamination.scoring.configuration import (
    context_length,
    count_parameters,
    load_config,
    model_shape,
    network_shape,
    read_config,
    stated_config,
)
from contamination.scoring.load_errors import explain_load_errors, is_out_of_memory
from contamination.scoring.model_source import ModelSource, Precision
from contamination.testsets.tokens import without_sampling

if TYPE_CHECKING:  # importing the first takes longer than importing torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = [
    "ModelSource",
    "Precision",
    "context_length",
    "count_parameters",
    "explain_load_errors",
    "identity",
    "is_out_of_memory",
    "load_config",
    "load_named",
    "load_network",
    "load_tokenizer",
    "model_shape",
    "network_shape",
    "pin_commit",
    "read_config",
    "settled_states",
    "unchanged",
]

# Of pickled weights alone, transformers would ask a bot to convert them, in public.
os.environ.setdefault("DISABLE_SAFETENSORS_CONVERSION", "1")

TOKENIZER_FILES = ("tokenizer.*", "vocab.*", "*.model", "*.tiktoken")
# In files of older versions: masks and positions, which are computed now.
OLD_TABLES = re.compile(
    r"(att(entio)?n\.(masked_)?bias|inv_freq|(cos|sin)_cached|embed_positions(\.weights)?"
    r"|position_ids|mask)$"
)


def pin_commit(source: ModelSource) -> ModelSource:
    """Return a source with the commit that a hub id's branch or tag stands for now.

    A branch may move before the weights are loaded. A local source is returned as it
    is. Raises InputError if there is nothing of that name, no access to it, or an
    adapter in it.
    """
    if Path(source.name).exists():
        return source
    from contamination.testsets.fetching import asked_once

    with explain_load_errors(source.name), asked_once():
        if _has_adapter(source):
            raise unmerged(source.name)
        file = hf_hub_download(source.name, "config.json", revision=source.revision)
    return replace(source, revision=Path(file).parent.name)


def _has_adapter(source: ModelSource) -> bool:
    """Return whether a repository of a hub holds an adapter."""
    try:
        hf_hub_download(source.name, ADAPTER, revision=source.revision)
    except EntryNotFoundError:  # also where there is no network
        return False
    return True


def load_tokenizer(source: ModelSource) -> "PreTrainedTokenizerBase":
    """Load the tokenizer of the model, which is the same function of a text each time.

    Raises InputError if there is none, no access to it, or it still samples.
    """
    path = Path(source.name)
    if path.is_dir() and not checkpoint.matching(path, TOKENIZER_FILES):
        raise InputError(
            f"{path}: no tokenizer.json in it; put the model's tokenizer there",
        )
    with explain_load_errors(source.name):
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            **source.location, config=_config_of_tokenizer(source)
        )
        return without_sampling(tokenizer)


def _config_of_tokenizer(source: ModelSource) -> PreTrainedConfig | None:
    """Return what config.json states, if the class of the tokenizer depends on no more.

    With None transformers loads the configuration, by the class of its architecture.
    """
    file = Path(source.name) / "tokenizer_config.json"
    if not file.is_file():
        return None
    try:
        stated = read_json(file)
    except InputError:  # transformers says what is wrong
        return None
    if not isinstance(stated.get("tokenizer_class"), str) or "auto_map" in stated:
        return None
    return stated_config(source)


def load_network(
    source: ModelSource, config: Any, dtype: torch.dtype, device: torch.device | None
) -> "PreTrainedModel":
    """Load the weights that a configuration describes, in evaluation mode.

    Without a device the network is spread over all of them. Raises InputError if the
    weights are unavailable, incomplete, damaged, or too large for the memory.
    """
    transformers.utils.logging.disable_progress_bar()  # ours say more
    with explain_load_errors(source.name):
        network, report = transformers.AutoModelForCausalLM.from_pretrained(
            **source.location,
            **_network_arguments(source, config, dtype, device),
            output_loading_info=True,
        )
        if device is not None:
            network.to(device)
        _copy_mapped(network)
    _require_complete(source, network, report)
    # Else some architectures look for padding in every batch; others forbid None, hence
    # this way.
    object.__setattr__(network.config, "pad_token_id", None)
    network.config.return_dict = True
    return network.eval()


def _network_arguments(
    source: ModelSource, config: Any, dtype: torch.dtype, device: torch.device | None
) -> dict[str, Any]:
    """Return the other arguments of `from_pretrained` than the location."""
    arguments: dict[str, Any] = {
        "dtype": dtype,
        "config": config,
        "device_map": "auto" if device is None else None,
    }
    if Path(source.name).suffix == ".gguf":
        arguments["quantization_config"] = transformers.GgufConfig(dequantize=True)
    if source.attention is not None:
        arguments["attn_implementation"] = source.attention
    return arguments


def _copy_mapped(network: "PreTrainedModel") -> None:
    """Give weights on the host memory of their own: a mapped file that is written changes them."""
    for tensor in (*network.parameters(), *network.buffers()):
        if tensor.device.type == "cpu":
            tensor.data = tensor.data.clone()


def _require_complete(
    source: ModelSource,
    network: "PreTrainedModel",
    report: Any,
) -> None:
    """Raise InputError if the file lacks weights of the network, or has some without a place."""
    # Transformers fills them with random numbers.
    missing = sorted(report["missing_keys"])
    if missing:
        raise InputError(
            f"{source.name}: the weights lack {', '.join(missing[:3])}; give a causal "
            "language model as a whole"
        )
    left_out = _left_out(network, report["unexpected_keys"])
    if left_out:
        raise InputError(
            f"{source.name}: the weights have {', '.join(left_out[:3])}, for which "
            "config.json has no place; give the config.json that belongs to them"
        )


def _left_out(network: "PreTrainedModel", unexpected: Iterable[str]) -> list[str]:
    """Return weights of layers or modules that the network has, or would have with more layers.

    Other heads, towers and tables of older versions lie in many files, and are of no
    use here.
    """
    base = network.base_model_prefix
    modules = {name for name, _ in network.named_modules()} - {"", base}
    left_out: list[str] = []
    for key in sorted(unexpected):
        if OLD_TABLES.search(key):
            continue
        if _lies_within(key, modules) or _lies_within(f"{base}.{key}", modules):
            left_out.append(key)
    return left_out


def _lies_within(key: str, modules: set[str]) -> bool:
    """Return whether a weight of that name lies in one of the modules."""
    parts = key.split(".")
    return any(".".join(parts[:end]) in modules for end in range(1, len(parts)))


def identity(source: ModelSource, config: Any, dtype: torch.dtype, start: int) -> str:
    """Return the SHA-256 that names weights, tokenizer, precision, window and start token.

    Local files are hashed, pickled weights where there are no others; a hub id is named
    by its commit. What only moves numbers within the tolerance of the precision
    (placement, attention, batches) is left out. Raises InputError for a directory
    without weights.
    """
    path = Path(source.name)
    # "None" is that of versions which quantised weights to fewer bits: names stay what
    # they were.
    how = [str(dtype), "None", str(context_length(source, config)), str(start)]
    if not path.exists():
        return sha256_of(source.name, str(source.revision), *how)
    weights = weights_of(path)
    if all(file.name.endswith(INDEX) for file in weights):
        raise InputError(
            f"{path}: no *.safetensors in it; train or fetch the model first",
        )
    others = others_of(path, code=source.trust_remote_code)
    return sha256_of(*weights, *others, *how)


def load_named(
    source: ModelSource,
    config: Any,
    dtype: torch.dtype,
    start: int,
    *,
    device: torch.device | None,
    revision: str,
    states: dict[Path, FileState] | None,
) -> "PreTrainedModel":
    """Load the weights that a revision names: the `identity` of the same arguments, taken before.

    `states` are the `settled_states` of the files, taken before the revision; None has
    them hashed again. Raises InputError if the weights are unavailable, incomplete,
    damaged or too large, and if a file has changed since it was hashed, or changes
    meanwhile.
    """

    def require_same() -> None:
        if states is not None and states == settled_states(source):
            return
        if revision != identity(source, config, dtype, start):
            raise changed_files_error(Path(source.name))

    with explain_load_errors(source.name), unchanged(source):
        try:
            network = load_network(source, config, dtype, device)
        except InputError:
            require_same()  # other files are perhaps why it cannot be loaded
            raise
        require_same()
    return network


def settled_states(source: ModelSource) -> dict[Path, FileState] | None:
    """Return the states of a local model's files, as `checkpoint.settled_states` does."""
    return checkpoint.settled_states(Path(source.name), code=source.trust_remote_code)


def unchanged(source: ModelSource) -> AbstractContextManager[None]:
    """Refuse a local model that is written or replaced meanwhile.

    `checkpoint.unchanged` says how.
    """
    return checkpoint.unchanged(Path(source.name), code=source.trust_remote_code)
