"""The room in memory: by numbers, and against the bytes that are alive in tiny networks."""

from unittest.mock import Mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoConfig, AutoModelForCausalLM, GPT2Config, LlamaConfig, MixtralConfig

from contamination.device import free_bytes
from contamination.errors import InputError
from contamination.scoring import local
from contamination.scoring.local import TransformersScorer
from contamination.scoring.prefix import continuation_logprobs
from contamination.scoring.room import SHARE, batch_room, bytes_per_token, head_rows, inner_width
from fakes.float64_loop import random_ids, scored
from fakes.live_bytes import LiveBytes
from fakes.tiny_models import common, save_model

GIB = 1 << 30
MOST = 65_536
CONTEXT = 64
NATS = 1e-4
SEVEN_B = LlamaConfig(
    hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32
)
SMALL = LlamaConfig(
    hidden_size=576,
    intermediate_size=1536,
    num_hidden_layers=30,
    num_attention_heads=9,
    num_key_value_heads=3,
)


def room_of(config, free: int, **options) -> int:
    """The tokens of a batch in bfloat16, in rows of 1,024, beside a block of 2^28 logits."""
    return batch_room(free, config, row=1024, itemsize=2, most=MOST, block=1 << 28, **options)


@pytest.mark.parametrize(
    ("config", "free", "keeps_keys", "expected"),
    [
        (SEVEN_B, 66 * GIB, False, MOST),  # of a card of 80 GiB
        (SEVEN_B, 66 * GIB, True, MOST),
        (SEVEN_B, 10 * GIB, False, 32_768),  # of one of 24 GiB
        (SEVEN_B, 10 * GIB, True, 8_192),
        (SMALL, 10 * GIB, False, MOST),
        (SMALL, 10 * GIB, True, MOST),
        (SEVEN_B, 0, False, 1024),  # a row cannot be divided
    ],
)
def test_a_card_takes_as_many_tokens_as_its_free_memory_holds(config, free, keeps_keys, expected):
    assert room_of(config, free, keeps_keys=keeps_keys) == expected


@given(free=st.integers(0, 200 * GIB), row=st.integers(1, MOST), most=st.integers(1, MOST))
def test_a_batch_of_several_rows_fits_and_one_twice_as_large_does_not(free, row, most):
    tokens = batch_room(free, SEVEN_B, row=row, itemsize=2, most=most, block=0)
    each = bytes_per_token(SEVEN_B, row=row, itemsize=2)
    assert 1 <= tokens <= most
    if tokens > row:
        assert tokens * each <= SHARE * free
    if row < tokens < most:  # it was halved, and rounded down
        assert (2 * tokens + 1) * each > SHARE * free


@pytest.mark.parametrize(
    ("free", "expected"),
    [(None, 5461), (80 * GIB, 5461), (4 * GIB, 3640), (1 << 20, 1), (0, 1)],
)
def test_the_logits_take_a_quarter_of_the_free_memory_at_most(free, expected):
    assert head_rows(free, 49_152, itemsize=2, most=1 << 28) == expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (SMALL, 1536),
        (GPT2Config(n_embd=768), 4 * 768),
        (GPT2Config(n_embd=768, n_inner=100), 100),
        (MixtralConfig(intermediate_size=500, num_experts_per_tok=3), 1500),
    ],
)
def test_the_inner_width_is_that_of_all_experts_of_a_token(config, expected):
    assert inner_width(config) == expected


# A state model has states beside what the law counts.
MODELS = {name: made for name, made in common(CONTEXT, window=16).items() if name != "Mamba"}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("attention", [None, "eager"])
@pytest.mark.parametrize("name", MODELS)
def test_the_law_covers_what_is_alive_while_a_layer_computes(name, attention, dtype):
    """Four rows of a whole context, and no more than five times as much."""
    kind, options = MODELS[name]
    config = AutoConfig.for_model(kind, **options)
    network = AutoModelForCausalLM.from_config(config, attn_implementation=attention).to(dtype)
    ids = torch.zeros(4, CONTEXT, dtype=torch.int64)
    with torch.inference_mode(), LiveBytes([*network.parameters(), *network.buffers()]) as live:
        network.base_model(input_ids=ids, use_cache=False)
    law = bytes_per_token(network.config, row=CONTEXT, itemsize=dtype.itemsize)
    assert law / 5 < live.peak / ids.numel() < law


@pytest.mark.parametrize("name", ["GPT-2", "Llama"])
def test_the_law_covers_the_keys_of_shared_prefixes(monkeypatch, tmp_path, tokenizer, name):
    monkeypatch.setitem(local.LOGITS, "cpu", 300)
    kind, options = common(CONTEXT, window=16)[name]
    scorer = TransformersScorer(save_model(tmp_path, tokenizer, kind, options), batch_tokens=MOST)
    prefixes = [random_ids(30, seed) for seed in range(4)]
    continuations = [ids[:8] for ids in prefixes]
    groups = [(prefix, continuations) for prefix in prefixes]
    weights = [*scorer.model.parameters(), *scorer.model.buffers()]
    list(continuation_logprobs(scorer, groups))  # looked at first, whether sharing agrees
    with LiveBytes(weights) as live:
        list(continuation_logprobs(scorer, groups))
    width = 1 + 30 + 4 * 7
    itemsize = scorer.dtype.itemsize
    law = bytes_per_token(scorer.model.config, row=width, itemsize=itemsize, keeps_keys=True)
    assert live.peak < 4 * width * law


