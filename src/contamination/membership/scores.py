"""Membership scores of one text: a registry of pure functions of what was read of it.

All have one direction, fixed in advance: **the larger, the more likely a member**. So
what is small for a member (a loss, a perplexity, an entropy) comes with its sign
changed.

Every score but the log-probability per byte leaves out the first token, as the public
code of Shi et al., Min-K%++ and Fu et al. does without a start token: what stands
before it is no part of the text. A text has n = T - 1 scored tokens, so it needs two.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contamination.errors import InputError

Array = NDArray[np.floating]
Floats = NDArray[np.float32]

# Most probable tokens whose entropy is kept, ascending (Fu, Entropy k).
TOP = (5, 10, 15, 20, 25)
# Of published and held-out records, declared before any data were seen; an endpoint has
# no score of the whole distribution.
COMPARED_SCORES = ("min_k_20", "loss", "zlib", "min_k_pp_20")
ARGUMENTS = ("reference", "neighbours")  # parts that a caller has to give
# Part of the key of stored scores. Raise it if a score, or a statistic that it needs
# (`contamination.membership.signals`), gives another number than before.
SCORES_VERSION = 1
SMALLEST_LOSS = 1e-7  # nats; float32 cannot separate a smaller one from 0
SMALLEST_STD = 1e-6  # nats, of a distribution as good as uniform


@dataclass(frozen=True, eq=False)
class TokenStatistics:
    """Statistics of the tokens of one text of T tokens.

    What a score does not need may be missing.

    Attributes
    ----------
    log_probs
        Log-probabilities of the tokens (nats), (T,). The first is conditioned on the
        start token alone.
    rank
        Rank of the token in the distribution that predicts it, (T,): 1 is the most
        probable one; tokens with equal logits share a rank. This and the next four are
        missing where only log-probabilities are available (a model behind an endpoint).
    rank_off_by_one
        Rank of the token before, (T,), in the distribution that predicts this one, as
        in the public code of Fu et al.; NaN for the first token, which has none before.
    mean, std
        Mean and standard deviation of the log-probability under the distribution
        (nats), (T,). Minus the mean is the entropy.
    top_entropy
        Sum of -p log p over the k most probable tokens (nats), (T, len(TOP)); p is not
        normalised again.
    text
        The text itself.
    lower
        Log-probabilities of the text in lower case, by its own tokens.
    neighbours
        Log-probabilities of small changes of the text, by their own tokens.
    reference
        Log-probability of the text (nats) under the model and under a reference model:
        both `log_prob_per_byte`, or both means over the same tokens.
    """

    log_probs: Array
    rank: Floats | None = None
    rank_off_by_one: Floats | None = None
    mean: Floats | None = None
    std: Floats | None = None
    top_entropy: Floats | None = None
    text: str | None = None
    lower: Array | None = None
    neighbours: Sequence[Array] | None = None
    reference: tuple[float, float] | None = None


@dataclass(frozen=True)
class Score:
    """Definition of a membership score.

    Attributes
    ----------
    compute
        Takes `TokenStatistics` and, where there is one, the number that `k` makes of
        text (or ValueError); larger for members. NaN is no score: the text takes no
        part in the comparison.
    k
        Reads the number in the name of a column; None: the score has none.
    needs
        The part of `TokenStatistics` that the score needs.
    missing
        Why a text may have no score; `{k}` stands for the number.
    """

    compute: Callable[..., float]
    k: Callable[[str], float | None] | None = None
    needs: str = "log_probs"
    missing: str = ""


def mean_log_prob(log_probs: Array) -> float:
    """Return the mean log-probability of the scored tokens (nats).

    It is minus the log of the perplexity; the first token is not scored.

    Examples
    --------
    >>> mean_log_prob(np.array([-9.0, -1.0, -3.0]))
    -2.0
    """
    return _mean(log_probs[1:])


def log_prob_per_byte(log_probs: Array, text: str) -> float:
    """Return the log-probability of the whole text by its bytes (nats).

    The first token is included. Two models with tokenizers of their own score the same
    bytes of UTF-8, so these compare where means over tokens do not.

    Examples
    --------
    >>> log_prob_per_byte(np.array([-4.0, -2.0]), "cat")
    -2.0
    """
    return float(log_probs.sum(dtype=np.float64)) / len(text.encode())


def _count(text: str) -> int:
    """Read a number of tokens; ValueError for anything else."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _percent(text: str) -> float:
    """Read a percentage above 0; ValueError for anything else."""
    number = float(text)
    if not 0 < number <= 100:
        raise ValueError
    return number


