"""The output layer against log_softmax in float64."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from accelerate import cpu_offload
from transformers import (
    CohereConfig,
    FalconH1Config,
    Gemma2Config,
    GPT2Config,
    GraniteConfig,
    RecurrentGemmaConfig,
)

from contamination.scoring.head import Head, logit_transform

N, WIDTH, VOCABULARY = 23, 32, 200


def a_layer(bias: bool = False, dtype: torch.dtype = torch.float32) -> torch.nn.Linear:
    torch.manual_seed(0)
    layer = torch.nn.Linear(WIDTH, VOCABULARY, bias=bias)
    with torch.no_grad():
        layer.weight.mul_(12)  # logits of several tens, as those of real models
        if bias:
            layer.bias.mul_(30)
    return layer.to(dtype)


def some_hidden(dtype: torch.dtype = torch.float32, n: int = N) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(n, WIDTH, generator=generator).to(dtype)
    return hidden, torch.randint(VOCABULARY, (n,), generator=generator)


@torch.no_grad()
def exact(
    layer: torch.nn.Linear,
    hidden: torch.Tensor,
    tokens: torch.Tensor,
    transform: Callable[[torch.Tensor], torch.Tensor] = lambda logits: logits,
) -> np.ndarray:
    """Log-probabilities in float64 from the weights and hidden states as they are stored."""
    logits = hidden.double() @ layer.weight.double().T
    if layer.bias is not None:
        logits = logits + layer.bias.double()
    logits = transform(logits).log_softmax(1)
    return logits.gather(1, tokens[:, None])[:, 0].numpy()


@torch.inference_mode()
def run(head: Head, hidden: torch.Tensor, tokens: torch.Tensor) -> np.ndarray:
    values = head(hidden, tokens)
    assert values.dtype is torch.float32
    assert values.shape == tokens.shape
    return values.numpy()


TRANSFORMS = {
    "GPT2": (GPT2Config(), lambda x: x),
    "Gemma2": (Gemma2Config(final_logit_softcapping=5.0), lambda x: 5 * torch.tanh(x / 5)),
    "RecurrentGemma": (RecurrentGemmaConfig(logits_soft_cap=9.0), lambda x: 9 * torch.tanh(x / 9)),
    "Cohere": (CohereConfig(logit_scale=0.0625), lambda x: x / 16),
    "Falcon-H1": (FalconH1Config(lm_head_multiplier=0.5), lambda x: x / 2),
    "Granite": (GraniteConfig(logits_scaling=8.0), lambda x: x / 8),
}


@pytest.mark.parametrize(("config", "formula"), TRANSFORMS.values(), ids=TRANSFORMS.keys())
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("rows", "bias"), [(1, False), (7, True), (1000, True)])
def test_what_an_architecture_does_to_its_logits(config, formula, dtype, rows, bias):
    layer = a_layer(bias, dtype)
    hidden, tokens = some_hidden(dtype)
    transform = logit_transform(config)
    values = run(Head(layer, transform, rows=rows), hidden, tokens)
    expected = exact(layer, hidden, tokens, formula)
    moved = np.abs(expected - exact(layer, hidden, tokens)).max()
    assert moved > 1 if transform else type(config) is GPT2Config  # or it would not matter
    assert len(run(Head(layer, transform, rows=rows), hidden[:0], tokens[:0])) == 0
    atol = 1e-5 if dtype is torch.float32 else 0.15
    np.testing.assert_allclose(values, expected, rtol=1e-6, atol=atol)
    # Several tokens for one state are scored as one by one.
    several = torch.stack([tokens, tokens.roll(1), tokens.flip(0)], dim=1)
    columns = run(Head(layer, transform, rows=rows), hidden, several).T
    for column, found in zip(several.T, columns, strict=True):
        expected = exact(layer, hidden, column, formula)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=atol)


@pytest.mark.parametrize(("scale", "shift", "share"), [(1, 0, 0.2), (6, 0, 0.6), (6, -100, 0.6)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_exact_logit_removes_much_of_the_error_of_rounding(dtype, scale, shift, share):
    """Tokens drawn from the model; GPT-2 has logits of about -100, others are centred."""
    layer = a_layer(True)
    with torch.no_grad():
        layer.weight.mul_(scale / 12)
        layer.bias.fill_(shift)
    layer = layer.to(dtype)
    hidden, _ = some_hidden(dtype, 4000)
    with torch.inference_mode():
        logits = layer(hidden).float()
        tokens = torch.multinomial(logits.softmax(1), 1, generator=torch.manual_seed(0))[:, 0]
        naive = logits.log_softmax(1).gather(1, tokens[:, None])[:, 0].numpy()
    expected = exact(layer, hidden, tokens)
    before = np.abs(naive - expected)
    after = np.abs(run(Head(layer, None, rows=512), hidden, tokens) - expected)
    assert after.mean() < share * before.mean()
    assert after.max() < before.max()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_probability_is_never_above_1(dtype):
    """The token that has all of the probability: rounding must not lift it above 1."""
    layer = a_layer(dtype=dtype)
    hidden = 30 * some_hidden(dtype, 500)[0]
    with torch.inference_mode():
        tokens = layer(hidden).float().argmax(1)
    values = run(Head(layer, None, rows=100), hidden, tokens)
    assert values.max() == 0
    assert np.isfinite(values).all()


class Packed(torch.nn.Linear):
    """Stands for a quantised layer, whose weight is not a matrix of numbers."""

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(hidden, self.weight.view(VOCABULARY, WIDTH))


def packed(layer: torch.nn.Linear) -> Packed:
    result = Packed(WIDTH, VOCABULARY, bias=False)
    result.weight = torch.nn.Parameter(layer.weight.detach().flatten(), requires_grad=False)
    return result


def offloaded(layer: torch.nn.Linear) -> torch.nn.Linear:
    cpu_offload(layer, execution_device="cpu")
    assert layer.weight.device.type == "meta"
    return layer


@pytest.mark.parametrize(
    ("hide", "dtype", "atol"),
    [
        (packed, torch.bfloat16, 0.3),
        (offloaded, torch.float32, 1e-4),
        (offloaded, torch.bfloat16, 0.3),
    ],
)
def test_weights_that_cannot_be_read_are_left_alone(hide, dtype, atol):
    bias = hide is offloaded
    layer = a_layer(bias, dtype)
    hidden_layer = hide(a_layer(bias, dtype))
    hidden, tokens = some_hidden(dtype)
    values = run(Head(hidden_layer, None, rows=7), hidden, tokens)
    np.testing.assert_allclose(values, exact(layer, hidden, tokens), rtol=0, atol=atol)
