"""The network that is trained: its own attention and loss against those of torch."""

import pytest
import torch
from torch.nn import functional
from transformers import GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedModel

from reproduction.run import network
from reproduction.run.network import NextTokenLoss, gpt2_config
from reproduction.run.profile import Architecture

VOCABULARY = 301
IDS = torch.randint(VOCABULARY, (3, 33), generator=torch.Generator().manual_seed(5))


SHARED = LlamaConfig(  # two heads share a key
    hidden_size=32,
    intermediate_size=32,
    num_hidden_layers=2,
    vocab_size=VOCABULARY,
    num_attention_heads=4,
    num_key_value_heads=2,
)


def model(attention: str = "sdpa", *, shared: bool = False) -> PreTrainedModel:
    torch.manual_seed(3)
    own = gpt2_config(Architecture(32, 2, 4, 32), VOCABULARY, 0)
    built = LlamaForCausalLM(SHARED) if shared else GPT2LMHeadModel(own)
    with torch.no_grad():
        for parameter in built.parameters():  # else most logits are nearly zero
            parameter.normal_(std=0.3)
    built.set_attn_implementation(attention)
    return built


def gradients(loss: torch.Tensor, of: PreTrainedModel) -> dict[str, torch.Tensor]:
    loss.backward()
    return {name: p.grad.clone() for name, p in of.named_parameters()}


@pytest.mark.parametrize("block", [1, 7 * VOCABULARY, 1 << 20])
@pytest.mark.parametrize(
    ("attention", "shared"), [("sdpa", False), ("plain", False), ("plain", True)]
)
def test_loss_and_gradients_are_those_of_torch(monkeypatch, block, attention, shared):
    monkeypatch.setattr(network, "has_bfloat16", lambda _: False)
    monkeypatch.setattr(network, "BLOCK", {"cpu": block})
    theirs = model(shared=shared)
    ours = model(attention, shared=shared)
    logits = theirs(input_ids=IDS[:, :-1]).logits
    expected = functional.cross_entropy(logits.flatten(0, 1), IDS[:, 1:].flatten())
    loss = NextTokenLoss(ours)(IDS)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, expected)
    wanted = gradients(expected / 4, theirs)
    found = gradients(loss / 4, ours)  # part of a batch
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-6)


def test_the_loss_of_rough_logits_is_not_rounded(monkeypatch):
    """In bfloat16 a loss of 5.7 nats could be told from 5.73 at best."""
    monkeypatch.setattr(network, "has_bfloat16", lambda _: True)
    loss = NextTokenLoss(model("plain"))(IDS).detach()
    monkeypatch.setattr(network, "has_bfloat16", lambda _: False)
    exact = NextTokenLoss(model())(IDS)
    assert loss.dtype == torch.float32
    assert loss == pytest.approx(exact.item(), abs=0.05)
    assert loss != loss.bfloat16()


def test_a_saved_model_does_not_name_the_attention_that_trained_it(tmp_path):
    model("plain").save_pretrained(tmp_path)
    assert "plain" not in (tmp_path / "config.json").read_text()
    assert GPT2LMHeadModel.from_pretrained(tmp_path).config._attn_implementation == "sdpa"
