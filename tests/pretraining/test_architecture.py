import pytest
import torch
from transformers import GPT2LMHeadModel

from contamination.pretraining.architecture import gpt2_config, parameter_count
from contamination.pretraining.profile import Architecture

OREN = Architecture(n_embd=1536, n_layer=48, n_head=24, n_positions=2048)
GPT2_VOCABULARY = 50257
SMALL = Architecture(n_embd=8, n_layer=3, n_head=2, n_positions=10)


def closed_formula(shape: Architecture, vocabulary: int) -> int:
    """Count by hand: embeddings (the output shares the input's), blocks, final layer norm."""
    d = shape.n_embd
    attention = (d * 3 * d + 3 * d) + (d * d + d)
    feed_forward = (d * 4 * d + 4 * d) + (4 * d * d + d)
    layer_norm = 2 * d
    block = attention + feed_forward + 2 * layer_norm
    return (vocabulary + shape.n_positions) * d + shape.n_layer * block + layer_norm


def test_orens_model_has_1_4_billion_parameters():
    assert parameter_count(OREN, GPT2_VOCABULARY) == 1_440_256_512
    assert closed_formula(OREN, GPT2_VOCABULARY) == 1_440_256_512


@pytest.mark.parametrize("shape", [SMALL, Architecture(64, 1, 1, 256)])
def test_the_count_is_that_of_the_formula_at_other_sizes(shape):
    assert parameter_count(shape, 300) == closed_formula(shape, 300)


def test_gpt2_small_has_its_published_size():
    assert parameter_count(Architecture(768, 12, 12, 1024), GPT2_VOCABULARY) == 124_439_808


def test_the_configuration_is_of_the_shape_asked_for_without_dropout():
    config = gpt2_config(SMALL, 300, 7)
    assert (config.n_embd, config.n_layer, config.n_head, config.n_positions) == (8, 3, 2, 10)
    assert (config.vocab_size, config.bos_token_id, config.eos_token_id) == (300, 7, 7)
    # In training mode, where dropout acts, two passes agree.
    model = GPT2LMHeadModel(config).train()
    ids = torch.arange(10)[None]
    assert torch.equal(model(ids).logits, model(ids).logits)
