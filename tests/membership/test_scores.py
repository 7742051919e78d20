"""Every score against loops over the full float64 softmax of a toy model."""

import math
import zlib

import numpy as np
import pytest

from contamination.errors import InputError
from contamination.membership import scores
from contamination.membership.scores import TOP, Distribution, Reading, Signals
from contamination.membership.signals import log_prob_signals, token_signals
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize
from fakes.float64_loop import float64_distributions
from fakes.made_up_scorer import MadeUpScorer

CONTEXT = 16


@pytest.fixture(scope="module")
def scored(model_directory, texts):
    """Return for each text: text, ids, log-probabilities of the vocabulary [T, V], signals."""
    scorer = TransformersScorer(ModelSource(str(model_directory), precision="float32"))
    sequences = tokenize(scorer.tokenizer, texts)
    signals = token_signals(scorer, sequences)
    rows = [float64_distributions(model_directory, ids, CONTEXT) for ids in sequences]
    return list(zip(texts, sequences, rows, signals, strict=True))


def tokens_of(rows, ids) -> list[float]:
    """Log-probabilities of the tokens but the first."""
    return [float(rows[t][ids[t]]) for t in range(1, len(ids))]


def near(value: float):
    return pytest.approx(value, rel=1e-4, abs=1e-4)


def mean(values) -> float:
    return math.fsum(values) / len(values)


def perplexity(values: list[float], k: int) -> float:
    """Minus its logarithm, of the first k tokens."""
    if len(values) < k:
        return math.nan
    return -math.log(math.exp(-sum(values[:k]) / k))


def lowest(values: list[float], k: float) -> float:
    return mean(sorted(values)[: max(1, math.floor(len(values) * k / 100))])


def standardised(rows, ids) -> list[float]:
    values = []
    for t in range(1, len(ids)):
        p = np.exp(rows[t])
        middle = sum(p * rows[t])
        variance = sum(p * rows[t] ** 2) - middle**2
        values.append((rows[t][ids[t]] - middle) / math.sqrt(variance))
    return values


def entropy_of_the_best(rows, k: int) -> float:
    return -mean([-sum(p * math.log(p) for p in sorted(np.exp(row))[-k:]) for row in rows])


BY_HAND = {
    "loss": lambda rows, ids: mean(tokens_of(rows, ids)),
    "ppl": lambda rows, ids, k: perplexity(tokens_of(rows, ids), int(k)),
    "min_k": lambda rows, ids, k: lowest(tokens_of(rows, ids), k),
    "min_prob": lambda rows, ids, k: lowest(np.exp(tokens_of(rows, ids)), k),
    "min_k_pp": lambda rows, ids, k: lowest(standardised(rows, ids), k),
    "entropy": lambda rows, ids, k=None: entropy_of_the_best(rows[1 : len(ids)], int(k or 0)),
}
KS = {
    "ppl": (1, 3, 20),
    "min_k": (0.1, 5, 20, 37.5, 50, 100),
    "min_prob": (5, 37.5, 100),
    "min_k_pp": (0.1, 20, 100),
}
NAMED = [(family, k) for family, ks in (KS | {"entropy": TOP}).items() for k in ks]


@pytest.mark.parametrize(("family", "k"), [("loss", None), ("entropy", None), *NAMED])
def test_a_score_by_its_name(scored, family, k):
    score = scores.score_named(family if k is None else f"{family}_{k:g}")
    rel = 1e-3 if family == "min_k_pp" else 1e-4
    for _, ids, rows, signals in scored:
        wanted = BY_HAND[family](rows, ids, *([] if k is None else [k]))
        assert score(Reading(signals)) == pytest.approx(wanted, rel=rel, abs=1e-4, nan_ok=True)


def value(name: str, signals: Signals, **parts) -> float:
    return scores.score_named(name)(Reading(signals, **parts))


