"""A profile of the time of successor scoring, compared with that of whole orderings.

python benchmarks/successor_cost.py [TOKENS OF AN EXAMPLE]

A random model of the shape of the default profile scores 200 made-up examples in one thread: pairs
in shards of ten, 32 tokens of each successor, and orderings of shards of four. Prints the inputs
that the network computes for each token that has to be read (more than one where rows are padded),
microseconds of processor time for a token (medians of five rounds in turn), and how they divide
among the operations (torch's profiler). Time does not depend on the values of the weights.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from torch.profiler import ProfilerActivity, profile
from transformers import GPT2LMHeadModel

from contamination.cli.printing import print_table
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import SUCCESSOR_TOKENS
from contamination.scoring.prefix import continuation_logprobs
from reproduction.run.network import gpt2_config
from reproduction.run.profile import load_profile
from reproduction.run.tokenizer import train_tokenizer

PROFILE = load_profile(Path(__file__).parent.parent / "profiles" / "laptop.yaml")
VOCABULARY = PROFILE.corpus.vocabulary
EXAMPLES, ROUNDS = 200, 5
GROUPS = {  # name of an operation begins with -> what it is here
    "aten::addmm": "matrix products of the layers",
    "aten::mm": "output layer",
    "aten::_scaled_dot_product": "attention",
    "aten::gelu": "GELU",
    "aten::cat": "copies of keys and values",
    "aten::index_select": "copies of keys and values",
    "aten::masked_fill": "mask",
    "aten::exp": "log-sum-exp",
    "aten::sub": "log-sum-exp",
    "aten::sum": "log-sum-exp",
    "aten::amax": "log-sum-exp",
}


def make_scorer(directory: str) -> TransformersScorer:
    """Save a random model with a tokenizer, and load it."""
    torch.manual_seed(0)
    GPT2LMHeadModel(gpt2_config(PROFILE.model, VOCABULARY, 0)).save_pretrained(directory)
    train_tokenizer([Path(__file__).read_text(encoding="utf-8")], 300).save_pretrained(directory)
    return TransformersScorer(directory)


def shares(run: Callable[[], object]) -> dict[str, float]:
    """Share of the processor time of torch's operations, by what they are here."""
    with profile(activities=[ProfilerActivity.CPU]) as found:
        run()
    times: dict[str, float] = {}
    for event in found.key_averages():
        names = [name for start, name in GROUPS.items() if event.key.startswith(start)]
        name = names[0] if names else "everything else"
        times[name] = times.get(name, 0.0) + event.self_cpu_time_total
    return {name: spent / sum(times.values()) for name, spent in times.items()}


def main() -> None:
    """Measure both kinds of scoring in turn and print the table."""
    torch.set_num_threads(1)
    mean = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    rng = random_stream(0, "made-up tokens")
    lengths = rng.normal(mean, mean / 4, EXAMPLES).clip(2).astype(int)
    ids = [rng.integers(0, VOCABULARY, length, dtype=np.int32) for length in lengths]
    pairs = []
    for a in range(EXAMPLES):
        start = a - a % 10
        others = [b for b in range(start, start + 10) if b != a]
        pairs.append((ids[a], [ids[b][:SUCCESSOR_TOKENS] for b in others]))
    orderings = []
    for start in range(0, EXAMPLES, 4):
        for _ in range(8):
            order = start + rng.permutation(4)
            orderings.append(np.concatenate([ids[i] for i in order]))
    with tempfile.TemporaryDirectory() as directory:
        scorer = make_scorer(directory)
        runs: dict[str, tuple[int, Callable[[], object]]] = {
            "successors": (
                sum(len(prefix) + sum(map(len, rest)) for prefix, rest in pairs),
                lambda: list(continuation_logprobs(scorer, pairs)),
            ),
            "whole orderings": (
                sum(map(len, orderings)),
                lambda: list(scorer.token_logprobs(orderings)),
            ),
        }
        computed = dict.fromkeys(runs, 0)
        for name, (_, run) in runs.items():
            run()  # the comparison with plain scoring comes first
            body = scorer.body
            handle = body.register_forward_pre_hook(
                lambda _, __, kept, name=name: computed.__setitem__(
                    name, computed[name] + kept["input_ids"].numel()
                ),
                with_kwargs=True,
            )
            run()
            handle.remove()
        times: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(ROUNDS):
            for name, (tokens, run) in runs.items():
                begin = time.process_time()
                run()
                times[name].append(1e6 * (time.process_time() - begin) / tokens)
        spent = {name: float(np.median(each)) for name, each in times.items()}
        parts = {name: shares(run) for name, (_, run) in runs.items()}
    rows = [("inputs computed", *(f"{computed[n] / runs[n][0]:.2f}" for n in runs))]
    rows.append(("microseconds", *(f"{spent[n]:.0f}" for n in runs)))
    kinds = sorted({*GROUPS.values(), "everything else"}, key=lambda k: -parts["successors"][k])
    for kind in kinds:
        shares_of_kind = [f"{spent[n] * parts[n].get(kind, 0.0):.1f}" for n in runs]
        rows.append((kind, *shares_of_kind))
    dtype = str(scorer.dtype).removeprefix("torch.")
    print_table(
        ("a token, in one thread", *runs), rows, title=f"examples of {mean} tokens, {dtype}"
    )
    Console().print("microseconds of processor time; of an operation, its share of them")


if __name__ == "__main__":
    main()
