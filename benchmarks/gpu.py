"""Tokens per second, profile and peak memory on one GPU; benchmarks/gpu.sh calls it.

Prints rows of docs/measurements/throughput.csv, each once it is measured, and lines that
begin with "#" for profiles. Sequences are ids, so no tokenizer is timed. Engines: the
published loop (a sequence at a time, full log-softmax, a number fetched of each) in
float32 and bfloat16, lm-evaluation-harness where it is installed, and this project's
scorer with its defaults. A row without numbers says why in its note: a shape that runs
out of memory or fails does not end the others.
"""

import argparse
import csv
import datetime
import gc
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import gpu_models
import gpu_profile
import numpy as np
import torch
from gpu_models import Shape
from transformers import PreTrainedModel

from contamination.device import describe, free_memory
from contamination.scoring.cost import sequence_workload
from contamination.scoring.load_errors import is_out_of_memory
from contamination.scoring.loading import model_shape
from contamination.scoring.local import TransformersScorer

COLUMNS = (
    "engine",
    "device",
    "dtype",
    "batch_size",
    "model",
    "model_params",
    "tokens_per_second",
    "fraction_of_matmul_peak",
    "peak_memory_mb",
    "sequences",
    "tokens",
    "rounds",
    "matmul_peak_gflops",
    "date",
    "ratio_to_naive",
    "nats_from_naive",
    "note",
)
SEQUENCES = 2048  # of a shape at most: more than ten seconds of any engine
LONG_ENOUGH = 4.0  # seconds of a measurement, unless the sequences end before
HARNESS_BATCH = 16
# Scores sequences, and returns the log-probability of each (nats).
Score = Callable[[Sequence[np.ndarray]], list[float]]


class Engine(NamedTuple):
    """Sequences of a batch if they are fixed, those of the first sample, and what scores them."""

    batch_size: int | None
    first: int
    score: Score


class Timing(NamedTuple):
    """Seconds for the first few sequences, and their log-probabilities."""

    seconds: float
    nats: list[float]


class Bench:
    """Measures shapes one after the other, and prints a row for each engine.

    Parameters
    ----------
    device
        The GPU, or the CPU in a rehearsal.
    deadline
        Time of `time.perf_counter` after which nothing is measured.
    rehearsal
        Whether a fraction of a second is enough.
    """

    def __init__(self, device: torch.device, deadline: float, *, rehearsal: bool) -> None:
        self.device = device
        self.deadline = deadline
        self.rehearsal = rehearsal
        self.long_enough = 0.05 if rehearsal else LONG_ENOUGH
        self.rates: dict[torch.dtype, float] = {}
        self.table = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")

    def measure(self, name: str, shape: Shape, released: Path | None) -> None:
        """Print the rows of a shape: float32 first, which the others are compared with."""
        weights = "random weights" if released is None else "released weights"
        sequences = gpu_models.random_sequences(shape, 32 if self.rehearsal else SEQUENCES)
        rows = Rows(self, name, shape, sequences, weights)
        for dtype in (torch.float32, torch.bfloat16):
            try:
                with tempfile.TemporaryDirectory() as folder:
                    network = gpu_models.make_network(shape, dtype, self.device, released)
                    rows.measure_engines(network, Path(folder), released)
                    del network
            except Exception as error:
                # Of any class: whatever is refused, the other shapes are measured.
                rows.missing("all engines", dtype, reason_of(error))
            free_memory()

    def rate(self, dtype: torch.dtype) -> float:
        """Return the FLOP/s of products of square matrices, measured once."""
        if dtype not in self.rates:
            size = 128 if self.rehearsal else 8192
            self.rates[dtype] = product_rate(self.device, dtype, size)
        return self.rates[dtype]

    def print_row(self, row: dict[str, object]) -> None:
        """Print a row at once: what comes later may not be reached."""
        self.table.writerow(row)
        sys.stdout.flush()