def test_scores_of_a_text_or_of_two(scored):
    (text, ids, rows, signals), (_, other_ids, other_rows, other), *_ = scored
    a, b = tokens_of(rows, ids), tokens_of(other_rows, other_ids)
    size = len(zlib.compress(text.encode("utf-8")))
    assert value("zlib", signals, text=text) == pytest.approx(mean(a) / size, rel=1e-4)
    assert value("lowercase", signals, lower=other) == near(mean(b) / mean(a))
    assert math.isnan(value("lowercase", signals, lower=Signals(other.log_probs[:1])))
    total = sum(float(rows[t][ids[t]]) for t in range(len(ids)))  # the first token, too
    wanted = total / len(text.encode("utf-8"))
    assert scores.log_prob_per_byte(signals, text) == near(wanted)
    assert value("reference_difference", signals, reference=(-1.5, -2.0)) == 0.5
    assert value("reference_ratio", signals, reference=(-1.5, -3.0)) == 2.0
    wanted = mean(a) - mean([mean(tokens_of(r, i)) for _, i, r, _ in scored[1:]])
    assert value("neighbour", signals, neighbours=[s for *_, s in scored[1:]]) == near(wanted)
    conditional = np.linspace(-9, -1, len(ids), dtype=np.float32)
    wanted = np.mean(conditional[1:]) / mean(a)
    assert value("recall", signals, conditional=conditional) == near(wanted)


@pytest.mark.parametrize("k", [1, 5, 25, 100])
def test_mem_and_its_off_by_one_variant(scored, k):
    differ = 0
    for _, ids, rows, signals in scored:
        right, wrong = [], []
        for t in range(1, len(ids)):
            # The logits at position t - 1 are rows[t]: they predict token t.
            order = np.argsort(-rows[t], kind="stable").tolist()
            right.append(order.index(ids[t]) + 1 <= k)
        for t in range(len(ids) - 1):
            # The public code: logits at position t against the token at t, ranks from 0.
            larger = sum(1 for value in rows[t + 1] if value > rows[t + 1][ids[t]])
            wrong.append(larger <= k)
        assert value(f"mem_{k}", signals) == np.mean(right)
        assert value(f"mem_off_by_one_{k}", signals) == np.mean(wrong)
        differ += np.mean(right) != np.mean(wrong)
    assert differ


def made_up(log_prob: float, rank: float, entropy: float) -> Signals:
    n = 12
    each = np.ones(n, dtype=np.float32)
    seen = Distribution(
        rank * each, rank * each, -entropy * each, each, np.full((n, len(TOP)), entropy)
    )
    return Signals(log_prob * each, seen)


NAMES = ("loss", "ppl_5", "min_k_20", "min_k_pp_20", "mem_5", "mem_off_by_one_5", "entropy")


@pytest.mark.parametrize("name", [*NAMES, "entropy_5", "zlib", "lowercase", "neighbour", "recall"])
def test_larger_is_a_member(name):
    other = made_up(-3, 9, 1)
    parts = {"text": "text", "lower": other, "neighbours": [other], "conditional": other.log_probs}
    assert value(name, made_up(-0.5, 1, 0.3), **parts) > value(
        name, made_up(-4.0, 40, 0.9), **parts
    )


TWO = made_up(-1, 1, 1)


@pytest.mark.parametrize(
    ("name", "signals", "named"),
    [
        ("ppl_0", TWO, "0 tokens"),
        ("mem_0", TWO, "Mem 0"),
        ("entropy_7", TWO, "Entropy 7"),
        ("loss", Signals(TWO.log_probs[:1]), "1 token"),
        ("mem_5", Signals(TWO.log_probs), "distribution"),
    ],
)
def test_what_cannot_be_is_refused(name, signals, named):
    with pytest.raises(InputError, match=named):
        value(name, signals)


def test_the_most_frequent_tokens_are_counted_over_all_texts_read_together(tokenizer):
    scorer = MadeUpScorer(tokenizer)
    texts = [np.array(ids) for ids in ([7, 5, 5, 3], [5, 3, 9, 7], [3, 8])]
    signals = log_prob_signals(scorer, texts)  # 5 and 3 thrice each, then 7 twice, 8, 9
    assert [one.frequency_rank.tolist() for one in signals] == [[3, 2, 2, 1], [2, 1, 5, 3], [1, 4]]
    for k, chosen in ((1, (3,)), (2, (3, 5)), (5, (3, 5, 7, 8, 9))):
        for ids, one in zip(texts, signals, strict=True):
            values = [v for t, v in zip(ids[1:], one.log_probs[1:], strict=True) if t in chosen]
            wanted = np.mean(values) if values else np.nan
            assert value(f"frequent_{k}", one) == pytest.approx(wanted, nan_ok=True)
    assert math.isnan(value("frequent_2", signals[2]))
    assert scores.label_of("min_k_20") == "Min-20%"
