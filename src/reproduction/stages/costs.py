"""The cost of a run of released models, before it downloads anything: `make plan`.

Every measurement of the profile runs with `Counting` in the place of `grid.Access`, on
models that count tokens. A set at hand is counted by the tokenizer of a model in a
folder, else at four characters a token; another one has the records and tokens that
others counted. The registry knows the parameters of a model. Nothing is scored and no
weights are fetched.
"""

import gc
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch.utils.benchmark import Timer

from contamination.audit.plan import Work
from contamination.audit.request import Request
from contamination.cli.printing import print_table
from contamination.device import has_bfloat16, memories
from contamination.errors import InputError
from contamination.membership.blind import SCORED
from contamination.scoring import loading
from contamination.scoring.cost import Workload, sequence_workload
from contamination.scoring.loading import ModelSource
from contamination.scoring.models import ModelEntry
from contamination.scoring.room import ROOM
from contamination.scoring.status import OK
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.records import Record
from contamination.testsets.registry import FIRST, Entry, entries
from contamination.testsets.sources import available, locate
from contamination.testsets.tokens import tokenize
from reproduction.output.figures import short_count
from reproduction.report.notebooks import measurement_of
from reproduction.run.experiment import Experiment
from reproduction.run.grid import Access, Row
from reproduction.stages.rules import entries_quoted_in

NOTEBOOKS = Path("notebooks")
MEASURED = Path("docs/measurements/set_tokens.csv")
CONTEXT = 2048  # of most models that the papers ask, where nothing else is known
TOKENS = 100.0  # of an example, where nothing else is known
TOKEN = " the"  # four characters, and one token of nearly every tokenizer
# Of the rate of a matrix product alone. On a CPU docs/throughput.md measured 0.35 to
# 0.77 of it; for GPUs, 0.1 at 135M on an H100; for larger models it is an assumption.
SHARE = 0.4
BFLOAT16 = 2  # bytes of a weight, in files and on GPUs
SIDE = 2048  # of the matrices that are multiplied
SECONDS = 0.5  # for which they are multiplied


