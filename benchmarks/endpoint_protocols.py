"""What a shard of the successor test costs behind a server, by completions and by `/generate`.

    .venv/bin/python benchmarks/endpoint_protocols.py

The server is the stand-in of the tests, on loopback, with numbers that need no network: the time is
that of the client and of HTTP. Bytes are those of the bodies. `tokens_computed` is what a server
computes that keeps every prompt in its cache, and reads it as SGLang does: up to the first token
whose log-probability is asked for. With completions that is the first of all.
"""

import argparse
import json
import sys
import tempfile
import threading
from datetime import date
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import numpy as np
import pandas as pd

from contamination.files import sha256_of
from contamination.randomness import random_stream
from contamination.scoring.endpoint import EndpointScorer
from contamination.scoring.plan import SUCCESSOR_TOKENS, StorePlan
from contamination.scoring.score import score
from contamination.tables import write_csv
from contamination.testsets.example_set import ExampleSet
from fakes.completions_server import serving
from fakes.made_up_network import MadeUpNetwork, Scores
from reproduction.run.tokenizer import train_tokenizer

CONTEXT = 2048
STYLES = {"vllm": "completions (prompt_logprobs)", "generate": "/generate"}
WORDS = ["apple", "river", "stone", "cloud", "lamp", "green", "tower", "quiet", "orbit", "maple"]


class Counting(MadeUpNetwork):
    """Counts the tokens that are not in its cache, which keeps everything."""

    def __init__(self, tokenizer: Any, *, reads: bool) -> None:
        super().__init__(tokenizer, CONTEXT)
        self.reads = reads
        self.known: set[bytes] = set()
        self.computed = 0
        self.lock = threading.Lock()

    def score(self, ids: list[int], temperature: float, cached: int) -> Scores:
        """Count, and return what there is to say."""
        beginnings = np.asarray(ids, dtype=np.int32)
        stop = cached if self.reads else 0
        with self.lock:
            while stop and beginnings[:stop].tobytes() not in self.known:
                stop -= 1
            self.known |= {beginnings[:n].tobytes() for n in range(1, len(ids) + 1)}
            self.computed += len(ids) - stop
        return super().score(ids, temperature, cached)


def measure(style: str, examples: tuple[str, ...], concurrency: int) -> dict[str, object]:
    """Score one shard, and return its row."""
    tokenizer = train_tokenizer(list(examples), 1024)
    network = Counting(tokenizer, reads=style == "generate")
    received: list[int] = []
    with tempfile.TemporaryDirectory() as folder, serving(network, style) as server:
        tokenizer.save_pretrained(folder)
        server.tamper = lambda answer, number: received.append(len(json.dumps(answer)))
        scorer = EndpointScorer(server.url, "m", folder, context=CONTEXT, concurrency=concurrency)
        begin = perf_counter()
        score(
            ExampleSet("set", examples, "text/1", sha256_of(*examples)),
            scorer,
            Path(folder) / "store",
            StorePlan("successors", 1, SUCCESSOR_TOKENS),
            model="m",
            permutations=0,
            seed=0,
        )
        seconds = perf_counter() - begin
        sent = sum(len(json.dumps(body)) for _, body in server.seen)
    return {
        "protocol": STYLES[style],
        "examples": len(examples),
        "concurrency": concurrency,
        "requests": len(received),
        "requests_per_second": round(len(received) / seconds),
        "bytes_sent": sent,
        "bytes_received": sum(received),
        "tokens_computed": network.computed,
    }


def main() -> None:
    """Measure both protocols on shards of several sizes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--words", type=int, default=80, help="of an example")
    asked = parser.parse_args()
    rng = random_stream(0, "benchmark of protocols")
    rows = []
    for count in (10, 40):
        examples = tuple(" ".join(rng.choice(WORDS, asked.words)) + "\n" for _ in range(count))
        rows += [measure(style, examples, 8) | {"date": date.today()} for style in STYLES]
    table = pd.DataFrame(rows)
    print(table.to_string(index=False))
    print(write_csv(table, asked.results, "endpoint_protocols"))


if __name__ == "__main__":
    main()
