"""Verbatim completion: does the model go on as the text does?

Carlini et al. (2023) call a text memorised if greedy decoding from its beginning gives the rest
word for word; ROUGE-L tells how much of it comes back where not all does (Fu, A4). With the name
and the split of a data set before the prompt, the same asks what metadata brings back (Fu, A7;
Sainz et al. 2023; Golchin and Surdeanu 2024).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from contamination.errors import InputError
from contamination.membership.generation import continuations
from contamination.membership.similarity import RougeL, rouge_l
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize


@dataclass(frozen=True)
class Completion:
    """What the model wrote, and what stands in the text."""

    found: str
    expected: str
    exact: bool
    rouge_l: RougeL


def completions(
    scorer: TransformersScorer,
    texts: Sequence[str],
    *,
    share: float = 0.5,
    most: int = 64,
    metadata: str = "",
) -> list[Completion]:
    """Give the model the beginning of each text and compare what it writes with the rest.

    Parameters
    ----------
    share : of the tokens of a text that are the prompt, at least one.
    most : tokens of the rest that are compared.
    metadata : stands before each prompt, such as "The GSM8K data set, split test:\\n".

    Raises
    ------
    InputError
        A text of fewer than two tokens, a share that is not between 0 and 1, or what
        `continuations` raises.
    """
    prompts, rests = split(scorer, texts, share)
    rests = [ids[:most] for ids in rests]
    (before,) = tokenize(scorer.tokenizer, [metadata])
    written = continuations(
        scorer,
        [np.concatenate([before, ids]) for ids in prompts],
        new_tokens=max((len(ids) for ids in rests), default=1),
    )
    found = []
    for rest, (ids,) in zip(rests, written, strict=True):
        ours = ids[: len(rest)]
        said, expected = (scorer.tokenizer.decode(side) for side in (ours, rest))
        exact = np.array_equal(ours, rest)
        found.append(Completion(said, expected, exact, rouge_l(said, expected)))
    return found


def completion_scores(
    scorer: TransformersScorer, texts: Sequence[str], *, share: float = 0.5, most: int = 64
) -> pd.DataFrame:
    """Scores of verbatim completion, a row per text; larger is more likely a member.

    Columns `verbatim` (1 if the rest comes back token for token, else 0), `rouge_l_recall` and
    `rouge_l_f1`. Arguments and errors as in `completions`.
    """
    found = completions(scorer, texts, share=share, most=most)
    return pd.DataFrame(
        {
            "verbatim": [float(one.exact) for one in found],
            "rouge_l_recall": [one.rouge_l.recall for one in found],
            "rouge_l_f1": [one.rouge_l.f1 for one in found],
        }
    )


def metadata_gain(
    scorer: TransformersScorer,
    texts: Sequence[str],
    metadata: str,
    *,
    share: float = 0.5,
    most: int = 64,
) -> np.ndarray:
    """ROUGE-L recall of completions with metadata before the prompt, less that without, (n,).

    Larger is more likely a member (Fu, A7). Arguments and errors as in `completions`.
    """
    if not metadata:
        raise InputError("the metadata is empty; give the name and the split of the data set")
    with_it, without = (
        completions(scorer, texts, share=share, most=most, metadata=text) for text in (metadata, "")
    )
    pairs = zip(with_it, without, strict=True)
    return np.array([a.rouge_l.recall - b.rouge_l.recall for a, b in pairs])


def split(
    scorer: TransformersScorer, texts: Sequence[str], share: float
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Divide the tokens of each text into a prompt and the rest, neither of them empty."""
    if not 0 < share < 1:
        raise InputError(f"a prompt of {share:g} of the text: give a share between 0 and 1")
    prompts, rests = [], []
    for number, ids in enumerate(tokenize(scorer.tokenizer, texts)):
        if len(ids) < 2:
            raise InputError(f"text {number} has {len(ids)} token(s): a completion needs 2 or more")
        cut = min(max(1, int(share * len(ids))), len(ids) - 1)
        prompts.append(ids[:cut])
        rests.append(ids[cut:])
    return prompts, rests
