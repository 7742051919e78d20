"""Fixtures of the tests of experiments: a run with made-up stores, and figures that are closed."""

import sys
from collections.abc import Iterator

import pytest

from fakes.data_fixtures import MadeUpRun
from reproduction.run.experiment import Experiment


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MadeUpRun]:
    """Return a run whose stores hold random numbers instead of a model's scores."""
    made_up = MadeUpRun(tmp_path_factory.mktemp("run"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Experiment, "scored", made_up.stand_in())
        yield made_up


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
