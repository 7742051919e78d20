"""What a run of released models takes, before it downloads anything: `make plan`.

Every measurement of the profile runs with `Counting` in the place of `grid.Access`, on models that
count. What is at hand is counted: the examples of a set, by the tokenizer of a model
in a folder; a model by its configuration, of which the hub has one if it is in reach. The rest is
estimated: a set by the records and tokens that others counted, a model by its parameters. Nothing
is scored, and nothing but configurations is fetched.
"""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from huggingface_hub.utils.tqdm import disable_progress_bars

from contamination.audit.plan import choose_store
from contamination.audit.request import Request
from contamination.cli.printing import print_table
from contamination.errors import InputError
from contamination.membership.blind import SCORED
from contamination.scoring import loading
from contamination.scoring.contract import Scorer
from contamination.scoring.cost import Shape, Workload, sequence_workload, total, workload
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import ROOM
from contamination.scoring.models import ModelEntry
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.hub import in_reach, missing_bytes
from contamination.testsets.records import Record
from contamination.testsets.registry import FIRST, Entry, entries
from contamination.testsets.sources import available, locate
from contamination.testsets.tokens import tokenize, tokenize_set
from reproduction.output.figures import short_count
from reproduction.report.notebooks import measurement_of
from reproduction.run.experiment import Experiment
from reproduction.run.grid import TOKEN, Access, Row, placeholders

if TYPE_CHECKING:
    from contamination.membership.api import Text

NOTEBOOKS, MEASURED = Path("notebooks"), Path("docs/measurements/set_tokens.csv")
CONTEXT = 2048  # of most models that the papers ask, where nothing else is known
TOKENS = 100.0  # of an example, where nothing else is known
# Of the rate of a matrix product alone. On a CPU docs/throughput.md measured 0.35 to 0.77 of it;
# for GPUs it is an assumption, and what is left for Python, padding and attention.
SHARE = 0.4
YEAR = 8_766  # hours
BFLOAT16 = 2  # bytes of a weight, in files as well unless the hub knows better
ONE, SPREAD, NONE = "one device", "spread over all", "too large"
SIDE, SECONDS = 2048, 0.5  # of the matrices that are multiplied, and for how long


