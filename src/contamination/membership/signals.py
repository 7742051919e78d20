"""Per-token signals: all that one pass of the model says of a text, for every score at once.

The rank of token t comes from the logits at position t-1, which predict it. The public code of Fu
et al. (2025) compares the logits at position t with the token at t, which the model has just read;
that rank is kept beside the right one under a name that says so.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

if TYPE_CHECKING:
    from contamination.scoring.contract import Scorer
    from contamination.scoring.local import TransformersScorer

Floats = NDArray[np.float32]

TOP = (5, 10, 15, 20, 25)  # most probable tokens whose entropy is kept, ascending (Fu, Entropy k)


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
        alone, as everywhere in the engine; most scores leave it out (see `scores`).
    distribution : None where only log-probabilities can be had (a model behind an endpoint).
    """

    log_probs: Floats
    distribution: Distribution | None = None


def token_signals(scorer: "Scorer", sequences: Sequence[np.ndarray]) -> list[Signals]:
    """Return the signals of token sequences, in their order, from one pass of the model.

    Long sequences are read in the windows of the engine: every token is scored once. A network that
    runs here is asked for everything, any other scorer for log-probabilities.

    Raises
    ------
    InputError
        What the scorer raises: unknown tokens, weights that give no numbers, too little memory.
    """
    from contamination.scoring.local import TransformersScorer

    if isinstance(scorer, TransformersScorer):
        return _in_order(_described(scorer, sequences), sequences)
    return log_prob_signals(scorer, sequences)


def log_prob_signals(scorer: "Scorer", sequences: Sequence[np.ndarray]) -> list[Signals]:
    """Return the log-probabilities of token sequences alone, in their order."""
    results = scorer.token_logprobs(sequences)
    return _in_order(((index, Signals(values)) for index, values in results), sequences)


def _in_order(
    results: Iterable[tuple[int, Signals]], sequences: Sequence[np.ndarray]
) -> list[Signals]:
    found: dict[int, Signals] = {}
    total = sum(len(ids) for ids in sequences)
    # Shown in a terminal alone.
    with tqdm(
        total=total, unit="tok", unit_scale=True, mininterval=1.0, leave=False, disable=None
    ) as bar:
        for index, signals in results:
            found[index] = signals
            bar.update(len(signals.log_probs))
    return [found[index] for index in range(len(sequences))]


def _described(
    scorer: "TransformersScorer", sequences: Sequence[np.ndarray]
) -> Iterator[tuple[int, Signals]]:
    from contamination.membership.distribution import describe

    results = scorer.token_values(
        sequences, None, lambda *of: describe(scorer.head, *of), (5 + len(TOP),)
    )
    for index, values in results:
        values[:1, 2] = np.nan  # there, the token read is the start token, which is not of the text
        columns = np.ascontiguousarray(values.T)
        log_probs, rank, off_by_one, mean, std = columns[:5]
        top_entropy = np.ascontiguousarray(columns[5:].T)
        yield index, Signals(log_probs, Distribution(rank, off_by_one, mean, std, top_entropy))