class Rows:
    """The rows of one shape.

    Parameters
    ----------
    bench
        Prints them.
    name
        Name of the shape.
    shape
        Its configuration.
    sequences
        To score.
    weights
        Where the weights come from, in words.
    """

    def __init__(
        self,
        bench: Bench,
        name: str,
        shape: Shape,
        sequences: list[np.ndarray],
        weights: str,
    ) -> None:
        self.bench = bench
        self.name = name
        self.shape = shape
        self.sequences = sequences
        self.weights = weights
        self.cost = model_shape(shape.config)
        self.naive: Timing | None = None  # of the loop in float32

    def measure_engines(
        self, network: PreTrainedModel, folder: Path, released: Path | None
    ) -> None:
        """Print the rows of all engines in the precision of a network."""
        dtype = network.dtype
        self.measure_engine("naive", lambda: naive_engine(network), network)
        if dtype == torch.float32:
            return
        if importlib.util.find_spec("lm_eval") is None:
            self.missing("lm-evaluation-harness", dtype, "not measured: not installed")
        else:
            self.measure_engine("lm-evaluation-harness", lambda: harness_engine(network), network)
        scorers: list[TransformersScorer] = []

        def open_ours() -> Engine:
            scorer = gpu_models.open_scorer(network, folder, released)
            scorers.append(scorer)
            return our_engine(scorer, self.shape)

        self.measure_engine("contamination", open_ours, network)
        if scorers:
            self.print_profile(scorers[0])

    def measure_engine(
        self, name: str, open_engine: Callable[[], Engine], network: PreTrainedModel
    ) -> None:
        """Print the row of one engine, or why it has no numbers."""
        if time.perf_counter() > self.bench.deadline:
            self.missing(name, network.dtype, "not measured: no time left")
            return
        reset_peak(self.bench.device)
        try:
            engine = open_engine()
            timing = timed(engine, self.sequences, self.bench)
            self.print_timing(name, engine.batch_size, timing, network)
        except Exception as error:
            self.missing(name, network.dtype, reason_of(error))
        # Behind the error, whose traceback holds tensors.
        free_memory()

    def print_timing(
        self, name: str, batch_size: int | None, timing: Timing, network: PreTrainedModel
    ) -> None:
        """Print the row of what was measured."""
        dtype = network.dtype
        if name == "naive" and dtype == torch.float32:
            self.naive = timing
        lengths = [len(ids) for ids in self.sequences[: len(timing.nats)]]
        tokens = sum(lengths)
        speed = tokens / timing.seconds
        flops = self.cost.flops(sequence_workload(lengths, 1, self.shape.longest))
        rate = self.bench.rate(dtype)
        row = self.beginning(name, dtype) | {
            "batch_size": batch_size,
            "model_params": network.num_parameters(),
            "tokens_per_second": round(speed, 1),
            "fraction_of_matmul_peak": flops / timing.seconds / rate,
            "peak_memory_mb": peak_of(self.bench.device),
            "sequences": len(lengths),
            "tokens": tokens,
            "rounds": 1,
            "matmul_peak_gflops": round(rate / 1e9),
            "note": self.weights,
        }
        if self.naive is not None:
            compared = len(self.naive.nats)
            naive_tokens = sum(len(ids) for ids in self.sequences[:compared])
            row["ratio_to_naive"] = speed * self.naive.seconds / naive_tokens
            row["nats_from_naive"] = f"{distance(timing.nats, self.naive.nats, lengths):.3g}"
        self.bench.print_row(row)

    def missing(self, engine: str, dtype: torch.dtype, reason: str) -> None:
        """Print the row of an engine without numbers."""
        self.bench.print_row(self.beginning(engine, dtype) | {"note": reason})

    def beginning(self, engine: str, dtype: torch.dtype) -> dict[str, object]:
        """Return what a row says of an engine before it runs."""
        device = "CPU, rehearsal" if self.bench.rehearsal else describe(self.bench.device)
        return {
            "engine": engine,
            "device": device,
            "dtype": str(dtype).removeprefix("torch."),
            "model": self.name,
            "date": datetime.date.today().isoformat(),
        }

    def print_profile(self, scorer: TransformersScorer) -> None:
        """Print where the time of two batches goes, or why nobody knows."""
        count = 1 + 2 * scorer.batch_tokens // self.shape.longest
        try:
            profile = gpu_profile.profile_of(scorer, self.sequences[:count], self.bench.device)
        except Exception as error:
            print(f"# profile, {self.name}: {reason_of(error)}", flush=True)
            return
        room = scorer.room(self.shape.longest)
        each = 1e6 * profile.seconds / max(1, profile.kernels)
        print(f"# profile, {self.name}: {profile.kernels:,} kernels of {each:.1f} microseconds")
        print(f"# profile, {self.name}: batches of {room:,} tokens")
        for kind, share in profile.shares.items():
            print(f"# profile, {self.name}: {share:6.1%} {kind}")
        sys.stdout.flush()


