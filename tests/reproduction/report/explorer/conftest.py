"""Scored sets, what MMLU's tables give, and a page made from them."""

from pathlib import Path
from typing import Any

import pytest

from contamination.files import write_text
from fakes.data_fixtures import ROOT
from fakes.made_up_sets import fill
from reproduction.notebooks.mmlu.evidence import MmluEvidence, load_evidence
from reproduction.report.explorer.mmlu import mmlu_payload
from reproduction.report.explorer.page import payload, render
from reproduction.report.explorer.scored import Outcome, ScoredSet, find_outcomes, find_sets


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[ScoredSet]:
    directory = tmp_path_factory.mktemp("stores")
    sets = fill(directory)
    return list(find_sets(directory, "Made up", lambda name, examples: sets[name]))


@pytest.fixture(scope="session")
def outcomes(found: list[ScoredSet]) -> list[Outcome]:
    return find_outcomes(found)


@pytest.fixture(scope="session")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> MmluEvidence:
    """Return what the tables of the repository say, as a run sees it that measured nothing."""
    return load_evidence(
        published=ROOT / "data" / "published",
        measurements=ROOT / "docs" / "measurements",
        released=ROOT / "results" / "reference" / "pocket",
        results=tmp_path_factory.mktemp("nothing"),
    )


@pytest.fixture(scope="session")
def mmlu(evidence: MmluEvidence, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the tables of the repository; no examples, whatever lies on this machine."""
    nothing = tmp_path_factory.mktemp("nothing")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTAMINATION_DATA", str(nothing))
        patch.setenv("CONTAMINATION_CACHE", str(nothing))
        shown = mmlu_payload(evidence)
    assert shown["at_hand"] == {}
    return shown


@pytest.fixture(scope="session")
def html(outcomes: list[Outcome], mmlu: dict[str, Any]) -> str:
    at_hand = {"virology": ["Q 1", "Q 2"]}
    return render(payload(outcomes, mmlu | {"at_hand": at_hand}, "tiny"))


@pytest.fixture(scope="session")
def page(html: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("results") / "explorer.html"
    write_text(path, html)
    return path
