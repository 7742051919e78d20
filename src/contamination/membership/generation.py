"""How much of a text a model writes when it is given the first half.

Carlini et al. (2023) call a text memorised if greedy decoding from its beginning gives the rest
word for word; ROUGE-L says how much of it comes back where not all does (Fu, A4).
"""

import re
from collections.abc import Sequence

import pandas as pd
from rapidfuzz.distance import LCSseq

from contamination.errors import InputError
from contamination.scoring.generation import LocalGenerator, Sampling
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize

WORD = re.compile(r"\w+")


def completion_scores(
    scorer: TransformersScorer, texts: Sequence[str], *, most: int = 64
) -> pd.DataFrame:
    """Give the model the first half of each text and compare what it writes with the rest.

    It writes greedily; the first `most` tokens of the rest count, and as many of what is written. A
    row per text, all columns larger for members: `verbatim` (1 if the rest comes back as it is,
    else 0), `rouge_l_recall` and `rouge_l_f1`. Raises InputError for a text of fewer than two
    tokens, and as `LocalGenerator` does.
    """
    halves = []
    for number, ids in enumerate(tokenize(scorer.tokenizer, texts)):
        if len(ids) < 2:
            raise InputError(f"text {number} has {len(ids)} token(s): a completion needs 2 or more")
        middle = len(ids) // 2
        halves.append((ids[:middle], ids[middle : middle + most]))
    decode = scorer.tokenizer.decode
    longest = max(len(rest) for _, rest in halves)
    sampling = Sampling(samples=1, tokens=longest, temperature=0)
    prompts = [decode(first) for first, _ in halves]
    rows = []
    written = LocalGenerator(scorer, "the model").generate(prompts, sampling)
    for (_, rest), found in zip(halves, written, strict=True):
        (ids,) = tokenize(scorer.tokenizer, found)
        ours, wanted = decode(ids[: len(rest)]), decode(rest)
        rows.append((float(ours == wanted), *rouge_l(ours, wanted)))
    return pd.DataFrame(rows, columns=["verbatim", "rouge_l_recall", "rouge_l_f1"])


def rouge_l(found: str, expected: str) -> tuple[float, float]:
    """Recall and F1 of ROUGE-L (Lin 2004), the longest common subsequence of words, in [0, 1].

    Words are runs of letters, digits and underscores in lower case, without stemming. A text
    without a word has nothing in common with any other.
    """
    ours, theirs = (WORD.findall(text.lower()) for text in (found, expected))
    common = LCSseq.similarity(ours, theirs)
    return common / max(1, len(theirs)), 2 * common / max(1, len(ours) + len(theirs))
