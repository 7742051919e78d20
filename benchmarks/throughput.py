"""Tokens per second of four engines on the same model and strings, in one run.

    .venv/bin/python benchmarks/throughput.py --harness-python ENV/bin/python   (or: make benchmark)

Engines, each in a process of its own, in turn, `--rounds` times; the median counts:

- `naive`: one sequence at a time, float32, full log-softmax, one number fetched per sequence,
  which is how the public reference implementation of the test works;
- `lm-evaluation-harness`: its `loglikelihood`, from an environment of its own, in the precisions
  and batch sizes given, of which the fastest counts;
- `llama.cpp`, from the same environment, for a model that is a GGUF file;
- `contamination`: this project's engine with its defaults.

The peak is that of square matrix products, measured between the rounds. Weights that are not a
released model's are random: time does not depend on their values. `nats_from_naive` is by how much
the log-probability of a token, averaged over each string, differs from that of the naive loop.
Writes results/tables/throughput.csv.
"""

import argparse
import datetime
import json
import pydoc_data.topics
import statistics
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

import pandas as pd
import torch
from torch.utils.benchmark import Timer
from tqdm import tqdm
from transformers import AutoConfig, AutoTokenizer, GPT2LMHeadModel

from contamination.device import describe, has_bfloat16
from contamination.randomness import random_stream
from contamination.scoring.cost import sequence_workload
from contamination.scoring.loading import ModelSource, model_shape
from contamination.scoring.models import fetch, find_model
from contamination.scoring.unpacking import unpack
from contamination.tables import write_csv
from contamination.testsets.tokens import tokenize
from reproduction.run.network import gpt2_config
from reproduction.run.profile import Architecture
from reproduction.run.tokenizer import train_tokenizer

HERE = Path(__file__).parent
NAMES = {"ours": "contamination", "harness": "lm-evaluation-harness", "llama": "llama.cpp"}
SHAPES = {  # name: (architecture, vocabulary, sequences on a CPU, of which the naive loop gets)
    "small": (Architecture(n_embd=256, n_layer=4, n_head=4, n_positions=256), 8192, 384, 96),
    "124M": (Architecture(n_embd=768, n_layer=12, n_head=12, n_positions=1024), 50257, 16, 4),
    "1.4B": (Architecture(n_embd=1536, n_layer=48, n_head=24, n_positions=2048), 50257, 4, 1),
}
# Most tokens of a string, strings, and those of them that the naive loop gets.
RELEASED = {"smollm2-135m": (1024, 12, 4)}
DEFAULT = ["small", "124M", *RELEASED]
GPU_FACTOR = 64  # times as many sequences, so that a run lasts seconds there too


