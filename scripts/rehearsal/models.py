"""Models with ids, architectures, kinds of tokenizer and file layouts of the real ones, but tiny.

Weights are random. What a family of models has in common is known by a word of its hub id.
"""

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerFast
from transformers.utils.logging import disable_progress_bar

from contamination.randomness import derived_seed
from contamination.scoring.models import ModelEntry

VOCABULARY = 1_000
WIDTH = 32
SHARDED = 6e9  # parameters, from which on the real weights come in several files
SHARD = "30KB"  # of a stand-in for them

Files = dict[str, bytes]

disable_progress_bar()


@dataclass(frozen=True)
class Family:
    """The traits that the models of a family share.

    Attributes
    ----------
    words : a hub id has one of them.
    kind : transformers' model type.
    tokenizer : "byte-level", or "sentencepiece", as it is after conversion.
    tokenizer_class, start : its class, and the token that it puts first, which GPT-2 calls the end.
    context : its name in the configuration, and the tokens of a window.
    padding : rows of the embedding that no token has.
    options : of the configuration, beyond the usual.
    """

    words: tuple[str, ...]
    kind: str
    tokenizer: str
    tokenizer_class: str
    start: str = "<|endoftext|>"
    context: tuple[str, int] = ("max_position_embeddings", 2048)
    padding: int = 0
    options: dict[str, Any] = field(default_factory=dict)


GROUPED = {"num_key_value_heads": 2}
# A quarter of the real context: these read whole sets, and attention takes its square.
GPT2 = Family(("",), "gpt2", "byte-level", "GPT2Tokenizer", context=("n_positions", 256))
FAMILIES = (
    Family(("pythia", "gpt-neox"), "gpt_neox", "byte-level", "GPTNeoXTokenizer", padding=27),
    Family(
        ("gpt-neo",),
        "gpt_neo",
        "byte-level",
        "GPT2Tokenizer",
        options={"num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]]},
    ),
    Family(
        ("llama-2",),
        "llama",
        "sentencepiece",
        "LlamaTokenizer",
        "<s>",
        ("max_position_embeddings", 4096),
    ),
    Family(("llama",), "llama", "sentencepiece", "LlamaTokenizer", "<s>"),
    Family(
        ("mistral",),
        "mistral",
        "sentencepiece",
        "LlamaTokenizer",
        "<s>",
        ("max_position_embeddings", 32768),
        options=GROUPED | {"sliding_window": 4096},
    ),
    Family(
        ("opt-350m",),
        "opt",
        "byte-level",
        "GPT2Tokenizer",
        "</s>",
        options={"do_layer_norm_before": False, "word_embed_proj_dim": WIDTH // 2, "ffn_dim": 48},
    ),
    Family(
        ("/opt-",),
        "opt",
        "byte-level",
        "GPT2Tokenizer",
        "</s>",
        options={"word_embed_proj_dim": WIDTH, "ffn_dim": 48},
    ),
    Family(
        ("olmo-2",),
        "olmo2",
        "byte-level",
        "GPT2Tokenizer",
        context=("max_position_embeddings", 4096),
        padding=74,
    ),
    Family(
        ("qwen2",),
        "qwen2",
        "byte-level",
        "Qwen2Tokenizer",
        context=("max_position_embeddings", 32768),
        options=GROUPED | {"tie_word_embeddings": True},
    ),
    Family(("smollm",), "llama", "byte-level", "GPT2Tokenizer", options=GROUPED),
    GPT2,
)
# Repositories that have pickled weights and no others.
PICKLED = ("stanford-crfm/BioMedLM", "facebook/opt-350m", "facebook/opt-66b")


def family_of(name: str) -> Family:
    """Return the family of a hub id; any other model counts as a GPT-2."""
    for family in FAMILIES:
        if any(word in name.lower() for word in family.words):
            return family
    return GPT2


def model_files(
    entry: ModelEntry,
    text: Sequence[str],
    *,
    learn: Callable[[PreTrainedModel, Any], None] | None = None,
    **options: Any,
) -> Files:
    """Make the files of a repository: configuration, weights, tokenizer, and what goes with them.

    Parameters
    ----------
    text : what the tokenizer is trained on.
    learn : changes the model in place, given its tokenizer.
    options : of the configuration, in the place of the usual.
    """
    family = family_of(entry.id)
    tokenizer = _tokenizer(family.tokenizer, family.start, tuple(text))
    config = configuration(family, len(tokenizer), **options)
    torch.manual_seed(derived_seed(0, "weights of a stand-in", entry.id))
    model = AutoModelForCausalLM.from_config(config)
    if learn:
        learn(model, tokenizer)
    large = (entry.parameters or 0) > SHARDED
    model = model.to(torch.float16 if large else torch.float32)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokenizer.save_pretrained(folder)
        _name_class(folder / "tokenizer_config.json", family.tokenizer_class)
        if entry.id in PICKLED:
            _pickle(model, folder, shards=2 if large else 1)
        else:
            model.save_pretrained(folder, max_shard_size=SHARD if large else "1GB")
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
    # Beside them lie a page, and weights in formats of others, which nobody has asked for.
    others = ("flax_model.msgpack", "tf_model.h5", "onnx/decoder_model.onnx")
    page = f"---\nlibrary_name: transformers\n---\nA stand-in for {entry.id}.\n"
    return {"README.md": page.encode(), ".gitattributes": b""} | files | dict.fromkeys(others, b"x")


def configuration(family: Family, vocabulary: int, **options: Any) -> Any:
    """Return the configuration of a tiny model of that family."""
    if family.kind == "gpt2":
        shape = {"n_embd": WIDTH, "n_layer": 2, "n_head": 4}
    else:
        shape = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4}
        shape |= {"intermediate_size": 48}
    shape |= {"vocab_size": vocabulary + family.padding, family.context[0]: family.context[1]}
    ids = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None}
    return AutoConfig.for_model(family.kind, **(shape | ids | family.options | options))


