"""Scores drawn under H0 and from laws that break normal theory."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

Draw = Callable[[np.random.Generator, int, int], NDArray[np.float64]]


def _constant_shard(rng: np.random.Generator, r: int, m: int) -> NDArray[np.float64]:
    scores = rng.normal(size=(r, m + 1)) - 1000
    scores[0] = scores[0, 0]
    return scores


LAWS: dict[str, Draw] = {
    "normal": lambda rng, r, m: rng.normal(-1000, 5, (r, m + 1)),
    "cauchy": lambda rng, r, m: rng.standard_cauchy((r, m + 1)),
    "ties": lambda rng, r, m: rng.integers(0, 4, (r, m + 1)).astype(float),
    "constant shard": _constant_shard,
    "unequal scales": lambda rng, r, m: rng.normal(size=(r, m + 1)) * 10.0 ** np.arange(r)[:, None],
}


@pytest.fixture
def laws() -> dict[str, Draw]:
    return LAWS


@pytest.fixture(params=sorted(LAWS))
def law(request: pytest.FixtureRequest) -> Draw:
    return LAWS[request.param]