def make_inputs(name: str, directory: Path, device: torch.device, *, factor: int) -> dict:
    """Save a random model, a tokenizer and strings of half a context to nearly a whole one."""
    text = "\n".join(pydoc_data.topics.topics.values())
    if name in RELEASED:
        longest, count, naive = RELEASED[name]
        unpacked = Path(unpack(ModelSource(name), torch.float32).name)
        for file in unpacked.iterdir():
            (directory / file.name).symlink_to(file)
        (directory / "model.gguf").symlink_to(fetch(find_model(name)))
        tokenizer = AutoTokenizer.from_pretrained(directory)
        parameters = find_model(name).parameters
    else:
        shape, vocabulary, count, naive = SHAPES[name]
        longest = shape.n_positions
        tokenizer = train_tokenizer(text.split("\n\n"), 4096)
        torch.manual_seed(0)
        with device:  # a CPU draws the weights of the largest for minutes
            model = GPT2LMHeadModel(gpt2_config(shape, vocabulary, tokenizer.eos_token_id))
        model.save_pretrained(directory)
        parameters = model.num_parameters()
        tokenizer.model_max_length = longest
        tokenizer.save_pretrained(directory)
    rng = random_stream(0, "made-up tokens")
    (ids,) = tokenize(tokenizer, [text])
    strings, lengths = [], []
    while len(strings) < count * factor:
        # A little short of the context: a string cut inside a word has a token more, read alone.
        length = int(rng.integers(longest // 2, longest - 8))
        start = int(rng.integers(len(ids) - length))
        string = tokenizer.decode(ids[start : start + length])
        if (n := len(tokenizer(string)["input_ids"])) < longest:
            strings.append(string)
            lengths.append(n)
    (directory / "strings.json").write_text(json.dumps(strings))
    counts = (len(strings), naive * factor)
    work = [sequence_workload(lengths[:n], 1, longest) for n in counts]
    cost = model_shape(AutoConfig.from_pretrained(directory))
    return {
        "parameters": parameters,
        "sequences": len(strings),
        "naive": naive * factor,
        "flops_per_token": [cost.flops(w) / w.scored for w in work],
    }


def matmul_peak(device: torch.device, dtype: torch.dtype) -> float:
    """FLOP/s of square matrix products: the best of a few sizes."""
    best = 0.0
    for size in (1024, 2048, 4096) if device.type == "cpu" else (4096, 8192):
        a = torch.randn(size, size, device=device).to(dtype)
        timer = Timer("a @ a", globals={"a": a}, num_threads=torch.get_num_threads())
        best = max(best, 2.0 * size**3 / timer.blocked_autorange(min_run_time=0.5).median)
    return best


def run(python: str, engine: str, *arguments: object) -> dict:
    """Run one engine in a process of its own; the last line it prints is its JSON result."""
    command = [python, str(HERE / "engines" / f"{engine}.py"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{engine} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=SHAPES | RELEASED, default=DEFAULT)
    parser.add_argument("--harness-python", help="with lm_eval, llama_cpp; else without")
    parser.add_argument("--harness-batches", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--results", type=Path, default=Path("results"))
    options = parser.parse_args()
    if options.harness_python:  # before anything is measured: what is missing would end it late
        subprocess.run([options.harness_python, "-c", "import lm_eval, llama_cpp"], check=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    factor = GPU_FACTOR if device.type == "cuda" else 1
    dtypes = ["float32"]
    if has_bfloat16(device):  # where it is not made of float32
        dtypes.append("bfloat16")
    rows = []
    for name in options.models:
        with tempfile.TemporaryDirectory() as folder:
            directory = Path(folder)
            facts = make_inputs(name, directory, device, factor=factor)
            plans = [(sys.executable, "naive", "float32", 1)]
            plans += [(sys.executable, "ours", dtype, 0) for dtype in dtypes]
            if options.harness_python:
                for dtype, batch in product(dtypes, options.harness_batches):
                    plans.append((options.harness_python, "harness", dtype, batch))
                if name in RELEASED:
                    plans.append((options.harness_python, "llama", "as packed", 0))
            measured: dict[tuple, list[dict]] = {plan: [] for plan in plans}
            peaks: dict[str, list[float]] = {dtype: [] for dtype in dtypes}
            with tqdm(total=options.rounds * len(plans), desc=name, unit="run") as bar:
                for _ in range(options.rounds):
                    for dtype, values in peaks.items():
                        values.append(matmul_peak(device, getattr(torch, dtype)))
                    for plan in plans:
                        python, engine, dtype, batch = plan
                        count = facts["naive" if engine == "naive" else "sequences"]
                        measured[plan].append(run(python, engine, directory, dtype, batch, count))
                        bar.update()
        plain = measured[plans[0]][0]
        each = plain["tokens"] / len(plain["nats"])  # tokens of a string, about
        for (_, engine, dtype, batch), results in measured.items():
            rate = statistics.median(r["tokens"] / r["seconds"] for r in results)
            pairs = zip(plain["nats"], results[0]["nats"], strict=False)  # naive has the first few
            moved = statistics.mean(abs(ours - theirs) for ours, theirs in pairs) / each
            peak = statistics.median(peaks.get(dtype, peaks["float32"]))
            flops = rate * facts["flops_per_token"][engine == "naive"]
            rows.append(
                {
                    "engine": NAMES.get(engine, engine),
                    "device": describe(device),
                    "dtype": dtype,
                    "batch_size": batch or None,
                    "model": name,
                    "model_params": facts["parameters"],
                    "tokens_per_second": round(rate, 1),
                    "fraction_of_matmul_peak": flops / peak,
                    "peak_memory_mb": round(max(r["peak_bytes"] for r in results) / 2**20),
                    "sequences": len(results[0]["nats"]),
                    "tokens": results[0]["tokens"],
                    "nats_from_naive": float(f"{moved:.3g}"),
                    "rounds": options.rounds,
                    "matmul_peak_gflops": round(peak / 1e9),
                    "date": datetime.date.today().isoformat(),
                    "note": "released weights" if name in RELEASED else "random weights",
                }
            )
    table = pd.DataFrame(rows)
    naive = table[table["engine"] == "naive"].set_index("model")["tokens_per_second"]
    table["ratio_to_naive"] = table["tokens_per_second"] / table["model"].map(naive)
    print(table.to_string(index=False))
    print(write_csv(table, options.results, "throughput"))


if __name__ == "__main__":
    main()
