"""Fixtures of the report tests: the real documents rendered once, a small project."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fakes.made_up_run import CANARIES, PAPER, SVG, fill_results
from reproduction.report.render import DOCUMENTS, render_report

SLIDES = """---
title: T
format:
  revealjs:
    css: slides.css
    embed-resources: true
---

## A slide

Words.
"""


@pytest.fixture(scope="session")
def real_pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return report.html, report.pdf and slides.html of the real documents."""
    documents = {PAPER / name for name, _ in DOCUMENTS.values()}
    results = fill_results(tmp_path_factory.mktemp("results"), *documents)
    tables = PAPER.parent / "results" / "reference" / "tables"  # as long and as wide as they are
    shutil.copytree(tables, results / "tables", dirs_exist_ok=True)
    return render_report(PAPER, results, quarto="")


@pytest.fixture
def project(tmp_path: Path) -> Callable[[str], tuple[Path, Path]]:
    """Return a function that makes a paper and a results directory around a small document."""

    def make(body: str) -> tuple[Path, Path]:
        paper = tmp_path / "paper"
        results = tmp_path / "results"
        paper.mkdir()
        for name in ("_quarto.yml", "styles.css", "slides.css", "styles.typ", "references.bib"):
            shutil.copy(PAPER / name, paper / name)
        (paper / "report.qmd").write_text(f"---\ntitle: T\n---\n\n{body}\n", encoding="utf-8")
        (paper / "slides.qmd").write_text(SLIDES, encoding="utf-8")
        (results / "tables").mkdir(parents=True)
        (results / "figures").mkdir()
        (results / "tables" / "small.md").write_text(CANARIES, encoding="utf-8")
        (results / "figures" / "small.svg").write_text(SVG, encoding="utf-8")
        (results / "variables.yml").write_text("corpus: {}\nrun:\n  seed: '17'\n", encoding="utf-8")
        return paper, results

    return make
