"""Two tiny models, trained while the class watches: one has read the test sets, the other has not.

The experiment of Oren (section 4.1) in a minute: a made-up corpus, test sets planted in it whole
and in their order, a known number of times, and a second model that reads the corpus alone.

Every record is drawn from short lists of words, so a small model speaks the language after seconds
of training, and nobody can know an answer without having read it. Records of one document share
their town, as paragraphs of real text share a topic; the records of a test set do not. Test sets
can be spoiled on purpose: segmented wrongly, or in an order that carries information. A model that
has read none of them may prefer their canonical order all the same, and then a small p-value says
nothing of contamination (Oren, section 4.3, leave such sets out).
"""

import io
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerFast

from contamination.errors import InputError
from contamination.files import read_json, sha256_of
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import StorePlan
from contamination.scoring.score import score
from contamination.scoring.store import Store
from contamination.scoring.store_format import Kind
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.tokens import tokenize
from reproduction.run.injection import mix
from reproduction.run.profile import Architecture, TrainingSpec
from reproduction.run.tokenizer import train_tokenizer
from reproduction.run.training import train

MODELS = ("contaminated", "clean")
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
NAMES = (
    *("Mara", "Jonas", "Ines", "Tariq", "Olga", "Pavel", "Wanda", "Felix", "Greta", "Hugo"),
    *("Amina", "Boris", "Carla", "Dario", "Edith", "Farid", "Lotte", "Milo", "Nadia", "Oskar"),
)
TRADES = (
    *("baker", "weaver", "sailor", "painter", "miller", "farmer", "teacher", "tailor"),
    *("mason", "potter", "porter", "singer", "doctor", "gardener", "printer", "smith"),
)
QUALITIES = (
    *("copper", "silver", "wooden", "broken", "yellow", "narrow", "heavy", "painted"),
    *("paper", "velvet", "rusty", "purple", "marble", "folded", "striped", "hollow"),
)
THINGS = (
    *("kettle", "lantern", "violin", "ladder", "basket", "mirror", "anchor", "whistle"),
    *("blanket", "hammer", "compass", "candle", "bucket", "feather", "trumpet", "ribbon"),
    *("saddle", "teapot", "button", "parcel"),
)
RELATIONS = ("under", "behind", "beside", "above", "inside", "near")
PLACES = (
    *("bridge", "chapel", "market", "tower", "harbour", "stable", "library", "fountain"),
    *("cellar", "orchard", "bakery", "station", "garden", "theatre", "quarry", "museum"),
)
TOWNS = (
    *("Ardel", "Brenna", "Cusk", "Dorran", "Elvane", "Fenwick", "Gallow", "Hestle"),
    *("Ivory", "Jarrow", "Kelmore", "Lunden", "Morrick", "Norvale", "Ostrand", "Pellan"),
)
TEMPLATE = "question/1"  # two physical lines, and still one example


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
        scorer = self.scorers[model]
        sizes: dict[str, Any] = {"permutations": permutations, "seed": self.seed}
        identity = sha256_of(scorer.revision, test_set.revision)
        folder = self.directory / "stores"
        plan = StorePlan(kind, shards)
        path = plan.path(folder, model, test_set.name, identity)
        with redirect_stderr(io.StringIO()):  # progress bars, over in a second, would fill the page
            return score(test_set, scorer, path, plan, model=model, **sizes)

    def log_probs(
        self, model: str, test_set: ExampleSet, *, shards: int, permutations: int
    ) -> np.ndarray:
        """L[i, j] (nats) of every shard in every ordering, (shards, permutations + 1)."""
        return self.store(model, test_set, shards=shards, permutations=permutations).log_probs(
            permutations
        )


def open_classroom(
    directory: Path | str,
    *,
    dup_counts: Sequence[int],
    examples: int,
    documents: int,
    seed: int,
) -> Classroom:
    """Train both models, unless the same ones are there already, and open them.

    Raises InputError for a dup_count that comes twice or is below 1, and for too little text to
    train on.

    Parameters
    ----------
    directory : for models and stores.
    dup_counts : one test set is planted for each, that many times: set "x4" four times.
    examples : records of each test set.
    documents : of the corpus, with six records each.
    seed : of text, order, places of the copies and weights.
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
    revisions = [test_set.revision for test_set in sets.values()]
    settings = repr(
        (sorted(planted.items()), revisions, asdict(SHAPE), asdict(SPEC), VOCABULARY, seed)
    )
    key = sha256_of(settings, *corpus)[:16]
    classroom = Classroom(Path(directory) / key, planted, sets, seed)
    if missing := [name for name in MODELS if not _record_of(classroom, name).is_file()]:
        tokenizer = train_tokenizer(corpus, VOCABULARY)
        for name in missing:
            _train(classroom, name, corpus, tokenizer)
    return classroom


def final_losses(classroom: Classroom) -> dict[str, float]:
    """Training loss of each model at the end, nats per token."""
    return {name: float(read_json(_record_of(classroom, name))["final_loss"]) for name in MODELS}


def _record_of(classroom: Classroom, name: str) -> Path:
    return classroom.directory / "models" / name / "training.json"


def _train(
    classroom: Classroom, name: str, corpus: Sequence[str], tokenizer: PreTrainedTokenizerFast
) -> None:
    end = tokenizer.eos_token_id
    texts = [np.append(ids, end) for ids in tokenize(tokenizer, corpus)]
    canaries = {
        planted: (np.concatenate(tokenize(tokenizer, classroom.sets[planted].examples)), count)
        for planted, count in classroom.dup_counts.items()
        if name == "contaminated"
    }
    ends = np.cumsum([len(ids) for ids in texts])
    rng = random_stream(classroom.seed, "injection of the classroom")
    pieces, _ = mix(np.concatenate(texts), ends, canaries, end, rng=rng)
    stream, directory = np.concatenate(pieces), _record_of(classroom, name).parent
    label = f"train {name} model"
    train(stream, tokenizer, SHAPE, SPEC, directory, seed=classroom.seed, label=label)


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