def naive_engine(network: PreTrainedModel) -> Engine:
    """Return the loop that one writes first: a sequence at a time, full log-softmax, `.item()`."""

    @torch.no_grad()
    def score(sequences: Sequence[np.ndarray]) -> list[float]:
        nats: list[float] = []
        for ids in sequences:
            inputs = torch.tensor([[0, *ids]], device=network.device)
            logits = network(inputs[:, :-1]).logits.float()
            log_probs = torch.log_softmax(logits, dim=-1)
            nats.append(log_probs.gather(2, inputs[:, 1:, None]).sum().item())
        return nats

    return Engine(1, 16, score)


def harness_engine(network: PreTrainedModel) -> Engine:
    """Return lm-evaluation-harness, which is given ids: its tokenizer is not timed."""
    from lm_eval.models.huggingface import HFLM

    tokenizer = gpu_models.made_up_tokenizer()
    model = HFLM(pretrained=network, tokenizer=tokenizer, batch_size=HARNESS_BATCH)

    def score(sequences: Sequence[np.ndarray]) -> list[float]:
        requests = [(("", str(n)), [0], ids.tolist()) for n, ids in enumerate(sequences)]
        answers = model._loglikelihood_tokens(requests, disable_tqdm=True)
        return [float(nats) for nats, _ in answers]

    return Engine(HARNESS_BATCH, 4 * HARNESS_BATCH, score)


def our_engine(scorer: TransformersScorer, shape: Shape) -> Engine:
    """Return this project's scorer."""

    def score(sequences: Sequence[np.ndarray]) -> list[float]:
        values = dict(scorer.token_logprobs(sequences))
        return [float(values[index].sum()) for index in range(len(sequences))]

    return Engine(None, 1 + scorer.batch_tokens // shape.longest, score)


def timed(engine: Engine, sequences: Sequence[np.ndarray], bench: Bench) -> Timing:
    """Return the time of the largest sample: samples double until one takes long enough."""
    engine.score(sequences[:1])  # allocate, choose kernels
    count = min(engine.first, len(sequences))
    while True:
        gpu_profile.wait(bench.device)
        started = time.perf_counter()
        nats = engine.score(sequences[:count])
        gpu_profile.wait(bench.device)
        seconds = time.perf_counter() - started
        is_last = count == len(sequences) or time.perf_counter() > bench.deadline
        if seconds >= bench.long_enough or is_last:
            return Timing(seconds, nats)
        count = min(2 * count, len(sequences))


def distance(nats: Sequence[float], others: Sequence[float], lengths: Sequence[int]) -> float:
    """Return by how much the log-probability of a token differs, averaged over sequences."""
    distances: list[float] = []
    for mine, other, length in zip(nats, others, lengths, strict=False):
        distances.append(abs(mine - other) / length)
    return float(np.mean(distances))


def product_rate(device: torch.device, dtype: torch.dtype, size: int) -> float:
    """Return the FLOP/s of a product of square matrices, the best of five times four products."""
    matrix = torch.randn(size, size, device=device).to(dtype)
    repeats = 4

    def products() -> None:
        for _ in range(repeats):
            torch.mm(matrix, matrix)

    seconds = [gpu_profile.seconds_of(products, device) for _ in range(5)]
    return repeats * 2.0 * size**3 / min(seconds)


def reason_of(error: Exception) -> str:
    """Return what went wrong, as a note of a row."""
    if is_out_of_memory(error):
        return "out of memory"
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return f"failed: {text[:200]}"


def reset_peak(device: torch.device) -> None:
    """Count the peak of a GPU's memory from now on, with what is held now."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def peak_of(device: torch.device) -> int | None:
    """Return the peak of a GPU's memory in MiB."""
    if device.type != "cuda":
        return None
    return round(torch.cuda.max_memory_allocated(device) / 2**20)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print rows and profiles."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rehearse", action="store_true", help="tiny shapes on the CPU")
    parser.add_argument("--shapes", nargs="+", choices=gpu_models.SHAPES)
    parser.add_argument("--released", type=Path, help="folder of SmolLM2-135M, for its weights")
    parser.add_argument("--minutes", type=float, default=7.0, help="nothing begins later")
    options = parser.parse_args(arguments)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if options.rehearse:
        device = torch.device("cpu")
    elif device.type == "cpu":
        parser.error("there is no GPU in sight; --rehearse runs tiny shapes on the CPU")
    shapes = gpu_models.TINY if options.rehearse else gpu_models.SHAPES
    deadline = time.perf_counter() + 60 * options.minutes
    bench = Bench(device, deadline, rehearsal=options.rehearse)
    bench.table.writeheader()
    for name in options.shapes or shapes:
        released = options.released if name == "135M" else None
        shape = shapes[name] if released is None else gpu_models.released_shape(released)
        bench.measure(name, shape, released)


if __name__ == "__main__":
    main()
