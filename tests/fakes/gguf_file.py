"""A GGUF file as llama.cpp's converter writes it, and a wheel that holds one."""

import hashlib
import json
import zipfile
from pathlib import Path

import gguf
from transformers import AutoModelForCausalLM, AutoTokenizer

from contamination.scoring.models import WheelPart


def write_gguf(directory: Path, kind: str) -> Path:
    """Write a Qwen2 model beside its directory, its matrices as `kind`; return the path."""
    model = AutoModelForCausalLM.from_pretrained(directory)
    tokenizer = AutoTokenizer.from_pretrained(directory)
    config = model.config
    path = directory.parent / f"{kind}.gguf"
    writer = gguf.GGUFWriter(path, config.model_type)
    names = {index: token for token, index in tokenizer.get_vocab().items()}
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    for key, value in {
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "block_count": config.num_hidden_layers,
        "feed_forward_length": config.intermediate_size,
        "head_count": config.num_attention_heads,
        "head_count_kv": config.num_key_value_heads,
        "layer_norm_rms_eps": config.rms_norm_eps,
        "vocab_size": config.vocab_size,
        "tokenizer_model": "gpt2",
        "token_list": [names[i] for i in range(len(names))],
        "token_types": [gguf.TokenType.NORMAL] * len(names),
        "token_merges": [" ".join(merge) for merge in merges],
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }.items():
        getattr(writer, f"add_{key}")(value)
    tensors = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, config.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        raw = gguf.GGMLQuantizationType[kind if tensor.ndim == 2 else "F32"]
        weight = gguf.quantize(tensor.numpy(), raw)
        writer.add_tensor(tensors.get_name(name, (".weight", ".bias")), weight, raw_dtype=raw)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def wheel_in(index: Path, name: str, content: bytes) -> WheelPart:
    """Write a wheel that holds a file, and describe it."""
    module = name.replace("-", "_")
    path = index / f"{module}-1.0-py3-none-any.whl"
    info = f"{module}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{module}/weights", content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n")
        archive.writestr(f"{info}/RECORD", "")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return WheelPart(f"{name}==1.0", digest, f"{module}/weights")
