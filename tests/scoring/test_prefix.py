"""Continuations of shared prefixes against one float64 forward pass for each of them."""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from shutil import copytree
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from contamination.errors import InputError
from contamination.scoring import local
from contamination.scoring import prefix as module
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.scoring.prefix import attention_mask, continuation_logprobs
from fakes.tiny_models import SIZES, common, save_model

CONTEXT = 40
WINDOW = 12
FLOAT32_NATS = 1e-4
BFLOAT16_NATS = 0.1

GPT_NEO = {
    "vocab_size": 300,
    "hidden_size": 32,
    "num_layers": 2,
    "num_heads": 4,
    "attention_types": [[["global", "local"], 1]],
    "window_size": WINDOW,
    "max_position_embeddings": 10 * CONTEXT,
}
MPT = {"vocab_size": 300, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 10 * CONTEXT}
ALIBI = {"num_attention_heads": 4, "alibi": True, "max_position_embeddings": CONTEXT}
MODELS: dict[str, tuple[str, dict[str, object]]] = common(CONTEXT, WINDOW) | {
    "GPT-Neo": ("gpt_neo", GPT_NEO),
    "MPT": ("mpt", MPT),
    "Falcon": ("falcon", SIZES | ALIBI),
}
# Most inputs for which prefixes are shared. GPT-Neo has windows of its own, BLOOM and MPT have no
# positions, Falcon refuses masks, and Mamba has no keys.
MOST = dict.fromkeys(MODELS, 0) | dict.fromkeys(["GPT-2", "Llama", "GPT-NeoX"], CONTEXT)
MOST |= dict.fromkeys(["Mistral", "Gemma 2"], WINDOW)


@pytest.fixture(scope="session")
def directories(tokenizer, tmp_path_factory) -> Callable[[str], Path]:
    """Return a function that gives the directory of one of MODELS."""

    @cache
    def directory(name: str) -> Path:
        return save_model(tmp_path_factory.mktemp("model"), tokenizer, *MODELS[name])

    return directory


@pytest.fixture
def make(directories) -> Callable[..., TransformersScorer]:
    """Return a function that loads one of MODELS."""

    def scorer(
        name: str = "GPT-2",
        precision: str = "float32",
        attention: str | None = None,
        batch_tokens: int | None = None,
    ) -> TransformersScorer:
        source = ModelSource(
            str(directories(name)), context=CONTEXT, precision=precision, attention=attention
        )
        return TransformersScorer(source, batch_tokens=batch_tokens)

    return scorer


@pytest.fixture
def ran(monkeypatch) -> list:
    """Return a list that fills with the batches of pieces whose prefix the network shares."""
    run, batches = module._run, []

    def recorded(scorer, pieces):
        values = run(scorer, pieces)
        batches.append(pieces)
        return values

    monkeypatch.setattr(module, "_run", recorded)
    return batches


def ids(length: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, length]).integers(1, 300, length, dtype=np.int32)


def group(prefix: int, *lengths: int) -> tuple[np.ndarray, list[np.ndarray]]:
    return ids(prefix), [ids(length, 1 + i) for i, length in enumerate(lengths)]


GROUPS = [
    group(5, 4, 4, 4),  # fits into the sliding windows
    group(9, 3, 3, 3, 3),
    group(0, 4, 2, 4),
    group(1, 1, 1, 1),  # the prefix predicts them all
    group(25, 8, 8, 8, 8, 8, 8, 8),
    group(30, 6, 0, 3, 1, 9),
    group(32, 8, 8),  # exactly the context
    group(33, 8, 8, 7),  # one more than the context, for two of them
    group(60, 9, 2, 2),  # a prefix that is itself longer than the context
    group(12, CONTEXT, CONTEXT, 1),  # no room for any prefix
    group(21, 5),
    group(7),
    group(8, 0, 0),
]
# By the most inputs for which prefixes are shared: those in which some two continuations share one.
SHARED = {CONTEXT: set(range(10)), WINDOW: {0, 1, 2, 3}, 0: set()}


def run(scorer, groups=GROUPS) -> np.ndarray:
    """Return all values in order, as one array, checked for their form."""
    results = sorted(continuation_logprobs(scorer, groups), key=itemgetter(0))
    assert [index for index, _ in results] == list(range(len(groups)))
    values = [each for _, of_group in results for each in of_group]
    assert [len(each) for each in values] == [len(c) for _, cs in groups for c in cs]
    assert all(each.dtype == np.float32 for each in values)
    return np.concatenate(values)


