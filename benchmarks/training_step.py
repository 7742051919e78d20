"""Processor time of one training step of the default profile's model, in variants, in turn.

python benchmarks/training_step.py [ROUNDS]

Torch's fused attention and its loss over float32 logits against those of
`reproduction.run.network`, each in one thread, then ours in two. Prints milliseconds of
processor time and of wall time: medians and, since other work only ever adds time, minima.
"""

import sys
import time
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from torch.nn.functional import cross_entropy
from transformers import GPT2LMHeadModel

from contamination.cli.printing import print_table
from contamination.device import has_bfloat16
from contamination.randomness import random_stream
from reproduction.run.network import NextTokenLoss, gpt2_config
from reproduction.run.profile import load_profile

PROFILE = load_profile(Path(__file__).parent.parent / "profiles" / "laptop.yaml")
VOCABULARY = PROFILE.corpus.vocabulary


class LogitsLoss(torch.nn.Module):
    """The loss as transformers would have it: all logits, in float32."""

    def __init__(self, model: GPT2LMHeadModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Mean loss in nats."""
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=has_bfloat16(ids.device)):
            logits = self.model(input_ids=ids[:, :-1]).logits
        return cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())


class Variant:
    """A model, its optimiser and the times of its steps."""

    def __init__(self, attention: str, loss: type[torch.nn.Module], threads: int) -> None:
        torch.manual_seed(0)
        model = GPT2LMHeadModel(gpt2_config(PROFILE.model, VOCABULARY, 0))
        model.set_attn_implementation(attention)
        self.name = f"{attention} attention, {loss.__name__}, {threads} thread(s)"
        self.loss = loss(model)
        self.threads = threads
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
        self.rng = random_stream(0, "made-up tokens")
        self.times: list[tuple[float, float]] = []

    def step(self) -> None:
        """Take a step on made-up tokens and keep its times."""
        shape = (
            PROFILE.require_pretraining().training.micro_batch_size,
            PROFILE.model.n_positions + 1,
        )
        ids = torch.from_numpy((self.rng.zipf(1.3, shape) % VOCABULARY).astype(np.int64))
        torch.set_num_threads(self.threads)
        begun = time.process_time(), time.perf_counter()
        self.loss(ids).backward()
        torch.nn.utils.clip_grad_norm_(self.loss.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.times.append((time.process_time() - begun[0], time.perf_counter() - begun[1]))


def main() -> None:
    """Run the variants in turn and print their times."""
    variants = [
        Variant("sdpa", LogitsLoss, 1),
        Variant("plain", LogitsLoss, 1),
        Variant("sdpa", NextTokenLoss, 1),
        Variant("plain", NextTokenLoss, 1),
        Variant("plain", NextTokenLoss, 2),
    ]
    for _ in range(1 + int((sys.argv[1:] or ["15"])[0])):
        for variant in variants:
            variant.step()
    rows = []
    for variant in variants:
        times = 1e3 * np.array(variant.times[1:])  # the first step sets up
        cells = np.stack([np.median(times, axis=0), times.min(axis=0)]).T.ravel()
        rows.append((variant.name, *(f"{cell:.0f}" for cell in cells)))
    columns = ("variant", "processor, median", "minimum", "wall, median", "minimum")
    print_table(columns, rows, title="One training step, milliseconds")
    Console().print(f"{torch.cpu.get_capabilities().get('cpu_name')}, torch {torch.__version__}")


if __name__ == "__main__":
    main()