def _one_of_top(text: str) -> int | None:
    """Read one of `TOP`, or nothing; ValueError for anything else."""
    if not text:
        return None
    return TOP[TOP.index(int(text))]


# They take `TokenStatistics`, of which `membership_scores` fills what a score needs.


def _min_k_plus_plus(tokens: Any, k: float) -> float:
    std = np.maximum(tokens.std[1:], SMALLEST_STD)
    return _lowest((tokens.log_probs[1:] - tokens.mean[1:]) / std, k)


def _entropy(tokens: Any, k: int | None = None) -> float:
    if k is None:
        return _mean(tokens.mean[1:])
    return -_mean(tokens.top_entropy[1:, TOP.index(k)])


def _zlib(tokens: Any) -> float:
    compressed = zlib.compress(tokens.text.encode())
    return mean_log_prob(tokens.log_probs) / len(compressed)


def _neighbour(tokens: Any) -> float:
    neighbours = [mean_log_prob(log_probs) for log_probs in tokens.neighbours]
    return mean_log_prob(tokens.log_probs) - _mean(np.array(neighbours))


# The name of a column is a key and its k: min_k_20, entropy_5; entropy.
SCORES = {
    # Mean log-probability, nats per token (Yeom et al. 2018; the baseline PPL of Shi).
    "loss": Score(lambda tokens: mean_log_prob(tokens.log_probs)),
    # Of the first k scored tokens (Fu, PPL_k); NaN for a text with fewer, as in the
    # public code.
    "ppl": Score(
        lambda tokens, k: _mean(tokens.log_probs[1:][:k], k),
        _count,
        missing="the text has fewer than {k} scored tokens",
    ),
    # Mean over the k% least probable tokens, max(1, floor(n k / 100)) (Min-K% Prob,
    # Shi, 3).
    "min_k": Score(lambda tokens, k: _lowest(tokens.log_probs[1:], k), _percent),
    # The same of probabilities, without the logarithm (Min k% Token, Fu, Table 4).
    "min_prob": Score(lambda tokens, k: _lowest(np.exp(tokens.log_probs[1:]), k), _percent),
    # Mean over the k% lowest (log p - mu) / sigma, with mean and standard deviation of
    # the log-probability under the predictive distribution (Min-K%++, Zhang et al.
    # 2025).
    "min_k_pp": Score(_min_k_plus_plus, _percent, "mean"),
    # Share of tokens that are among the k most probable ones (Fu, Mem k, for A4).
    "mem": Score(lambda tokens, k: float(np.mean(tokens.rank[1:] <= k)), _count, "rank"),
    # As the public code of Fu has it, one position off: it compares the logits at
    # position t, which predict token t + 1, with token t, and counts ranks from 0: rank
    # <= k are k + 1 tokens.
    "mem_off_by_one": Score(
        lambda tokens, k: float(np.mean(tokens.rank_off_by_one[1:] <= k + 1)), _count, "rank"
    ),
    # Minus the mean entropy of the predictive distributions, nats; with k, one of
    # `TOP`, of the k most probable tokens alone, sum of -p log p with p as it is (Fu,
    # Entropy k, for A6).
    "entropy": Score(_entropy, _one_of_top, "rank"),
    # Mean log-probability by the bytes of the compressed text (Carlini et al. 2021,
    # section 5.2).
    "zlib": Score(_zlib, needs="text"),
    # Ratio of losses: of the text in lower case to the text as it is (Carlini et al.
    # 2021); NaN where the lower-case text has a single token.
    "lowercase": Score(
        lambda tokens: _ratio(_mean(tokens.lower[1:]), mean_log_prob(tokens.log_probs)),
        needs="lower",
        missing="the text in lower case has a single token",
    ),
    # How much likelier than under a reference model (Watson et al. 2022; Shi's Smaller
    # Ref), and the ratio of the losses of the reference and the model (Carlini et al.
    # 2021).
    "reference_difference": Score(
        lambda tokens: tokens.reference[0] - tokens.reference[1], needs="reference"
    ),
    "reference_ratio": Score(
        lambda tokens: _ratio(tokens.reference[1], tokens.reference[0]),
        needs="reference",
    ),
    # Mean loss of the neighbours less the loss of the text, nats per token (Mattern et
    # al. 2023); NaN where there is no neighbour, as of a text of one word, or one of a
    # single token.
    "neighbour": Score(
        _neighbour, needs="neighbours", missing="the text has no neighbour of two tokens"
    ),
}


