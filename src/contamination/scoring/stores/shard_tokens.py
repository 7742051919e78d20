"""The tokens of one shard in several orderings: what statistics of tokens start from."""

import math
from typing import NamedTuple

import numpy as np

from contamination.statistics.results import with_ties


class ShardTokens(NamedTuple):
    """The T tokens of one shard in orderings 0..m.

    A column is one token, in canonical order.
    """

    logprobs: np.ndarray  # nats, float32 (m + 1, T)
    # Whether the token's example is first in the ordering, bool (m + 1, T).
    leading: np.ndarray
    position: np.ndarray  # of the token within its example, int32 (T,)
    resolution: float = 0.0  # nats that the engine cannot tell apart in a token

    def sums(self) -> np.ndarray:
        """Log-probabilities (nats) of the orderings, float64 (m + 1,), ties as in `log_probs`."""
        sums: np.ndarray = self.logprobs.sum(axis=1, dtype=np.float64)
        return with_ties(sums, self.resolution * math.sqrt(self.logprobs.shape[1]))

    def first_orderings(self, permutations: int) -> "ShardTokens":
        """Return the same tokens in orderings 0..permutations alone."""
        rows = slice(permutations + 1)
        return self._replace(logprobs=self.logprobs[rows], leading=self.leading[rows])
