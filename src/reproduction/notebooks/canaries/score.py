"""The passes over the two models that most notebooks read: every canary set."""

import time
from itertools import product

from tqdm import tqdm

from contamination.audit.registry import TESTS
from contamination.files import write_json
from reproduction.run.experiment import Experiment, profile_plan

# Those of the paper, the exact test on shards, and two that read fewer tokens.
CANARY_TESTS = ("permutation", "sharded_t", "sharded_exact", "boundary", "successor")


def score_canaries(experiment: Experiment, model: str) -> None:
    """Score every canary set under a model, unless it is stored already."""
    # Imported here: notebook 01 reads the names of the tests without torch.
    from contamination.scoring.processes import processes

    started = time.perf_counter()
    stores = experiment.build / "stores"
    is_first_process = processes().is_main_process
    bar = tqdm(
        list(product(experiment.profile.canaries, CANARY_TESTS)),
        desc=f"score {model} model",
        unit="store",
        disable=None if is_first_process else True,  # None: on a terminal alone
    )
    tokens = {}
    for spec, test in bar:
        plan, permutations = profile_plan(
            experiment.profile.scoring,
            TESTS[test],
            spec.examples,
        )
        store = experiment.score(model, spec.name, plan, permutations)
        key = store.directory.relative_to(stores / model).as_posix()
        tokens[key] = store.tokens_read(permutations)
    if is_first_process:
        seconds = time.perf_counter() - started
        write_json(stores / f"{model}.json", {"tokens": tokens, "seconds": seconds})
