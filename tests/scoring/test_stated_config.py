"""A config.json that states the context is read without the class of its architecture."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig, AutoTokenizer
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from contamination.scoring import loading
from contamination.scoring.configuration import stated_config
from contamination.scoring.load_errors import COMPLETE, CONFIG
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize
from fakes import made_up_registry as registry
from fakes.tiny_models import configure, grouped, save_model

CONTEXT = 64
# What classes raise for a file that lacks other values, or has a context that they have not.
UNREADABLE = (ValueError, TypeError, NotImplementedError, StrictDataclassError)
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
LONGROPE = {
    "rope_type": "longrope",
    "short_factor": [1.0] * 4,
    "long_factor": [2.0] * 4,
    "original_max_position_embeddings": 16,
}


@pytest.fixture
def llama(tokenizer, tmp_path) -> Path:
    """Return a model whose configuration states its context."""
    return save_model(tmp_path / "llama", tokenizer, "llama", grouped(CONTEXT))


@pytest.mark.parametrize(
    ("changes", "stated"),
    [
        ({}, True),
        ({"rope_scaling": LLAMA3, "rope_parameters": None}, True),
        ({"model_type": "mistral", "sliding_window": 8}, True),
        ({"rope_scaling": LONGROPE, "rope_parameters": None}, False),
        ({"rope_parameters": LONGROPE | {"rope_theta": 1e4}}, False),
        ({"max_position_embeddings": None}, False),
        ({"model_type": "gpt2", "max_position_embeddings": None, "n_positions": 32}, False),
        ({"model_type": "gpt2", "n_positions": 32}, False),
        ({"auto_map": {"AutoConfig": "code.Config"}}, False),
    ],
)
def test_the_context_is_that_of_the_architectures_class(llama, changes, stated):
    configure(llama, **changes)
    source = ModelSource(str(llama))
    context = loading.context_length(source, loading.read_config(source))
    assert context == loading.context_length(source, loading.load_config(source))
    assert (stated_config(source) is not None) == stated


@pytest.mark.parametrize(
    "named", ["TokenizersBackend", "PreTrainedTokenizerFast", "LlamaTokenizer", "Unknown", None]
)
def test_the_tokenizer_is_the_one_that_transformers_chooses(llama, prose, named):
    configure(llama, "tokenizer_config.json", tokenizer_class=named)
    theirs = AutoTokenizer.from_pretrained(str(llama))
    ours = loading.load_tokenizer(ModelSource(str(llama)))
    assert type(ours) is type(theirs)
    for text, ids in zip(prose, tokenize(ours, prose), strict=True):
        assert ids.tolist() == theirs(text, add_special_tokens=False)["input_ids"]


def refusal_of(directory: Path, open_model: Callable[[Path], object]) -> str:
    """Return the line with which a model is refused; it names the model."""
    message = registry.refusal(open_model, directory)
    assert str(directory) in message
    return message


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"num_hidden_layers": 10_001}, "10,001 layers"),
        ({"attn_implementation": "kernels-community/flash-attn"}, "kernels-community/flash-attn"),
        ({"model_type": "clip"}, "not a causal language model"),
        ({"model_type": ["llama"]}, CONFIG),
        ({"model_type": "llamaa"}, "correct model_type in its config.json"),
        ({"num_hidden_layers": "two"}, CONFIG),
        ({"max_position_embeddings": -1}, "config.json states a context of -1 tokens"),
        ({"max_position_embeddings": 1}, "config.json states a context of 1 tokens"),
    ],
)
def test_what_no_model_has_is_refused_when_it_is_opened(llama, changes, named):
    configure(llama, **changes)
    message = refusal_of(llama, TransformersScorer)
    assert named in message
    assert COMPLETE not in message


@pytest.mark.parametrize(
    "changes",
    [
        {"num_attention_heads": "four"},
        {"num_attention_heads": 0},
        {"layer_types": ["x"]},
        {"id2label": 3},
    ],
)
def test_what_only_the_class_can_check_is_refused_before_anything_is_scored(llama, changes):
    configure(llama, **changes)
    scorer = TransformersScorer(llama)
    assert CONFIG in refusal_of(llama, lambda _: scorer.load())


def test_the_context_is_the_same_for_every_architecture(tmp_path):
    compared = 0
    for kind in sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES):
        stated = {"model_type": kind, "max_position_embeddings": CONTEXT, "num_hidden_layers": 2}
        (tmp_path / "config.json").write_text(json.dumps(stated))
        try:
            full = AutoConfig.from_pretrained(tmp_path)
        except UNREADABLE:
            continue
        source = ModelSource(str(tmp_path))
        config = stated_config(source)
        # Files of a configuration with others in it state "text_config".
        default = getattr(type(full), "max_position_embeddings", None)
        if config is not None and isinstance(default, int) and not full.sub_configs:
            compared += 1
            context = loading.context_length(source, full)
            assert loading.context_length(source, config) == context, kind
    assert compared > 100
