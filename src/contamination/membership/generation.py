"""What a model writes: prompts continued, and what of a text comes back.

Carlini et al. (2023) call a text memorised if greedy decoding from its beginning gives the rest
word for word; ROUGE-L says how much of it comes back where not all does (Fu, A4).
"""

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from rapidfuzz.distance import LCSseq
from transformers import GenerationConfig

from contamination.errors import InputError
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize

WORD = re.compile(r"\w+")


def continuations(
    scorer: TransformersScorer, prompts: Sequence[np.ndarray], *, new_tokens: int
) -> list[np.ndarray]:
    """Continue each prompt greedily by up to `new_tokens` tokens, int64.

    The start token stands before a prompt, which may be empty, as in scoring. Of a prompt that
    leaves no room in the context, the last tokens count. A continuation ends before the end-of-text
    token. Raises InputError for a model that does not run here, and for more tokens than the
    context holds.
    """
    if not isinstance(scorer, TransformersScorer):
        raise InputError("only a model that runs here writes text; give a directory or a hub id")
    if not 1 <= new_tokens < scorer.context:
        raise InputError(f"{new_tokens} new tokens: give 1 to {scorer.context - 1}, the context")
    scorer.require_known_tokens(prompts)
    room = scorer.context - new_tokens
    starts = [
        np.append(scorer.start, ids)[-room:] if len(ids) < room else ids[-room:] for ids in prompts
    ]
    settings = GenerationConfig(
        max_new_tokens=new_tokens,
        do_sample=False,
        eos_token_id=scorer.tokenizer.eos_token_id,
        pad_token_id=scorer.start,
    )
    found: dict[int, np.ndarray] = {}
    # Prompts of about the same length together, the longest first.
    order = sorted(range(len(starts)), key=lambda i: (-len(starts[i]), i))
    while order:
        size = max(1, scorer.batch_tokens // (len(starts[order[0]]) + new_tokens))
        batch, order = order[:size], order[size:]
        for i, ids in zip(batch, _write(scorer, [starts[i] for i in batch], settings), strict=True):
            ends = np.flatnonzero(ids == settings.eos_token_id)  # None equals no id
            found[i] = ids[: ends[0]] if len(ends) else ids
    return [found[i] for i in range(len(prompts))]


@torch.inference_mode()
def _write(
    scorer: TransformersScorer, starts: Sequence[np.ndarray], settings: GenerationConfig
) -> np.ndarray:
    width = max(len(ids) for ids in starts)
    inputs = np.full((len(starts), width), scorer.start, dtype=np.int64)
    mask = np.zeros_like(inputs)
    for row, ids in enumerate(starts):  # padded on the left: what is written follows at once
        inputs[row, width - len(ids) :] = ids
        mask[row, width - len(ids) :] = 1
    network = scorer.model
    network.generation_config = settings  # else what a model ships with fills in the rest
    written = network.generate(
        scorer.send(inputs), attention_mask=scorer.send(mask), generation_config=settings
    )
    return written[:, width:].cpu().numpy()  # type: ignore[no-any-return]


def recited(
    scorer: TransformersScorer,
    prompts: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    *,
    first_line: bool = False,
) -> pd.DataFrame:
    """Compare what a model writes greedily after each prompt with what was expected, a row each.

    What is written counts up to the length of what was expected, and with `first_line` up to a line
    end behind it. Columns, all larger for members: `verbatim` (1 if it comes back token for token,
    else 0), `rouge_l_recall` and `rouge_l_f1`. Errors as in `continuations`.
    """
    longest = max((len(ids) for ids in expected), default=1)
    written = continuations(scorer, prompts, new_tokens=longest)
    rows = []
    for ids, wanted in zip(written, expected, strict=True):
        ours = ids[: len(wanted)]
        said = scorer.tokenizer.decode(ours)
        if first_line:
            said = said.lstrip("\n").partition("\n")[0]
        rouge = rouge_l(said, scorer.tokenizer.decode(wanted))
        rows.append((float(np.array_equal(ours, wanted)), *rouge))
    return pd.DataFrame(rows, columns=["verbatim", "rouge_l_recall", "rouge_l_f1"])


def completion_scores(
    scorer: TransformersScorer, texts: Sequence[str], *, most: int = 64
) -> pd.DataFrame:
    """Give the model the first half of each text and compare what it writes with the rest.

    A row per text with the columns of `recited`; `most` tokens of the rest count. Raises InputError
    for a text of fewer than two tokens, and as `continuations` does.
    """
    prompts, rests = [], []
    for number, ids in enumerate(tokenize(scorer.tokenizer, texts)):
        if len(ids) < 2:
            raise InputError(f"text {number} has {len(ids)} token(s): a completion needs 2 or more")
        cut = len(ids) // 2
        prompts.append(ids[:cut])
        rests.append(ids[cut : cut + most])
    return recited(scorer, prompts, rests)


def rouge_l(found: str, expected: str) -> tuple[float, float]:
    """Recall and F1 of ROUGE-L (Lin 2004), the longest common subsequence of words, in [0, 1].

    Words are runs of letters, digits and underscores in lower case, without stemming. A text
    without a word has nothing in common with any other.
    """
    ours, theirs = (WORD.findall(text.lower()) for text in (found, expected))
    common = LCSseq.similarity(ours, theirs)
    return common / max(1, len(theirs)), 2 * common / max(1, len(ours) + len(theirs))
