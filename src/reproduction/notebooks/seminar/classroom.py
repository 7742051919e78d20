"""Two tiny models, trained in class: one has read the test sets, one has not.

The experiment of Oren (section 4.1) in a minute: a made-up corpus, test sets planted in
it whole and in their order, a known number of times, and a second model that reads the
corpus alone. Records of one document share their town, as paragraphs of real text share
a topic; the records of a test set do not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from contamination.errors import InputError
from contamination.files import read_json, sha256_of
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import StorePlan
from contamination.scoring.score import score
from contamination.scoring.store import Store
from contamination.scoring.store_format import Kind
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.tokens import tokenize
from reproduction.notebooks.seminar.made_up_sets import TOWNS, made_up_set
from reproduction.run.experiment import MODELS
from reproduction.run.injection import mix
from reproduction.run.profile import Architecture, TrainingSpec
from reproduction.run.tokenizer import train_tokenizer
from reproduction.run.training import RECIPE, train

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


@dataclass(frozen=True)
class Classroom:
    """The trained models and the test sets in their canonical order.

    Attributes
    ----------
    directory
        Folder of models and stores; a second run with the same settings finds them
        there.
    dup_counts
        Name of a test set -> how often the contaminated model has read it.
    sets
        Name -> test set; each was shuffled by the draw, so it is exchangeable by
        construction.
    """

    directory: Path
    dup_counts: Mapping[str, int]
    sets: Mapping[str, ExampleSet]
    seed: int

    @cached_property
    def scorers(self) -> dict[str, TransformersScorer]:
        """Return a scorer of each model, by name."""
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
        """Score every token of a test set under a model, unless it is stored already.

        Parameters
        ----------
        model
            Contaminated or clean.
        test_set
            The set.
        shards
            Number of shards of the set.
        permutations
            Orderings of a shard besides the canonical one.
        kind
            Orderings, or successors: pairs of examples.
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
        """Return the last training loss of each model (nats per token)."""
        losses = {}
        for name in MODELS:
            training = read_json(self.directory / "models" / name / "training.json")
            losses[name] = float(training["final_loss"])
        return losses


def open_classroom(
    directory: Path | str,
    *,
    dup_counts: Sequence[int],
    examples: int,
    documents: int,
    seed: int,
) -> Classroom:
    """Train both models, unless the same ones are there already, and open them.

    Parameters
    ----------
    directory
        Folder of models and stores.
    dup_counts
        Numbers of times that test sets are planted; set "x4" is planted four times.
    examples
        Number of examples of a test set.
    documents
        Number of documents of the corpus, of six records each.
    seed
        Draws the text and the places of the copies.

    Raises
    ------
    InputError
        For a dup_count that comes twice or is below 1, and for too little text to train
        on.
    """
    if not dup_counts or len(set(dup_counts)) != len(dup_counts) or min(dup_counts) < 1:
        raise InputError(
            f"dup_counts is {list(dup_counts)}: give different numbers of at least 1",
        )
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
    settings = repr(
        (RECIPE, asdict(SHAPE), asdict(SPEC), seed, tokenizer.backend_tokenizer.to_str()),
    )
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
        single=f"{start} $A",
        special_tokens=[(start, tokenizer.eos_token_id)],
    )
    return tokenizer
