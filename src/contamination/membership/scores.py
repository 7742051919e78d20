"""Membership scores of one text, pure functions of its signals.

All have one direction, fixed in advance: **the larger, the more likely a member**. So what is small
for a member (a loss, a perplexity, an entropy) comes with its sign changed.

Every score but `log_likelihood_per_byte` leaves out the first token, as the public code of Shi et
al., Min-K%++ and Fu et al. does without a start token: what stands before it is no part of the
text. A text has n = T - 1 scored tokens, so it needs two.
"""

import zlib as compression
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from contamination.errors import InputError

Array = NDArray[np.floating]
Floats = NDArray[np.float32]

TOP = (5, 10, 15, 20, 25)  # most probable tokens whose entropy is kept, ascending (Fu, Entropy k)
SMALLEST_LOSS = 1e-7  # nats; float32 cannot tell a smaller one from 0
SMALLEST_STD = 1e-6  # nats, of a distribution as good as uniform


@dataclass(frozen=True, eq=False)
class Distribution:
    """What the predictive distribution of each of T tokens was like.

    Attributes
    ----------
    rank : of the token, (T,): 1 is the most probable one; tokens with equal logits share a rank.
    rank_off_by_one : of the token before, (T,), in the distribution that predicts this one, as in
        the public code of Fu et al.; NaN for the first token, which has none before.
    mean, std : of the log-probability under the distribution (nats), (T,). Minus the mean is the
        entropy.
    top_entropy : sum of -p log p over the k most probable tokens (nats), (T, len(TOP)); p is not
        normalised again.
    """

    rank: Floats
    rank_off_by_one: Floats
    mean: Floats
    std: Floats
    top_entropy: Floats


@dataclass(frozen=True, eq=False)
class Signals:
    """What the model says of a text of T tokens.

    Attributes
    ----------
    log_probs : of the tokens (nats), float32 (T,). The first is conditioned on the start token
        alone, as in all scoring; most scores leave it out (see `scores`).
    distribution : None where only log-probabilities can be had (a model behind an endpoint).
    frequency_rank : of each token among the tokens of all texts read with this one, int64 (T,): 1
        is the one that stands there most often, of equals the one with the smaller id. It says
        nothing of the model; None where it was not counted.
    """

    log_probs: Floats
    distribution: Distribution | None = None
    frequency_rank: NDArray[np.int64] | None = None


def loss(signals: Signals) -> float:
    """Mean log-probability, which is minus the loss and minus the log of the perplexity.

    mean_t log p(x_t | x_<t), nats per token. Yeom et al. (2018); the baseline PPL of Shi.
    """
    return float(_scored(signals).mean(dtype=np.float64))


def ppl(signals: Signals, k: int) -> float:
    """Minus the log of the perplexity of the first k scored tokens, nats per token (Fu, PPL_k).

    NaN for a text with fewer: as in the public code, it takes no part in the comparison.
    """
    _require(k >= 1, f"PPL of the first {k} tokens: give k of 1 or more")
    scored = _scored(signals)
    return float(scored[:k].mean(dtype=np.float64)) if len(scored) >= k else float("nan")


def zlib(signals: Signals, text: str) -> float:
    """Minus the loss by the bytes of the compressed text: loss / zlib(x).

    Carlini et al. (2021), section 5.2: text that a compressor finds easy is no evidence.
    """
    return loss(signals) / len(compression.compress(text.encode()))


def lowercase(signals: Signals, lower: Signals) -> float:
    """Ratio of losses: of the text in lower case to the text as it is.

    Carlini et al. (2021), section 5.2. NaN where the lower-case text has a single token.
    """
    return _ratio(loss(lower), loss(signals)) if len(lower.log_probs) > 1 else float("nan")


def log_likelihood_per_byte(signals: Signals, text: str) -> float:
    """Log-probability of the whole text, its first token included, by its bytes in UTF-8 (nats).

    Two models with tokenizers of their own score the same bytes, so these compare where means over
    tokens do not.
    """
    return float(signals.log_probs.sum(dtype=np.float64)) / len(text.encode())


def reference_difference(value: float, reference: float) -> float:
    """How much likelier the text is than under a reference model: `value` - `reference`.

    Both are `log_likelihood_per_byte`, or both are `loss` over the same tokens. Calibration by
    difference: Watson et al. (2022); the baseline Smaller Ref of Shi.
    """
    return value - reference


