"""Fixtures of the explorer's tests: scored sets, and a page made from them."""

from pathlib import Path

import pytest

from contamination.files import write_text
from fakes.data_fixtures import ROOT
from fakes.made_up_sets import fill
from reproduction.report.explorer.mmlu import Mmlu, load_mmlu
from reproduction.report.explorer.page import payload, render
from reproduction.report.explorer.scored import ScoredSets, View, find_sets, view_sets


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> ScoredSets:
    directory = tmp_path_factory.mktemp("stores")
    sets = fill(directory)
    return find_sets(directory, "Made up", lambda name, examples: sets[name])


@pytest.fixture(scope="session")
def views(found: ScoredSets) -> list[View]:
    return view_sets(found.sets)


@pytest.fixture(scope="session")
def mmlu(tmp_path_factory: pytest.TempPathFactory) -> Mmlu:
    """Return the tables of the repository; no examples, whatever lies on this machine."""
    nothing = tmp_path_factory.mktemp("nothing")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTAMINATION_DATA", str(nothing))
        patch.setenv("CONTAMINATION_CACHE", str(nothing))
        return load_mmlu(ROOT / "data" / "published", ROOT / "docs" / "measurements", nothing)


@pytest.fixture(scope="session")
def html(views: list[View], mmlu: Mmlu) -> str:
    return render(payload(views, ["somewhere: <i>no store</i>"], mmlu, "tiny"))


@pytest.fixture(scope="session")
def page(html: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("results") / "explorer.html"
    write_text(path, html)
    return path
