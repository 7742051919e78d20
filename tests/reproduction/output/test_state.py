"""The reference is of the code of today: files, columns, variables, sections, facts.

What a test can know without a run, it takes from the code: the files that notebooks write, the
columns that have a rule, the variables of the reference's own tables, the headings of the paper.
`.ci/run` compares the reference with a run of the profile `quick` as well.
"""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import yaml

from contamination.errors import InputError
from contamination.files import read_json
from fakes.data_fixtures import ROOT
from reproduction.notebooks.table import NOTEBOOKS, outputs
from reproduction.output.compare import ALWAYS
from reproduction.output.state import State, differences, state_of, variable_names
from reproduction.report.readings import build_variables
from reproduction.report.render import SECTION, stage
from reproduction.run.profile import load_profile

REFERENCE = ROOT / "results" / "reference"
PAPER = ROOT / "paper"
PUBLISHED = ROOT / "data" / "published"
# Every reference that git holds: its profile, and the document of its report.
FOLDERS = {"laptop": REFERENCE, "pocket": REFERENCE / "pocket"}
DOCUMENT = {"laptop": "report.qmd", "pocket": "open.qmd"}
RULES = pd.read_csv(ROOT / "docs" / "measurements" / "tolerances.csv")
NAMES = ("the code of today", "the reference")


def notebooks_of(profile: str) -> list[str]:
    if profile == "laptop":
        return [name for name, row in NOTEBOOKS.items() if not row.released]
    return list(load_profile(ROOT / "profiles" / f"{profile}.yaml").notebooks)


def headings(document: Path, notebooks: list[str]) -> list[str]:
    """The headings of a document and of the sections of notebooks that ran."""
    found = []
    for line in document.read_text(encoding="utf-8").splitlines():
        heading = re.fullmatch(r"#+ (.*?)(?: \{.*\})?", line)
        included = re.fullmatch(r"\{\{< include (\S+) >\}\}", line)
        if heading:
            found.append(f"section {heading[1]}")
        if included:
            section = SECTION.fullmatch(included[1])
            if section and section[1] in notebooks:
                found += headings(document.with_name(included[1]), notebooks)
    return found


def written_today(profile: str) -> State:
    """The state that the code declares; of the manifest, the notebooks that run."""
    folder = FOLDERS[profile]
    notebooks = notebooks_of(profile)
    state: dict[str, list[str]] = {name: [] for name in ALWAYS}
    for notebook in notebooks:
        for name in outputs(ROOT / "notebooks" / f"{notebook}.ipynb"):
            if not name.endswith(".png"):
                state[name] = []
    state["manifest.json"] = [f"step notebook {name}" for name in notebooks]
    variables = build_variables(
        load_profile(ROOT / "profiles" / f"{profile}.yaml"),
        read_json(folder / "manifest.json"),
        folder,
        PUBLISHED,
    )
    state["variables.yml"] = variable_names(variables)
    state["report/report.pdf"] = headings(PAPER / DOCUMENT[profile], notebooks)
    if profile == "laptop":  # whose columns have rules
        for table, rules in RULES.groupby("table"):
            if f"tables/{table}.csv" in state:
                columns = [name for name in rules["column"] if not name.isdigit()]
                state[f"tables/{table}.csv"] = [f"column {name}" for name in columns]
    return state


def held_by(folder: Path, profile: str) -> State:
    """The state of a reference, without what `written_today` does not know."""
    state = state_of(folder)
    state["manifest.json"] = [fact for fact in state["manifest.json"] if fact.startswith("step")]
    if profile != "laptop":
        state = {name: [] if name.endswith(".csv") else parts for name, parts in state.items()}
    return state


@pytest.mark.parametrize("profile", FOLDERS)
def test_a_reference_has_the_files_and_parts_that_the_code_of_today_writes(profile: str) -> None:
    held = held_by(FOLDERS[profile], profile)
    assert differences(written_today(profile), held, names=NAMES) == []


@pytest.mark.parametrize("profile", FOLDERS)
def test_variables_of_a_reference_are_those_of_its_tables(profile: str) -> None:
    folder = FOLDERS[profile]
    written = yaml.safe_load((folder / "variables.yml").read_text(encoding="utf-8"))
    built = build_variables(
        load_profile(ROOT / "profiles" / f"{profile}.yaml"),
        read_json(folder / "manifest.json"),
        folder,
        PUBLISHED,
    )
    assert written == built


