"""Generation variation: a model that has learnt a text by heart writes the same thing again.

CDD, Dong et al. (2024): the edit distances between what the model writes greedily and what it
writes when sampling have their peak near 0 for members (Fu, A6).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from contamination.membership.completion import split
from contamination.membership.generation import continuations
from contamination.membership.similarity import edit_distances
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize

ALPHA = 0.05  # of the longest text: edit distances up to there are near 0


def generation_variation(
    scorer: TransformersScorer,
    texts: Sequence[str],
    *,
    share: float = 1.0,
    samples: int = 50,
    temperature: float = 0.8,
    new_tokens: int = 100,
    alpha: float = ALPHA,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Share of sampled continuations that are near the greedy one, (len(texts),).

    Larger is more likely a member. Distances are in tokens; near is at most `alpha` times the
    longest continuation, the greedy one included. The defaults are those of the paper.

    Parameters
    ----------
    share : of the tokens of a text that are the prompt. 1 is the text as a whole: a question, say.

    Raises
    ------
    InputError
        As `contamination.membership.generation.continuations`; or `share` is not above 0 and at
        most 1.
    """
    prompts = tokenize(scorer.tokenizer, texts) if share == 1 else split(scorer, texts, share)[0]
    greedy = continuations(scorer, prompts, new_tokens=new_tokens)
    sampled = continuations(
        scorer, prompts, new_tokens=new_tokens, temperature=temperature, samples=samples, seed=seed
    )
    return np.array(
        [_peak(one, others, alpha) for (one,), others in zip(greedy, sampled, strict=True)]
    )


def _peak(greedy: np.ndarray, sampled: Sequence[np.ndarray], alpha: float) -> float:
    longest = max(len(ids) for ids in (greedy, *sampled))
    return float(np.mean(edit_distances(greedy, sampled) <= alpha * longest))