def reference_ratio(value: float, reference: float) -> float:
    """Ratio of losses: of the reference model to the model; arguments as above.

    Carlini et al. (2021), section 5.2, with a smaller model as reference.
    """
    return _ratio(reference, value)


def neighbour(signals: Signals, neighbours: Sequence[Signals]) -> float:
    """How much likelier the text is than its neighbours on average, nats per token.

    Mean loss of the neighbours - loss of the text: Mattern et al. (2023).
    """
    return loss(signals) - float(np.mean([loss(other) for other in neighbours]))


def recall(signals: Signals, conditional: Array) -> float:
    """Ratio of mean log-probabilities: after a prefix of non-members to without it.

    ReCaLL(x) = LL(x | P) / LL(x), Xie et al. (2024): foreign text before it costs a
    member more. `conditional` are the log-probabilities after the prefix, (T,).
    """
    return _ratio(float(conditional[1:].mean(dtype=np.float64)), loss(signals))


def min_k(signals: Signals, k: float) -> float:
    """Mean over the k% least probable tokens of log p(x_t | x_<t): Min-K% Prob, Shi, section 3.

    max(1, floor(n k / 100)) tokens.
    """
    return _lowest(_scored(signals), k)


def min_prob(signals: Signals, k: float) -> float:
    """Mean probability of the k% least probable tokens: Min k% Token as Fu (Table 4) define it.

    As many tokens as in `min_k`, without the logarithm.
    """
    return _lowest(np.exp(_scored(signals)), k)


def min_k_plus_plus(signals: Signals, k: float) -> float:
    """Mean over the k% lowest standardised log-probabilities: Min-K%++, Zhang et al. (2025).

    (log p(x_t | x_<t) - mu) / sigma, with the mean and the standard deviation of the
    log-probability under the predictive distribution. As many tokens as in `min_k`.
    """
    predicted = _distribution(signals)
    std = np.maximum(predicted.std[1:], SMALLEST_STD)
    return _lowest((_scored(signals) - predicted.mean[1:]) / std, k)


def frequent(signals: Signals, k: int) -> float:
    """Mean log-probability of the tokens that are among the k most frequent ones, nats per token.

    Song and Shmatikov (2019) in the words of Fu (section 4.2.1, for A1). Frequent in all texts
    scored together, members or not, so that a score changes with the texts beside it. NaN for a
    text without such a token.
    """
    _require(k >= 1, f"the {k} most frequent tokens: give k of 1 or more")
    ranks = signals.frequency_rank
    if ranks is None:
        raise InputError("nobody counted the tokens of these texts: score them by their names")
    found = _scored(signals)[ranks[1:] <= k]
    return float(found.mean(dtype=np.float64)) if len(found) else float("nan")


def mem(signals: Signals, k: int) -> float:
    """Share of tokens that are among the k most probable ones: Mem k (Fu, for A4)."""
    _require(k >= 1, f"Mem {k}: no token has a rank below 1; give k of 1 or more")
    return float(np.mean(_distribution(signals).rank[1:] <= k))


def mem_off_by_one(signals: Signals, k: int) -> float:
    """Mem k as the public code of Fu has it, one position off.

    It compares the logits at position t, which predict token t + 1, with token t, and counts ranks
    from 0, so that rank <= k are k + 1 tokens.
    """
    _require(k >= 1, f"Mem {k}: give k of 1 or more")
    return float(np.mean(_distribution(signals).rank_off_by_one[1:] <= k + 1))


def entropy(signals: Signals, k: int | None = None) -> float:
    """Minus the mean entropy of the predictive distributions, nats (Fu, Entropy k, for A6).

    With k, one of `signals.TOP`: of the k most probable tokens alone, sum of -p log p with p as it
    is; None is the whole vocabulary.
    """
    predicted = _distribution(signals)
    if k is None:
        return float(predicted.mean[1:].mean(dtype=np.float64))
    _require(k in TOP, f"Entropy {k} is not kept: give one of {', '.join(map(str, TOP))}")
    return -float(predicted.top_entropy[1:, TOP.index(k)].mean(dtype=np.float64))


