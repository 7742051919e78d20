"""Membership scores of one text: a registry of pure functions of what was read of it.

All have one direction, fixed in advance: **the larger, the more likely a member**. So what is small
for a member (a loss, a perplexity, an entropy) comes with its sign changed.

Every score but the log-probability per byte leaves out the first token, as the public code of Shi
et al., Min-K%++ and Fu et al. does without a start token: what stands before it is no part of the
text. A text has n = T - 1 scored tokens, so it needs two.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from contamination.errors import InputError

Array = NDArray[np.floating]
Floats = NDArray[np.float32]
Part = Literal["tokens", "distribution", "text", "lower", "neighbours", "prefix", "reference"]

TOP = (5, 10, 15, 20, 25)  # most probable tokens whose entropy is kept, ascending (Fu, Entropy k)
SMALLEST_LOSS = 1e-7  # nats; float32 cannot separate a smaller one from 0
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


@dataclass(frozen=True, eq=False)
class Reading:
    """All that scores read of one text; what a score does not need may be missing.

    Attributes
    ----------
    signals : of the text.
    text : itself.
    lower : signals of the text in lower case.
    neighbours : signals of small changes of it.
    conditional : log-probabilities (nats) of its tokens after a prefix of non-members, (T,).
    reference : log-probability of the text (nats) under the model and under a reference model, both
        `log_prob_per_byte`, or both means over the same tokens.
    """

    signals: Signals
    text: str = ""
    lower: Signals | None = None
    neighbours: Sequence[Signals] = ()
    conditional: Array | None = None
    reference: tuple[float, float] | None = None


@dataclass(frozen=True)
class Score:
    """A score: the label of its column ({k} stands for its k), how it is computed, what it reads.

    `compute` takes a `Reading` and, where there is one, `k` of that type; larger for members. NaN
    is no score: the text takes no part in the comparison.
    """

    label: str
    compute: Callable[..., float]
    k: type[int] | type[float] | None = None
    reads: Part = "tokens"


def mean_log_prob(signals: Signals) -> float:
    """Mean log-probability of the scored tokens (nats), minus the log of the perplexity."""
    return _mean(_scored(signals))


def log_prob_per_byte(signals: Signals, text: str) -> float:
    """Log-probability of the whole text, its first token included, by its bytes in UTF-8 (nats).

    Two models with tokenizers of their own score the same bytes, so these compare where means over
    tokens do not.
    """
    return float(signals.log_probs.sum(dtype=np.float64)) / len(text.encode())


def _ppl(read: Reading, k: int) -> float:
    _require(k >= 1, f"PPL of the first {k} tokens: give k of 1 or more")
    scored = _scored(read.signals)
    return _mean(scored[:k]) if len(scored) >= k else float("nan")


def _min_k_plus_plus(read: Reading, k: float) -> float:
    seen = _distribution(read)
    std = np.maximum(seen.std[1:], SMALLEST_STD)
    return _lowest((_scored(read.signals) - seen.mean[1:]) / std, k)


def _frequent(read: Reading, k: int) -> float:
    _require(k >= 1, f"the {k} most frequent tokens: give k of 1 or more")
    ranks = read.signals.frequency_rank
    if ranks is None:
        raise InputError("nobody counted the tokens of these texts: score them by their names")
    found = _scored(read.signals)[ranks[1:] <= k]
    return _mean(found) if len(found) else float("nan")


def _mem(read: Reading, k: int) -> float:
    _require(k >= 1, f"Mem {k}: no token has a rank below 1; give k of 1 or more")
    return float(np.mean(_distribution(read).rank[1:] <= k))


def _mem_off_by_one(read: Reading, k: int) -> float:
    _require(k >= 1, f"Mem {k}: give k of 1 or more")
    return float(np.mean(_distribution(read).rank_off_by_one[1:] <= k + 1))


def _entropy(read: Reading, k: int | None = None) -> float:
    seen = _distribution(read)
    if k is None:
        return _mean(seen.mean[1:])
    _require(k in TOP, f"Entropy {k} is not kept: give one of {', '.join(map(str, TOP))}")
    return -_mean(seen.top_entropy[1:, TOP.index(k)])


def _lowercase(read: Reading) -> float:
    if read.lower is None or len(read.lower.log_probs) < 2:
        return float("nan")
    return _ratio(mean_log_prob(read.lower), mean_log_prob(read.signals))


def _neighbour(read: Reading) -> float:
    return mean_log_prob(read.signals) - float(np.mean([*map(mean_log_prob, read.neighbours)]))


# The name of a column is a key and its k: min_k_20, entropy_5; entropy.
SCORES = {
    # Mean log-probability, nats per token (Yeom et al. 2018; the baseline PPL of Shi).
    "loss": Score("PPL", lambda read: mean_log_prob(read.signals)),
    # Of the first k scored tokens (Fu, PPL_k); NaN for a text with fewer, as in the public code.
    "ppl": Score("PPL of {k}", _ppl, int),
    # Mean over the k% least probable tokens, max(1, floor(n k / 100)) (Min-K% Prob, Shi, 3).
    "min_k": Score("Min-{k}%", lambda read, k: _lowest(_scored(read.signals), k), float),
    # The same of probabilities, without the logarithm (Min k% Token, Fu, Table 4).
    "min_prob": Score(
        "Min-{k}% token", lambda read, k: _lowest(np.exp(_scored(read.signals)), k), float
    ),
    # Mean over the k% lowest (log p - mu) / sigma, with mean and standard deviation of the
    # log-probability under the predictive distribution (Min-K%++, Zhang et al. 2025).
    "min_k_pp": Score("Min-{k}%++", _min_k_plus_plus, float, "distribution"),
    # Mean log-probability of the k tokens that are most frequent in all texts scored together, so
    # that a score changes with the texts beside it; NaN for a text without such a token (Song and
    # Shmatikov 2019 in the words of Fu, section 4.2.1, for A1).
    "frequent": Score("{k} most frequent", _frequent, int),
    # Share of tokens that are among the k most probable ones (Fu, Mem k, for A4).
    "mem": Score("Mem {k}", _mem, int, "distribution"),
    # As the public code of Fu has it, one position off: it compares the logits at position t, which
    # predict token t + 1, with token t, and counts ranks from 0: rank <= k are k + 1 tokens.
    "mem_off_by_one": Score("Mem {k}, off by one", _mem_off_by_one, int, "distribution"),
    # Minus the mean entropy of the predictive distributions, nats; with k, one of `TOP`, of the k
    # most probable tokens alone, sum of -p log p with p as it is (Fu, Entropy k, for A6).
    "entropy": Score("Entropy {k}", _entropy, int, "distribution"),
    # Mean log-probability by the bytes of the compressed text (Carlini et al. 2021, section 5.2).
    "zlib": Score(
        "Zlib",
        lambda read: mean_log_prob(read.signals) / len(zlib.compress(read.text.encode())),
        reads="text",
    ),
    # Ratio of losses: of the text in lower case to the text as it is (Carlini et al. 2021); NaN
    # where the lower-case text has a single token.
    "lowercase": Score("Lowercase", _lowercase, reads="lower"),
    # Mean loss of the neighbours less the loss of the text, nats per token (Mattern et al. 2023).
    "neighbour": Score("Neighbor", _neighbour, reads="neighbours"),
    # LL(x | P) / LL(x) of mean log-probabilities: foreign text before it costs a member more
    # (ReCaLL, Xie et al. 2024).
    "recall": Score(
        "ReCaLL",
        lambda read: _ratio(_mean(read.conditional[1:]), mean_log_prob(read.signals)),
        reads="prefix",
    ),
    # How much likelier than under a reference model (Watson et al. 2022; Shi's Smaller Ref), and
    # the ratio of the losses of the reference and the model (Carlini et al. 2021).
    "reference_difference": Score(
        "Smaller Ref", lambda read: read.reference[0] - read.reference[1], reads="reference"
    ),
    "reference_ratio": Score(
        "Smaller Ref, ratio", lambda read: _ratio(*read.reference[::-1]), reads="reference"
    ),
}


def score_named(name: str) -> Callable[[Reading], float]:
    """Return the score of a column, such as loss or min_k_12.5.

    Raises InputError if there is no such score, or no such k, as 0; a made-up text tries it.
    """
    score, k = registered(name)
    if bool(k) != bool(score.k) and name != "entropy":
        raise _unknown(name)
    try:
        found = partial(score.compute, k=score.k(k)) if k and score.k else score.compute
    except ValueError:
        raise _unknown(name) from None
    found(_MADE_UP)
    return found


def registered(name: str) -> tuple[Score, str]:
    """Return the score of a column and the text of its k; raises InputError if there is none."""
    family, _, k = (name, "", "") if name in SCORES else name.rpartition("_")
    if family not in SCORES:
        raise _unknown(name)
    return SCORES[family], k


def label_of(name: str) -> str:
    """Label of a column, such as Min-20%; raises InputError if there is no such score."""
    score, k = registered(name)
    return score.label.format(k=k).strip()


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


def _distribution(read: Reading) -> Distribution:
    if read.signals.distribution is None:
        raise InputError(
            "this score needs the whole predictive distribution, which the model does not give: "
            "use a model that runs here, or a score of log-probabilities alone"
        )
    _scored(read.signals)
    return read.signals.distribution


def _mean(values: Array) -> float:
    return float(values.mean(dtype=np.float64))


def _lowest(values: Array, k: float) -> float:
    _require(0 < k <= 100, f"Min-K% with k = {k:g}: give a percentage above 0 and up to 100")
    count = max(1, int(len(values) * k / 100))
    return _mean(np.partition(values, count - 1)[:count])


def _ratio(above: float, below: float) -> float:
    """Ratio of two losses given as mean log-probabilities."""
    return max(-above, SMALLEST_LOSS) / max(-below, SMALLEST_LOSS)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise InputError(message)


_TWO = np.ones(2, dtype=np.float32)
_SEEN = Distribution(_TWO, _TWO, _TWO, _TWO, np.ones((2, len(TOP)), np.float32))
_SIGNALS = Signals(-_TWO, _SEEN, np.ones(2, dtype=np.int64))
_MADE_UP = Reading(_SIGNALS, "text", _SIGNALS, [_SIGNALS], -_TWO, (-1.0, -1.0))
