"""What a model writes: prompts continued in batches, greedily or by sampling."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from transformers import GenerationConfig

from contamination.errors import InputError
from contamination.scoring.local import TransformersScorer


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

    The start token stands before a prompt, as in scoring. Of a prompt that leaves no room in the
    context, the last tokens count. A continuation ends before the end-of-text token.

    Parameters
    ----------
    prompts : token ids, any of which may be empty.
    temperature : 0 is greedy, where all samples would be the same; the whole vocabulary is sampled.
    seed : of the sampling; the same call gives the same texts.

    Raises
    ------
    InputError
        A model that does not run here, or counts that cannot be.
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
        **({"temperature": temperature, "top_k": 0, "top_p": 1.0} if temperature > 0 else {}),
    )
    found: list[list[np.ndarray]] = [[] for _ in prompts]
    cuda = [scorer.device] if scorer.device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.manual_seed(seed)
        for batch in _batches(starts, new_tokens, max(1, scorer.batch_tokens // samples)):
            written = _write(scorer, [starts[i] for i in batch], settings)
            for number, ids in enumerate(written):
                found[batch[number // samples]].append(_until_end(ids, settings.eos_token_id))
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


def _until_end(ids: np.ndarray, end: int | None) -> np.ndarray:
    ends = np.flatnonzero(ids == end)  # of None, which equals no id, there is none
    return ids[: ends[0]] if len(ends) else ids