class CountingModel:
    """What is known of a model; where no folder has it, its tokenizer, too: four characters each.

    Attributes
    ----------
    context : tokens read at once. shape : weights of its matrix products.
    parameters : None where nobody says. download : bytes that are still to be fetched.
    """

    revision, batch_tokens = "planned", 1

    def __init__(self, entry: ModelEntry, *, online: bool) -> None:
        source = ModelSource(entry.id, revision=entry.revision, context=entry.context)
        local, estimate = Path(entry.id).exists(), entry.parameters or 0
        layers = (estimate / 120_000) ** (1 / 3)  # 12 x layers x width^2, width 100 x layers
        self.entry, self.parameters = entry, entry.parameters
        self.context = entry.context or CONTEXT
        self.shape = Shape(body=estimate, head=0, channels=round(100 * layers**2))
        self.tokenizer: Any = loading.load_tokenizer(source) if local else self
        if local or online:
            with suppress(InputError):  # gated, or gone: the registry's numbers have to do
                config = loading.load_config(source)
                self.parameters = loading.count_parameters(config)
                self.shape = loading.model_shape(config)
                self.context = loading.context_length(source, config)
        self.download = 0 if local else BFLOAT16 * (self.parameters or 0)
        if online and not local and (files := loading.weight_files(source)):
            with suppress(InputError), loading.explain_load_errors(source.name):
                known = missing_bytes(source.name, files, revision=source.revision)
                self.download = self.download if known is None else known

    def __call__(self, texts: Sequence[str], **_: Any) -> dict[str, Any]:
        """Encode as a tokenizer does."""
        width = len(TOKEN)
        return {"input_ids": [np.zeros(max(1, len(text) // width), np.int32) for text in texts]}

    def decode(self, ids: np.ndarray) -> str:
        """Write a text of so many tokens."""
        return TOKEN * len(ids)

    def get_vocab(self) -> dict[str, int]:
        """Return no vocabulary: which tokens two models share decides nothing about the work."""
        return {}


class Counting(Access):
    """Access that counts what it is asked for; `works` has it by notebook, model and purpose.

    Parameters
    ----------
    measured : tokens of registered sets by the tokenizer of GPT-2, with columns set, form ("record"
        or "line", of which an example is made), records and tokens
        (`docs/measurements/set_tokens.csv`).
    """

    def __init__(self, measured: pd.DataFrame) -> None:
        rows = measured.set_index(["set", "form"])
        self._mean = (rows["tokens"] / rows["records"]).to_dict()
        self._online = in_reach()
        self._lengths: dict[tuple[str, str], list[int]] = {}
        self.notebook = ""  # whose work is being counted
        self.works: dict[tuple[str, str, Any], Workload] = {}
        self.models: dict[str, CountingModel] = {}

    def open_set(self, name: str, *, max_records: int | None, lines: bool = False) -> ExampleSet:
        """Open a set that is at hand; of another one make up as many records and tokens."""
        if available(name) if name in entries() else Path(name).exists():
            return super().open_set(name, max_records=max_records, lines=lines)
        # A line has every field of its record, and so at least its tokens.
        forms = ["line", "record"] if lines else ["record"]
        known = [self._mean[name, form] for form in forms if (name, form) in self._mean]
        records = entries()[name].records if name in entries() else None
        count = min(records or FIRST, max_records or FIRST)
        made = placeholders(count, known[0] if known else TOKENS, "text")
        return make_test_set(name, [("", row) for row in made], "text/1", name)

    def read(
        self, entry: Entry, expected: Callable[[], list[Row]]
    ) -> tuple[list[Record], str, str]:
        """Read a file that is at hand; of another one return what is expected of it."""
        if locate(entry) is not None:
            return super().read(entry, expected)
        return [("", row) for row in expected()], entry.name, ""

    def open_model(self, entry: ModelEntry) -> Any:
        """Return a model that counts; its weights are not fetched, and need fit no device."""
        if entry.name not in self.models:
            self.models[entry.name] = CountingModel(entry, online=self._online)
        return self.models[entry.name]

    def score_orders(
        self, test: str, scorer: Scorer, examples: ExampleSet, request: Request, **settings: Any
    ) -> str:
        """Count what a store takes, once for all tests that read it."""
        key = (_name(scorer), examples.revision)
        if key not in self._lengths:
            self._lengths[key] = list(tokenize_set(scorer.tokenizer, examples).lengths)
        lengths = self._lengths[key]
        store = choose_store(test, lengths, scorer.context, request)
        work = workload(store, lengths, request.permutations, scorer.context)
        self._add(scorer, (examples.name, store), work)
        return ""

    def score_texts(
        self, folder: Path, scorer: Scorer, texts: "Sequence[Text]", **settings: Any
    ) -> pd.DataFrame:
        """Count the texts, as they are, in lower case and changed, and once for a reference."""
        columns, reference = settings["columns"], settings.get("reference")
        times = 1 + ("lowercase" in columns) + settings.get("neighbours", 0)
        for one, count in ((scorer, times), (reference, 1)):
            if one is not None:
                written = [text for text in texts if isinstance(text, str)]
                lengths = list(map(len, tokenize(one.tokenizer, written) if written else texts))
                work = sequence_workload(lengths, count, one.context)
                self._add(one, (folder, _name(scorer)), work)
        return pd.DataFrame(0.0, index=range(len(texts)), columns=list(columns))

    def score_blind(self, splits: Sequence[Row]) -> pd.DataFrame:
        """Leave out what reads no model."""
        return pd.DataFrame(columns=list(SCORED))

    def _add(self, scorer: Scorer, what: Any, work: Workload) -> None:
        key = (self.notebook, _name(scorer), what)
        if key not in self.works or self.works[key].scored < work.scored:
            self.works[key] = work


def _name(scorer: Any) -> str:
    return str(scorer.entry.name)


@dataclass(frozen=True)
class Device:
    """A device: its memory in bytes, FLOP/s of a matrix product on it, and bytes of a weight."""

    name: str
    memory: int
    flops_per_second: float
    weight: int = BFLOAT16


def described(text: str) -> Device:
    """Read "GB:TFLOPS", such as "141:989", of a GPU that is not here: 10^9 bytes, bfloat16, dense.

    Raises InputError for anything else.
    """
    try:
        memory, rate = map(float, text.split(":"))
    except ValueError:
        memory, rate = 0.0, 0.0
    if not (memory > 0 and rate > 0):
        raise InputError(f"--gpu {text}: write GB:TFLOPS, as in 24:165")
    return Device(f"GPU of {text}", int(1e9 * memory), 1e12 * rate)


def devices_found() -> list[Device]:
    """The GPUs of this machine, else its CPU; each multiplies matrices for half a second."""
    import torch

    from contamination.device import describe, has_bfloat16, memories

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dtype = torch.bfloat16 if has_bfloat16(device) else torch.float32
    left, right = (torch.ones(SIDE, SIDE, dtype=dtype, device=device) for _ in range(2))
    rounds, started, seconds = 0, time.perf_counter(), 0.0
    while seconds < SECONDS:
        float((left @ right)[0, 0])  # waits for the device
        rounds, seconds = rounds + 1, time.perf_counter() - started
    rate = 2.0 * SIDE**3 * rounds / seconds
    found = memories(device)
    return [Device(describe(device), memory, rate, dtype.itemsize) for memory in found]


def count_profile(experiment: Experiment) -> Counting:
    """Make the measurements of every notebook of a profile without a corpus on models that count.

    Notebooks without a measurement are left out. Raises InputError as `notebook_parameters` does.
    """
    counting = Counting(pd.read_csv(MEASURED))
    for name in experiment.profile.notebooks:
        source = NOTEBOOKS / f"{name}.ipynb"
        measure, wanted = measurement_of(source, experiment, source)
        if measure is not None:
            counting.notebook = name
            measure(experiment, **wanted, access=counting)
    return counting


def cost_table(counting: Counting, devices: Sequence[Device]) -> pd.DataFrame:
    """Add up what was counted, a row for each model, the largest last.

    memory_gb is that of the weights, in bfloat16 where the devices have it. `placement` says
    whether they fit one of the `devices`, all of them together, or none. hours are those of all
    devices where a model fits each of them, of one where it is spread, since then they wait for
    each other; NaN for what is too large.
    """
    rows: list[Row] = []
    slowest = min(device.flops_per_second for device in devices)
    memories = [device.memory for device in devices]
    room = {ONE: min(memories), SPREAD: sum(memories), NONE: math.inf}
    rates = {ONE: len(devices) * slowest, SPREAD: slowest, NONE: math.nan}
    for name, model in counting.models.items():
        found = {key: work for key, work in counting.works.items() if key[1] == name}
        if not found:
            continue
        work, weights = total(found.values()), devices[0].weight * (model.parameters or 0)
        placement = next(place for place, memory in room.items() if weights <= ROOM * memory)
        flops = model.shape.flops(work)
        row: Row = {"model": name, "download_gb": model.download / 1e9, "memory_gb": weights / 1e9}
        row |= {"placement": placement, "notebooks": {notebook[:2] for notebook, *_ in found}}
        row |= {"tokens_read": work.read, "tokens_scored": work.scored, "flops": flops}
        rows.append(row | {"hours": flops / (SHARE * rates[placement]) / 3600})
    return pd.DataFrame(rows).sort_values("memory_gb", kind="stable")


def print_costs(experiment: Experiment, gpus: Sequence[str]) -> None:
    """Print what a profile without a corpus downloads, reads and takes, and download nothing."""
    profile = experiment.profile.name
    if experiment.profile.pretraining is not None:
        print(f"profile {profile} trains its own models and downloads none")
        return
    disable_progress_bars()  # of looking for files that are not fetched
    devices = [described(text) for text in gpus] or devices_found()
    table, first = cost_table(count_profile(experiment), devices), devices[0]
    fit = table[table["placement"] != NONE]
    whole = fit.sum(numeric_only=True).to_dict()
    whole |= {"model": f"{len(fit)} models", "memory_gb": math.nan, "placement": ""}
    rows = []
    for row in [*table.to_dict("records"), whole]:
        years = row["hours"] / YEAR
        hours = f"{years:,.0f} years" if years >= 1 else f"{row['hours']:,.1f}"
        cells = [row["model"], f"{row['download_gb']:.1f}"]
        cells += [f"{row['memory_gb']:.1f}" if row["placement"] else ""]
        cells += [short_count(row["tokens_read"]), f"{row['flops']:.1e}".replace("e+", "e")]
        rows.append([*cells, {NONE: NONE, SPREAD: f"{hours} *"}.get(row["placement"], hours)])
    columns = ("model", "GB", "memory", "tokens", "FLOPs", "hours")
    print_table(columns, rows, title=f"What PROFILE={profile} takes, about")
    print(
        f"devices: {len(devices)} of {first.memory / 1e9:,.0f} GB and "
        f"{first.flops_per_second / 1e12:,.3g} TFLOP/s ({first.name})\n"
        "GB: weights that are still to be fetched, two bytes a parameter where the hub does not "
        "say; memory: GB of the weights there\n"
        "tokens: at most so many, estimated where a set is not at hand; a model reads equal "
        "orderings of small shards once\n"
        f"hours: computed, not measured: FLOPs over {SHARE:.0%} of that rate, without downloads "
        "and loading; *: on all devices together, of which one works at a time\n"
        f"{NONE}: {len(table) - len(fit)} models, not in the sums"
    )
