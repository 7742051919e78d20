"""Which scores one pass of the model gives, by the names of their columns."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from contamination.membership import scores
from contamination.membership.signals import TOP, Distribution, Signals

Score = Callable[[Signals], float]


@dataclass(frozen=True)
class Columns:
    """Which k the scores have.

    Attributes
    ----------
    prefix_tokens : tokens of PPL_k.
    min_k : percentages of Min-K% and Min-K%++.
    mem, entropy : k of Mem k and Entropy k.

    Raises
    ------
    InputError
        A k that cannot be, such as 0.
    """

    prefix_tokens: tuple[int, ...] = (50, 100, 200)
    min_k: tuple[float, ...] = (5, 10, 15, 20, 25, 30, 40, 50)
    mem: tuple[int, ...] = (5, 15, 25)
    entropy: tuple[int, ...] = (5, 15, 25)

    def __post_init__(self) -> None:
        """Let every score refuse its k on a made-up text, before a real one is read."""
        for score in (self.of_log_probs() | self.of_distribution()).values():
            score(_MADE_UP)

    def of_log_probs(self) -> dict[str, Score]:
        """Scores that need nothing but log-probabilities."""
        found: dict[str, Score] = {"loss": scores.loss}
        found |= {f"ppl_{k}": partial(scores.ppl, k=k) for k in self.prefix_tokens}
        found |= {f"min_k_{k:g}": partial(scores.min_k, k=k) for k in self.min_k}
        return found

    def of_distribution(self) -> dict[str, Score]:
        """Scores that need the whole predictive distribution."""
        found: dict[str, Score] = {}
        found |= {f"min_k_pp_{k:g}": partial(scores.min_k_plus_plus, k=k) for k in self.min_k}
        found |= {f"mem_{k}": partial(scores.mem, k=k) for k in self.mem}
        found |= {f"mem_off_by_one_{k}": partial(scores.mem_off_by_one, k=k) for k in self.mem}
        found |= {f"entropy_{k}": partial(scores.entropy, k=k) for k in self.entropy}
        return found | {"entropy": scores.entropy}


_ONES = np.ones((2, len(TOP)), dtype=np.float32)
_MADE_UP = Signals(
    -_ONES[:, 0], Distribution(_ONES[:, 0], _ONES[:, 0], _ONES[:, 0], _ONES[:, 0], _ONES)
)

DEFAULT_COLUMNS = Columns()
