"""How much to score: from a pilot of a few shards to the tokens that a wanted power needs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from contamination.audit.battery import TESTS
from contamination.audit.request import Request
from contamination.audit.verdict import fill_store
from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.scoring.contract import Scorer
from contamination.scoring.plan import StorePlan
from contamination.statistics import PowerPlan, plan
from contamination.testsets.example_set import ExampleSet

PILOT_PERMUTATIONS = 10  # of whole orderings; successors sample theirs
PLANNED_PERMUTATIONS = (1, 2, 5, 10, 25, 50)


def plan_from_pilot(
    scorer: Scorer,
    test_set: ExampleSet,
    *,
    test: str,
    shards: int,
    alpha: float,
    power: float,
    seed: int,
    directory: Path | str,
    name: str,
) -> PowerPlan:
    """Score the first shards of a set, and predict what the test needs (`statistics.plan`).

    Raises InputError for an unknown test, one without shards or of several statistics, and for too
    few records for the pilot.

    Parameters
    ----------
    test : one of `contamination.audit.battery.TESTS` that works on shards.
    shards : of the pilot, of the size that the test takes by itself; their records are the first of
        the set.
    directory, name : of the stores and of the model, as in `Request`.
    """
    # What combines several statistics has no one spread to plan with.
    planned: Sequence[str] = [
        name for name, chosen in TESTS.items() if chosen.shard_size and not name.startswith("min_p")
    ]
    if test not in planned:
        raise InputError(f"test is {test!r}: a pilot needs one of {', '.join(planned)}")
    chosen = TESTS[test]
    records = shards * int(chosen.shard_size or 0)
    if records > len(test_set.examples):
        raise InputError(
            f"{test_set.name}: fewer than {records} records; give fewer shards (--pilot)"
        )
    first = replace(
        test_set,
        name=f"{test_set.name}-pilot",
        examples=test_set.examples[:records],
        revision=f"{test_set.revision} first {records}",
        records=test_set.records[:records],
    )
    store = fill_store(
        StorePlan(chosen.kind, shards, chosen.tokens_per_example),
        scorer,
        first,
        Request([test], permutations=PILOT_PERMUTATIONS, seed=seed, directory=directory, name=name),
    )
    scores = chosen.scores(store, PILOT_PERMUTATIONS)
    free = chosen.kind == "successors"  # orderings cost nothing
    tokens = store.header.tokens_of(PILOT_PERMUTATIONS) / shards
    sampled = scores.shape[1] - 1
    return plan(
        scores,
        tokens_per_shard=tokens / (sampled + 1 if free else PILOT_PERMUTATIONS + 1),
        alpha=alpha,
        power=power,
        permutations=(sampled,) if free else PLANNED_PERMUTATIONS,
        rng=random_stream(seed, "power plan", first.revision),
    )