@pytest.fixture(scope="session")
def reference(directories) -> Callable[..., np.ndarray]:
    """Return a function that scores each continuation alone, in float64, by the whole model."""

    @torch.inference_mode()
    def values(name: str, groups=GROUPS) -> np.ndarray:
        model = AutoModelForCausalLM.from_pretrained(directories(name)).double().eval()
        return np.concatenate([logprobs(model, *pair).numpy() for pair in alone(groups)])

    return values


def alone(groups) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield what is kept of the prefix, and the continuation, for each that has a token."""
    for prefix, continuations in groups:
        for c in filter(len, continuations):
            yield prefix[max(0, len(prefix) - (CONTEXT - len(c))) :], c


def logprobs(model, kept: np.ndarray, continuation: np.ndarray) -> torch.Tensor:
    stream = torch.tensor([[0, *kept.tolist(), *continuation.tolist()]])
    logits = model(stream[:, :-1], use_cache=False).logits[0].log_softmax(1)
    return logits.gather(1, stream[0, 1:, None])[len(kept) :, 0]


def float32_rounding(directory: Path) -> np.ndarray:
    """Four standard deviations of what float32 does to each log-probability of GROUPS, nats.

    Every output y_i = sum_j W_ij x_j of a linear layer is wrong by some eps * sum_j |W_ij x_j|, eps
    being that of float32, which moves the log-probability by d log p / d y_i times that. The errors
    of different outputs are independent, so their squares add up.
    """
    model = AutoModelForCausalLM.from_pretrained(directory).double().eval()
    sums: list[tuple[torch.Tensor, torch.Tensor]] = []

    def keep(layer: torch.nn.Linear, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
        sums.append((output, (inputs[0].abs() @ layer.weight.abs().T).detach()))

    for layer in model.modules():
        if isinstance(layer, torch.nn.Linear):
            layer.register_forward_hook(keep)
    deviations = []
    for kept, continuation in alone(GROUPS):
        sums.clear()
        values = logprobs(model, kept, continuation)
        outputs, sizes = [y for y, _ in sums], [size for _, size in sums]
        unit = torch.eye(len(values), dtype=values.dtype)
        slopes = torch.autograd.grad(values, outputs, unit, is_grads_batched=True)
        squares = [
            (slope * size).square().flatten(1).sum(1)
            for slope, size in zip(slopes, sizes, strict=True)
        ]
        deviations.append(sum(squares).sqrt().numpy())
    return 4 * np.finfo(np.float32).eps * np.concatenate(deviations)


@pytest.mark.parametrize("name", MODELS)
def test_float32_agrees_with_a_float64_pass_for_each(make, reference, ran, directories, name):
    # The selective scan of a Mamba cancels: it multiplies the relative error of what it reads by
    # about ten in each of the two layers, from 2 eps to 20 and 400 at the worst position, where
    # 3e-5 of a hidden state of length 6 are 1e-4 nats. So each of its tokens has its own bound,
    # most of them below that of the other networks.
    bound = float32_rounding(directories(name)) if name == "Mamba" else FLOAT32_NATS
    assert (np.abs(run(make(name)) - reference(name)) <= bound).all()
    assert np.median(bound) <= FLOAT32_NATS
    used = {piece.group for batch in ran[1:] for piece in batch}  # the first is the comparison
    assert used == SHARED[MOST[name]]
    assert bool(ran) == bool(used)


@pytest.mark.parametrize("name", MODELS)
def test_the_reference_would_notice_another_prefix(reference, name):
    """The test above means something only if every token depends on those of the prefix."""
    prefix, continuations = GROUPS[0]
    other = np.append(prefix[0] % 299 + 1, prefix[1:])
    changed = np.abs(reference(name, GROUPS[:1]) - reference(name, [(other, continuations)]))
    assert changed.min() > 5 * FLOAT32_NATS
    assert np.median(changed) > 100 * FLOAT32_NATS


@pytest.mark.parametrize("name", ["GPT-2", "Llama"])
@pytest.mark.parametrize("batch_tokens", [1, 45, 150, 100_000])
def test_batches_padding_and_company_do_not_matter(
    make, reference, monkeypatch, ran, name, batch_tokens
):
    monkeypatch.setitem(local.LOGITS, "cpu", 7 * 300 if batch_tokens == 150 else 2048 * 300)
    expected = reference(name)
    scorer = make(name, batch_tokens=batch_tokens)
    np.testing.assert_allclose(run(scorer), expected, rtol=0, atol=FLOAT32_NATS)
    for pieces in ran:
        widest = max(piece.width for piece in pieces)
        assert widest * len(pieces) <= max(batch_tokens, widest)
        assert all(len(p.members) == 1 for p in pieces if p.width > batch_tokens)
    assert bool(ran) == (batch_tokens > 1)
    backwards, expected = GROUPS[::-1], reference(name, GROUPS[::-1])
    values = run(make(name, batch_tokens=batch_tokens), backwards)
    np.testing.assert_allclose(values, expected, rtol=0, atol=FLOAT32_NATS)


def test_a_mask_that_is_added_suits_eager_attention_too(make, reference, ran):
    values = run(make("Llama", attention="eager"))
    np.testing.assert_allclose(values, reference("Llama"), rtol=0, atol=FLOAT32_NATS)
    assert ran


def test_attention_that_takes_no_such_mask_is_not_given_one(make, monkeypatch, ran):
    monkeypatch.setattr(module, "ATTENTIONS", ("eager",))
    run(make())
    assert not ran


@pytest.mark.parametrize("name", ["GPT-2", "Llama"])
def test_bfloat16_stays_within_its_tolerance(make, reference, ran, name):
    error = np.abs(run(make(name, "bfloat16")) - reference(name))
    assert ran
    assert error.max() < BFLOAT16_NATS
    assert error.mean() < BFLOAT16_NATS / 5


def test_everything_goes_through_network_and_output_layer_once(make):
    scorer = make()
    groups = [group(20, *[6] * 4), group(20, *[6] * 4), group(9, *[3] * 4)]
    run(scorer, groups)  # with the comparison
    read, rows = [], []
    scorer.model.get_input_embeddings().register_forward_hook(
        lambda _, inputs, __: read.append(inputs[0].numel())
    )
    scorer.head.layer.register_forward_hook(lambda _, inputs, __: rows.append(len(inputs[0])))
    run(scorer, groups[:2])
    assert sum(read) == 2 * (1 + 20 + 4 * 5)
    assert sum(rows) == 2 * (1 + 4 * 5)
    rows.clear()
    run(scorer, groups)  # one with less, and padding
    assert sum(rows) == 2 * (1 + 4 * 5) + (1 + 4 * 2)


def test_memory_running_out_halves_batches_and_then_groups(make, reference, monkeypatch):
    scorer, run_, allowed, sizes = make(), module._run, 1000, []

    def limited(scorer, pieces):
        size = sum(piece.width for piece in pieces)
        if size > allowed:
            raise torch.OutOfMemoryError("of this test")
        sizes.append(size)
        return run_(scorer, pieces)

    monkeypatch.setattr(module, "_run", limited)
    expected = reference("GPT-2")
    run(scorer)
    assert max(sizes) > 150
    sizes.clear()
    allowed = 50  # a group has 75 tokens
    np.testing.assert_allclose(run(scorer), expected, rtol=0, atol=FLOAT32_NATS)
    assert 40 < max(sizes) <= 50
    assert scorer.batch_tokens < 4096
    allowed = 20
    with pytest.raises(InputError, match="does not fit into memory"):
        run(scorer)


def test_other_errors_are_not_taken_for_want_of_memory(make, monkeypatch):
    scorer, broken = make(), Mock(side_effect=RuntimeError("of this test"))
    run(scorer, [group(20, 6, 6, 6, 6)])
    monkeypatch.setattr(module, "_run", broken)
    with pytest.raises(RuntimeError, match="of this test"):
        run(scorer, [group(20, 6, 6, 6, 6)])
    broken.assert_called_once()


def every_key(blocks, widths, longest, dtype):
    return torch.zeros_like(attention_mask(blocks, widths, longest, dtype))


def of_the_neighbour(blocks, widths, longest, dtype):
    return attention_mask(torch.zeros_like(blocks), widths, longest, dtype)


def padding_of_prefixes(blocks, widths, longest, dtype):
    return attention_mask(blocks, torch.full_like(widths, longest), longest, dtype)


refused = Mock(side_effect=TypeError("of this test"))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("fault", [every_key, of_the_neighbour, padding_of_prefixes, refused])
def test_a_network_that_sees_something_else_never_shares(
    make, reference, monkeypatch, ran, precision, fault
):
    monkeypatch.setattr(module, "attention_mask", fault)
    scorer = make("Llama", precision)
    atol = FLOAT32_NATS if precision == "float32" else BFLOAT16_NATS
    for _ in range(2):
        np.testing.assert_allclose(run(scorer), reference("Llama"), rtol=0, atol=atol)
    assert len(ran) <= 1  # the one that was compared


def test_padding_is_compared_where_one_group_is_the_longest_and_the_widest(
    make, reference, monkeypatch
):
    monkeypatch.setattr(module, "attention_mask", padding_of_prefixes)
    groups = [group(25, *[6] * 6), group(3, 4, 4), group(9, 4, 4)]
    expected = reference("Llama", groups)
    np.testing.assert_allclose(run(make("Llama"), groups), expected, rtol=0, atol=FLOAT32_NATS)


def test_larger_groups_are_compared_again(make, reference, monkeypatch, ran):
    """A window that the configuration hides does not matter in groups that it exceeds."""
    monkeypatch.setattr(module, "BY_INDEX", ())
    name = "GPT-Neo"
    scorer = make(name)
    small, large = [group(2, 3, 3, 3)], [group(30, 6, 6, 6)]
    both = [small, large, small]
    expected = [reference(name, groups) for groups in both]
    shared = []
    for groups, right in zip(both, expected, strict=True):
        np.testing.assert_allclose(run(scorer, groups), right, rtol=0, atol=FLOAT32_NATS)
        shared.append(len(ran))
        ran.clear()
    assert shared == [2, 1, 0]  # compared and used, compared, neither


def test_a_size_is_compared_once(make, ran):
    scorer = make()
    run(scorer, [group(20, 6, 6, 6)])
    assert len(ran) == 2
    run(scorer, [group(20, 6, 6, 6), group(8, 5, 5)])
    assert len(ran) == 3
    run(scorer, [group(8, *[4] * 12)])  # wider
    assert len(ran) == 5
    run(scorer, [group(21, 6, 6)])  # longer
    assert len(ran) == 7


def test_tokens_that_the_network_does_not_know_are_refused(make):
    scorer, unknown = make(), np.array([300, 1, 1], dtype=np.int32)
    known = ids(3)
    run(scorer, [(known, [known, known])])  # later ones of this size are not compared
    for groups in ([(unknown, [known, known])], [(known, [known, unknown])]):
        with pytest.raises(InputError, match="token 300, but the model knows 300"):
            run(scorer, groups)


def test_damaged_weights_are_refused(directories, tmp_path):
    copytree(directories("GPT-2"), tmp_path, dirs_exist_ok=True)
    weights = load_file(tmp_path / "model.safetensors")
    weights["transformer.ln_f.bias"][0] = float("nan")
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(InputError):
        run(TransformersScorer(ModelSource(str(tmp_path), context=CONTEXT)))


# --- scorers of any kind --------------------------------------------------------------------------


class MadeUp:
    """Log-probabilities that depend on all tokens before; nothing is known of a network."""

    context = CONTEXT

    def __init__(self, batch_tokens: int = 4096) -> None:
        self.batch_tokens = batch_tokens
        self.calls: list[int] = []  # tokens read
        self.asked: list[int] = []  # tokens to score of each sequence

    def token_logprobs(self, sequences, wanted) -> Iterator[tuple[int, np.ndarray]]:
        assert all(len(s) <= self.context for s in sequences)  # one window
        assert [w.shape for w in wanted] == [s.shape for s in sequences]
        assert all(w.dtype == bool for w in wanted)
        self.calls.append(sum(map(len, sequences)))
        self.asked += [int(w.sum()) for w in wanted]
        for i in reversed(range(len(sequences))):
            values = made_up(sequences[i])
            values[~wanted[i]] = np.nan
            yield i, values


def made_up(tokens: np.ndarray) -> np.ndarray:
    states = accumulate(tokens.tolist(), lambda state, token: (state * 31 + token) % 1009)
    return -np.fromiter(states, dtype=np.float32) / 100


def test_any_scorer_gets_each_continuation_behind_its_prefix():
    expected = [made_up(np.concatenate([kept, c]))[len(kept) :] for kept, c in alone(GROUPS)]
    np.testing.assert_array_equal(run(MadeUp()), np.concatenate(expected))


def test_few_concatenations_exist_at_a_time():
    groups = [group(20, 5, 5, 5) for _ in range(200)]
    scorer = MadeUp(batch_tokens=50)
    run(scorer, groups)
    assert sum(scorer.calls) == 200 * 3 * 25
    assert max(scorer.calls) <= module.PLAIN_BATCHES * 50
    assert len(scorer.calls) == 1 + sum(scorer.calls) // (module.PLAIN_BATCHES * 50)


def test_only_the_tokens_of_continuations_are_asked_for():
    scorer = MadeUp()
    run(scorer, [group(20, 5, 5, 3)])
    assert sorted(scorer.asked) == [3, 5, 5]


@pytest.fixture(params=["any", "network"])
def either(request, make):
    return MadeUp() if request.param == "any" else make()


def test_a_continuation_longer_than_the_context_is_refused(either):
    with pytest.raises(
        InputError, match=r"continuation 1 of group 1 has 41 tokens, but the context is 40; score"
    ):
        run(either, [group(3, 4, 4), group(3, 4, CONTEXT + 1)])


def test_nothing_is_no_result(either):
    assert list(continuation_logprobs(either, [])) == []
    empty = np.empty(0, dtype=np.int32)
    assert run(either, [(empty, [empty, empty])]).shape == (0,)
