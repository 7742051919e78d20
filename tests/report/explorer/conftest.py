"""Fixtures of the explorer's tests: scored sets, and a page made from them."""

from pathlib import Path

import pytest

from contamination.report.explorer.page import write_page
from contamination.report.explorer.scored import ScoredSets, View, find_sets, view_sets
from fakes.made_up_sets import fill


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> ScoredSets:
    directory = tmp_path_factory.mktemp("stores")
    sets = fill(directory)
    return find_sets(directory, "Made up", lambda name, examples: sets[name])


@pytest.fixture(scope="session")
def views(found: ScoredSets) -> list[View]:
    return view_sets(found.sets)


@pytest.fixture(scope="session")
def page(found: ScoredSets, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with_line = ScoredSets(found.sets, ("somewhere: <i>no store</i>",))
    return write_page(with_line, tmp_path_factory.mktemp("results"), title="tiny")
