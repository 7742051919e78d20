"""What the sections of the seminar show, scored live: gains, power, and common mistakes."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from contamination.audit import Request, audit
from contamination.audit.battery import TESTS, boundary
from contamination.experiments.seminar.classroom import MODELS, Classroom, no_progress
from contamination.scoring.store import Store
from contamination.statistics import (
    centred_tokens,
)
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.orderings import ordering, shard_bounds
from contamination.testsets.tokens import tokenize

POWER_TESTS = ("permutation", "sharded_t", "sharded_exact", "successor")


def gain_by_position(store: Store, permutations: int) -> np.ndarray:
    """How much likelier tokens are in the canonical order than on average, by place in the example.

    Returns
    -------
    ndarray, shape (tokens,)
        Nats, mean over all examples that do not lead their shard; entry 0 is the first token.
        Places that fewer than half of these examples reach are left out.
    """
    longest = int(store.header.stored.max())
    sums, counts = np.zeros(longest), np.zeros(longest)
    for shard in range(store.header.shards):
        tokens = store.shard_tokens(shard, permutations)
        follows = ~tokens.leading[0]
        gains = centred_tokens(tokens.logprobs, tokens.leading)[0]
        np.add.at(sums, tokens.position[follows], gains[follows])
        np.add.at(counts, tokens.position[follows], 1)
    reached = counts >= counts[0] / 2  # a prefix: every example has a first token
    return np.asarray(sums[reached] / counts[reached])


def power_table(
    classroom: Classroom,
    *,
    shards: int,
    successor_shards: int,
    permutations: int,
    whole_set_permutations: int,
) -> pd.DataFrame:
    """Every test on every planted set under both models.

    Returns
    -------
    DataFrame
        model, dataset, dup_count (how often the contaminated model has read the set), test, p,
        log10_p.
    """
    rows = []
    for model in MODELS:
        for name, test_set in classroom.sets.items():
            for test in POWER_TESTS:
                whole, pairs = test == "permutation", test == "successor"
                m = whole_set_permutations if whole else permutations
                store = classroom.store(
                    model,
                    test_set,
                    shards=1 if whole else successor_shards if pairs else shards,
                    permutations=m,
                    kind=TESTS[test].kind,
                )
                result = TESTS[test].result(store, m)
                rows.append(
                    {
                        "model": model,
                        "dataset": name,
                        "dup_count": classroom.copies[name],
                        "test": test,
                        "p": result.p,
                        "log10_p": result.log10_p,
                    }
                )
    return pd.DataFrame(rows)


def verdict_table(
    classroom: Classroom,
    model: str,
    sets: Sequence[ExampleSet],
    *,
    test: str,
    shards: int,
    permutations: int,
) -> pd.DataFrame:
    """One test on several sets, beside what their order gives away without a model.

    Returns
    -------
    DataFrame
        dataset, examples, p (under the model), compressor_p (the control) and diagnostics (their
        verdict).
    """
    request = Request(
        (test,),
        shards=shards,
        permutations=permutations,
        seed=classroom.seed,
        directory=classroom.directory / "audits",
        name=model,
    )
    rows = []
    for test_set in sets:
        with no_progress():
            found = audit(classroom.scorers[model], test_set, request)
        rows.append(
            {
                "dataset": test_set.name,
                "examples": len(test_set.examples),
                "p": found.results[0].p,
                "compressor_p": found.control[0].p,
                "diagnostics": found.diagnosis.verdict,
            }
        )
    return pd.DataFrame(rows)


def with_bos_between(
    classroom: Classroom, model: str, test_set: ExampleSet, *, shards: int, permutations: int
) -> np.ndarray:
    """L[i, j] (nats) as a mistaken script scores it: a start token before *every* example.

    The same orderings as `Classroom.log_probs`; the extra start tokens are not counted.
    """
    scorer = classroom.scorers[model]
    ids = tokenize(scorer.tokenizer, test_set.examples)
    started = [np.append(example, scorer.start) for example in ids]
    sequences = [
        np.concatenate([started[example] for example in order])
        for shard, bounds in enumerate(shard_bounds(len(ids), shards))
        for order in (
            ordering(bounds, j, seed=classroom.seed, dataset=test_set.revision, shard=shard)
            for j in range(permutations + 1)
        )
    ]
    scores = np.zeros(len(sequences))
    for index, values in scorer.token_logprobs(sequences):
        own = sequences[index] != scorer.start
        scores[index] = values[own].sum(dtype=np.float64)
    return scores.reshape(shards, permutations + 1)


def each_example_alone(
    classroom: Classroom, model: str, test_set: ExampleSet, *, shards: int, permutations: int
) -> np.ndarray:
    """L[i, j] (nats) of a script that scores each example by itself and adds up.

    Every ordering of a shard then has the same score, whatever the model remembers.
    """
    scorer = classroom.scorers[model]
    ids = tokenize(scorer.tokenizer, test_set.examples)
    alone = np.zeros(len(ids))
    for index, values in scorer.token_logprobs(ids):
        alone[index] = values.sum(dtype=np.float64)
    sums = [alone[start:stop].sum() for start, stop in shard_bounds(len(ids), shards)]
    return np.repeat(np.array(sums)[:, None], permutations + 1, axis=1)


def boundary_statistics(store: Store, permutations: int, counted: Sequence[int]) -> np.ndarray:
    """Scores of the same orderings by each number of first tokens that count, (q, r, m+1)."""
    shards = [store.shard_tokens(shard, permutations) for shard in range(store.header.shards)]
    return np.array([[boundary(b)(tokens) for tokens in shards] for b in counted])
