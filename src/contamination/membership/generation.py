"""What a model writes: prompts continued, and what that says of membership.

- Verbatim completion: Carlini et al. (2023) call a text memorised if greedy decoding from its
  beginning gives the rest word for word; ROUGE-L says how much of it comes back where not all does
  (Fu, A4). With the name and the split of a data set before the prompt, the same asks what metadata
  brings back (Fu, A7; Sainz et al. 2023; Golchin and Surdeanu 2024).
- Generation variation: a model that has learnt a text by heart writes the same thing again. CDD,
  Dong et al. (2024): the edit distances between what the model writes greedily and what it writes
  when sampling have their peak near 0 for members (Fu, A6).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from transformers import GenerationConfig

from contamination.errors import InputError
from contamination.membership.similarity import rouge_l
from contamination.randomness import derived_seed
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize

ALPHA = 0.05  # of the longest text: edit distances up to there are near 0


def continuations(
    scorer: TransformersScorer,
    prompts: Sequence[np.ndarray],
    *,
    new_tokens: int,
    temperature: float = 0.0,
    samples: int = 1,
    seed: int = 0,
) -> list[list[np.ndarray]]:
    """Continue each prompt `samples` times, each by up to `new_tokens` tokens, int64.

    The start token stands before a prompt, which may be empty, as in scoring. Of a prompt that
    leaves no room in the context, the last tokens count. A continuation ends before the end-of-text
    token. Temperature 0 is greedy; above it the same seed gives the same texts. Raises InputError
    for a model that does not run here, and for counts that cannot be.
    """
    if not isinstance(scorer, TransformersScorer):
        raise InputError("only a model that runs here writes text; give a directory or a hub id")
    if not 1 <= new_tokens < scorer.context:
        raise InputError(f"{new_tokens} new tokens: give 1 to {scorer.context - 1}, the context")
    if samples > 1 and temperature <= 0:
        raise InputError(f"{samples} samples at temperature {temperature}: give one above 0")
    scorer.require_known_tokens(prompts)
    room = scorer.context - new_tokens
    starts = [
        np.append(scorer.start, ids)[-room:] if len(ids) < room else ids[-room:] for ids in prompts
    ]
    settings = GenerationConfig(
        max_new_tokens=new_tokens,
        do_sample=temperature > 0,
        num_return_sequences=samples,
        eos_token_id=scorer.tokenizer.eos_token_id,
        pad_token_id=scorer.start,
        **({"temperature": temperature, "top_k": 0} if temperature > 0 else {}),
    )
    found: list[list[np.ndarray]] = [[] for _ in prompts]
    cuda = [scorer.device] if scorer.device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.manual_seed(derived_seed(seed, "sampled text"))
        # Prompts of about the same length together, the longest first.
        order = sorted(range(len(starts)), key=lambda i: (-len(starts[i]), i))
        while order:
            size = scorer.batch_tokens // samples // (len(starts[order[0]]) + new_tokens)
            batch, order = order[: max(1, size)], order[max(1, size) :]
            written = _write(scorer, [starts[i] for i in batch], settings)
            for number, ids in enumerate(written):
                ends = np.flatnonzero(ids == settings.eos_token_id)  # None equals no id
                found[batch[number // samples]].append(ids[: ends[0]] if len(ends) else ids)
    return found


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
    for (ids,), wanted in zip(written, expected, strict=True):
        ours = ids[: len(wanted)]
        said = scorer.tokenizer.decode(ours)
        if first_line:
            said = said.lstrip("\n").partition("\n")[0]
        rouge = rouge_l(said, scorer.tokenizer.decode(wanted))
        rows.append((float(np.array_equal(ours, wanted)), *rouge))
    return pd.DataFrame(rows, columns=["verbatim", "rouge_l_recall", "rouge_l_f1"])


def completion_scores(
    scorer: TransformersScorer,
    texts: Sequence[str],
    *,
    share: float = 0.5,
    most: int = 64,
    metadata: str = "",
) -> pd.DataFrame:
    """Give the model the beginning of each text and compare what it writes with the rest.

    A row per text with the columns of `recited`. Raises InputError for a text of fewer than two
    tokens, a share that is not between 0 and 1, and as `continuations` does.

    Parameters
    ----------
    share : of the tokens of a text that are the prompt, at least one.
    most : how many tokens of the rest count.
    metadata : stands before each prompt, such as "The GSM8K data set, split test:\\n".
    """
    prompts, rests = split(scorer, texts, share)
    (before,) = tokenize(scorer.tokenizer, [metadata])
    prompts = [np.concatenate([before, ids]) for ids in prompts]
    return recited(scorer, prompts, [ids[:most] for ids in rests])


def metadata_gain(
    scorer: TransformersScorer, texts: Sequence[str], metadata: str, **options: Any
) -> np.ndarray:
    """ROUGE-L recall of completions with metadata before the prompt, less that without, (n,).

    Larger is more likely a member (Fu, A7). Arguments and errors as in `completion_scores`.
    """
    with_it, without = (
        completion_scores(scorer, texts, metadata=text, **options)["rouge_l_recall"].to_numpy()
        for text in (metadata, "")
    )
    return with_it - without  # type: ignore[no-any-return]


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

    Larger is more likely a member. `share` of the tokens of a text are the prompt; 1 is the text as
    a whole: a question, say. Distances are in tokens; near is at most `alpha` times the longest
    continuation, the greedy one included. The defaults are those of the paper. Errors as in
    `completion_scores`.
    """
    prompts = tokenize(scorer.tokenizer, texts) if share == 1 else split(scorer, texts, share)[0]
    greedy = continuations(scorer, prompts, new_tokens=new_tokens)
    how: dict[str, Any] = {"temperature": temperature, "samples": samples, "seed": seed}
    sampled = continuations(scorer, prompts, new_tokens=new_tokens, **how)
    shares = []
    for (one,), others in zip(greedy, sampled, strict=True):
        longest = max(len(ids) for ids in (one, *others))
        edits = [Levenshtein.distance(one.tolist(), other.tolist()) for other in others]
        shares.append(np.mean(np.array(edits) <= alpha * longest))
    return np.array(shares)
