"""Fixtures of the report tests."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from made_up_run import CANARIES, PAPER, SVG, fill_results


@pytest.fixture(scope="session")
def real_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill_results(tmp_path_factory.mktemp("results"), PAPER / "report.qmd")


@pytest.fixture
def project(tmp_path: Path) -> Callable[[str], tuple[Path, Path]]:
    """Return a function that makes a paper and a results directory around a small document."""

    def make(body: str) -> tuple[Path, Path]:
        paper, results = tmp_path / "paper", tmp_path / "results"
        paper.mkdir()
        for name in ("_quarto.yml", "styles.css", "styles.typ", "references.bib"):
            shutil.copy(PAPER / name, paper / name)
        (paper / "report.qmd").write_text(f"---\ntitle: T\n---\n\n{body}\n", encoding="utf-8")
        (results / "tables").mkdir(parents=True)
        (results / "figures").mkdir()
        (results / "tables" / "small.md").write_text(CANARIES, encoding="utf-8")
        (results / "figures" / "small.svg").write_text(SVG, encoding="utf-8")
        (results / "variables.yml").write_text("run:\n  seed: '17'\n", encoding="utf-8")
        return paper, results

    return make