def _name_class(file: Path, name: str) -> None:
    settings = json.loads(file.read_text())
    file.write_text(json.dumps(settings | {"tokenizer_class": name}, indent=2))


def _pickle(model: PreTrainedModel, folder: Path, *, shards: int) -> None:
    model.config.save_pretrained(folder)
    weights = model.state_dict()
    if shards == 1:
        torch.save(weights, folder / "pytorch_model.bin")
        return
    names = sorted(weights)
    file_of_weight: dict[str, str] = {}
    for number in range(shards):
        file = f"pytorch_model-{number + 1:05d}-of-{shards:05d}.bin"
        part = {name: weights[name].clone() for name in names[number::shards]}
        torch.save(part, folder / file)
        file_of_weight |= dict.fromkeys(part, file)
    index = {"metadata": {}, "weight_map": file_of_weight}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))


@cache
def _tokenizer(kind: str, start: str, text: tuple[str, ...]) -> PreTrainedTokenizerFast:
    make = _byte_level if kind == "byte-level" else _sentencepiece
    return PreTrainedTokenizerFast(
        tokenizer_object=make(text, start), bos_token=start, eos_token=start
    )


def _byte_level(text: Sequence[str], start: str) -> Tokenizer:
    """Train a BPE over bytes, as GPT-2 has it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[start],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(text, trainer)
    return tokenizer


def _sentencepiece(text: Sequence[str], start: str) -> Tokenizer:
    """Train a BPE over characters that falls back to bytes, as SentencePiece has it for Llama."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence([decoders.Metaspace(), decoders.ByteFallback()])
    special = ["<unk>", start, "</s>"]
    fallback = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=[*special, *fallback], show_progress=False
    )
    words = pre_tokenizers.Metaspace(prepend_scheme="first", split=True)
    learning = Tokenizer(tokenizer.model)
    learning.pre_tokenizer = words
    learning.train_from_iterator(text, trainer)
    tokenizer.model = learning.model
    tokenizer.add_special_tokens(special)
    return tokenizer
