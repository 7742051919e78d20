"""What the sections of the seminar show, scored live: power, and common mistakes.

Also experiments in which there is nothing to find: under H0 any ordering may be called canonical.
So the scores of a model that has not read a set are a supply of true null experiments: draw the
canonical one at random, again and again (Oren, section 3.1, turned round).
"""

import io
import itertools
from collections.abc import Sequence
from contextlib import redirect_stderr

import numpy as np
import pandas as pd

from contamination.audit import Request, audit
from contamination.audit.battery import TESTS, boundary
from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import plan_store
from contamination.scoring.store import Store
from contamination.statistics import (
    called_canonical,
    null_scores,
    permutation_test,
    sharded_exact_monte_carlo,
    sharded_t_test,
    westfall_young_test,
)
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.orderings import ordering, shard_bounds
from contamination.testsets.tokens import tokenize
from reproduction.notebooks.seminar.classroom import MODELS, Classroom

POWER_TESTS = ("permutation", "sharded_t", "sharded_exact", "successor")
RESAMPLES = 999  # of each null experiment


def power_table(
    classroom: Classroom,
    *,
    shards: int,
    successor_shards: int,
    permutations: int,
    whole_set_permutations: int,
) -> pd.DataFrame:
    """Every test on every planted set under both models.

    Columns are model, dataset, dup_count (how often the contaminated model has read the set), test,
    p and log10_p.
    """
    rows = []
    for model, name, test in itertools.product(MODELS, classroom.sets, POWER_TESTS):
        needs, test_set = TESTS[test], classroom.sets[name]
        wanted = successor_shards if needs.kind == "successors" else shards
        m = whole_set_permutations if needs.shard_size is None else permutations
        count = plan_store(needs, len(test_set.examples), wanted).shards
        store = classroom.store(model, test_set, shards=count, permutations=m, kind=needs.kind)
        result = needs.result(store, m)
        rows.append((model, name, classroom.dup_counts[name], test, result.p, result.log10_p))
    return pd.DataFrame(rows, columns=["model", "dataset", "dup_count", "test", "p", "log10_p"])


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

    Columns are dataset, examples, p (under the model), compressor_p (the control) and diagnostics
    (their verdict).
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
        with redirect_stderr(io.StringIO()):  # progress bars would fill the page
            found = audit(classroom.scorers[model], test_set, request)
        row = (found.results[0].p, found.control[0].p, found.diagnosis[0].verdict)
        rows.append((test_set.name, len(test_set.examples), *row))
    names = ["dataset", "examples", "p", "compressor_p", "diagnostics"]
    return pd.DataFrame(rows, columns=names)


def with_bos_between(
    classroom: Classroom, model: str, test_set: ExampleSet, *, shards: int, permutations: int
) -> np.ndarray:
    """L[i, j] (nats) as a mistaken script scores it: a start token before *every* example.

    The same orderings as `Classroom.log_probs`; the extra start tokens are not counted.
    """
    scorer = classroom.scorers[model]
    ids = tokenize(scorer.tokenizer, test_set.examples)
    orders = [
        ordering(bounds, j, seed=classroom.seed, dataset=test_set.revision, shard=shard)
        for shard, bounds in enumerate(shard_bounds(len(ids), shards))
        for j in range(permutations + 1)
    ]
    started = [np.append(example, scorer.start) for example in ids]
    sums = _log_probs(scorer, [np.concatenate([started[i] for i in order]) for order in orders])
    return sums.reshape(shards, permutations + 1)


def each_example_alone(
    classroom: Classroom, model: str, test_set: ExampleSet, *, shards: int, permutations: int
) -> np.ndarray:
    """L[i, j] (nats) of a script that scores each example by itself and adds up.

    Every ordering of a shard then has the same score, whatever the model remembers.
    """
    scorer = classroom.scorers[model]
    alone = _log_probs(scorer, tokenize(scorer.tokenizer, test_set.examples))
    sums = [alone[start:stop].sum() for start, stop in shard_bounds(len(alone), shards)]
    return np.repeat(np.array(sums)[:, None], permutations + 1, axis=1)


def _log_probs(scorer: TransformersScorer, sequences: Sequence[np.ndarray]) -> np.ndarray:
    """Log-probability (nats) of each sequence, its start tokens not counted."""
    scores = np.zeros(len(sequences))
    for index, values in scorer.token_logprobs(sequences):
        scores[index] = values[sequences[index] != scorer.start].sum(dtype=np.float64)
    return scores


def boundary_statistics(store: Store, permutations: int, counted: Sequence[int]) -> np.ndarray:
    """Scores of the same orderings by each number of first tokens that count, (q, r, m+1)."""
    shards = [store.shard_tokens(shard, permutations) for shard in range(store.header.shards)]
    return np.array([[boundary(b)(tokens) for tokens in shards] for b in counted])


# --- where there is nothing to find ---------------------------------------------------------------


def null_permutation_p_values(
    pool: np.ndarray, *, permutations: int, trials: int, rng: np.random.Generator
) -> np.ndarray:
    """p-values of permutation tests under H0, (trials,): the canonical score is drawn like others.

    `pool` (r, m+1) holds the scores of shards; a trial takes one shard and so many of its scores.
    """
    rows = pool[rng.integers(len(pool), size=trials)]
    return np.array([permutation_test(rng.permutation(row)[: permutations + 1]).p for row in rows])


def null_p_values(
    pool: np.ndarray, *, shards: int, trials: int, rng: np.random.Generator
) -> pd.DataFrame:
    """p-values of the sharded tests on experiments in which H0 holds, a row for each trial.

    Columns are "sharded_t", "sharded_t, ddof=0" and "sharded_exact". `pool` (shards or more, m+1)
    holds the scores of shards under a model that has not read them; each trial draws its shards
    from there.
    """
    rows = []
    for _ in range(trials):
        scores = null_scores(pool, shards, rng=rng)
        exact = sharded_exact_monte_carlo(scores, resamples=RESAMPLES, rng=rng)
        rows.append((sharded_t_test(scores).p, sharded_t_test(scores, ddof=0).p, exact.p))
    return pd.DataFrame(rows, columns=["sharded_t", "sharded_t, ddof=0", "sharded_exact"])


def chosen_afterwards(scores: np.ndarray, *, trials: int, rng: np.random.Generator) -> pd.DataFrame:
    """The smallest p-value of several statistics where H0 holds, taken as it is and paid for.

    A row for each trial; "fixed in advance" (the first statistic alone), "best, as it is", "best,
    times q" and "min_p". `scores` (q, r, m+1) are of a model that has not read the set; an ordering
    has the same place in all statistics.
    """
    count, shards, orderings = scores.shape
    rows = []
    for _ in range(trials):
        swapped = called_canonical(scores, rng.integers(orderings, size=shards))
        joint = westfall_young_test(swapped, resamples=RESAMPLES, rng=rng)
        single = [each.p for each in joint.marginals]
        rows.append((single[0], min(single), min(1.0, count * min(single)), joint.p))
    names = ["fixed in advance", "best, as it is", "best, times q", "min_p"]
    return pd.DataFrame(rows, columns=names)
