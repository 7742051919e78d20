"""Tiny models of many architectures against one float64 pass of the whole model per token."""

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from transformers import AutoModelForCausalLM

from contamination.errors import InputError
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from fakes.float64_loop import float64_loop, random_ids, scored
from fakes.made_up_registry import refusal
from fakes.tiny_models import SIZES, common, grouped, usual

CONTEXT = 16
NATS = 1e-4
LENGTHS = (1, 3, CONTEXT, CONTEXT + 1, 2 * CONTEXT + 3)

USUAL = usual(CONTEXT)
GROUPED = grouped(CONTEXT)
COMMON = common(CONTEXT, window=5)
GPT2 = COMMON["GPT-2"][1]
LONG = {
    "rope_type": "longrope",
    "rope_theta": 100.0,
    "original_max_position_embeddings": CONTEXT,
    "short_factor": [1.0] * 4,
    "long_factor": [2.0, 3.0, 4.0, 5.0],
}
SWITCHES = {
    "max_position_embeddings": 4 * CONTEXT,
    "original_max_position_embeddings": CONTEXT,
    "rope_parameters": LONG,
}
NARROW = {"ffn_dim": 48, "word_embed_proj_dim": 16, "do_layer_norm_before": True}

# (model type, options); those without a context of their own are asked for one.
MODELS: dict[str, tuple[str, dict[str, object]]] = COMMON | {
    "GPT-2 untied": ("gpt2", GPT2 | {"tie_word_embeddings": False}),
    "Cohere": ("cohere", GROUPED | {"logit_scale": 0.25}),
    "Granite": ("granite", GROUPED | {"logits_scaling": 3.0, "embedding_multiplier": 2.0}),
    "Phi, whose output layer has a bias": ("phi", USUAL),
    "Mixtral": ("mixtral", GROUPED | {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "OPT": ("opt", USUAL | NARROW),
    "Phi-3 long": ("phi3", GROUPED | SWITCHES),
    "RWKV": ("rwkv", SIZES | {"attention_hidden_size": 32, "context_length": CONTEXT}),
}
WITHOUT_CONTEXT = ("BLOOM", "Mamba")


def scorer_of(directory: Path, name: str, **options) -> TransformersScorer:
    context = CONTEXT if name in WITHOUT_CONTEXT else None
    return TransformersScorer(
        ModelSource(str(directory), context=context, **options), batch_tokens=50
    )


@pytest.mark.parametrize("name", MODELS)
def test_float32_agrees_with_a_float64_loop_over_tokens(directories, name):
    directory = directories(name)
    scorer = scorer_of(directory, name, precision="float32")
    assert scorer.context == CONTEXT
    sequences = [random_ids(length, length) for length in LENGTHS]
    expected = np.concatenate([float64_loop(directory, ids, CONTEXT) for ids in sequences])
    assert np.ptp(expected) > 1  # nats: it matters which token stands where
    values = np.concatenate(scored(scorer, sequences))
    np.testing.assert_allclose(values, expected, rtol=0, atol=NATS)


@pytest.mark.parametrize(
    ("name", "asked", "told"),
    [
        ("Mamba", None, "states no context length; give one"),
        # There a longer sequence in the same batch would change the numbers of a shorter one.
        ("Phi-3 long", 40, f"context is 40: .* reads 2 to {CONTEXT} tokens"),
    ],
)
def test_a_context_that_the_model_does_not_state_is_refused(directories, name, asked, told):
    with pytest.raises(InputError, match=told):
        TransformersScorer(ModelSource(str(directories(name)), context=asked))


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_logits_far_from_zero_are_no_reason_to_refuse(save, precision):
    """GPT-2 has logits of about -100, where bfloat16 knows multiples of 1/2."""
    directory = save("gpt2", GPT2)
    model = AutoModelForCausalLM.from_pretrained(directory)
    with torch.no_grad():
        model.transformer.ln_f.bias.fill_(-3.0)
        model.transformer.wte.weight.add_(1.0)
    model.save_pretrained(directory)
    with torch.inference_mode():
        assert model(torch.tensor([[5, 6]])).logits.mean() < -80
    ids = random_ids(40, 40)
    ((_, values),) = TransformersScorer(
        ModelSource(str(directory), precision=precision)
    ).token_logprobs([ids])
    assert np.abs(values - float64_loop(directory, ids, CONTEXT)).mean() < 0.1


CHANGES = "changes its logits after the output layer"
INSEPARABLE = "output layer cannot be separated"
MULTIPLIES = GROUPED | {"logits_scaling": 0.5}  # where Granite divides
EXPERTS = GROUPED | {"intermediate_size_mlp": 32, "num_local_experts": 2}
SMALL = {"vocab_size": 300, "d_model": 32, "d_ff": 32, "dim": 32, "hidden_dim": 32}
SMALL |= dict.fromkeys(["n_layers", "num_layers", "encoder_layers", "decoder_layers"], 1)
SMALL |= dict.fromkeys(["n_heads", "num_heads", "encoder_attention_heads"], 2)
SMALL |= {"decoder_attention_heads": 2}


BERT = USUAL | {"pad_token_id": 1}
SEES = "sees the tokens that it is to predict"
REFUSED = [
    (SEES, "bert", BERT, transformers.AutoModelForMaskedLM),
    ("distilbert is not a causal", "distilbert", SMALL, transformers.AutoModelForMaskedLM),
    ("the weights lack lm_head.weight", "llama", GROUPED, transformers.AutoModel),
    (CHANGES, "hyperclovax", MULTIPLIES, AutoModelForCausalLM),
    (CHANGES, "modernbert-decoder", BERT, AutoModelForCausalLM),
    (INSEPARABLE, "llama4_text", EXPERTS, transformers.Llama4ForCausalLM),
]


@pytest.mark.parametrize(("message", "kind", "options", "model_class"), REFUSED)
def test_models_of_which_no_output_layer_is_known(save, message, kind, options, model_class):
    known = transformers.AutoConfig.for_model(kind)
    options = {name: value for name, value in options.items() if hasattr(known, name)}
    directory = save(kind, options, model_class)
    for precision in ("float32", "bfloat16")[: 1 + (message == SEES)]:
        source = ModelSource(str(directory), precision=precision, context=CONTEXT)
        told = refusal(lambda of: scored(TransformersScorer(of), [random_ids(5, 5)]), source)
        assert message in told and str(directory) in told


def another_kernel(logits: torch.Tensor) -> None:
    """Round differently."""
    noise = torch.randn(logits.shape, generator=torch.manual_seed(0))
    unit = torch.finfo(logits.dtype).eps
    logits += (0.1 * unit * logits.abs().max() * noise).to(logits)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("change", "refused"),
    [
        (another_kernel, False),
        (lambda logits: logits.mul_(1.05), True),
        (lambda logits: logits[..., 123].add_(1), True),
    ],
)
def test_what_changes_logits_behind_the_output_layer(
    directories, monkeypatch, precision, change, refused
):
    forward = transformers.GPT2LMHeadModel.forward

    def changed(self, *args, **kwargs):
        output = forward(self, *args, **kwargs)
        change(output.logits)
        return output

    monkeypatch.setattr(transformers.GPT2LMHeadModel, "forward", changed)
    scorer = TransformersScorer(ModelSource(str(directories("GPT-2")), precision=precision))
    if refused:
        assert CHANGES in refusal(scored, scorer, [random_ids(5, 5)])
    else:
        assert scored(scorer, [random_ids(5, 5)])
