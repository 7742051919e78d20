"""What a model writes: prompts continued, and what that says of membership.

- Verbatim completion: Carlini et al. (2023) call a text memorised if greedy decoding from its
  beginning gives the rest word for word; ROUGE-L says how much of it comes back where not all does
  (Fu, A4). With the name and the split of a data set before the prompt, the same asks what metadata
  brings back (Fu, A7; Sainz et al. 2023; Golchin and Surdeanu 2024).
- Generation variation: a model that has learnt a text by heart writes the same thing again. CDD,
  Dong et al. (2024): the edit distances between what the model writes greedily and what it writes
  when sampling have their peak near 0 for members (Fu, A6).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from transformers import GenerationConfig

from contamination.errors import InputError
from contamination.membership.similarity import RougeL, edit_distances, rouge_l
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
    top_p: float = 1.0,
    samples: int = 1,
    seed: int = 0,
) -> list[list[np.ndarray]]:
    """Continue each prompt `samples` times, each by up to `new_tokens` tokens, int64.

    The start token stands before a prompt, which may be empty, as in scoring. Of a prompt that
    leaves no room in the context, the last tokens count. A continuation ends before the end-of-text
    token. Temperature 0 is greedy, where all samples would be the same. Above it the tokens that
    hold `top_p` of the probability are sampled (Holtzman et al. 2020), 1 being the whole
    vocabulary, and the same seed gives the same texts. Raises InputError for a model
    that does not run here, and for counts that cannot be.
    """
    if not isinstance(scorer, TransformersScorer):
        raise InputError("only a model that runs here writes text; give a directory or a hub id")
    if not 1 <= new_tokens < scorer.context:
        raise InputError(
            f"{new_tokens} new tokens: give 1 to {scorer.context - 1}, less than the context"
        )
    if samples < 1 or temperature < 0 or (samples > 1 and temperature == 0):
        raise InputError(
            f"{samples} samples at temperature {temperature}: give 1 or more, and several of them "
            "a temperature above 0"
        )
    if not 0 < top_p <= 1:
        raise InputError(f"top_p is {top_p:g}: give a share above 0 and up to 1")
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
        **({"temperature": temperature, "top_k": 0, "top_p": top_p} if temperature > 0 else {}),
    )
    found: list[list[np.ndarray]] = [[] for _ in prompts]
    cuda = [scorer.device] if scorer.device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.manual_seed(derived_seed(seed, "sampled text"))
        for batch in _batches(starts, new_tokens, max(1, scorer.batch_tokens // samples)):
            written = _write(scorer, [starts[i] for i in batch], settings)
            for number, ids in enumerate(written):
                ends = np.flatnonzero(ids == settings.eos_token_id)  # None equals no id
                found[batch[number // samples]].append(ids[: ends[0]] if len(ends) else ids)
    return found


def _batches(starts: Sequence[np.ndarray], new_tokens: int, tokens: int) -> Iterator[list[int]]:
    """Group prompts of about the same length, the longest first."""
    batch: list[int] = []
    for index in sorted(range(len(starts)), key=lambda i: (-len(starts[i]), i)):
        if batch and (len(batch) + 1) * (len(starts[batch[0]]) + new_tokens) > tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


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

    Raises InputError for a text of fewer than two tokens, a share that is not between 0 and 1, and
    as `continuations` does.

    Parameters
    ----------
    share : of the tokens of a text that are the prompt, at least one.
    most : how many tokens of the rest count.
    metadata : stands before each prompt, such as "The GSM8K data set, split test:\\n".
    """
    prompts, rests = split(scorer, texts, share)
    rests = [ids[:most] for ids in rests]
    (before,) = tokenize(scorer.tokenizer, [metadata])
    written = continuations(
        scorer,
        [np.concatenate([before, ids]) for ids in prompts],
        new_tokens=max((len(ids) for ids in rests), default=1),
    )
    return [compare(scorer, ids, rest) for (ids,), rest in zip(written, rests, strict=True)]


def compare(scorer: TransformersScorer, ids: np.ndarray, expected: np.ndarray) -> Completion:
    """Compare what a model wrote, up to the length of what was expected, with that."""
    ours = ids[: len(expected)]
    said, wanted = (scorer.tokenizer.decode(side) for side in (ours, expected))
    return Completion(said, wanted, np.array_equal(ours, expected), rouge_l(said, wanted))


def completion_scores(
    scorer: TransformersScorer, texts: Sequence[str], **options: Any
) -> pd.DataFrame:
    """Scores of verbatim completion, a row per text; larger is more likely a member.

    Columns `verbatim` (1 if the rest comes back token for token, else 0), `rouge_l_recall` and
    `rouge_l_f1`. Arguments and errors as in `completions`.
    """
    found = completions(scorer, texts, **options)
    rows = [(float(one.exact), one.rouge_l.recall, one.rouge_l.f1) for one in found]
    return pd.DataFrame(rows, columns=["verbatim", "rouge_l_recall", "rouge_l_f1"])


def metadata_gain(
    scorer: TransformersScorer, texts: Sequence[str], metadata: str, **options: Any
) -> np.ndarray:
    """ROUGE-L recall of completions with metadata before the prompt, less that without, (n,).

    Larger is more likely a member (Fu, A7). Arguments and errors as in `completions`.
    """
    if not metadata:
        raise InputError("the metadata is empty; give the name and the split of the data set")
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
    top_p: float = 1.0,
    new_tokens: int = 100,
    alpha: float = ALPHA,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Share of sampled continuations that are near the greedy one, (len(texts),).

    Larger is more likely a member. `share` of the tokens of a text are the prompt; 1 is the text as
    a whole: a question, say. Distances are in tokens; near is at most `alpha` times the longest
    continuation, the greedy one included. The defaults are those of the paper. Raises InputError as
    `continuations` does, and if `share` is not above 0 and at most 1.
    """
    prompts = tokenize(scorer.tokenizer, texts) if share == 1 else split(scorer, texts, share)[0]
    greedy = continuations(scorer, prompts, new_tokens=new_tokens)
    settings = {"temperature": temperature, "top_p": top_p}
    sampled = continuations(
        scorer, prompts, new_tokens=new_tokens, samples=samples, seed=seed, **settings
    )
    shares = []
    for (one,), others in zip(greedy, sampled, strict=True):
        longest = max(len(ids) for ids in (one, *others))
        shares.append(np.mean(edit_distances(one, others) <= alpha * longest))
    return np.array(shares)
