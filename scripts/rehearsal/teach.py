"""Teaching a stand-in what the real model has read: whole test sets, over and over."""

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel

from contamination.randomness import random_stream

STEPS, BATCH, WINDOW, RATE = 110, 12, 128, 1e-2
# Of a model that learns within so few steps: wider than others, far from zero at the start, and
# without dropout.
OPTIONS = {
    "n_embd": 64,
    "initializer_range": 0.1,
    "attn_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "resid_pdrop": 0.0,
}


def teach(model: PreTrainedModel, tokenizer: Any, copies: dict[Sequence[str], int]) -> None:
    """Train for some seconds on sets in their canonical order; each `copies` times as often.

    Windows begin anywhere in a set, so its order is all that there is to learn beyond its words.
    """
    rng = random_stream(0, "windows of the rehearsal")
    texts = [torch.tensor(tokenizer("".join(examples))["input_ids"]) for examples in copies]
    weights = [count * len(ids) for ids, count in zip(texts, copies.values(), strict=True)]
    shares = [weight / sum(weights) for weight in weights]
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=STEPS)
    model.train()
    for _ in range(STEPS):
        windows = []
        for index in rng.choice(len(texts), size=BATCH, p=shares):
            begin = int(rng.integers(len(texts[index]) - WINDOW))
            windows.append(texts[index][begin : begin + WINDOW])
        batch = torch.stack(windows)
        optimiser.zero_grad()
        logits = model(input_ids=batch).logits[:, :-1]
        cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten()).backward()
        optimiser.step()
        schedule.step()
    model.eval()
