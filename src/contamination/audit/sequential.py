"""Stop as soon as the evidence suffices: shards are scored one after the other.

The anytime-valid test (`statistics.anytime`) may be looked at after every shard, and its guarantee
holds for any rule of stopping. What is not scored is not paid for; an audit that did not stop can
go on later, with the shards that are left.
"""

from dataclasses import dataclass

import numpy as np
from tqdm import tqdm

from contamination.audit.battery import TESTS, Request
from contamination.audit.diagnostics import Diagnosis
from contamination.audit.verdict import (
    choose_store,
    diagnose_order,
    fill_store,
    name_model,
    run_control,
)
from contamination.errors import InputError
from contamination.scoring.contract import Scorer
from contamination.scoring.processes import processes
from contamination.scoring.store import Store
from contamination.statistics import AnytimeResult, EProcess, TestResult, anytime_test
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.tokens import tokenize


@dataclass(frozen=True, eq=False)
class Stopped:
    """What an audit that stops early found.

    Attributes
    ----------
    result : `shards` is how many were looked at, `stopped_at` the one that sufficed, if any did.
    diagnosis, control : as in `contamination.audit.verdict.Audit`, of the whole set.
    """

    result: AnytimeResult
    diagnosis: Diagnosis
    control: TestResult


def audit_until(scorer: Scorer, test_set: ExampleSet, request: Request, *, alpha: float) -> Stopped:
    """Score shard after shard until the evidence reaches 1 / alpha, or all are scored.

    Raises InputError for several tests, for one that needs all shards at once, and for whatever
    planning and scoring refuse.
    """
    if len(request.tests) > 1:
        raise InputError("--stop follows the evidence of one test: give --test once")
    (test,) = request.tests
    if not TESTS[test].stops:
        known = [name for name, chosen in TESTS.items() if chosen.stops]
        raise InputError(f"test is {test!r}: stopping early needs one of {', '.join(known)}")
    lengths = [len(ids) for ids in tokenize(scorer.tokenizer, test_set.examples)]
    plan = choose_store(test, lengths, scorer.context, request)
    evidence, scores = EProcess(), list[np.ndarray]()

    def suffices(store: Store, shard: int) -> bool:
        nonlocal evidence
        scores.append(TESTS[test].shard_scores(store, shard, request.permutations))
        evidence = evidence.update(scores[-1])
        bar.update()
        return evidence.rejects(alpha)

    with tqdm(
        total=plan.shards,
        desc=f"{name_model(scorer, request)}: shards until p <= {alpha:g}",
        disable=not processes().is_main_process,
    ) as bar:
        fill_store(plan, scorer, test_set, request, enough=suffices)
    return Stopped(
        anytime_test(scores, alpha=alpha),
        diagnose_order(test_set, request),
        run_control(plan, test_set, request),
    )
