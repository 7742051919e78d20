"""The Quarto path, with an executable that stands in for Quarto."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from contamination.errors import InputError
from fakes.made_up_run import PAPER
from reproduction.report.render import DOCUMENTS, Quarto, render_report
from reproduction.report.source import Stage

STAND_IN = f"""#!{sys.executable}
import pathlib, sys
log = pathlib.Path(__file__).with_name("calls.txt")
with log.open("a") as calls:
    print(pathlib.Path.cwd(), *sys.argv[1:], file=calls)
if sys.argv[1:] == ["--version"]:
    print("VERSION")
elif sys.argv[1] == "render" and sys.argv[3] == "--to":
    document, target = pathlib.Path(sys.argv[2]), sys.argv[4]
    assert (target == "revealjs") == (document.stem == "slides"), target
    for name in ("report.qmd", "slides.qmd", "_quarto.yml", "_variables.yml", "tables/small.md"):
        assert pathlib.Path(name).is_file(), name
    if target == "typst":
        document.with_suffix(".pdf").write_bytes(b"%PDF-1.7\\n%%EOF\\n")
    else:
        page = '<html lang="en"><title>T</title>BODY</html>'
        document.with_suffix(".html").write_text(page)
else:
    sys.exit("unknown arguments")
"""


def stand_in(folder: Path, version: str = "1.6.40", body: str = "<h1>T</h1>") -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / "quarto"
    file.write_text(STAND_IN.replace("VERSION", version).replace("BODY", body), encoding="utf-8")
    file.chmod(0o755)
    return file


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a directory that is all of PATH, with no Quarto beside the interpreter."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    return folder


def test_quarto_on_path_renders(project, alone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    executable = stand_in(alone)
    paper, results = project("Seed {{< var run.seed >}}.")
    page, printed, slides = render_report(paper, results)
    assert "<h1>T</h1>" in page.read_text(encoding="utf-8")
    assert printed.read_bytes().startswith(b"%PDF-")
    assert slides == results / "report" / "slides.html"
    assert f"rendering with Quarto 1.6.40 (found {executable})" in capsys.readouterr().out
    calls = [line.split(" ", 1) for line in (alone / "calls.txt").read_text().splitlines()]
    assert [arguments for _, arguments in calls] == [
        "--version",
        "render report.qmd --to html --no-execute",
        "render report.qmd --to typst --no-execute",
        "render slides.qmd --to revealjs --no-execute",
    ]
    folders = {folder for folder, _ in calls[1:]}
    assert len(folders) == 1
    assert not Path(folders.pop()).exists(), "the stage is removed"


def test_the_same_faults_are_found_before_quarto_runs(project, alone: Path) -> None:
    stand_in(alone)
    paper, results = project("See @fig-none.")
    with pytest.raises(InputError, match=r"report\.qmd:5: cross-reference @fig-none"):
        render_report(paper, results)
    assert "render" not in (alone / "calls.txt").read_text()


def test_the_page_of_quarto_is_checked(project, alone: Path) -> None:
    stand_in(alone, body="<h1>T</h1><p>?@fig-x</p>")
    paper, results = project("Text.")
    with pytest.raises(InputError, match="unresolved"):
        render_report(paper, results)
    assert not (results / "report").exists()


def test_a_failing_quarto_is_reported(project, alone: Path) -> None:
    executable = stand_in(alone)
    executable.write_text(
        "#!/bin/sh\n[ $1 = --version ] && echo 1.6.1 && exit 0\necho ERROR: no space; exit 1\n",
        encoding="utf-8",
    )
    paper, results = project("Text.")
    with pytest.raises(InputError, match=r"quarto render --to html failed \(ERROR: no space\)"):
        render_report(paper, results)


def test_warnings_of_quarto_are_shown(
    project, alone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    executable = stand_in(alone)
    paper, results = project("Text.")
    render_report(paper, results)
    assert capsys.readouterr().err == "", "a render without warnings is silent"
    warn = 'print("WARN: a figure\\n  has no alt text") if sys.argv[4:5] == ["typst"] else None\n'
    executable.write_text(
        executable.read_text().replace("if sys.argv[1:]", f"{warn}if sys.argv[1:]", 1)
    )
    render_report(paper, results)
    assert capsys.readouterr().err == "WARN: a figure\n  has no alt text\n"


def test_a_quarto_that_writes_nothing_is_reported(project, alone: Path) -> None:
    stand_in(alone).write_text("#!/bin/sh\necho 1.6.1\n", encoding="utf-8")
    paper, results = project("Text.")
    with pytest.raises(InputError, match=r"wrote no report\.html"):
        render_report(paper, results)


def test_finding(alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Quarto.find() == (None, "no quarto beside the Python interpreter or on PATH")
    old = stand_in(alone, version="1.3.450")
    assert Quarto.find() == (None, f"{old} is version 1.3.450, older than 1.5")
    with pytest.raises(InputError, match=r"older than 1\.5: install quarto-cli"):
        Quarto.find(str(old))
    old.write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
    assert Quarto.find() == (None, f"{old} does not print its version (exit status 3)")
    beside = stand_in(tmp_path / "venv", version="1.9.2")
    monkeypatch.setattr("sys.executable", str(beside.with_name("python")))
    assert Quarto.find()[0] == Quarto(str(beside), "1.9.2")
    assert Quarto.find("")[0] is None
    with pytest.raises(InputError, match="no such executable"):
        Quarto.find("no-such-quarto")


def test_project_file_says_what_quarto_needs() -> None:
    settings = yaml.safe_load((PAPER / "_quarto.yml").read_text(encoding="utf-8"))
    assert settings["project"]["render"] == list(DOCUMENTS)
    assert set(settings["format"]) == {"html", "typst"}
    assert settings["format"]["html"]["embed-resources"] is True
    for name in DOCUMENTS:
        source = (PAPER / name).read_text(encoding="utf-8")
        assert "engine: markdown" in source, "no kernel may start"
        assert not re.search(r"^```\{", source, re.MULTILINE), "the document runs no code"


def test_the_stage_holds_sources_alone(project, tmp_path: Path) -> None:
    """Neither a link to the results of another run, nor a page of a plain `quarto render`."""
    paper, results = project("Text.")
    (tmp_path / "other.yml").write_text("run:\n  seed: '18'\n", encoding="utf-8")
    (paper / "_variables.yml").symlink_to(tmp_path / "other.yml")
    (paper / "report.html").write_text("old", encoding="utf-8")
    (root := tmp_path / "stage").mkdir()
    stage = Stage.fill(paper, results, root)
    assert stage.variables() == {"run.seed": "17"}
    assert not (root / "report.html").exists()


def test_the_plain_commands_of_quarto_find_results_and_leave_nothing_behind(
    real_results: Path, tmp_path: Path
) -> None:
    """`cd paper && quarto render` resolves names from `paper`, and writes beside the sources."""
    paper = tmp_path / "paper"
    shutil.copytree(PAPER, paper, symlinks=True, ignore=shutil.ignore_patterns("*.html", "*.pdf"))
    shutil.copytree(real_results, tmp_path / "results")
    for document in DOCUMENTS:
        text = (paper / document).read_text(encoding="utf-8")
        for name in re.findall(r"\{\{< include (\S+) >\}\}|\]\((figures/\S+?)\)", text):
            assert (paper / "".join(name)).is_file(), name
    assert yaml.safe_load((paper / "_variables.yml").read_text(encoding="utf-8"))
    for command in (["init", "-q"], ["add", "paper"], ["commit", "-qm", "all"]):
        author = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *author, *command], cwd=tmp_path, check=True)
    (paper / ".quarto").mkdir()
    for name in (".quarto/xref", "report.html", "report.pdf", "slides.html", "slides_files/a.js"):
        (paper / name).parent.mkdir(exist_ok=True)
        (paper / name).touch()
    status = ["git", "status", "--porcelain", "--", "paper"]
    shown = subprocess.run(status, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert shown.stdout == ""
    # Quarto adds what is missing of these.
    ignored = (paper / ".gitignore").read_text(encoding="utf-8").split()
    assert {"/.quarto/", "**/*.quarto_ipynb"} <= set(ignored)