def score_named(name: str) -> Score:
    """Return the score of a column, such as loss or min_k_12.5, with its k filled in.

    Raises InputError if there is no such score, or no such k, as 0.

    Examples
    --------
    >>> lowest_half = score_named("min_k_50")
    >>> lowest_half.compute(TokenStatistics(np.array([-9.0, -1.0, -3.0])))
    -3.0
    """
    if not isinstance(name, str):
        raise InputError(f"a score is {name!r:.40}: give its name, such as min_k_20")
    family, text = _family_and_k(name)
    try:
        score = SCORES[family]
        if score.k is None and text:
            raise ValueError
        if score.k is None:
            return score
        return replace(score, compute=partial(score.compute, k=score.k(text)))
    except (KeyError, ValueError):
        families = ", ".join(key for key, known in SCORES.items() if known.k)
        raise InputError(
            f"no score {name!r}: give loss, entropy, zlib, lowercase, or one of "
            f"{families} with its k, such as min_k_20: a number of tokens (of entropy "
            f"{TOP}) or a percentage"
        ) from None


def score_of_sides(name: str) -> Score:
    """Return a score by which records of two sides are compared.

    Raises InputError as `score_named` does, and for a score that needs a reference model
    or neighbours, which no record of a side has.
    """
    score = score_named(name)
    if score.needs in ARGUMENTS:
        raise InputError(
            f"score {name} needs the {score.needs} that `membership` is given; compare "
            "sides by a score of the model alone, such as loss or min_k_20",
            parameter="scores",
        )
    return score


def missing_reason(name: str) -> str:
    """Return why a text may have no score in the column of that name.

    Examples
    --------
    >>> missing_reason("ppl_200")
    'the text has fewer than 200 scored tokens'
    """
    family, k = _family_and_k(name)
    score = SCORES.get(family)
    if score is None or not score.missing:
        return "the text has no such score"
    return score.missing.format(k=k)


def _family_and_k(name: str) -> tuple[str, str]:
    """Split the name of a column into its key in `SCORES` and the text of its k."""
    if name in SCORES:
        return name, ""
    family, _, text = name.rpartition("_")
    return family, text


def _mean(values: Array, fewest: int = 1) -> float:
    """Return the mean of the values; NaN of fewer values than `fewest`."""
    if len(values) < fewest:
        return float("nan")
    return float(values.mean(dtype=np.float64))


def _lowest(values: Array, k: float) -> float:
    count = max(1, int(len(values) * k / 100))
    return _mean(np.partition(values, count - 1)[:count])


def _ratio(above: float, below: float) -> float:
    """Return the ratio of two losses given as mean log-probabilities."""
    return max(-above, SMALLEST_LOSS) / max(-below, SMALLEST_LOSS)
