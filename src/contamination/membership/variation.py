"""A6, generation variation: does a model write the same thing again (Fu, section 4.3.3)?

CDD of Dong et al. (2024): the texts sampled after a prefix lie near the greedy one if the model has
learnt what follows by heart. They take the edit distance in tokens and call near what is at most
0.05 times the longest text away; Fu et al. warn that tasks with short answers look contaminated.
Distances are in words here, since a server does not tell its tokens.
"""

from collections.abc import Sequence

import numpy as np

ALPHA = 0.05  # of the longest text: distances up to there are in the peak (Dong et al. 2024)


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the fewest words to insert, remove or replace that make one sequence the other.

    Examples
    --------
    >>> edit_distance("a red stone".split(), "a stone here".split())
    2
    """
    # distances[j]: from the words of `first` so far to second[:j].
    distances = list(range(len(second) + 1))
    for count, word in enumerate(first, start=1):
        above = distances
        distances = [count]
        for place, other in enumerate(second):
            replaced = above[place] + (word != other)
            distances.append(min(replaced, above[place + 1] + 1, distances[place] + 1))
    return distances[-1]


def relative_distances(greedy: str, samples: Sequence[str]) -> np.ndarray:
    """Return the edit distance of each sample to the greedy text by the longest text, in [0, 1]."""
    greedy_words = greedy.split()
    words = [sample.split() for sample in samples]
    longest = max([1, len(greedy_words), *map(len, words)])
    return np.array([edit_distance(greedy_words, sample) for sample in words]) / longest


def peak(greedy: str, samples: Sequence[str]) -> float:
    """Return the share of samples that lie within `ALPHA` of the greedy text (CDD).

    Examples
    --------
    >>> peak("a red stone", ["a red stone", "a red cloud"])
    0.5
    """
    return float(np.mean(relative_distances(greedy, samples) <= ALPHA))


def agreement(greedy: str, samples: Sequence[str]) -> float:
    """Return minus the mean relative distance to the greedy text: a CDD that is never tied."""
    return -float(np.mean(relative_distances(greedy, samples)))
