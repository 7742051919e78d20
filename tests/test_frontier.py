"""The candidates of the study of power treat the orderings alike, so their tests are exact."""

import importlib
import itertools
import sys

import numpy as np
import pytest

from contamination.statistics import successor_scores
from fakes.data_fixtures import ROOT

ORDERS = np.array(list(itertools.permutations(range(5))))


@pytest.fixture
def candidates(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks" / "frontier"), *sys.path])
    return importlib.import_module("candidates")


def relabelled(values: np.ndarray, names: np.ndarray) -> np.ndarray:
    """The same numbers when record i of the shard is called names^-1[i]."""
    return values[np.ix_(*[names] * values.ndim)]


@pytest.mark.parametrize("seed", range(3))
def test_relabelling_the_records_permutes_the_scores(candidates, seed: int) -> None:
    """Score of ordering o among the relabelled is that of names[o] before: for every o."""
    rng = np.random.default_rng(seed)
    models, triples = rng.normal(size=(2, 5, 5)), rng.normal(size=(5, 5, 5))
    names = rng.permutation(5)

    def scores(matrices: np.ndarray, orders: np.ndarray) -> np.ndarray:
        return successor_scores(candidates.added_sizes(list(matrices), [0.0, 0.0]), orders)

    moved = np.stack([relabelled(each, names) for each in models])
    np.testing.assert_allclose(scores(moved, ORDERS), scores(models, names[ORDERS]), atol=1e-12)
    place = {tuple(order): i for i, order in enumerate(ORDERS)}
    before = candidates.triple_scores(triples)[[place[tuple(names[order])] for order in ORDERS]]
    after = candidates.triple_scores(relabelled(triples, names))
    np.testing.assert_allclose(after, before, atol=1e-12)
