"""The report of a run on released models: its sections, and what a rehearsal says on every page."""

import io
import re
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
import typst
import yaml
from bs4 import BeautifulSoup

from contamination.membership.blind import FIELDS as BLIND
from fakes.made_up_run import PAPER, fill_results, made_up_value, variables_used
from reproduction.notebooks.assumptions.detection import WITHIN_COLUMNS
from reproduction.notebooks.checkpoints.evaluation import COLUMNS as TESTED
from reproduction.notebooks.checkpoints.min_k import COLUMNS as DETECTED
from reproduction.notebooks.mmlu.tables import FISHER_COLUMNS, SUBSET_COLUMNS
from reproduction.notebooks.open_models.tables import COLUMNS
from reproduction.notebooks.papers.comparison import COLUMNS as PAPERS
from reproduction.notebooks.wikimia.evaluation import FIELDS
from reproduction.report.released import SECTIONS, released_variables
from reproduction.report.render import RELEASED, SECTION, render_report
from reproduction.report.variables import REHEARSED

DOCUMENT = PAPER / "open.qmd"
NAMES = SECTION.findall(DOCUMENT.read_text(encoding="utf-8"))
PRESENT = {name: PAPER / f"_{name}.qmd" for name in NAMES if (PAPER / f"_{name}.qmd").is_file()}
RED = (0xB3, 0x26, 0x1E)


def made_up(results: Path, sections: list[str], **run: str) -> Path:
    """Results of a run that has executed the notebooks of these sections."""
    fill_results(results, DOCUMENT, *(PRESENT[name] for name in sections))
    (results / "notebooks").mkdir()
    for name in sections:
        (results / "notebooks" / f"{name}.ipynb").touch()
    path = results / "variables.yml"
    variables = yaml.safe_load(path.read_text(encoding="utf-8"))
    variables["run"] |= run
    path.write_text(yaml.safe_dump(variables), encoding="utf-8")
    return results


def render(results: Path) -> list[Path]:
    return render_report(PAPER, results, documents=RELEASED, quarto="")


