"""The report of a run on released models: its sections, and what a rehearsal says on every page."""

import re
from pathlib import Path

import yaml

from fakes.made_up_run import PAPER, fill_results, read_page, whole_page
from reproduction.report.readings import REHEARSED
from reproduction.report.render import SECTION, render_report, write_documents

DOCUMENT = PAPER / "open.qmd"
NAMES = SECTION.findall(DOCUMENT.read_text(encoding="utf-8"))
PRESENT = {name: PAPER / f"_{name}.qmd" for name in NAMES if (PAPER / f"_{name}.qmd").is_file()}


def made_up(results: Path, sections: list[str], **run: str) -> Path:
    fill_results(results, DOCUMENT, *(PRESENT[name] for name in sections))
    (results / "notebooks").mkdir()
    for name in sections:
        (results / "notebooks" / f"{name}.ipynb").touch()
    path = results / "variables.yml"
    variables = yaml.safe_load(path.read_text(encoding="utf-8"))
    variables["run"] |= run
    path.write_text(yaml.safe_dump(variables), encoding="utf-8")
    return results


def test_all_sections_arrive_and_a_rehearsal_says_so_on_every_page(tmp_path: Path) -> None:
    results = made_up(tmp_path / "results", list(PRESENT), rehearsal=REHEARSED)
    page, printed = render_report(PAPER, results, quarto="")
    assert [page, printed] == [results / "report" / f"report.{end}" for end in ("html", "pdf")]
    found = whole_page(page, DOCUMENT, *PRESENT.values())
    assert {path.stem.removeprefix("_") for path in PAPER.glob("_[0-9]*.qmd")} == set(PRESENT)
    (notice,) = found.select(".rehearsal")
    assert notice.get_text(strip=True) == REHEARSED
    root = tmp_path / "staged"
    root.mkdir()
    write_documents(PAPER, results, root, renderer="pandoc")
    style = (root / "styles.typ").read_text(encoding="utf-8")
    assert re.search(rf"#set page\(header: .*{REHEARSED}", style)


def test_a_section_of_a_notebook_that_did_not_run_is_left_out(tmp_path: Path) -> None:
    name = "06_wikimia"
    page, _ = render_report(PAPER, made_up(tmp_path, [name]), quarto="")
    shown = read_page(page)
    assert shown.select(".rehearsal") == []
    titles = {
        other: re.search(r"^# .+ \{#(sec-[\w-]+)\}$", path.read_text("utf-8"), re.MULTILINE)[1]
        for other, path in PRESENT.items()
    }
    assert {other for other in PRESENT if shown.find(id=titles[other])} == {name}