@pytest.mark.parametrize("profile", FOLDERS)
def test_the_documents_find_in_a_reference_all_that_they_name(profile: str, tmp_path) -> None:
    results = tmp_path / "results"
    shutil.copytree(FOLDERS[profile], results)
    (results / "notebooks").mkdir()
    for name in notebooks_of(profile):
        (results / "notebooks" / f"{name}.ipynb").touch()
    staged = tmp_path / "staged"
    staged.mkdir()
    documents = stage(PAPER, results, staged, renderer="pandoc")
    for document, _ in documents.values():
        text = (staged / document).read_text(encoding="utf-8")
        for figure in re.findall(r"\]\((figures/\S+?)\)", text):
            assert (staged / figure).is_file(), (document, figure)


@pytest.mark.parametrize("profile", FOLDERS)
def test_a_reference_says_which_commit_made_it_where(profile: str) -> None:
    manifest = read_json(FOLDERS[profile] / "manifest.json")
    machine = manifest["machine"]
    assert manifest["profile"] == profile
    assert re.fullmatch(r"[0-9a-f]{12}", manifest["commit"])  # of a tree without changes
    assert manifest["hardware"]
    assert machine["precision"] == "float32" or machine["bfloat16"]


# --- what differs is named --------------------------------------------------------------


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the reference, to be changed."""
    for name in ("tables", "figures", "report"):
        shutil.copytree(REFERENCE / name, tmp_path / "run" / name)
    for name in ("manifest.json", "variables.yml"):
        shutil.copy(REFERENCE / name, tmp_path / "run")
    return tmp_path / "run"


def lose_a_column(run: Path) -> None:
    path = run / "tables" / "canaries.csv"
    pd.read_csv(path).drop(columns="log10_p").to_csv(path, index=False)


def lose_a_figure(run: Path) -> None:
    (run / "figures" / "min_k.svg").unlink()


def lose_a_variable(run: Path) -> None:
    path = run / "variables.yml"
    variables = yaml.safe_load(path.read_text(encoding="utf-8"))
    del variables["model"]["layers"]
    path.write_text(yaml.safe_dump(variables), encoding="utf-8")


def lose_a_section(run: Path) -> None:
    path = run / "report" / "report.pdf"
    path.write_bytes(path.read_bytes().replace(b"Null hypothesis)", b"Zero hypothesis)"))


def lose_a_fact(run: Path) -> None:
    path = run / "manifest.json"
    manifest = read_json(path)
    del manifest["machine"]["precision"]
    path.write_text(json.dumps(manifest), encoding="utf-8")


def lose_a_notebook(run: Path) -> None:
    path = run / "manifest.json"
    manifest = read_json(path)
    del manifest["steps"]["notebook 10_book_audit"]
    path.write_text(json.dumps(manifest), encoding="utf-8")


@pytest.mark.parametrize(
    ("lose", "file", "part"),
    [
        (lose_a_column, "tables/canaries.csv", "column log10_p"),
        (lose_a_figure, "figures/min_k.svg", ""),
        (lose_a_variable, "variables.yml", "variable model.layers"),
        (lose_a_section, "report/report.pdf", "section Null hypothesis"),
        (lose_a_fact, "manifest.json", "fact machine.precision"),
        (lose_a_notebook, "manifest.json", "step notebook 10_book_audit"),
    ],
)
def test_what_a_run_lacks_is_named(
    copy: Path, lose: Callable[[Path], None], file: str, part: str
) -> None:
    whole = state_of(copy)
    lose(copy)
    lines = differences(state_of(copy), whole, names=("this run", "the other"))
    lost = [line for line in lines if line.startswith("this run lacks")]
    assert len(lost) == 1
    assert file in lost[0]
    assert part in lost[0]
    back = differences(whole, state_of(copy), names=("this run", "the other"))
    assert [line for line in back if line.startswith("the other lacks")] == [
        lost[0].replace("this run", "the other").replace("which the other", "which this run")
    ]


@pytest.mark.parametrize("name", ["manifest.json", "variables.yml", "report/report.pdf"])
def test_an_unfinished_run_has_no_state(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with pytest.raises(InputError, match=name):
        state_of(copy)


def test_a_report_without_an_outline_is_named(copy: Path) -> None:
    (copy / "report" / "report.pdf").write_bytes(b"%PDF-1.7")
    with pytest.raises(InputError, match="no outline"):
        state_of(copy)


@pytest.mark.parametrize("folder", FOLDERS.values(), ids=FOLDERS)
def test_a_kept_report_links_to_files_that_are_kept(folder: Path) -> None:
    report = folder / "report" / "report.pdf"
    links = [link.decode() for link in re.findall(rb"/URI\s*\((\.[^)]*)\)", report.read_bytes())]
    assert links
    assert [link for link in links if not (report.parent / link).is_file()] == []
