"""Seconds until a p-value: the paper's procedure beside `contamination test`, in one run.

    .venv/bin/python benchmarks/time_to_verdict.py                  (random weights: 5M and 124M)
    .venv/bin/python benchmarks/time_to_verdict.py --model DIR --dataset FILE --template NAME

The paper's procedure (Oren, sections 3.2 and 4.3): 50 shards, the canonical ordering and 250
shuffled ones of each, one sequence at a time in windows of the context, float32, the full
log-softmax. Its time is that of a random sample of its orderings, as tokens per second, times all
of its tokens; with `--full` this engine scores them all, too, and the t-test gives the p-value.

`contamination test` is the command as a user types it: its start and the loading of the model are
in `seconds`, and `scoring_seconds` leaves them out. Writes results/tables/time_to_verdict.csv, a
row for each procedure and round.
"""

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
import torch
from throughput import SHAPES
from tqdm import tqdm
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2LMHeadModel

from contamination.audit.request import Request
from contamination.audit.run import run_audit
from contamination.device import describe
from contamination.randomness import random_stream
from contamination.scoring.windows import windows
from contamination.tables import write_csv
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.orderings import shard_bounds
from contamination.testsets.sources import open_test_set
from contamination.testsets.tokens import tokenize
from reproduction.run.network import gpt2_config
from reproduction.run.tokenizer import train_tokenizer

SHARDS, PERMUTATIONS = 50, 250
RECORDS, WORDS = 500, 40  # of the made-up set


def make_up(shape: str, directory: Path) -> tuple[Path, Path]:
    """Save a model with random weights, its tokenizer and a set of random words."""
    rng = random_stream(0, "made-up records")
    letters = list("abcdefghijklmnopqrstuvwxyz")
    known = ["".join(rng.choice(letters, rng.integers(2, 9))) for _ in range(2_000)]
    texts = [" ".join(rng.choice(known, WORDS)) for _ in range(RECORDS)]
    architecture, vocabulary, *_ = SHAPES[shape]
    tokenizer = train_tokenizer(texts, 4096)
    tokenizer.model_max_length = architecture.n_positions
    torch.manual_seed(0)
    model = GPT2LMHeadModel(gpt2_config(architecture, vocabulary, tokenizer.eos_token_id))
    for part in (model, tokenizer):
        part.save_pretrained(directory / shape)
    path = directory / f"{shape}.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return directory / shape, path


def paper_speed(directory: Path, test_set: ExampleSet, sample: int) -> tuple[int, float]:
    """All tokens of the paper's procedure, and its tokens per second on a sample of orderings."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = AutoTokenizer.from_pretrained(directory)
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).to(device).eval()
    context = model.config.max_position_embeddings
    ids = tokenize(tokenizer, test_set.examples)
    bounds = shard_bounds(len(ids), SHARDS)
    rng = random_stream(0, "sampled orderings")
    tokens, seconds = 0, 0.0
    for number in tqdm(range(sample + 1), desc="the paper's procedure", unit="ordering"):
        start, stop = bounds[rng.integers(SHARDS)]
        ordering = np.concatenate([ids[i] for i in rng.permutation(np.arange(start, stop))])
        begin = perf_counter()
        for window in windows([len(ordering)], context):
            inputs = torch.from_numpy(window.inputs(ordering, tokenizer.bos_token_id))
            with torch.no_grad():
                logits = model(inputs[None].long().to(device)).logits[0]
            log_probs = torch.log_softmax(logits, dim=-1)
            wanted = torch.from_numpy(ordering[window.start : window.stop]).long().to(device)
            found = log_probs.gather(1, wanted[:, None])[window.first - window.start :]
            found.sum().item()
        if number:  # the first one warms up
            tokens += len(ordering)
            seconds += perf_counter() - begin
    return (PERMUTATIONS + 1) * sum(map(len, ids)), tokens / seconds


def our_verdict(directory: Path, path: Path, template: str | None) -> dict:
    """Run the command; what it printed as JSON, and its seconds."""
    with tempfile.TemporaryDirectory() as store:
        command = [Path(sys.executable).with_name("contamination"), "test", directory, path]
        command += ["--json", "--store", store] + (["--template", template] if template else [])
        begin = perf_counter()
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        seconds = perf_counter() - begin
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr[-3000:])
    return json.loads(done.stdout) | {"wall": seconds}


def measure(name: str, directory: Path, path: Path, options: argparse.Namespace) -> list[dict]:
    """Time both procedures in turn, `--rounds` times."""
    test_set = open_test_set(path, template=options.template)
    facts = {"model": name, "examples": len(test_set.examples)}
    p = np.nan
    if options.full:
        with tempfile.TemporaryDirectory() as store:
            request = Request(("sharded_t",), SHARDS, permutations=PERMUTATIONS, directory=store)
            p = run_audit(str(directory), test_set, request).results[0].p
    rows = []
    for number in range(options.rounds):
        tokens, speed = paper_speed(directory, test_set, options.sample)
        ours = our_verdict(directory, path, options.template)
        each = {
            "the paper's": {"seconds": tokens / speed, "tokens": tokens, "p": p},
            "contamination test": {
                "seconds": ours["wall"],
                "tokens": ours["plan"]["work"]["read"],
                "p": ours["results"][0]["p"],
            },
        }
        for procedure, found in each.items():
            scoring = ours["seconds"] if procedure == "contamination test" else found["seconds"]
            known = {"round": number, "procedure": procedure, "scoring_seconds": scoring}
            rows.append(facts | known | found)
    return rows


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, help="directory; without it, random weights")
    parser.add_argument("--dataset", type=Path, help="test set of --model")
    parser.add_argument("--template", help="of --dataset")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=["small", "124M"])
    parser.add_argument("--sample", type=int, default=40, help="orderings that are timed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--full", action="store_true", help="the p-value of the paper's test, too")
    parser.add_argument("--results", type=Path, default=Path("results"))
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        if options.model:
            rows += measure(options.model.name, options.model, options.dataset, options)
        for shape in () if options.model else options.shapes:
            rows += measure(shape, *make_up(shape, Path(folder)), options)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    table = pd.DataFrame(rows).assign(
        device=describe(device),
        threads=torch.get_num_threads(),
        date=datetime.date.today().isoformat(),
    )
    print(table.to_string(index=False))
    median = table.groupby(["model", "procedure"])["seconds"].median().unstack()
    print((median["the paper's"] / median["contamination test"]).rename("times as fast"))
    print(write_csv(table, options.results, "time_to_verdict"))


if __name__ == "__main__":
    main()
