"""Signals against a full softmax in float64, token by token."""

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from contamination.membership import signals as module
from contamination.membership.scores import TOP
from contamination.membership.signals import describe, token_signals
from contamination.scoring.head import Head
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize
from fakes.float64_loop import float64_distributions

CONTEXT = 16
NATS = 2e-4


def expected(rows: np.ndarray, ids: np.ndarray) -> dict[str, np.ndarray]:
    """All signals of one text from log-probabilities [T, V], in plain loops."""
    found = {"log_probs": [], "rank": [], "off": [], "mean": [], "std": [], "top": []}
    for t, row in enumerate(rows):
        p = np.exp(row)
        found["log_probs"].append(row[ids[t]])
        found["rank"].append(1 + sum(row > row[ids[t]]))
        found["off"].append(1 + sum(row > row[ids[t - 1]]) if t else np.nan)
        mean = sum(p * row)
        found["mean"].append(mean)
        found["std"].append(np.sqrt(sum(p * (row - mean) ** 2)))
        best = sorted(row, reverse=True)
        largest = []
        for k in TOP:
            largest.append(-sum(np.exp(x) * x for x in best[:k]))
        found["top"].append(largest)
    return {name: np.array(values) for name, values in found.items()}


def check(signals, wanted: dict[str, np.ndarray]) -> None:
    pairs = {"log_probs": signals.log_probs, "rank": signals.rank, "off": signals.rank_off_by_one}
    pairs |= {"mean": signals.mean, "std": signals.std, "top": signals.top_entropy}
    for name, values in pairs.items():
        assert values.dtype == np.float32
        np.testing.assert_allclose(values, wanted[name], rtol=0, atol=NATS, err_msg=name)


def test_all_signals_of_short_and_long_texts(float32, model_directory, tokenizer, texts):
    sequences = tokenize(tokenizer, texts)
    assert max(map(len, sequences)) > 3 * CONTEXT
    rows = [float64_distributions(model_directory, ids, CONTEXT) for ids in sequences]
    wanted = [expected(*each) for each in zip(rows, sequences, strict=True)]
    for batch_tokens in (1, 60, 10_000):
        scorer = TransformersScorer(model_directory, batch_tokens=batch_tokens)
        for signals, each in zip(token_signals(scorer, sequences), wanted, strict=True):
            check(signals, each)


def a_head(vocabulary: int, rows: int, dtype=torch.float32, transform=None) -> Head:
    torch.manual_seed(0)
    layer = torch.nn.Linear(8, vocabulary)
    with torch.no_grad():
        layer.weight.mul_(6)
    return Head(layer.to(dtype), transform, rows=rows)


def some(n: int, vocabulary: int, dtype=torch.float32) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(n, 8, generator=generator).to(dtype)
    return hidden, *torch.randint(vocabulary, (2, n), generator=generator)


@torch.inference_mode()
def columns(head: Head, hidden, tokens, read) -> np.ndarray:
    return describe(head, hidden, tokens, read).numpy()


@torch.no_grad()
def reference(head: Head, hidden, tokens, read, transform=lambda x: x) -> np.ndarray:
    logits = hidden.double() @ head.layer.weight.double().T + head.layer.bias.double()
    rows = transform(logits).log_softmax(1).numpy()
    wanted = expected(rows, tokens.numpy())
    off = 1 + (rows > rows[np.arange(len(rows)), read.numpy()][:, None]).sum(1)
    basic = [wanted[name] for name in ("log_probs", "mean", "std")]
    return np.column_stack([*basic, wanted["rank"], off, wanted["top"]])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("vocabulary", [7, 1500])
@pytest.mark.parametrize(("rows", "block"), [(1, 1), (4, 10_000), (100, 3000), (100, 1 << 20)])
def test_blocks_of_any_size_and_any_vocabulary(monkeypatch, vocabulary, rows, block):
    monkeypatch.setitem(module.BLOCK, "cpu", block)
    head = a_head(vocabulary, rows)
    inputs = some(23, vocabulary)
    np.testing.assert_allclose(columns(head, *inputs), reference(head, *inputs), rtol=0, atol=NATS)


def test_bfloat16_has_the_log_probabilities_of_the_plain_output_layer():
    head = a_head(5003, 10, torch.bfloat16)
    hidden, tokens, read = some(23, 5003, torch.bfloat16)
    found = columns(head, hidden, tokens, read)
    with torch.inference_mode():
        plain = head(hidden, tokens).numpy()
    np.testing.assert_allclose(found[:, 0], plain, rtol=0, atol=1e-5)
    # Entropies come from rounded logits; errors of half a unit cancel over a distribution.
    wanted = reference(head, hidden, tokens, read)
    exact = [0, 3, 4]  # the log-probability, and the ranks
    rounded = np.delete(found, exact, axis=1)
    np.testing.assert_allclose(rounded, np.delete(wanted, exact, axis=1), rtol=0, atol=0.1)


def test_without_ranks_the_other_signals_are_the_same(float32, model_directory, tokenizer, texts):
    sequences = tokenize(tokenizer, texts)
    scorer = TransformersScorer(model_directory)
    both = zip(
        token_signals(scorer, sequences),
        token_signals(scorer, sequences, ranked=False),
        strict=True,
    )
    for whole, basic in both:
        for name in ("log_probs", "mean", "std"):
            np.testing.assert_array_equal(getattr(basic, name), getattr(whole, name))
        assert basic.rank is None
        assert basic.top_entropy is None


def test_entries_that_cannot_occur_change_nothing():
    """Some architectures set the logits of padding to -inf."""
    head = a_head(300, 10)
    inputs = some(23, 200)

    def without_the_last(logits):
        logits[:, 250:] = -torch.inf
        return logits

    short = a_head(300, 10)
    short.layer.weight.data = short.layer.weight.data[:250]
    short.layer.bias.data = short.layer.bias.data[:250]
    head.transform = without_the_last
    np.testing.assert_allclose(columns(head, *inputs), columns(short, *inputs), rtol=0, atol=NATS)


class Largest(TorchDispatchMode):
    """Remembers the largest number of elements that an operation returns."""

    most = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.most = max(self.most, leaf.untyped_storage().nbytes() // 4)
        return result


def test_no_matrix_of_all_tokens_by_the_vocabulary(monkeypatch):
    monkeypatch.setitem(module.BLOCK, "cpu", 3 * 5003)
    head = a_head(5003, 10)
    inputs = some(200, 5003)
    with Largest() as seen:
        columns(head, *inputs)
    assert seen.most <= 10 * 5003