def read_page(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def test_every_section_is_included() -> None:
    assert {path.stem.removeprefix("_") for path in PAPER.glob("_[0-9]*.qmd")} == set(PRESENT)
    assert len(set(NAMES)) == len(NAMES)


def test_all_sections_arrive_with_their_tables_figures_and_numbers(tmp_path: Path) -> None:
    page, printed = render(made_up(tmp_path, list(PRESENT)))
    assert [page, printed] == [tmp_path / "report" / f"report.{end}" for end in ("html", "pdf")]
    found = read_page(page)
    source = "".join(path.read_text(encoding="utf-8") for path in (DOCUMENT, *PRESENT.values()))
    assert len(found.find_all("table")) == source.count("{{< include tables/")
    assert len(found.find_all("img")) == source.count("](figures/")
    text = found.get_text()
    for name in variables_used(DOCUMENT, *PRESENT.values()):
        assert made_up_value(name) in text, name
    linked = {link["href"] for link in found.select("body a") if link.get("href")}
    for element in found.find_all(id=re.compile("^(fig|tbl)-")):
        assert f"#{element['id']}" in linked, element["id"]
    assert found.select(".rehearsal") == []


@pytest.mark.parametrize("name", PRESENT)
def test_a_section_stands_alone(name: str, tmp_path: Path) -> None:
    """A run of one notebook has its section, and no reference to another."""
    html = {"open.qmd": {"html": "report.html"}}
    (page,) = render_report(PAPER, made_up(tmp_path, [name]), documents=html, quarto="")
    sections = {
        other: re.search(r"^# .+ \{#(sec-[\w-]+)\}$", path.read_text("utf-8"), re.MULTILINE)[1]
        for other, path in PRESENT.items()
    }
    shown = read_page(page)
    assert {other for other in PRESENT if shown.find(id=sections[other])} == {name}


def test_a_rehearsal_says_so_in_red_on_every_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages: list[Any] = []
    compile_typst = typst.compile

    def and_draw(source: str, *arguments: Any, **options: Any) -> None:
        compile_typst(source, *arguments, **options)
        drawn = compile_typst(source, format="png", ppi=100, **options)
        pages.extend(drawn if isinstance(drawn, list) else [drawn])

    monkeypatch.setattr(typst, "compile", and_draw)
    page, _ = render(made_up(tmp_path, list(PRESENT), rehearsal=REHEARSED))
    (notice,) = read_page(page).select(".rehearsal")
    assert notice.get_text(strip=True) == REHEARSED
    style = re.search(r"\.rehearsal \{([^}]+)\}", page.read_text(encoding="utf-8"))
    assert "position: fixed" in style[1] and "color: var(--important)" in style[1]
    assert len(pages) > 3
    for drawn in pages:
        image = matplotlib.image.imread(io.BytesIO(drawn))[:, :, :3]
        near = np.abs(image * 255 - np.array(RED)).max(axis=2) < 60
        top = near[: len(near) // 10]
        assert top.any(axis=0).sum() > 200  # columns of the image: a line of text


# --- its numbers ----------------------------------------------------------------------------------


def test_every_variable_of_a_section_is_written_where_its_notebook_ran(tmp_path: Path) -> None:
    empty = {"open_models": COLUMNS, "mmlu_subsets": SUBSET_COLUMNS}
    empty |= {"mmlu_fisher": FISHER_COLUMNS, "wikimia": FIELDS, "papers": PAPERS}
    empty |= {"checkpoints": TESTED, "checkpoints_min_k": DETECTED}
    empty |= {"assumptions_within": WITHIN_COLUMNS, "assumptions_blind": BLIND}
    (tmp_path / "tables").mkdir()
    for name, columns in empty.items():
        row = dict.fromkeys(columns, "") | {"status": "not run here: no way out"}
        pd.DataFrame([row]).to_csv(tmp_path / "tables" / f"{name}.csv", index=False)
    for section, (notebook, _, _) in SECTIONS.items():
        found = released_variables([notebook], tmp_path)
        assert list(found) == [section]
        used = [name for name in variables_used(PRESENT[notebook]) if not name.startswith("run.")]
        assert set(used) <= {f"{section}.{name}" for name in found[section]}
        assert all(text for text in found[section].values())
        assert found[section]["measured"] == "0"


def test_rejections_are_counted_as_the_table_has_them(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    rows = [
        ("a", "x", "ok", 0.01, "quiet"),
        ("a", "y", "ok", 0.04, "order carries information"),
        ("b", "x", "ok", 0.2, "quiet"),
        ("b", "y", "failed: no room", None, ""),
        ("control", "x", "ok", None, "quiet"),
        ("control", "y", "not run here: no way out", None, ""),
    ]
    columns = ["model", "dataset", "status", "holm_p", "verdict"]
    table = pd.DataFrame(rows, columns=columns)
    table.to_csv(tmp_path / "tables" / "open_models.csv", index=False)
    found = released_variables(["03_open_model_audit"], tmp_path)["open_models"]
    counted = {"cells": "6", "measured": "4", "failed": "1", "not_run": "1"}
    counted |= {"models": "3", "sets": "2", "audited": "3", "rejected": "2", "stand": "1"}
    assert found == counted


def test_verdicts_of_the_papers_are_compared_where_both_have_a_p_value(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    rows = [
        ("log10 p", -2.0, -38.0, "ok"),
        ("log10 p", -1.0, -2.0, "ok"),
        ("log10 p", -0.5, -0.1, "ok"),
        ("log10 p", None, -0.1, "failed: no room"),
        ("AUC", None, 0.7, "not run here: no way out"),
        ("AUC", None, 0.7, "not asked: profile open leaves out OPT-66B"),
        ("AUC", 0.7, 0.7, "ok"),
    ]
    table = pd.DataFrame(rows, columns=["unit", "ours", "published", "status"])
    table.to_csv(tmp_path / "tables" / "papers.csv", index=False)
    found = released_variables(["13_beside_the_papers"], tmp_path)["papers"]
    counted = {"cells": "7", "measured": "4", "failed": "1", "not_run": "1", "not_asked": "1"}
    assert found == counted | {"verdicts": "3", "same": "2"}


def test_planted_sets_and_controls_are_counted_apart(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    tested = [
        ("sharded_exact", 1, "ok", 0.6),
        ("sharded_exact", 10, "ok", 0.05),
        ("sharded_exact", 50, "ok", 1e-9),
        ("sharded_exact", 50, "failed: no room", None),
        ("sharded_exact", None, "ok", 0.01),  # nobody knows how often
        ("sharded_t", 1, "ok", 0.001),
        ("successor", 4, "ok", 0.06),
        ("successor", 0, "ok", 0.04),
        ("sharded_t", 0, "ok", 0.9),
        ("sharded_t", 0, "not run here: no way out", None),
    ]
    columns = ["test", "dup_count", "status", "holm_p"]
    table = pd.DataFrame(tested, columns=columns)
    table.to_csv(tmp_path / "tables" / "checkpoints.csv", index=False)
    rates = [(1, "ok", 2.4), (10, "ok", 99.6), (50, "failed: no room", None), (0, "ok", 5.0)]
    detected = pd.DataFrame(rates, columns=["dup_count", "status", "rate_percent"])
    detected.to_csv(tmp_path / "tables" / "checkpoints_min_k.csv", index=False)
    found = released_variables(["12_released_checkpoints"], tmp_path)["checkpoints"]
    counted = {"cells": "10", "measured": "8", "failed": "1", "not_run": "1"}
    counted |= {"exact_planted": "3", "exact_rejected": "2", "exact_fewest": "10"}
    counted |= {"successor_planted": "1", "successor_rejected": "0", "successor_fewest": "—"}
    counted |= {"control_cells": "2", "control_rejected": "1"}
    assert found == counted | {"min_k_planted": "2 to 100", "min_k_control": "5 to 5"}


def test_cells_of_a_model_and_a_domain_are_counted_and_scores_of_fu_alone(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    rows = [
        ("small", "Github", "loss", 49.0, 45.0, 53.0, "ok"),
        ("small", "Github", "mem_25", 56.0, 51.0, 61.0, "ok"),
        ("small", "Github", "min_k_5", 99.0, 98.0, 100.0, "ok"),  # none of theirs
        ("small", "mean", "loss", 90.0, 80.0, 99.0, "ok"),
        ("small", "FreeLaw", None, None, None, None, "not asked: no such texts"),
        ("large", "Github", None, None, None, None, "failed: no room"),
    ]
    columns = ["model", "domain", "metric", "auc_percent", "auc_low", "auc_high", "status"]
    table = pd.DataFrame(rows, columns=columns)
    table.to_csv(tmp_path / "tables" / "assumptions_within.csv", index=False)
    baselines = [(0.4, 0.3, 0.5, "ok"), (0.9, 0.8, 1.0, "ok"), (None, None, None, "failed: gone")]
    blind = pd.DataFrame(baselines, columns=["auc", "auc_low", "auc_high", "status"])
    blind.to_csv(tmp_path / "tables" / "assumptions_blind.csv", index=False)
    found = released_variables(["08_detection_assumptions"], tmp_path)["assumptions"]
    counted = {"cells": "3", "measured": "1", "failed": "1", "not_run": "0", "not_asked": "1"}
    scores = {"aucs": "2", "off": "1", "lowest": "49.0", "highest": "56.0"}
    assert found == counted | scores | {"baselines": "2", "baselines_off": "1"}
