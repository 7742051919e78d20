"""The input of the candidates: models of three widths on one text, and their scores of every set.

build/<profile>/                     corpus, and models and stores of the middle width
build/<profile>/width-<n>/           models and stores of another width
.../frontier/<set>.<what>.npz        context, triples, white_box
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from candidates import companions

from contamination.files import replacing
from contamination.scoring.plan import StorePlan
from contamination.scoring.store import Store
from contamination.testsets.orderings import ordering, shard_bounds
from contamination.testsets.tokens import tokenize
from reproduction.run.experiment import Experiment

ROOT = Path(__file__).parents[2]
MODEL = "contaminated"
PAIRS = 20  # records of a shard whose pairs are scored; shards of 10 are halves of them
SHARD = 10
TRIPLE = 5
FIRST = 64  # tokens of a successor
TRIPLE_FIRST = 32
PERMUTATIONS = 9  # of the white-box candidates

Arrays = Mapping[str, np.ndarray]


def opened(profile: str, width: int) -> Experiment:
    """Open the run of a profile with its model in one of its widths, on the same corpus."""
    path = ROOT / "profiles" / f"{profile}.yaml"
    build = ROOT / "build" / profile
    experiment = Experiment(path, build)
    asked = experiment.profile.require_pretraining()
    if width == asked.model.n_embd:
        return experiment
    shape = next(each for each in asked.sizes if each.n_embd == width)
    sized = Experiment(path, build / f"width-{width}")
    sized.corpus = experiment.corpus
    sized.profile = replace(experiment.profile, pretraining=replace(asked, model=shape, sizes=()))
    return sized


def pairs(experiment: Experiment, name: str, *, score: bool) -> Store:
    """Open the store of successors, b = 64 in shards of 20; `score` fills it first."""
    shards = experiment.spec(name).examples // PAIRS
    make = experiment.score if score else experiment.scored
    return make(MODEL, name, StorePlan("successors", shards, FIRST))


def kept(experiment: Experiment, name: str, what: str) -> Arrays | None:
    """Read what was made of a set, or None."""
    path = _path(experiment, name, what)
    return dict(np.load(path)) if path.is_file() else None


def make(experiment: Experiment, name: str, what: str) -> None:
    """Make what there is not of a set: one of `MAKERS`, or pairs."""
    if what == "plain":
        pairs(experiment, name, score=True)
    elif kept(experiment, name, what) is None:
        found = MAKERS[what](experiment, name)
        with replacing(_path(experiment, name, what)) as temporary, temporary.open("wb") as file:
            np.savez(file, **found)


def _path(experiment: Experiment, name: str, what: str) -> Path:
    return experiment.build / "frontier" / f"{name}.{what}.npz"


@cache
def _scorer(model: Path, precision: str = "auto"):
    from contamination.scoring.loading import ModelSource
    from contamination.scoring.local import TransformersScorer

    return TransformersScorer(ModelSource(str(model), precision=precision))


def _context(experiment: Experiment, name: str) -> Arrays:
    """S'[shard, a, b] (nats) of the first 64 tokens of x_b after two others and x_a; tokens."""
    from contamination.scoring.prefix import continuation_logprobs

    texts = experiment.test_set(name).examples
    scorer = _scorer(experiment.model(MODEL))
    ids = tokenize(scorer.tokenizer, texts)
    bounds = shard_bounds(len(ids), len(ids) // SHARD)
    groups, places = [], []
    for shard, (start, stop) in enumerate(bounds):
        for a in range(start, stop):
            before = [*companions(texts, start, stop, a), a]
            others = [b for b in range(start, stop) if b != a]
            groups.append(
                (np.concatenate([ids[i] for i in before]), [ids[b][:FIRST] for b in others])
            )
            places.append((shard, a - start, [b - start for b in others]))
    found = np.full((len(bounds), SHARD, SHARD), np.nan)
    for index, values in continuation_logprobs(scorer, groups):
        shard, a, others = places[index]
        found[shard, a, others] = [each.sum(dtype=np.float64) for each in values]
    return {"sums": found, "tokens": _read(groups, scorer.context)}


def _triples(experiment: Experiment, name: str) -> Arrays:
    """T[shard, a, b, c] (nats) of the first 32 tokens of x_c after x_a and x_b; tokens."""
    from contamination.scoring.prefix import continuation_logprobs

    scorer = _scorer(experiment.model(MODEL))
    ids = tokenize(scorer.tokenizer, experiment.test_set(name).examples)
    bounds = shard_bounds(len(ids), len(ids) // TRIPLE)
    groups, places = [], []
    for shard, (start, stop) in enumerate(bounds):
        for a in range(start, stop):
            for b in range(start, stop):
                if a != b:
                    others = [c for c in range(start, stop) if c not in (a, b)]
                    prefix = np.concatenate([ids[a], ids[b]])
                    groups.append((prefix, [ids[c][:TRIPLE_FIRST] for c in others]))
                    places.append((shard, a - start, b - start, [c - start for c in others]))
    found = np.full((len(bounds), TRIPLE, TRIPLE, TRIPLE), np.nan)
    for index, values in continuation_logprobs(scorer, groups):
        shard, a, b, others = places[index]
        found[shard, a, b, others] = [each.sum(dtype=np.float64) for each in values]
    return {"sums": found, "tokens": _read(groups, scorer.context)}


def _read(groups: list[tuple[np.ndarray, list[np.ndarray]]], context: int) -> np.ndarray:
    """Tokens that the model reads: each prefix once, as far as it fits, and every continuation."""
    widths = [(len(prefix), [len(ids) for ids in after]) for prefix, after in groups]
    return np.array(sum(min(size, context - max(after)) + sum(after) for size, after in widths))


def _white_box(experiment: Experiment, name: str) -> Arrays:
    """Scores [3, shard, ordering]: minus loss, minus log gradient norm, minus loss after a step."""
    from white_box import white_box_scores

    test_set = experiment.test_set(name)
    scorer = _scorer(experiment.model(MODEL), "float32")  # a step is lost in bfloat16's rounding
    ids = tokenize(scorer.tokenizer, test_set.examples)
    seed = experiment.profile.seed
    bounds = shard_bounds(len(ids), len(ids) // SHARD)
    scores = np.empty((3, len(bounds), PERMUTATIONS + 1))
    for shard, where in enumerate(bounds):
        for index in range(PERMUTATIONS + 1):
            order = ordering(where, index, seed=seed, dataset=test_set.revision, shard=shard)
            tokens = np.concatenate([ids[i] for i in order])
            scores[:, shard, index] = white_box_scores(
                scorer.model, tokens, scorer.start, scorer.context
            )
    return {"scores": scores, "tokens": np.array(sum(map(len, ids)) * (PERMUTATIONS + 1))}


MAKERS: dict[str, Callable[[Experiment, str], Arrays]] = {
    "context": _context,
    "triples": _triples,
    "white_box": _white_box,
}
