"""Two tiny models, trained while the class watches: one has read the test sets, the other has not.

The experiment of Oren (section 4.1) in a minute: a made-up corpus, test sets planted in it whole
and in their order, a known number of times, and a second model that reads the corpus alone.

Every record is drawn from short lists of words, so a small model speaks the language after seconds
of training, and nobody can know an answer without having read it. Records of one document share
their town, as paragraphs of real text share a topic; the records of a test set do not. Test sets
can be spoiled on purpose: segmented wrongly, or in an order that carries information.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from tokenizers.processors import TemplateProcessing

from contamination.audit import Request, audit
from contamination.audit.battery import TESTS
from contamination.errors import InputError
from contamination.files import read_json, sha256_of
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import StorePlan
from contamination.scoring.score import score
from contamination.scoring.store import Store
from contamination.scoring.store_format import Kind
from contamination.statistics import relabel_canonical, westfall_young_test
from contamination.tables import outcome_row
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.tokens import tokenize
from reproduction.output.figures import READ, UNREAD, panel_row
from reproduction.run.experiment import MODELS, store_plan
from reproduction.run.injection import mix
from reproduction.run.profile import Architecture, ScoringSpec, TrainingSpec
from reproduction.run.tokenizer import train_tokenizer
from reproduction.run.training import train

SHAPE = Architecture(n_embd=128, n_layer=2, n_head=4, n_positions=128)
SPEC = TrainingSpec(
    batch_size=4,
    micro_batch_size=4,
    learning_rate=4.0e-3,
    weight_decay=0.1,
    warmup_steps=20,
    checkpoint_steps=10_000,  # over in a minute: nothing worth resuming
)
VOCABULARY = 512
RECORDS_PER_DOCUMENT = 6
WORDS = """
Mara Jonas Ines Tariq Olga Pavel Wanda Felix Greta Hugo Amina Boris Carla Dario Edith Farid Lotte
Milo Nadia Oskar /
baker weaver sailor painter miller farmer teacher tailor mason potter porter singer doctor
gardener printer smith /
copper silver wooden broken yellow narrow heavy painted paper velvet rusty purple marble folded
striped hollow /
kettle lantern violin ladder basket mirror anchor whistle blanket hammer compass candle bucket
feather trumpet ribbon saddle teapot button parcel /
under behind beside above inside near /
bridge chapel market tower harbour stable library fountain cellar orchard bakery station garden
theatre quarry museum /
Ardel Brenna Cusk Dorran Elvane Fenwick Gallow Hestle Ivory Jarrow Kelmore Lunden Morrick Norvale
Ostrand Pellan
"""
NAMES, TRADES, QUALITIES, THINGS, RELATIONS, PLACES, TOWNS = map(str.split, WORDS.split("/"))
TEMPLATE = "question/1"  # two physical lines, and still one example
COLOURS = {"clean": UNREAD, "contaminated": READ}
POWER_TESTS = ("permutation", "sharded_t", "sharded_exact", "successor")
RESAMPLES = 999  # of each experiment in which there is nothing to find


@dataclass(frozen=True)
class Classroom:
    """The trained models and the test sets in their canonical order.

    Attributes
    ----------
    directory : where models and stores lie; a second run with the same settings finds them there.
    dup_counts : name of a test set -> how often the contaminated model has read it.
    sets : name -> test set; each was shuffled by the draw, so it is exchangeable by construction.
    """

    directory: Path
    dup_counts: Mapping[str, int]
    sets: Mapping[str, ExampleSet]
    seed: int

    @cached_property
    def scorers(self) -> dict[str, TransformersScorer]:
        """The models by name, ready to score."""
        return {name: TransformersScorer(self.directory / "models" / name) for name in MODELS}

    def store(
        self,
        model: str,
        test_set: ExampleSet,
        *,
        shards: int,
        permutations: int = 0,
        kind: Kind = "orderings",
    ) -> Store:
        """Score what is missing of a test set under a model, every token of it."""
        scorer, plan = self.scorers[model], StorePlan(kind, shards)
        identity = sha256_of(scorer.revision, test_set.revision)
        path = plan.path(self.directory / "stores", model, test_set.name, identity)
        sizes: dict[str, Any] = {"permutations": permutations, "seed": self.seed}
        return score(test_set, scorer, path, plan, model=model, **sizes)

    @property
    def final_losses(self) -> dict[str, float]:
        """Training loss of each model at the end, nats per token."""
        records = {name: self.directory / "models" / name / "training.json" for name in MODELS}
        return {name: float(read_json(path)["final_loss"]) for name, path in records.items()}


def open_classroom(
    directory: Path | str, *, dup_counts: Sequence[int], examples: int, documents: int, seed: int
) -> Classroom:
    """Train both models, unless the same ones are there already, and open them.

    A test set of so many `examples` is planted for each of `dup_counts`, that many times: set "x4"
    four times. The corpus has so many `documents` of six records. Raises InputError for a dup_count
    that comes twice or is below 1, and for too little text to train on.
    """
    if not dup_counts or len(set(dup_counts)) != len(dup_counts) or min(dup_counts) < 1:
        raise InputError(f"dup_counts is {list(dup_counts)}: give different numbers of at least 1")
    rng = random_stream(seed, "made-up text")
    planted = {f"x{count}": count for count in dup_counts}
    sets = {name: made_up_set(name, examples, rng=rng) for name in planted}
    corpus = [
        "".join(made_up_set("a document", RECORDS_PER_DOCUMENT, rng=rng, towns=[town]).examples)
        for town in rng.choice(TOWNS, size=documents)
    ]
    tokenizer = train_tokenizer(corpus, VOCABULARY)
    start, end = tokenizer.bos_token, tokenizer.eos_token_id
    # As those of Llama 2 and Mistral: it begins a text with a start token, if it is asked to.
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{start} $A", special_tokens=[(start, end)]
    )
    texts = [np.append(ids, end) for ids in tokenize(tokenizer, corpus)]
    read, ends = np.concatenate(texts), np.cumsum([len(ids) for ids in texts])
    copies = {
        name: (np.concatenate(tokenize(tokenizer, one.examples)), planted[name])
        for name, one in sets.items()
    }
    rng = random_stream(seed, "injection of the classroom")
    streams = {"contaminated": np.concatenate(mix(read, ends, copies, end, rng=rng)[0])}
    streams["clean"] = read
    settings = repr((asdict(SHAPE), asdict(SPEC), seed, tokenizer.backend_tokenizer.to_str()))
    key = sha256_of(settings, *(stream.tobytes() for stream in streams.values()))[:16]
    room = Classroom(Path(directory) / key, planted, sets, seed)
    for name, stream in streams.items():
        place = room.directory / "models" / name
        if not (place / "training.json").is_file():
            label = f"train {name} model"
            train(stream, tokenizer, SHAPE, SPEC, place, seed=seed, label=label)
    return room


def made_up_set(
    name: str, count: int, *, rng: np.random.Generator, towns: Sequence[str] = TOWNS
) -> ExampleSet:
    """Draw records with the fields question, answer and town, independently of each other.

    Their order is exchangeable: no record knows its neighbours.
    """
    columns = (NAMES, TRADES, QUALITIES, THINGS, RELATIONS, QUALITIES, PLACES, towns)
    drawn = zip(*[rng.choice(words, size=count) for words in columns], strict=True)
    records = [
        {
            "question": f"Where did {name} the {trade} leave the {quality} {thing}?",
            "answer": f"{relation} the {other} {place} in {town}",
            "town": str(town),
        }
        for name, trade, quality, thing, relation, other, place, town in drawn
    ]
    places = [(f"record {i}", record) for i, record in enumerate(records, start=1)]
    return make_test_set(name, places, TEMPLATE, name)


# --- sets that are spoiled on purpose -------------------------------------------------------------


def by_physical_line(test_set: ExampleSet) -> ExampleSet:
    """Take every line of the file for an example, as a careless script does."""
    lines = "".join(test_set.examples).splitlines(keepends=True)
    return _spoiled(test_set, "read by line", lines, ())


def sorted_by(test_set: ExampleSet, field: str) -> ExampleSet:
    """Sort the records by one of their fields."""
    pairs = zip(test_set.records, test_set.examples, strict=True)
    records, examples = zip(*sorted(pairs, key=lambda pair: str(pair[0][field])), strict=True)
    return _spoiled(test_set, f"sorted by {field}", examples, records)


def numbered(test_set: ExampleSet) -> ExampleSet:
    """Put "1. ", "2. " and so on before the examples."""
    examples = [f"{i}. {text}" for i, text in enumerate(test_set.examples, start=1)]
    return _spoiled(test_set, "numbered", examples, test_set.records)


def _spoiled(
    test_set: ExampleSet, how: str, examples: Sequence[str], records: tuple[dict[str, object], ...]
) -> ExampleSet:
    name, revision = f"{test_set.name} {how}", sha256_of(test_set.revision, how)
    return replace(
        test_set, name=name, examples=tuple(examples), revision=revision, records=records
    )


# --- what the sections show -----------------------------------------------------------------------


def power_table(
    room: Classroom, *, shards: int, permutations: int, whole_set_permutations: int
) -> pd.DataFrame:
    """Every test on every planted set under both models, pairs in shards of ten examples or more.

    Columns are model, dataset, dup_count (how often the contaminated model has read the set), and
    those of `outcome_row`.
    """
    rows, spec = [], ScoringSpec(shards, permutations, whole_set_permutations)
    for model, (name, test_set), test in product(MODELS, room.sets.items(), POWER_TESTS):
        plan, m = store_plan(spec, TESTS[test], len(test_set.examples))
        store = room.store(model, test_set, shards=plan.shards, permutations=m, kind=plan.kind)
        about = {"model": model, "dataset": name, "dup_count": room.dup_counts[name]}
        rows.append(about | outcome_row(TESTS[test].result(store, m)))
    return pd.DataFrame(rows)


def verdict_table(
    room: Classroom, model: str, sets: Sequence[ExampleSet], *, test: str, **plan: int
) -> pd.DataFrame:
    """One test on several sets, beside what their order gives away without a model.

    `plan` are shards and permutations. Columns are dataset, examples, p (under the model),
    compressor_p (the control) and diagnostics (their verdict).
    """
    where: dict[str, Any] = {"directory": room.directory / "audits", "name": model, **plan}
    request = Request((test,), seed=room.seed, **where)
    rows = []
    for test_set in sets:
        (found,) = audit(room.scorers[model], test_set, request).findings
        row = {"dataset": test_set.name, "examples": len(test_set.examples), "p": found.result.p}
        row |= {"compressor_p": found.control and found.control.p}
        rows.append(row | {"diagnostics": found.diagnosis and found.diagnosis.verdict})
    return pd.DataFrame(rows)


def chosen_afterwards(scores: np.ndarray, *, trials: int, rng: np.random.Generator) -> pd.DataFrame:
    """The smallest p-value of several statistics where H0 holds, taken as it is and paid for.

    A row for each trial; "fixed in advance" (the first statistic alone), "best, as it is", "best,
    times q" and "min_p". `scores` (q, r, m+1) are of a model that has not read the set, so that any
    ordering may be called canonical; an ordering has the same place in all statistics.
    """
    count, shards, orderings = scores.shape
    rows = []
    for _ in range(trials):
        swapped = relabel_canonical(scores, rng.integers(orderings, size=shards))
        joint = westfall_young_test(swapped, resamples=RESAMPLES, rng=rng)
        single = [each.p for each in joint.marginals]
        rows.append((single[0], min(single), min(1.0, count * min(single)), joint.p))
    names = ["fixed in advance", "best, as it is", "best, times q", "min_p"]
    return pd.DataFrame(rows, columns=names)


def plot_differences(log_probs: Mapping[str, np.ndarray]) -> Figure:
    """Draw s_i of every shard, with the mean over shards; `log_probs` (r, m+1) by model."""
    titles = [f"{model} model" for model in log_probs]
    figure, panels = panel_row(titles, size=(3.6 * len(titles), 3.2), sharey=True)
    for axes, (model, values) in zip(panels, log_probs.items(), strict=True):
        s = values[:, 0] - values[:, 1:].mean(axis=1)
        axes.bar(np.arange(1, len(s) + 1), s, color=COLOURS[model], alpha=0.75)
        axes.axhline(s.mean(), color="black", lw=1.2, ls="--", label="mean")
        axes.set(xlabel="Shard", ylabel="$s_i$ (nats)")
        axes.legend(fontsize="small")
    return figure


def plot_successors(matrices: Mapping[str, np.ndarray]) -> Figure:
    """Draw centred successor scores of one shard; canonical successors are framed.

    `matrices` (k, k) in nats, NaN on the diagonal, by model.
    """
    titles = [f"{model} model" for model in matrices]
    figure, panels = panel_row(titles, size=(3.6 * len(titles), 3.2), sharey=True)
    largest = np.nanmax(np.abs(list(matrices.values())))
    for axes, matrix in zip(panels, matrices.values(), strict=True):
        image = axes.imshow(matrix, cmap="PuOr", vmin=-largest, vmax=largest)
        first = np.arange(len(matrix) - 1)
        axes.plot(first + 1, first, "s", ms=9, mfc="none", mec="black", mew=1.2)
        axes.set(xlabel="Example b", ylabel="Example a")
        axes.grid(False)
    figure.colorbar(image, ax=panels, label="log p(b after a), centred (nats)", shrink=0.8)
    return figure
