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

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from contamination.audit import Request, run_audit
from contamination.audit.registry import TESTS
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
        """Score what is missing of a test set under a model, every token of it.

        Parameters
        ----------
        model : contaminated or clean.
        test_set : the set.
        shards : of the set.
        permutations : orderings of a shard besides the canonical one.
        kind : orderings, or successors: pairs of examples.
        """
        scorer = self.scorers[model]
        plan = StorePlan(kind, shards)
        identity = sha256_of(scorer.revision, test_set.revision)
        path = plan.path(self.directory / "stores", model, test_set.name, identity)
        return score(
            test_set,
            scorer,
            path,
            plan,
            model=model,
            permutations=permutations,
            seed=self.seed,
        )

    @property
    def final_losses(self) -> dict[str, float]:
        """Training loss of each model at the end, nats per token."""
        losses = {}
        for name in MODELS:
            training = read_json(self.directory / "models" / name / "training.json")
            losses[name] = float(training["final_loss"])
        return losses


def open_classroom(
    directory: Path | str, *, dup_counts: Sequence[int], examples: int, documents: int, seed: int
) -> Classroom:
    """Train both models, unless the same ones are there already, and open them.

    Parameters
    ----------
    directory : of models and stores.
    dup_counts : how often test sets are planted; set "x4" four times.
    examples : of a test set.
    documents : of the corpus, of six records each.
    seed : draws the text and the places of the copies.

    Raises
    ------
    InputError
        For a dup_count that comes twice or is below 1, and for too little text to train on.
    """
    if not dup_counts or len(set(dup_counts)) != len(dup_counts) or min(dup_counts) < 1:
        raise InputError(f"dup_counts is {list(dup_counts)}: give different numbers of at least 1")
    rng = random_stream(seed, "made-up text")
    planted = {f"x{count}": count for count in dup_counts}
    sets = {name: made_up_set(name, examples, rng=rng) for name in planted}
    corpus = []
    for town in rng.choice(TOWNS, size=documents):
        document = made_up_set("a document", RECORDS_PER_DOCUMENT, rng=rng, towns=[town])
        corpus.append("".join(document.examples))
    tokenizer = _train_tokenizer(corpus)
    end = tokenizer.eos_token_id
    texts = [np.append(ids, end) for ids in tokenize(tokenizer, corpus)]
    clean = np.concatenate(texts)
    ends = np.cumsum([len(ids) for ids in texts])
    copies = {}
    for name, test_set in sets.items():
        ids = np.concatenate(tokenize(tokenizer, test_set.examples))
        copies[name] = (ids, planted[name])
    rng = random_stream(seed, "injection of the classroom")
    pieces, _ = mix(clean, ends, copies, end, rng=rng)
    streams = {"contaminated": np.concatenate(pieces), "clean": clean}
    settings = repr((asdict(SHAPE), asdict(SPEC), seed, tokenizer.backend_tokenizer.to_str()))
    contents = [stream.tobytes() for stream in streams.values()]
    key = sha256_of(settings, *contents)[:16]
    room = Classroom(Path(directory) / key, planted, sets, seed)
    for name, stream in streams.items():
        place = room.directory / "models" / name
        if not (place / "training.json").is_file():
            label = f"train {name} model"
            train(stream, tokenizer, SHAPE, SPEC, place, seed=seed, label=label)
    return room


def _train_tokenizer(corpus: Sequence[str]) -> PreTrainedTokenizerFast:
    """Train a tokenizer that begins a text with a start token, if it is asked to.

    So do those of Llama 2 and Mistral.
    """
    tokenizer = train_tokenizer(corpus, VOCABULARY)
    start = tokenizer.bos_token
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{start} $A", special_tokens=[(start, tokenizer.eos_token_id)]
    )
    return tokenizer


def made_up_set(
    name: str, count: int, *, rng: np.random.Generator, towns: Sequence[str] = TOWNS
) -> ExampleSet:
    """Draw records with the fields question, answer and town, independently of each other.

    Their order is exchangeable: no record knows its neighbours.

    Parameters
    ----------
    name : of the set.
    count : of its records.
    rng : draws the words.
    towns : of which one is drawn for each record.
    """
    names = rng.choice(NAMES, size=count)
    trades = rng.choice(TRADES, size=count)
    qualities = rng.choice(QUALITIES, size=count)
    things = rng.choice(THINGS, size=count)
    relations = rng.choice(RELATIONS, size=count)
    place_qualities = rng.choice(QUALITIES, size=count)
    places = rng.choice(PLACES, size=count)
    drawn_towns = rng.choice(towns, size=count)
    numbered = []
    for i in range(count):
        thing = f"the {qualities[i]} {things[i]}"
        place = f"the {place_qualities[i]} {places[i]} in {drawn_towns[i]}"
        record = {
            "question": f"Where did {names[i]} the {trades[i]} leave {thing}?",
            "answer": f"{relations[i]} {place}",
            "town": str(drawn_towns[i]),
        }
        numbered.append((f"record {i + 1}", record))
    return make_test_set(name, numbered, TEMPLATE, name)