class FourCharacters:
    """A tokenizer that takes four characters as a token."""

    def __call__(self, texts: Sequence[str], **_: Any) -> dict[str, Any]:
        """Encode as a tokenizer does."""
        counts = [max(1, len(text) // len(TOKEN)) for text in texts]
        return {"input_ids": [np.zeros(count, np.int32) for count in counts]}

    def decode(self, ids: np.ndarray) -> str:
        """Return a made-up text with this number of tokens."""
        return TOKEN * len(ids)

    def get_vocab(self) -> dict[str, int]:
        """Return no vocabulary: it decides nothing about the work."""
        return {}


class CountingModel:
    """The facts about a model.

    Attributes
    ----------
    tokenizer
        That of a model in a folder, else `FourCharacters`.
    context
        Tokens read at once.
    parameters
        0 if unknown.
    download
        Bytes of weights that are not in a folder.
    """

    revision = "planned"
    batch_tokens = 1

    def __init__(self, entry: ModelEntry) -> None:
        source = ModelSource(entry.id, revision=entry.revision, context=entry.context)
        self.entry = entry
        self.context = entry.context or CONTEXT
        self.parameters = entry.parameters or 0
        if not entry.parameters:  # a folder, or an id that the registry does not know
            with suppress(InputError):
                config = loading.load_config(source)
                self.parameters = loading.count_parameters(config)
                self.context = loading.context_length(source, config)
        local = Path(entry.id).exists()
        self.tokenizer: Any = loading.load_tokenizer(source) if local else FourCharacters()
        self.download = 0 if local else BFLOAT16 * self.parameters


class Counting(Access):
    """Access that counts what it is asked for; `works` has it by notebook, model and purpose.

    Its methods take what those of `Access` take.

    Parameters
    ----------
    measured
        Tokens of registered sets by the tokenizer of GPT-2, with columns set, form
        ("record" or "line", of which an example is made), records and tokens
        (`docs/measurements/set_tokens.csv`).
    """

    def __init__(self, measured: pd.DataFrame) -> None:
        rows = measured.set_index(["set", "form"])
        self._mean = (rows["tokens"] / rows["records"]).to_dict()
        self.notebook = ""  # whose work is being counted
        self.made_up = 0  # records, so far
        self.works: dict[tuple[str, str, Any], Workload] = {}
        self.models: dict[str, CountingModel] = {}

    def open_set(
        self,
        name: str,
        *,
        max_records: int | None,
        lines: bool = False,
    ) -> ExampleSet:
        """Open a set that is at hand; of another one make up as many records and tokens."""
        is_registered = name in entries()
        is_at_hand = available(name) if is_registered else Path(name).exists()
        if is_at_hand:
            return super().open_set(name, max_records=max_records, lines=lines)
        mean = self._mean.get((name, "record"), TOKENS)
        if lines:  # has every field of its record, and so at least its tokens
            mean = self._mean.get((name, "line"), mean)
        records = entries()[name].records if is_registered else None
        count = min(records or FIRST, max_records or FIRST)
        made = [("", {"text": text}) for text in self._make_up(count, mean)]
        return make_test_set(name, made, "text/1", name)

    def read(
        self,
        entry: Entry,
        count: int,
        tokens: float,
    ) -> tuple[list[Record], str, str]:
        """Read a file that is at hand; of another one make up the records that are expected."""
        if locate(entry) is not None:
            return super().read(entry, count, tokens)
        made = []
        for i, text in enumerate(self._make_up(count, tokens)):
            fields = {"text": text, "input": text, "label": i % 2}  # of any measurement
            made.append(("", fields))
        return made, entry.name, ""

    def _make_up(self, count: int, tokens: float) -> Iterator[str]:
        """Return made-up texts with this mean number of tokens, all different."""
        ends = [int(tokens * i) for i in range(count + 1)]
        for start, end in pairwise(ends):
            self.made_up += 1
            yield TOKEN * (end - start - 1) + f" {self.made_up:03d}"

    def open_model(self, entry: ModelEntry) -> Any:
        """Return a model that counts; its weights are not fetched."""
        if entry.name not in self.models:
            self.models[entry.name] = CountingModel(entry)
        return self.models[entry.name]

    def score_orders(
        self,
        test: str,
        scorer: Any,
        examples: ExampleSet,
        request: Request,
        *,
        keep_revisions: bool = True,
    ) -> str:
        """Count the work of a store, once for all tests that read it."""
        (part,) = Work(scorer, examples, replace(request, tests=[test])).parts
        self._add(scorer, (examples.name, part.store), part.work)
        return ""

    def score_texts(
        self,
        folder: Path,
        scorer: Any,
        texts: Sequence[Any],
        **options: Any,
    ) -> pd.DataFrame:
        """Count the texts: as they are, in lower case, changed, and for a reference."""
        columns = options["columns"]
        times = 1 + options.get("neighbours", 0)
        if "lowercase" in columns:
            times += 1
        self._add_texts(folder, scorer, texts, times=times)
        reference = options.get("reference")
        if reference is not None:
            self._add_texts(folder, reference, texts, times=1)
        return pd.DataFrame(0.0, index=range(len(texts)), columns=list(columns))

    def _add_texts(
        self,
        folder: Path,
        scorer: Any,
        texts: Sequence[Any],
        *,
        times: int,
    ) -> None:
        """Count texts, or token ids, that a model reads some times."""
        strings = [text for text in texts if isinstance(text, str)]
        sequences = tokenize(scorer.tokenizer, strings) if strings else texts
        work = sequence_workload(list(map(len, sequences)), times, scorer.context)
        self._add(scorer, (folder, scorer.entry.name), work)

    def score_blind(self, splits: Sequence[Row]) -> pd.DataFrame:
        """Do nothing: blind scores read no model."""
        return pd.DataFrame(columns=list(SCORED))

    def _add(self, scorer: Any, what: Any, work: Workload) -> None:
        key = (self.notebook, scorer.entry.name, what)
        if key not in self.works or self.works[key].scored < work.scored:
            self.works[key] = work


def measure_devices() -> tuple[list[int], float, int]:
    """Return memory of each device, FLOP/s of one, and bytes of a weight.

    The first one multiplies matrices for half a second.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dtype = torch.bfloat16 if has_bfloat16(device) else torch.float32
    matrix = torch.ones(SIDE, SIDE, dtype=dtype, device=device)
    timer = Timer("x @ x", globals={"x": matrix}, num_threads=torch.get_num_threads())
    seconds = timer.blocked_autorange(min_run_time=SECONDS).median
    return memories(device), 2.0 * SIDE**3 / seconds, dtype.itemsize


def count_profile(experiment: Experiment) -> Counting:
    """Make the passes of every notebook on models that count.

    Notebooks without a measurement are left out. Raises InputError if the profile gives
    a notebook a parameter that it does not have, and where no set can be opened.
    """
    counting = Counting(pd.read_csv(MEASURED))
    statuses: list[str] = []
    gc.freeze()  # what was imported stays: freeing a model need not look through it
    for name in experiment.profile.notebooks:
        source = NOTEBOOKS / f"{name}.ipynb"
        measurement = measurement_of(source, experiment)
        if measurement is None:
            continue
        counting.notebook = name
        for table in measurement.count(experiment, access=counting).values():
            if "status" in table:
                statuses += list(table["status"])
    if not counting.works:
        problems = (status for status in statuses if status != OK)
        problem = next(problems, "no notebook of this profile reads a model")
        raise InputError(f"nothing can be counted: {problem}")
    return counting


def cost_table(counting: Counting) -> pd.DataFrame:
    """Add up what was counted: a row for each model with work, the largest last.

    Columns model, parameters, download_gb, tokens_read, tokens_scored and flops: two
    for each parameter and token read, without attention, which adds some percent.
    """
    works = [(name, work.read, work.scored) for (_, name, _), work in counting.works.items()]
    table = pd.DataFrame(works, columns=["model", "tokens_read", "tokens_scored"])
    table = table.groupby("model", sort=False, as_index=False).sum()
    models = [counting.models[name] for name in table["model"]]
    table["parameters"] = [model.parameters for model in models]
    table["download_gb"] = [model.download / 1e9 for model in models]
    table["flops"] = 2.0 * table["parameters"] * table["tokens_read"]
    return table.sort_values("parameters", kind="stable")


def print_costs(experiment: Experiment) -> None:
    """Print downloads, tokens and time of a profile without a corpus, and download nothing."""
    profile = experiment.profile.name
    if experiment.profile.pretraining is not None:
        print(f"profile {profile} trains its own models; that is not counted here")
        models = entries_quoted_in(json.dumps(experiment.profile.notebooks))
        if models:
            print(
                f"it also audits {', '.join(models)}; write a profile without a corpus "
                "that has the same notebooks, as profiles/open.yaml, to count those"
            )
        return
    devices, rate, itemsize = measure_devices()
    table = cost_table(count_profile(experiment))
    weights = itemsize * table["parameters"] / ROOM
    # else all devices hold it, and one works at a time
    fits_one_device = weights <= min(devices)
    working = np.where(fits_one_device, len(devices), 1)
    seconds = table["flops"] / (SHARE * rate * working)
    table["hours"] = (seconds / 3600).where(weights <= sum(devices))
    fitting = table.dropna()
    total = fitting.sum(numeric_only=True).to_dict()
    total["model"] = f"{len(fitting)} models"
    rows = [_cost_cells(row) for row in [*table.to_dict("records"), total]]
    columns = ("model", "GB", "tokens", "FLOPs", "hours")
    print_table(columns, rows, title=f"Estimated cost of PROFILE={profile}")
    print(
        "GB: weights of models that no folder has, two bytes a parameter\ntokens: an "
        "upper limit, estimated where a set is not at hand; a model reads equal "
        "orderings of small shards once\nhours: computed, not measured: FLOPs over "
        f"{SHARE:.0%} of {rate / 1e12:,.3g} TFLOP/s on each of {len(devices)} devices "
        f"of {min(devices) / 1e9:,.0f} GB, without downloads\ntoo large: "
        f"{len(table) - len(fitting)} models, not in the sums",
    )


def _cost_cells(row: Row) -> tuple[str, ...]:
    """Return the cells of a row of `cost_table` as text."""
    hours = "too large" if pd.isna(row["hours"]) else f"{row['hours']:,.1f}"
    return (
        row["model"],
        f"{row['download_gb']:.1f}",
        short_count(row["tokens_read"]),
        f"{row['flops']:.1e}".replace("e+", "e"),
        hours,
    )
