"""Whatever an audit draws depends on its seed and on its set, and on nothing else."""

from dataclasses import replace

import numpy as np
import pytest

from contamination.audit.controls.records import diagnose_order
from contamination.audit.controls.sides import compare_sides
from contamination.audit.controls.zlib import zlib_scores
from contamination.audit.shard_scores import min_p_successors, successors
from contamination.scoring.store import store_of
from contamination.scoring.store_format import Header
from fakes.made_up_store import units
from fakes.remembering_scorer import made_up_set

SET = made_up_set(24)


def scores_of_pairs(score, folder, seed: int, revision: str):
    """Return the scores of one shard of a store whose numbers do not depend on its name."""
    header = Header("m", "w", "d", revision, "text/1", seed, 1, (2, 1, 3, 2, 1, 2, 3, 2))
    header = replace(header, kind="successors")
    store = store_of(folder / f"{seed}-{revision}", header)
    if not store.directory.exists():
        store.create()
        store.append(units(0, header))
    return score(store, 0, 0)


def diagnosed(seed: int, revision: str):
    changed = replace(SET, revision=revision)
    return diagnose_order(changed, seed=seed, shards=2).table["p"].to_numpy(dtype=float)


def compressed(kind: str, seed: int, revision: str):
    changed = replace(SET, revision=revision)
    return zlib_scores(changed, kind=kind, shards=2, permutations=5, seed=seed)


def blind(seed: int):
    labels = np.arange(24) % 2 == 0
    control = compare_sides(SET.examples, labels, np.zeros(24, dtype=int), seed=seed)
    return np.array([*control.p_values.values()])


DRAWS = {
    "orderings of pairs": lambda *asked: scores_of_pairs(successors, *asked),
    "orderings of min_p": lambda *asked: scores_of_pairs(min_p_successors, *asked),
    "diagnosis": lambda _, *asked: diagnosed(*asked),
    "zlib, pairs": lambda _, *asked: compressed("successors", *asked),
    "zlib, orderings": lambda _, *asked: compressed("orderings", *asked),
    "blind baselines": lambda _, seed, revision: blind(seed),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_draws_the_same_again_and_another_seed_something_else(name, tmp_path):
    drawn = DRAWS[name](tmp_path, 1, "a")
    np.testing.assert_array_equal(DRAWS[name](tmp_path, 1, "a"), drawn)
    assert not np.array_equal(DRAWS[name](tmp_path, 2, "a"), drawn, equal_nan=True)


@pytest.mark.parametrize("name", [name for name in DRAWS if name != "blind baselines"])
def test_other_records_have_draws_of_their_own(name, tmp_path):
    drawn = DRAWS[name](tmp_path, 1, "a")
    assert not np.array_equal(DRAWS[name](tmp_path, 1, "b"), drawn, equal_nan=True)
