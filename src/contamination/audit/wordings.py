"""The test of an author's wordings, of which a key has published one for each record.

Only sealed sets have them. `contamination.seal.audit` makes the test, and says why it
holds; `contamination.audit.recompute` makes it again from a store.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from contamination import statistics
from contamination.scoring.store import Store
from contamination.statistics import TestResult

WORDINGS_TEST = "wordings"


def token_scores(store: Store) -> NDArray[np.float64]:
    """Return mean log-probabilities of alternatives (nats a token), shape (n, N)."""
    scores = store.variants()
    return np.asarray(scores / np.reshape(store.header.example_tokens, scores.shape))


def wordings_test(store: Store) -> TestResult:
    """Test whether published wordings are likelier than the others, token for token.

    The score of a wording is the mean log-probability (nats) of its tokens after the
    beginning that all wordings of the record share: sums would compare lengths before
    anything else. Any score that treats the wordings of a record alike keeps the test
    exact. Of two wordings each record has one vote, whatever its scores: it is the sign
    test.
    """
    result = statistics.sharded_exact_test(token_scores(store))
    return replace(result, test=WORDINGS_TEST)
