"""The tables of the seminar: every test on every set, and tests chosen afterwards."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from contamination.audit import Request, run_audit
from contamination.audit.registry import TESTS
from contamination.statistics import relabel_canonical, westfall_young_test
from contamination.statistics.results import outcome_row
from contamination.testsets.example_set import ExampleSet
from reproduction.notebooks.seminar.classroom import Classroom
from reproduction.run.experiment import MODELS, profile_plan
from reproduction.run.profile import ScoringSpec

POWER_TESTS = ("permutation", "sharded_t", "sharded_exact", "successor")
RESAMPLES = 999  # of each experiment in which there is nothing to find


def power_table(
    room: Classroom, *, shards: int, permutations: int, whole_set_permutations: int
) -> pd.DataFrame:
    """Run every test on every planted set under both models.

    Columns are model, dataset, dup_count (how often the contaminated model has read the
    set), and those of `outcome_row`.

    Parameters
    ----------
    room
        Models and sets.
    shards
        Number of shards of orderings; pairs come in shards of ten examples or more.
    permutations
        Number of permutations of a shard.
    whole_set_permutations
        Number of permutations of the whole set.
    """
    spec = ScoringSpec(shards, permutations, whole_set_permutations)
    rows = []
    for model, (name, test_set), test_name in product(
        MODELS,
        room.sets.items(),
        POWER_TESTS,
    ):
        test = TESTS[test_name]
        plan, m = profile_plan(spec, test, len(test_set.examples))
        store = room.store(
            model,
            test_set,
            shards=plan.shards,
            permutations=m,
            kind=plan.kind,
        )
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

    Columns are dataset, examples, p (under the model), zlib_p (the zlib baseline) and
    diagnostics (their verdict).

    Parameters
    ----------
    room
        Models and sets.
    model
        Contaminated or clean.
    sets
        The sets to test.
    test
        Name of the test.
    shards, permutations
        Shards and permutations of the store that the test reads.
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
                "zlib_p": finding.zlib and finding.zlib.p,
                "diagnostics": finding.diagnosis and finding.diagnosis.verdict,
            }
        )
    return pd.DataFrame(rows)


def chosen_afterwards(
    scores: np.ndarray,
    *,
    trials: int,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Simulate the smallest of several p-values where H0 holds, raw and corrected.

    A row for each trial; "fixed in advance" (the first statistic alone), "best, as it
    is", "best, times q" and "min_p".

    Parameters
    ----------
    scores
        (q, r, m+1), of a model that has not read the set, so that any ordering may be
        called canonical; an ordering has the same place in all statistics.
    trials
        Number of relabellings.
    rng
        Draws the relabellings.
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
