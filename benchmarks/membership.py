"""Tokens per second of the pass that gives all membership scores, against plain scoring.

    .venv/bin/python benchmarks/membership.py

For each vocabulary and precision: the log-probability of every token alone (`plain`); with ranks,
entropies and moments of the whole distribution (`signals`); with every score of one pass computed
from them (`scores`). The three run in turn, `--rounds` times; medians count, and each ratio is that
of medians. Seconds are of the clock, and of the processors, which other work disturbs less. The
weights are random: time does not depend on their values. Writes results/tables/membership.csv.
"""

import argparse
import datetime
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm
from transformers import GPT2LMHeadModel

from contamination.device import describe
from contamination.membership.api import DEFAULT_COLUMNS, membership_scores
from contamination.membership.signals import token_signals
from contamination.randomness import random_stream
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.tables import write_csv
from reproduction.run.network import gpt2_config
from reproduction.run.profile import Architecture
from reproduction.run.tokenizer import train_tokenizer

SHAPE = Architecture(n_embd=256, n_layer=4, n_head=4, n_positions=256)


def make_scorer(vocabulary: int, precision: str, directory: str) -> TransformersScorer:
    """Save a random model with a tokenizer, and load it."""
    torch.manual_seed(0)
    GPT2LMHeadModel(gpt2_config(SHAPE, vocabulary, 0)).save_pretrained(directory)
    train_tokenizer([Path(__file__).read_text(encoding="utf-8")], 300).save_pretrained(directory)
    return TransformersScorer(ModelSource(directory, precision=precision))


def ways(scorer: TransformersScorer, sequences: list[np.ndarray]) -> dict[str, Callable]:
    """Return what is timed."""
    columns = [name for name in DEFAULT_COLUMNS if name not in ("zlib", "lowercase")]
    return {
        "plain": lambda: dict(scorer.token_logprobs(sequences)),
        "signals": lambda: token_signals(scorer, sequences),
        "scores": lambda: membership_scores(scorer, sequences, columns=columns),
    }


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vocabularies", type=int, nargs="+", default=[4096, 50257])
    parser.add_argument("--precisions", nargs="+", default=["bfloat16", "float32"])
    parser.add_argument("--tokens", type=int, default=16384)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--results", type=Path, default=Path("results"))
    options = parser.parse_args()
    rows = []
    for vocabulary in options.vocabularies:
        for precision in options.precisions:
            with tempfile.TemporaryDirectory() as directory:
                scorer = make_scorer(vocabulary, precision, directory)
                rng = random_stream(0, "bootstrap")
                lengths = rng.integers(128, 256, options.tokens // 192)
                sequences = [rng.integers(0, vocabulary, n, dtype=np.int32) for n in lengths]
                timed = ways(scorer, sequences)
                clock: dict[str, list[float]] = {name: [] for name in timed}
                processors: dict[str, list[float]] = {name: [] for name in timed}
                for run in timed.values():
                    run()
                for _ in tqdm(range(options.rounds), desc=f"{vocabulary} {precision}", leave=False):
                    for name, run in timed.items():
                        begin = perf_counter(), process_time()
                        run()
                        clock[name].append(perf_counter() - begin[0])
                        processors[name].append(process_time() - begin[1])
            plain = [statistics.median(times["plain"]) for times in (clock, processors)]
            for name in timed:
                seconds = [statistics.median(times[name]) for times in (clock, processors)]
                rows.append(
                    {
                        "way": name,
                        "vocabulary": vocabulary,
                        "precision": precision,
                        "device": describe(scorer.device),
                        "tokens": int(lengths.sum()),
                        "rounds": options.rounds,
                        "tokens_per_second": round(float(lengths.sum()) / seconds[0], 1),
                        "ratio_to_plain": plain[0] / seconds[0],
                        "ratio_of_processor_time": plain[1] / seconds[1],
                        "date": datetime.date.today().isoformat(),
                    }
                )
    table = pd.DataFrame(rows)
    print(table.to_string(index=False))
    print(write_csv(table, options.results, "membership"))


if __name__ == "__main__":
    main()