class Card:
    """A made-up card with as many free bytes, on the scorer's device."""

    def __init__(self, monkeypatch, free: int) -> None:
        self.free = free
        monkeypatch.setattr(local, "free_bytes", lambda device, spread: self.free)


def batches_of(scorer: TransformersScorer, fault=None) -> list[int]:
    """Let the scorer note the tokens of each batch that the network is given."""
    network = scorer.model.base_model
    assert scorer.head is not None  # looked at by the whole network
    tokens: list[int] = []

    def read(input_ids, **options):
        tokens.append(input_ids.numel())
        if fault is not None and fault(input_ids.numel()):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")
        return network(input_ids=input_ids, **options)

    scorer.__dict__["body"] = read
    return tokens


SEQUENCES = [random_ids(16, seed) for seed in range(64)]


@pytest.fixture
def expected(monkeypatch, model_directory) -> list[np.ndarray]:
    monkeypatch.setattr(local, "has_bfloat16", lambda device: False)
    return scored(TransformersScorer(model_directory), SEQUENCES)


def check(scorer: TransformersScorer, expected: list[np.ndarray]) -> None:
    for values, wanted in zip(scored(scorer, SEQUENCES), expected, strict=True):
        np.testing.assert_allclose(values, wanted, rtol=0, atol=NATS)


def test_batches_follow_the_free_memory_of_the_card(monkeypatch, model_directory, expected):
    card = Card(monkeypatch, free=GIB)
    scorer = TransformersScorer(model_directory)
    tokens = batches_of(scorer)
    check(scorer, expected)
    assert tokens == [1024]
    tokens.clear()
    each = bytes_per_token(scorer.model.config, row=16, itemsize=4)
    logits = scorer.head.rows * 300 * 8
    card.free = int((256 * each + logits) / SHARE) + 1
    check(scorer, expected)
    assert tokens == [256] * 4


def test_shared_prefixes_leave_room_for_their_keys(monkeypatch, model_directory):
    Card(monkeypatch, free=GIB)
    asked = Mock(wraps=batch_room)
    monkeypatch.setattr(local, "batch_room", asked)
    scorer = TransformersScorer(model_directory)
    list(scorer.token_logprobs(SEQUENCES[:1]))
    assert not asked.call_args.kwargs["keeps_keys"]
    list(continuation_logprobs(scorer, [(SEQUENCES[0][:6], [ids[:4] for ids in SEQUENCES[:3]])]))
    assert asked.call_args.kwargs["keeps_keys"]


def test_tokens_that_were_given_stay(monkeypatch, model_directory, expected):
    Card(monkeypatch, free=0)
    scorer = TransformersScorer(model_directory, batch_tokens=512)
    tokens = batches_of(scorer)
    check(scorer, expected)
    assert tokens == [512] * 2


def test_where_the_law_says_too_much_the_batches_are_halved(monkeypatch, model_directory, expected):
    Card(monkeypatch, free=GIB)
    scorer = TransformersScorer(model_directory)
    tokens = batches_of(scorer, fault=lambda count: count > 300)
    check(scorer, expected)
    assert tokens == [1024, 512, *[256] * 4]


def test_a_window_that_does_not_fit_is_named(monkeypatch, model_directory):
    Card(monkeypatch, free=GIB)
    scorer = TransformersScorer(model_directory)
    batches_of(scorer, fault=lambda count: True)
    with pytest.raises(InputError, match="one window of 16 tokens does not fit"):
        list(scorer.token_logprobs(SEQUENCES))


def test_free_bytes_are_those_that_nobody_uses_on_the_fullest_card(monkeypatch):
    """Unclaimed, reserved and allocated bytes of two made-up cards."""
    first = torch.device("cuda", 0)
    second = torch.device("cuda", 1)
    unclaimed = {first: (100, 1000), second: (90, 1000)}
    reserved = {first: 50, second: 30}
    allocated = {first: 20, second: 25}
    monkeypatch.setattr(torch.cuda, "mem_get_info", unclaimed.get)
    monkeypatch.setattr(torch.cuda, "memory_reserved", reserved.get)
    monkeypatch.setattr(torch.cuda, "memory_allocated", allocated.get)
    monkeypatch.setattr(torch.cuda, "device_count", Mock(return_value=2))
    assert free_bytes(first) == 130
    assert free_bytes(first, spread=True) == 95
    assert free_bytes(torch.device("cpu")) is None
