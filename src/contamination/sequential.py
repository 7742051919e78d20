"""Stop as soon as the evidence suffices: shards are scored one after the other.

The anytime-valid test (`statistics.anytime`) may be looked at after every shard, and its guarantee
holds for any rule of stopping. What is not scored is not paid for; an audit that did not stop can
go on later, with the shards that are left.
"""

from pathlib import Path

import numpy as np
from tqdm import tqdm

from contamination.audit_plan import store_plan
from contamination.battery import TESTS
from contamination.engine.contract import Scorer
from contamination.errors import InputError
from contamination.scoring import score
from contamination.statistics import AnytimeResult, EProcess, anytime_test
from contamination.test_set import TestSet


def audit_until(
    scorer: Scorer,
    test_set: TestSet,
    *,
    test: str,
    alpha: float,
    shards: int | None = None,
    permutations: int = 25,
    seed: int = 0,
    directory: Path | str = "contamination-stores",
    name: str,
) -> AnytimeResult:
    """Score shard after shard until the evidence reaches 1 / alpha, or all are scored.

    Parameters are those of `contamination.audit.audit`, with one test.

    Returns
    -------
    AnytimeResult
        `shards` is how many were looked at, `stopped_at` the one that sufficed, if any did.

    Raises
    ------
    InputError
        An unknown test, one that needs all shards at once, or what scoring complains of.
    """
    chosen = TESTS.get(test)
    if chosen is None or chosen.shard_scores is None:
        known = [t for t, c in TESTS.items() if c.shard_scores is not None]
        raise InputError(f"test is {test!r}: stopping early needs one of {', '.join(known)}")
    plan = store_plan(chosen, len(test_set.examples), shards)
    evidence, scores = EProcess(), list[np.ndarray]()
    for shard in tqdm(range(plan.shards), desc=f"{name}: shards until p <= {alpha:g}"):
        store = score(
            test_set,
            scorer,
            plan.path(directory, name, test_set),
            model=name,
            shards=plan.shards,
            permutations=permutations,
            seed=seed,
            kind=plan.kind,
            first=plan.first,
            upto=shard + 1,
        )
        scores.append(chosen.shard_scores(store, shard, permutations))
        evidence = evidence.update(scores[-1])
        if evidence.rejects(alpha):
            break
    return anytime_test(scores, alpha=alpha)
