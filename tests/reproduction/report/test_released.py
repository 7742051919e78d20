"""The report of a run on released models: its sections, and what a rehearsal says on every page."""

import io
import re
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest
import typst
import yaml
from bs4 import BeautifulSoup

from fakes.made_up_run import PAPER, fill_results, made_up_value, variables_used
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
