"""Log-probabilities of texts after a prefix, for ReCaLL (Xie et al. 2024)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from contamination.errors import InputError
from contamination.scoring.contract import Scorer
from contamination.scoring.prefix import continuation_logprobs
from contamination.scoring.windows import windows


def conditional_log_probs(
    scorer: Scorer, prefix: np.ndarray, sequences: Sequence[np.ndarray]
) -> list[NDArray[np.float32]]:
    """Log-probabilities (nats) of the tokens of each sequence after a prefix.

    The prefix stands before every window of a sequence that is longer than what it leaves of the
    context; each token is scored once. Where texts fit, the prefix is read once for all of them.

    Raises
    ------
    InputError
        A prefix without a token, or one that leaves less than half of the context.
    """
    if not len(prefix):
        raise InputError("the prefix has no token; give text that the model has not seen")
    room = scorer.context - len(prefix)
    if room < max(2, scorer.context / 2):
        raise InputError(
            f"the prefix has {len(prefix)} tokens, more than half of the context of "
            f"{scorer.context}; give a shorter one"
        )
    found = [np.empty(len(ids), dtype=np.float32) for ids in sequences]
    groups: list[tuple[np.ndarray, list[np.ndarray]]] = [(prefix, [])]
    places: list[list[tuple[int, slice]]] = [[]]
    for index, ids in enumerate(sequences):
        for start, first, stop in windows(len(ids), room):
            if start == first:
                groups[0][1].append(ids[first:stop])
                places[0].append((index, slice(first, stop)))
            else:  # this window has more to read than the prefix
                before = np.concatenate([prefix, ids[start:first]])
                groups.append((before, [ids[first:stop]]))
                places.append([(index, slice(first, stop))])
    for group, values in continuation_logprobs(scorer, groups):
        for (index, where), part in zip(places[group], values, strict=True):
            found[index][where] = part
    return found