@dataclass(frozen=True)
class Score:
    """A score of one text, in the registry.

    Attributes
    ----------
    label : heads a column of a table; {k} stands for its k.
    compute : signals (and k, where it has one) -> number. None reads the text, too, or other texts.
    k : type of its k; None where it has none.
    distribution : whether it reads the whole predictive distribution, not log-probabilities alone.
    """

    label: str
    compute: Callable[..., float] | None = None
    k: type[int] | type[float] | None = None
    distribution: bool = False


# The name of a column is a key and its k: min_k_20, entropy_5; entropy.
SCORES = {
    "loss": Score("PPL", loss),
    "ppl": Score("PPL of {k}", ppl, int),
    "min_k": Score("Min-{k}%", min_k, float),
    "min_prob": Score("Min-{k}% token", min_prob, float),
    "frequent": Score("{k} most frequent", frequent, int),
    "min_k_pp": Score("Min-{k}%++", min_k_plus_plus, float, distribution=True),
    "mem": Score("Mem {k}", mem, int, distribution=True),
    "mem_off_by_one": Score("Mem {k}, off by one", mem_off_by_one, int, distribution=True),
    "entropy": Score("Entropy {k}", entropy, int, distribution=True),
    "zlib": Score("Zlib"),
    "lowercase": Score("Lowercase"),
    "neighbour": Score("Neighbor"),
    "recall": Score("ReCaLL"),
    "reference_difference": Score("Smaller Ref"),
    "reference_ratio": Score("Smaller Ref, ratio"),
}
OF_TEXT = ("zlib", "lowercase")  # columns that a table can have beside those of `score_named`


def score_named(name: str) -> Callable[[Signals], float]:
    """Return the score of a column, such as loss or min_k_12.5.

    Raises InputError if there is no such score, or no such k, as 0; a made-up text tries it.
    """
    score, k = _registered(name)
    if score.compute is None or (bool(k) != bool(score.k) and name != "entropy"):
        raise _unknown(name)
    try:
        found = partial(score.compute, k=score.k(k)) if k and score.k else score.compute
    except ValueError:
        raise _unknown(name) from None
    found(_MADE_UP)
    return found


def needs_distribution(name: str) -> bool:
    """Whether a score reads the whole predictive distribution, not log-probabilities alone."""
    return _registered(name)[0].distribution


def label_of(name: str) -> str:
    """Label of a column, such as Min-20%; raises InputError if there is no such score."""
    score, k = _registered(name)
    return score.label.format(k=k).strip()


def _registered(name: str) -> tuple[Score, str]:
    """Score of a column, and the text of its k."""
    if name in SCORES:
        return SCORES[name], ""
    family, _, k = name.rpartition("_")
    if family not in SCORES:
        raise _unknown(name)
    return SCORES[family], k


def _unknown(name: str) -> InputError:
    families = ", ".join(key for key, score in SCORES.items() if score.k)
    return InputError(
        f"no score {name!r}: give loss, entropy, zlib, lowercase, or one of {families} with its k, "
        "such as min_k_20"
    )


def _scored(signals: Signals) -> Array:
    _require(
        len(signals.log_probs) >= 2,
        f"a text of {len(signals.log_probs)} token has no score: give one of 2 tokens or more",
    )
    return signals.log_probs[1:]


def _distribution(signals: Signals) -> Distribution:
    if signals.distribution is None:
        raise InputError(
            "this score needs the whole predictive distribution, which the model does not give: "
            "use a model that runs here, or a score of log-probabilities alone"
        )
    _scored(signals)
    return signals.distribution


def _lowest(values: Array, k: float) -> float:
    _require(0 < k <= 100, f"Min-K% with k = {k:g}: give a percentage above 0 and up to 100")
    count = max(1, int(len(values) * k / 100))
    return float(np.partition(values, count - 1)[:count].mean(dtype=np.float64))


def _ratio(above: float, below: float) -> float:
    """Ratio of two losses given as mean log-probabilities."""
    return max(-above, SMALLEST_LOSS) / max(-below, SMALLEST_LOSS)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise InputError(message)


_TWO = np.ones(2, dtype=np.float32)
_MADE_UP = Signals(
    -_TWO,
    Distribution(_TWO, _TWO, _TWO, _TWO, np.ones((2, len(TOP)), np.float32)),
    np.ones(2, dtype=np.int64),
)
