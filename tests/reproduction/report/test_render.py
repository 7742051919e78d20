"""The real paper/report.qmd, rendered without Quarto from a made-up run."""

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from contamination.errors import InputError
from fakes.made_up_run import FEATURES, PAPER, made_up_value, variables_used
from reproduction.report.render import out_of_space, render_report
from reproduction.report.variables import escape_markdown


@pytest.fixture(scope="module")
def page(real_pages: list[Path]) -> BeautifulSoup:
    return BeautifulSoup(real_pages[0].read_text(encoding="utf-8"), "html.parser")


def test_there_are_three_files_and_nothing_else(real_pages: list[Path], real_results: Path) -> None:
    names = ["report.html", "report.pdf", "slides.html"]
    assert real_pages == [real_results / "report" / name for name in names]
    assert sorted(file.name for file in (real_results / "report").iterdir()) == names


def test_the_title_is_the_one_heading_of_the_first_level(page: BeautifulSoup) -> None:
    assert [heading["class"] for heading in page.find_all("h1")] == [["title"]]
    assert re.fullmatch(
        r"\d+\.2 Null hypothesis", page.find(id="sec-null").get_text(" ", strip=True)
    )


def test_every_variable_table_and_figure_arrives(page: BeautifulSoup) -> None:
    text = page.get_text()
    for name in variables_used(PAPER / "report.qmd"):
        assert made_up_value(name) in text, name
    source = (PAPER / "report.qmd").read_text(encoding="utf-8")
    assert len(page.find_all("table")) == source.count("{{< include tables/")
    assert len(page.find_all("img")) == source.count("](figures/")


def test_captions_are_numbered_in_order(page: BeautifulSoup) -> None:
    captions = [caption.get_text().strip() for caption in page.find_all("figcaption")]
    for name in ("Figure", "Table"):
        found = [re.match(rf"{name}\xa0(\d+): \S", caption) for caption in captions]
        numbers = [int(match[1]) for match in found if match]
        assert numbers == list(range(1, len(numbers) + 1)) != []


def test_every_float_and_every_bibliography_entry_is_referred_to(page: BeautifulSoup) -> None:
    linked = {link["href"] for link in page.select("main a, body a") if link.get("href")}
    floats = [element["id"] for element in page.find_all(id=re.compile("^(fig|tbl)-"))]
    assert floats
    for name in floats:
        assert f"#{name}" in linked, name
    bibliography = (PAPER / "references.bib").read_text(encoding="utf-8")
    entries = set(re.findall(r"^@\w+\{(\w+),", bibliography, re.MULTILINE))
    assert {f"ref-{entry}" for entry in entries} == {
        entry["id"] for entry in page.select(".csl-entry")
    }


def test_the_same_sources_give_the_same_bytes(project) -> None:
    paper, results = project(f"{FEATURES}\n\nSeed {{{{< var run.seed >}}}}.")
    first = [file.read_bytes() for file in render_report(paper, results, quarto="")]
    assert [file.read_bytes() for file in render_report(paper, results, quarto="")] == first


def test_says_which_renderer_and_why(
    project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    rendered = render_report(*project("Text."))
    said = capsys.readouterr().out.splitlines()
    assert re.search(r"pandoc \d.* typst \d.*no quarto .* on PATH", said[0])
    assert said[1:] == [f"report: {file}" for file in rendered]


def test_results_of_no_run_are_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"variables\.yml is missing: run `make reproduce`"):
        render_report(PAPER, tmp_path, quarto="")
    with pytest.raises(InputError, match="is not a directory"):
        render_report(tmp_path / "nowhere", tmp_path, quarto="")


def test_a_full_disk_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no space left"), out_of_space(tmp_path):
        raise OSError(28, "No space left on device")


def test_plain_text_survives_as_a_variable(project, tmp_path: Path) -> None:
    name = "Xeon_8488C @2.4GHz *fast* <b> $5 ~x~ #1"
    paper, results = project("On {{< var run.seed >}} we ran.")
    (results / "variables.yml").write_text(
        f"run:\n  seed: '{escape_markdown(name)}'\n", encoding="utf-8"
    )
    page = render_report(paper, results, quarto="")[0].read_text(encoding="utf-8")
    assert f"On {name} we ran." in BeautifulSoup(page, "html.parser").get_text()