# --- sets that are spoiled on purpose -------------------------------------------------------------


def by_physical_line(test_set: ExampleSet) -> ExampleSet:
    """Take every line of the file for an example, as a careless script does."""
    lines = "".join(test_set.examples).splitlines(keepends=True)
    return _spoiled(test_set, "read by line", lines, ())


def sorted_by(test_set: ExampleSet, field: str) -> ExampleSet:
    """Sort the records by one of their fields."""

    def value(index: int) -> str:
        return str(test_set.records[index][field])

    order = sorted(range(len(test_set.records)), key=value)
    examples = [test_set.examples[i] for i in order]
    records = tuple(test_set.records[i] for i in order)
    return _spoiled(test_set, f"sorted by {field}", examples, records)


def numbered(test_set: ExampleSet) -> ExampleSet:
    """Put "1. ", "2. " and so on before the examples."""
    examples = [f"{i}. {text}" for i, text in enumerate(test_set.examples, start=1)]
    return _spoiled(test_set, "numbered", examples, test_set.records)


def _spoiled(
    test_set: ExampleSet, how: str, examples: Sequence[str], records: tuple[dict[str, object], ...]
) -> ExampleSet:
    """Return the set with other examples, under a name and a revision of its own."""
    return replace(
        test_set,
        name=f"{test_set.name} {how}",
        examples=tuple(examples),
        revision=sha256_of(test_set.revision, how),
        records=records,
    )


# --- tables and figures of the sections -----------------------------------------------------------


def power_table(
    room: Classroom, *, shards: int, permutations: int, whole_set_permutations: int
) -> pd.DataFrame:
    """Run every test on every planted set under both models.

    Columns are model, dataset, dup_count (how often the contaminated model has read the set), and
    those of `outcome_row`.

    Parameters
    ----------
    room : models and sets.
    shards : of orderings; pairs come in shards of ten examples or more.
    permutations : of a shard.
    whole_set_permutations : of the whole set.
    """
    spec = ScoringSpec(shards, permutations, whole_set_permutations)
    rows = []
    for model, (name, test_set), test_name in product(MODELS, room.sets.items(), POWER_TESTS):
        test = TESTS[test_name]
        plan, m = store_plan(spec, test, len(test_set.examples))
        store = room.store(model, test_set, shards=plan.shards, permutations=m, kind=plan.kind)
        row = {"model": model, "dataset": name, "dup_count": room.dup_counts[name]}
        rows.append(row | outcome_row(test.result(store, m)))
    return pd.DataFrame(rows)


def verdict_table(
    room: Classroom,
    model: str,
    sets: Sequence[ExampleSet],
    *,
    test: str,
    shards: int,
    permutations: int,
) -> pd.DataFrame:
    """Run a test on several sets, with the evidence of their order that needs no model.

    Columns are dataset, examples, p (under the model), compressor_p (the control) and diagnostics
    (their verdict).

    Parameters
    ----------
    room : models and sets.
    model : contaminated or clean.
    sets : that are tested.
    test : name of the test.
    shards, permutations : of the store that it reads.
    """
    request = Request(
        (test,),
        seed=room.seed,
        directory=room.directory / "audits",
        name=model,
        shards=shards,
        permutations=permutations,
    )
    rows = []
    for test_set in sets:
        (finding,) = run_audit(room.scorers[model], test_set, request).findings
        rows.append(
            {
                "dataset": test_set.name,
                "examples": len(test_set.examples),
                "p": finding.result.p,
                "compressor_p": finding.zlib and finding.zlib.p,
                "diagnostics": finding.diagnosis and finding.diagnosis.verdict,
            }
        )
    return pd.DataFrame(rows)


def chosen_afterwards(scores: np.ndarray, *, trials: int, rng: np.random.Generator) -> pd.DataFrame:
    """Simulate the smallest p-value of several statistics where H0 holds, raw and corrected.

    A row for each trial; "fixed in advance" (the first statistic alone), "best, as it is", "best,
    times q" and "min_p".

    Parameters
    ----------
    scores : (q, r, m+1), of a model that has not read the set, so that any ordering may be called
        canonical; an ordering has the same place in all statistics.
    trials : relabellings.
    rng : draws them.
    """
    count, shards, orderings = scores.shape
    rows = []
    for _ in range(trials):
        relabelled = relabel_canonical(scores, rng.integers(orderings, size=shards))
        joint = westfall_young_test(relabelled, resamples=RESAMPLES, rng=rng)
        p_values = [marginal.p for marginal in joint.marginals]
        smallest = min(p_values)
        rows.append((p_values[0], smallest, min(1.0, count * smallest), joint.p))
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
