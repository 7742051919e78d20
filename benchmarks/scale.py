"""The cost of a test as records, shards, orderings, models and cards grow.

    .venv/bin/python benchmarks/scale.py --model MODEL      (measures, then draws)
    .venv/bin/python benchmarks/scale.py                    (draws what was measured)

With `--model` it scores made-up records under this model, by several numbers of records, shards
and orderings, and writes docs/measurements/scale.csv: tokens read, and seconds of the processor in
one thread. It always writes docs/measurements/scale_planned.csv, whose costs are computed by
`contamination.scoring.cost` and not measured, prints them as the table of docs/throughput.md, and
draws docs/scale.svg.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from forecasts import make_records
from matplotlib.axes import Axes
from transformers import GPT2Config, GPTNeoXConfig, LlamaConfig, PretrainedConfig

from contamination.audit.plan import ScoringPlan, Work
from contamination.audit.registry import TESTS
from contamination.audit.request import Request
from contamination.files import replacing
from contamination.scoring import cost
from contamination.scoring.configuration import model_shape
from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import StorePlan, plan_store
from contamination.testsets.example_set import ExampleSet
from reproduction.output.figures import MODEL_COLOURS, WIDEST, use_style

ROOT = Path(__file__).parents[1]
MEASUREMENTS = ROOT / "docs" / "measurements"
FIGURE = ROOT / "docs" / "scale.svg"
RECORDS, TOKENS, CONTEXT = 1_000, 100, 2_048  # of the planned set, and of all models
BYTES = 2  # of a weight in bfloat16
SMALLEST_LABEL = 8  # points
SECONDS = (0.5, 1, 2, 5)  # ticks of the runs

# Test, records, shards (None: the default), permutations.
RUNS = (
    ("successor", 20, None, 0),
    ("successor", 40, None, 0),
    ("successor", 80, None, 0),
    ("successor", 160, None, 0),
    ("successor", 80, 4, 0),
    ("successor", 80, 16, 0),
    ("sharded_exact", 40, 10, 5),
    ("sharded_exact", 40, 10, 10),
    ("sharded_exact", 40, 5, 10),
    ("sharded_exact", 40, 20, 10),
)


@dataclass(frozen=True)
class Procedure:
    """A test as it is run: its name in the registry, its shards and its shuffled orderings."""

    label: str
    test: str
    shards: int | None
    permutations: int

    @property
    def colour(self) -> str:
        """Return the colour of its test."""
        return TESTS[self.test].colour

    def plan(self, records: int) -> StorePlan:
        """Return the store that it reads."""
        return plan_store(TESTS[self.test], records, self.shards)

    def work(self, records: int) -> cost.Workload:
        """Return what filling this store takes."""
        return cost.workload(self.plan(records), [TOKENS] * records, self.permutations, CONTEXT)


PROCEDURES = (
    Procedure("the paper's, 50 × 250", "sharded_t", 50, 250),
    Procedure("sharded exact, 50 × 25", "sharded_exact", 50, 25),
    Procedure("successor (default)", "successor", None, 0),
)


def configurations() -> dict[str, PretrainedConfig]:
    """Return the configurations of the planned models: shapes, without weights."""
    return {
        "124M": GPT2Config(),
        "1.4B": GPTNeoXConfig(
            vocab_size=50_304,
            hidden_size=2_048,
            num_hidden_layers=24,
            num_attention_heads=16,
            intermediate_size=8_192,
        ),
        "7B": LlamaConfig(),
        "70B": LlamaConfig(
            hidden_size=8_192,
            intermediate_size=28_672,
            num_hidden_layers=80,
            num_attention_heads=64,
            num_key_value_heads=8,
        ),
    }


def planned() -> pd.DataFrame:
    """Return a row for each model and procedure: tokens, FLOPs and bytes, computed."""
    rows = []
    for model, configuration in configurations().items():
        shape = model_shape(configuration)
        for procedure in PROCEDURES:
            work = procedure.work(RECORDS)
            rows.append(
                {
                    "model": model,
                    "parameters": shape.body + shape.head,
                    "weights_gb": BYTES * (shape.body + shape.head) / 1e9,
                    "procedure": procedure.label,
                    "records": RECORDS,
                    "tokens_of_record": TOKENS,
                    "requests": work.windows,
                    "read": work.read,
                    "read_by_server": read_by_server(procedure, work),
                    "scored": work.scored,
                    "flops": shape.flops(work),
                    "store_mb": 4 * work.scored / 1e6,
                }
            )
    return pd.DataFrame(rows)


def read_by_server(procedure: Procedure, work: cost.Workload) -> int:
    """Return the tokens of all requests: a server reads the predecessor again in each."""
    if procedure.plan(RECORDS).kind == "orderings":
        return work.read
    return work.windows * TOKENS + work.scored


def measure(model: Path) -> pd.DataFrame:
    """Return tokens read and processor seconds of each run, and of a first one that warms up."""
    scorer = TransformersScorer(str(model))
    scorer.load()
    rows = []
    for test, records, shards, permutations in (RUNS[0], *RUNS):
        examples = ExampleSet("made-up", make_records(records), "text/1", "made up")
        with tempfile.TemporaryDirectory() as folder:
            request = Request(
                [test], shards=shards, permutations=permutations or 25, directory=folder
            )
            work = Work(scorer, examples, request, timed=False)
            plan = work.plan
            started = time.process_time()
            work.fill()
            seconds = time.process_time() - started
        row = {
            "model": model.name,
            "test": test,
            "records": records,
            "shards": plan.stores[0].shards,
            "permutations": permutations,
            "read": round(plan.work.read * distinct_share(plan, records, permutations)),
            "processor_seconds": seconds,
            "date": date.today().isoformat(),
        }
        print(row, flush=True)
        rows.append(row)
    return pd.DataFrame(rows[1:])


def distinct_share(plan: ScoringPlan, records: int, permutations: int) -> float:
    """Return the share of the tokens that a model here reads: equal orderings are read once."""
    store = plan.stores[0]
    if store.kind != "orderings":
        return 1.0
    return cost.distinct_share(records, store.shards, permutations)


# --- the figure -----------------------------------------------------------------------


def draw_tokens(axes: Axes) -> None:
    """Draw tokens read by records: computed for each procedure, counted in earlier runs."""
    counts = np.unique(np.geomspace(100, 10_000, 25).round(-1).astype(int))
    for procedure in PROCEDURES:
        reads = [procedure.work(int(count)).read for count in counts]
        axes.plot(counts, reads, color=procedure.colour, label=procedure.label)
    axes.set(xlabel="Records (100 tokens each)", ylabel="Tokens read", title="a  By records")


def draw_seconds(axes: Axes, runs: pd.DataFrame) -> None:
    """Draw processor seconds by tokens read, with the line of one pace for all runs."""
    pace = (runs["processor_seconds"] / runs["read"]).median()
    ends = np.array([runs["read"].min(), runs["read"].max()])
    axes.plot(ends, pace * ends, color="black", linewidth=1, label="one pace for all")
    for test, own in runs.groupby("test"):
        axes.plot(
            own["read"],
            own["processor_seconds"],
            TESTS[test].marker,
            color=TESTS[test].colour,
            markersize=4,
            label=TESTS[test].label,
        )
    axes.set(xlabel="Tokens read", ylabel="Processor time (s)", title="b  By tokens")
    axes.set_yticks(SECONDS, labels=[f"{seconds:g}" for seconds in SECONDS])
    axes.set_yticks([], minor=True)


def draw_speeds(axes: Axes, speeds: pd.DataFrame) -> None:
    """Draw tokens a second by weights: measured, and at the same share of the peak."""
    weights = np.geomspace(5e6, 7e10, 50)
    devices = {"AMD EPYC, 2 threads": "2 CPU cores", "1 x NVIDIA H100 80GB HBM3": "one H100"}
    ours = speeds[(speeds["engine"] == "contamination") & (speeds["dtype"] == "bfloat16")]
    colours = dict(zip(devices, MODEL_COLOURS[:2], strict=True))
    for device, own in ours.groupby("device"):
        share = own["fraction_of_matmul_peak"].median()
        rate = share * 1e9 * own["matmul_peak_gflops"].median()
        colour = colours[device]
        label = f"{devices[device]}, {share:.0%} of its peak"
        axes.plot(weights, rate / (2 * weights), color=colour, linewidth=1, label=label)
        axes.plot(own["model_params"], own["tokens_per_second"], "D", color=colour, markersize=4)
    axes.set(xlabel="Weights", ylabel="Speed (tokens per second)", title="c  By weights")


def draw(runs: pd.DataFrame, speeds: pd.DataFrame) -> None:
    """Draw the three panels."""
    use_style()
    figure, panels = plt.subplots(1, 3, figsize=(WIDEST * 1.25, 3.3))
    for axes in panels:
        axes.set(xscale="log", yscale="log")
    draw_tokens(panels[0])
    draw_seconds(panels[1], runs)
    draw_speeds(panels[2], speeds)
    for axes in panels:
        axes.title.set(fontsize=SMALLEST_LABEL + 1, ha="left", x=0)
        axes.tick_params(labelsize=SMALLEST_LABEL)
        axes.legend(
            fontsize=SMALLEST_LABEL, loc="upper center", bbox_to_anchor=(0.5, -0.28), handlelength=1
        )
    with replacing(FIGURE) as path:
        figure.savefig(path, metadata={"Date": None})


def as_markdown(table: pd.DataFrame) -> str:
    """Return the planned costs, a row for each model and procedure."""
    lines = ["| model | weights | test | tokens read | FLOPs |", "|---|---:|---|---:|---:|"]
    for row in table.to_dict("records"):
        cells = [
            row["model"],
            f"{row['weights_gb']:.3g} GB",
            row["procedure"],
            f"{row['read']:,}",
            f"{row['flops']:.2g}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def write(table: pd.DataFrame, name: str) -> None:
    """Write a table of measurements."""
    with replacing(MEASUREMENTS / f"{name}.csv") as path:
        table.to_csv(path, index=False, lineterminator="\n", float_format="%.6g")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure if a model is given, then compute, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, help="directory of a model to measure")
    chosen = parser.parse_args(arguments)
    if chosen.model is not None:
        write(measure(chosen.model), "scale")
    table = planned()
    write(table, "scale_planned")
    print(as_markdown(table))
    draw(pd.read_csv(MEASUREMENTS / "scale.csv"), pd.read_csv(MEASUREMENTS / "throughput.csv"))


if __name__ == "__main__":
    main()
