"""Score a test set under a model into its store, doing only what is missing.

Oren, Algorithm 1, up to the statistics: for every shard the log-probability of the canonical order
and of m shuffled ones.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tqdm import tqdm

from contamination.orderings import ordering, shard_bounds
from contamination.scorer import Scorer
from contamination.store import Header, Store, Unit
from contamination.test_set import TestSet
from contamination.tokenizer import tokenize

PART_TOKENS = 1 << 18  # work that an interruption may cost, and the size of a Parquet part


def score(
    test_set: TestSet,
    scorer: Scorer,
    directory: Path,
    *,
    model: str,
    shards: int,
    permutations: int,
    seed: int,
    replace: bool = False,
) -> Store:
    """Make sure that `directory` holds orderings 0..permutations of every shard; return the store.

    `model` is the model's name for people. The whole-set permutation test is `shards=1`. With
    `replace`, a store of something else in `directory` makes way instead of being refused.

    Raises
    ------
    InputError
        Fewer than two examples per shard, or `directory` is the store of something else.
    """
    bounds = shard_bounds(len(test_set.examples), shards)
    ids = tokenize(scorer.tokenizer, test_set.examples)
    header = Header(
        model=model,
        model_revision=scorer.revision,
        dataset=test_set.name,
        dataset_revision=test_set.revision,
        template=test_set.template,
        seed=seed,
        shards=shards,
        example_tokens=tuple(len(i) for i in ids),
    )
    store = Store(directory, header, replace=replace)
    done = store.done()
    missing = [
        (shard, index)
        for shard in range(shards)
        for index in range(permutations + 1)
        if (shard, index) not in done
    ]
    if not missing:
        return store
    shard_tokens = [sum(header.example_tokens[slice(*b)]) for b in bounds]
    with tqdm(
        desc=f"{model} on {test_set.name}",
        total=sum(shard_tokens[shard] for shard, _ in missing),
        unit="tok",
        unit_scale=True,
        mininterval=1.0,
        leave=False,
    ) as bar:
        for part in _parts(missing, shard_tokens):
            orders = [
                ordering(bounds[shard], i, seed=seed, dataset=test_set.revision, shard=shard)
                for shard, i in part
            ]
            sequences = [np.concatenate([ids[e] for e in order]) for order in orders]
            scores: dict[int, np.ndarray] = {}
            for index, values in scorer.token_logprobs(sequences):
                scores[index] = values
                bar.update(len(values))
            store.append((unit, orders[i], scores[i]) for i, unit in enumerate(part))
    return store


def _parts(missing: list[Unit], shard_tokens: list[int]) -> Iterator[list[Unit]]:
    """Group consecutive units into parts of at least PART_TOKENS tokens, but for the last."""
    part: list[Unit] = []
    tokens = 0
    for unit in missing:
        part.append(unit)
        tokens += shard_tokens[unit[0]]
        if tokens >= PART_TOKENS:
            yield part
            part, tokens = [], 0
    if part:
        yield part
