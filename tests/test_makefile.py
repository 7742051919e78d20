"""The Makefile: what a change remakes, found by the import graph and not by a list.

The repository is copied beside a stand-in for `python -m reproduction`, which writes what the real
stages would, empty. So a complete run takes a second, and make itself is what is tested.
"""

import ast
import dataclasses
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import grimp
import nbformat
import pytest
import yaml

from fakes.data_fixtures import NOTEBOOKS, PROFILES, ROOT
from reproduction.notebooks.papers.cells import published_cells
from reproduction.notebooks.papers.comparison import compare
from reproduction.notebooks.papers.tables import file_names
from reproduction.run.profile import Pretraining, Profile

COPIED = ("Makefile", "README.md", "requirements.lock", "pyproject.toml")
FOLDERS = ("data", "docs", "notebooks", "paper", "profiles", "scripts", "src")
STAND_IN = """#!/bin/sh
# stage VERB [NAME] ... --build B --results R
verb=$2; name=$3
echo "$verb $name" >> ran
while [ $# -gt 0 ]; do
  case $1 in --build) build=$2;; --results) results=$2;; esac; shift
done
case $verb in
  corpus) target=$build/corpus/corpus.json;;
  train) target=$build/models/$name/training.json;;
  score) target=$build/stores/$name.json;;
  measure) target=$build/scores/$(basename $name .ipynb).json;;
  notebook) target=$results/notebooks/$(basename $name);;
  manifest) touch $results/variables.yml; target=$results/manifest.json;;
  explorer) target=$results/explorer.html;;
  report) mkdir -p $results/report; cd $results/report
    touch report.pdf slides.html; target=report.html;;
  summary) exit;;
esac
mkdir -p $(dirname $target); touch $target
"""
ALL = "corpus train train train score score measure notebook"  # stages after an edit of the corpus
TRAINING = r"stage (?:corpus|train) "
REPORTED = ("report", "summary")
SCORING = r"stage (?:corpus|train|score|measure) "

EVERY = [path for path in NOTEBOOKS if path.stem[0] in "01"]
# Those of released models belong to profiles that train nothing.
RELEASED = [path for path in EVERY if path.stem.startswith(("12", "13"))]
EXPERIMENTS = [path for path in EVERY if path not in RELEASED]
# Notebook 01 reads what the score stage has scored; 04 has passes where MMLU is measured.
MEASURED = [path for path in EXPERIMENTS if path.stem[:2] not in ("00", "01", "04")]
# What reads stores and scores: an edit of it changes no score.
READS = tuple(
    f"src/contamination/{name}" for name in ("statistics/", "results/", "membership/evaluate.py")
)
each_notebook = pytest.mark.parametrize("notebook", EXPERIMENTS, ids=lambda path: path.stem)
measured = pytest.mark.parametrize("notebook", MEASURED, ids=lambda path: path.stem)


def make(project: Path, *arguments: str, check: bool = True) -> str:
    """Run make in a copy of the repository and return what it prints."""
    # `make test` may have started us; the make under test must not take itself for its child.
    theirs = ("MAKE", "MFLAGS", "OMP_NUM_THREADS", "STEPS")
    own = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
    shown = subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=project,
        env=own,
        capture_output=True,
        text=True,
    )
    assert not check or shown.returncode == 0, shown.stderr
    return shown.stdout + shown.stderr


def remade(project: Path, *changed: str) -> str:
    """Commands that a complete run would repeat if these files were changed now."""
    words = [word for path in changed for word in ("-W", path)]
    return make(project, "-n", "reproduce", *words)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the repository after a complete run."""
    copy = tmp_path_factory.mktemp("repository")
    for name in COPIED:
        shutil.copy(ROOT / name, copy)
    for name in FOLDERS:
        skipped = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, copy / name, ignore=skipped, symlinks=True)
    program = copy / ".venv" / "bin" / "contamination"
    program.parent.mkdir(parents=True)
    program.write_text(STAND_IN)
    program.chmod(0o755)
    (copy / ".venv" / ".installed").touch()
    for path in (*outputs(), *outputs("open")):
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).touch()
    make(copy, "reproduce")
    return copy


@cache
def _makefile() -> str:
    return (ROOT / "Makefile").read_text(encoding="utf-8")


@cache
def outputs(profile: str = "laptop") -> dict[str, str]:
    """Map every table and figure of a profile to its notebook, as make has them."""
    rules = make(ROOT, "-pnq", "help", f"PROFILE={profile}", check=False)
    results = r"results/(?:open/)?"
    found = re.findall(
        rf"^({results}(?:tables|figures)/\S+): {results}notebooks/(\w+)", rules, re.M
    )
    return dict(found)


@cache
def _graph() -> grimp.ImportGraph:
    return grimp.build_graph("contamination", cache_dir=None)


@cache
def imported(notebook: Path) -> frozenset[str]:
    """Modules of this package that a notebook imports, directly or not."""
    direct = set()
    for cell in nbformat.read(notebook, as_version=4).cells:
        if cell.cell_type == "code":
            for node in ast.walk(ast.parse(cell.source)):
                if isinstance(node, ast.ImportFrom) and node.module:
                    direct |= {node.module, *(f"{node.module}.{a.name}" for a in node.names)}
    direct &= _graph().modules
    return frozenset(direct.union(*(_graph().find_upstream_modules(name) for name in direct)))


def _is_experiment(module: str) -> bool:
    return module.startswith("reproduction.notebooks.") and module.count(".") > 2


def _file(module: str) -> str:
    stem = "src/" + module.replace(".", "/")
    return f"{stem}/__init__.py" if (ROOT / stem).is_dir() else f"{stem}.py"


@cache
def _rules(project: Path) -> dict[str, set[str]]:
    """Prerequisites of every target, as make has them."""
    lines = make(project, "-pnq", "reproduce", check=False).splitlines()
    rules: dict[str, set[str]] = {}
    for line in lines:
        if match := re.match(r"([^\s#:=][^:=]*): ([^=|]*)", line):
            rules.setdefault(match[1], set()).update(match[2].split())
    return rules


# --- what a change remakes ------------------------------------------------------------------------


def test_a_complete_run_leaves_nothing_to_do(project: Path) -> None:
    assert make(project, "-n", "reproduce") == "make: Nothing to be done for 'reproduce'.\n"
    assert "Nothing to be done" in make(project, "-j4", "reproduce")
    assert "Nothing to be done" in make(project.parent, "-C", str(project), "reproduce")


@each_notebook
def test_every_module_that_a_notebook_imports_makes_it_stale(project: Path, notebook: Path) -> None:
    target = f"results/notebooks/{notebook.name}"
    files = {_file(module) for module in imported(notebook)}
    assert len(files) > 20
    assert files <= _rules(project)[target]
    # The longest way there is an edit of what it imports least directly; make agrees.
    assert f"notebook notebooks/{notebook.name}" in remade(
        project, "src/contamination/scoring/head.py"
    )


@each_notebook
def test_no_other_experiment_makes_a_notebook_stale(project: Path, notebook: Path) -> None:
    needed = _rules(project)[f"results/notebooks/{notebook.name}"]
    packages = {path.split("/")[3] for path in needed if "/experiments/" in path}
    modules = {tuple(module.split(".")) for module in imported(notebook)}
    used = {parts[2] for parts in modules if parts[1:2] == ("experiments",) and len(parts) > 2}
    assert packages == used and len(used) == 1
    above = ("src/reproduction/report/", "src/contamination/cli/")
    assert not {path for path in needed if path.startswith(above)}


@pytest.mark.parametrize(
    "changed",
    [
        "notebooks/08_detection_assumptions.ipynb",
        "src/contamination/membership/evaluate.py",
        "src/reproduction/output/figures.py",
        "src/reproduction/notebooks/wikimia/tables.py",
        "src/reproduction/notebooks/books/figures.py",
        "src/reproduction/report/variables.py",
        "src/contamination/statistics/__init__.py",
        "paper/report.qmd",
        "data/published/oren2024_table4_mmlu.csv",
    ],
)
def test_edits_of_notebooks_figures_and_reports_train_and_score_nothing(
    project: Path, changed: str
) -> None:
    shown = remade(project, changed)
    assert not re.search(SCORING, shown)
    assert "stage report" in shown


def test_an_edit_of_the_scoring_trains_nothing(project: Path) -> None:
    shown = remade(project, "src/contamination/scoring/windows.py")
    assert not re.search(TRAINING, shown)
    assert shown.count("stage score ") == 2


@pytest.mark.parametrize(
    ("changed", "stages"),
    [
        ("paper/report.qmd", "report summary"),
        ("notebooks/10_book_audit.ipynb", "notebook manifest report summary"),
    ],
)
def test_an_edit_of_a_document_remakes_it_alone(project: Path, changed: str, stages: str) -> None:
    assert re.findall(r"stage (\w+)", remade(project, changed)) == stages.split()


def test_the_report_reads_the_sources_of_paper_and_not_its_links_to_results(project: Path) -> None:
    """Else a table of the default run would make the report of every other profile stale."""
    needed = _rules(project)["results/report/report.html"]
    sources = [path for path in (project / "paper").iterdir() if not path.is_symlink()]
    names = {f"paper/{path.name}" for path in sources if not path.name.startswith(".")}
    assert {path for path in needed if path.startswith("paper/")} == names


@measured
def test_a_measurement_has_what_it_imports_and_neither_tables_nor_figures(
    project: Path, notebook: Path
) -> None:
    needed = _rules(project)[f"build/laptop/scores/{notebook.stem}.json"]
    (package,) = {name.split(".")[2] for name in imported(notebook) if _is_experiment(name)}
    start = f"reproduction.notebooks.{package}.measure"
    modules = {start, *_graph().find_upstream_modules(start)}
    files = {_file(module) for module in modules}
    assert len(files) > 20
    assert not {path for path in files - needed if not path.startswith(READS)}
    assert not {path for path in needed if path.endswith(("/tables.py", "/figures.py"))}


@measured
def test_the_parameters_of_a_notebook_measure_anew_and_its_prose_does_not(
    project: Path, notebook: Path
) -> None:
    path = project / "notebooks" / notebook.name
    before = path.read_text(encoding="utf-8")
    edited = nbformat.reads(before, as_version=4)
    (parameters,) = (c for c in edited.cells if "parameters" in c.metadata.get("tags", ()))
    try:
        edited.cells[0].source += "\n\nMore words."
        path.write_text(nbformat.writes(edited) + "\n", encoding="utf-8")
        assert "stage measure" not in make(project, "-n", "reproduce")
        parameters.source += "\none_more = 1"
        path.write_text(nbformat.writes(edited) + "\n", encoding="utf-8")
        shown = make(project, "-n", "reproduce")
        assert re.findall(r"stage measure (\S+)", shown) == [f"notebooks/{notebook.name}"]
    finally:
        path.write_text(before, encoding="utf-8")
        make(project, "reproduce")


def test_what_has_passes_over_models_has_a_measurement() -> None:
    found: set[str] = set()
    for profile in ("benchmarks", "open"):
        rules = make(ROOT, "-pnq", "help", f"PROFILE={profile}", check=False)
        found |= set(re.findall(rf"^build/{profile}/scores/(\w+)\.json:", rules, re.M))
    modules = {path.parent.name for path in ROOT.glob("src/reproduction/notebooks/*/measure.py")}
    packages = {
        path.stem: {name.split(".")[2] for name in imported(path) if _is_experiment(name)}
        for path in EVERY
    }
    assert found == {stem for stem, used in packages.items() if used & modules}
    assert set().union(*(packages[stem] for stem in found)) == modules
    assert found >= {path.stem for path in MEASURED}


@pytest.mark.parametrize("notebook", RELEASED, ids=lambda path: path.stem)
def test_a_notebook_of_released_models_counts_by_its_code(notebook: Path) -> None:
    rules = make(ROOT, "-pnq", "help", "PROFILE=open", check=False)
    target = f"results/open/notebooks/{notebook.name}"
    (needed,) = re.findall(rf"^{re.escape(target)}: ([^|\n]*)", rules, re.M)
    assert {_file(module) for module in imported(notebook)} <= set(needed.split())


def test_a_launcher_starts_every_pass_over_a_model_and_no_notebook(project: Path) -> None:
    launcher = "accelerate launch --multi_gpu"
    shown = make(project, "-nB", "-o", ".venv/.installed", "reproduce", f"LAUNCH={launcher}")
    commands = re.findall(r"^(.*)\.venv/bin/python -m reproduction (\w+) ", shown, re.M)
    assert len(commands) > 20
    launched = [verb for before, verb in commands if launcher in before]
    path = f'PATH="{project}/.venv/bin:$PATH" {launcher} '
    assert all(before.endswith(path) for before, _ in commands if launcher in before)
    alone = {verb for before, verb in commands if launcher not in before}
    assert alone == {"corpus", "notebook", "explorer", "manifest", "report", "summary"}
    assert set(launched) == {"train", "score", "measure"}
    assert launched.count("measure") == len(MEASURED)


def test_min_k_reads_the_table_of_the_canaries(project: Path) -> None:
    shown = remade(project, "notebooks/01_canary_eval.ipynb")
    assert re.findall(r"notebooks/(\d+)", shown) == ["01", "07"]


@pytest.mark.parametrize(
    ("old", "new", "stages"),
    [
        ("", "", ""),
        ("# The default", "# The usual profile", ""),
        ("seed: ", "seed: 1", ALL),
        ("vocabulary: 4096", "vocabulary: 4097", ALL),
        ("dup_count: 64", "dup_count: 63", ALL),
        ("warmup_steps: 50", "warmup_steps: 51", ALL.removeprefix("corpus ")),
        ("{ n_embd: 64, n_layer: 4", "{ n_embd: 64, n_layer: 5", "train measure notebook"),
        ("permutations: 25, whole", "permutations: 26, whole", "score score measure notebook"),
        ("06_wikimia: { texts: 60", "06_wikimia: { texts: 61", "measure notebook"),
    ],
)
def test_a_profile_counts_by_its_sections(project: Path, old: str, new: str, stages: str) -> None:
    """An edit remakes what reads it; touching the file, or a comment in it, remakes nothing."""
    path = project / "profiles" / "laptop.yaml"
    before = path.read_text()
    assert old in before
    try:
        path.write_text(before.replace(old, new, 1) if old else before)
        shown = make(project, "-n", "reproduce")
        found = re.findall(r"stage (\w+)", shown)
        assert ("Nothing to be done" in shown) == (not stages)
        for stage in ("corpus", "train", "score"):
            assert found.count(stage) == stages.split().count(stage), stage
        assert ("measure" in found) == ("measure" in stages)
        assert ("notebook" in found) == bool(stages)
        if "wikimia" in old:
            assert found == ["measure", "notebook", "manifest", "report", "summary"]
    finally:
        path.write_text(before)
        make(project, "reproduce")


def test_every_key_of_a_profile_is_in_a_section() -> None:
    """A key that no section names would change a run without remaking anything."""
    script = (ROOT / "scripts" / "sections.awk").read_text(encoding="utf-8")
    sections = re.findall(r'section\("\w+", "([\w ]+)"\)', script)
    keys = {field.name for kind in (Profile, Pretraining) for field in dataclasses.fields(kind)}
    assert keys - {"name", "notebooks", "pretraining"} == set(" ".join(sections).split())


def test_a_deleted_result_comes_back_and_only_its_notebook_runs(project: Path) -> None:
    lost = project / "results" / "tables" / "mmlu_fisher.csv"
    lost.unlink()
    shown = make(project, "-n", "reproduce")
    # The explorer shows what this notebook may have scored.
    stages = ["notebook", "manifest", "report", "explorer", "summary"]
    assert re.findall(r"stage (\w+)", shown) == stages
    assert "04_mmlu_fisher" in make(project, "-n", "results/tables/mmlu_fisher.csv")
    lost.touch()


def test_the_site_shows_the_last_run_and_starts_none(project: Path) -> None:
    site = project / "build" / "docs" / "index.html"
    site.parent.mkdir()
    site.touch()
    assert "Nothing to be done" in make(project, "-n", "docs")
    stale = make(project, "-n", "docs", "-W", "src/contamination/scoring/head.py")
    assert "sphinx-build" in stale and "stage " not in stale
    notebook = project / "results" / "notebooks" / EXPERIMENTS[0].name
    before = notebook.stat()
    os.utime(notebook, (before.st_atime, site.stat().st_mtime + 9))
    assert "sphinx-build" in make(project, "-n", "docs")
    os.utime(notebook, (before.st_atime, before.st_mtime))


def planned(project: Path) -> list[str]:
    """Stages of the last run, as they stand in the file that each of them counts itself by."""
    text = (project / "build" / "laptop" / "steps").read_text()
    return re.findall(r"contamination stage (\w+ \S+)", text)


@pytest.mark.parametrize("jobs", ["-j1", "-j4"])
def test_what_make_plans_is_what_it_runs(project: Path, jobs: str) -> None:
    """From scratch, and after a change: the steps are counted before the first of them."""
    shutil.rmtree(project / "build")
    for changed, notebooks in [
        ("profiles/laptop.yaml", len(EXPERIMENTS)),
        ("notebooks/09_controlled_contamination.ipynb", 1),
    ]:
        (project / "ran").unlink()
        (project / changed).touch()
        make(project, "reproduce", jobs)
        ran = (project / "ran").read_text().splitlines()
        assert sorted(planned(project)) == sorted(ran)
        assert sum(step.startswith("notebook") for step in ran) == notebooks


def test_dry_runs_and_runs_with_nothing_to_do_leave_the_plan_alone(project: Path) -> None:
    (project / "paper" / "report.qmd").touch()
    make(project, "reproduce")
    before = planned(project)
    make(project, "reproduce")
    make(project, "-n", "reproduce", "-W", "notebooks/10_book_audit.ipynb")
    assert planned(project) == before == ["report --results", "summary --results"]


def test_commands_are_shown_by_dry_runs_alone(project: Path) -> None:
    assert "stage" not in make(project, "reproduce", "-W", "paper/report.qmd")
    assert "stage report" in make(project, "-n", "reproduce", "-W", "paper/report.qmd")


@pytest.mark.parametrize(
    ("profile", "cores"), [("laptop", 2), ("quick", 2), ("laptop", 8), ("paper", 8)]
)
def test_threads_of_a_step_do_not_depend_on_what_runs_beside_it(
    project: Path, profile: str, cores: int
) -> None:
    """Half of the cores for the small profiles, whatever -j; the others leave it to torch."""
    arguments = ("-n", "-B", "-o", ".venv/.installed", f"CORES={cores}", f"PROFILE={profile}")
    for jobs in ("-j1", "-j2", "-j7"):
        found = re.findall(r"OMP_NUM_THREADS=(\d+)", make(project, "report", *arguments, jobs))
        assert set(found) == (set() if profile == "paper" else {str(cores // 2)})


def test_a_failed_installation_shows_its_end_and_names_its_log(tmp_path: Path) -> None:
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("profiles", "scripts", "notebooks"):
        shutil.copytree(ROOT / name, tmp_path / name)
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\n[ $1 = -c ] && exit\nmkdir -p .venv/bin; cp $0 .venv/bin/python\n"
        "[ $2 = venv ] && exit\nfor i in $(seq 100); do echo line $i; done; exit 1\n"
    )
    python.chmod(0o755)
    shown = make(tmp_path, "setup", "PYTHON=./python", check=False)
    assert shown.count("\n") < 25
    assert "line 100\n" in shown and "line 50\n" not in shown
    assert "error: the installation failed; all that pip said: build/setup.log" in shown
    assert "line 1\n" in (tmp_path / "build" / "setup.log").read_text()
    assert not (tmp_path / ".venv" / ".installed").exists()
    assert not (tmp_path / "build" / "installing").exists()


def test_every_output_that_make_knows_is_written_by_its_notebook() -> None:
    for path, notebook in (outputs() | outputs("open")).items():
        source = (ROOT / "notebooks" / f"{notebook}.ipynb").read_text(encoding="utf-8")
        stem = Path(path).stem
        named = stem.startswith(("assumptions_", "papers_")) or f'\\"{stem}\\"' in source
        assert named, path


def test_make_knows_the_file_of_each_published_table() -> None:
    cells = published_cells(ROOT / "data" / "published")
    rows = compare(cells, {}, profile="open", notebooks=())
    known = {Path(path).stem for path, name in outputs("open").items() if name.startswith("13")}
    names = {name for name, _, _ in file_names(rows)}
    assert known == names | {"papers", "papers_summary", "papers_reasons"}


# --- the command line of make ---------------------------------------------------------------------


def test_a_path_with_a_blank_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "two words"
    folder.mkdir()
    shutil.copy(ROOT / "Makefile", folder)
    assert "has a blank in it" in make(folder, "help", check=False)


def test_two_installations_at_once_are_reported(project: Path) -> None:
    (project / "build" / "installing").mkdir()
    try:
        shown = make(project, "-W", "requirements.lock", "setup", check=False)
        assert "error: another make installs into .venv" in shown
        assert (project / ".venv" / ".installed").exists()
    finally:
        (project / "build" / "installing").rmdir()


@cache
def _helped() -> set[str]:
    """Targets that `make help` lists."""
    targets = dict(re.findall(r"^  ([a-z]+) +(\S.*)$", make(ROOT, "help"), re.MULTILINE))
    assert all(len(text) > 5 for text in targets.values())
    return set(targets)


def test_help_lists_every_phony_target() -> None:
    phony = {
        name for line in re.findall(r"^\.PHONY:(.*)$", _makefile(), re.M) for name in line.split()
    }
    phony.remove("again")
    assert {"help", "setup", "reproduce", "smoke", "test", "report", "clean", "distclean"} <= phony
    assert _helped() == phony


def test_documented_targets_exist() -> None:
    names = ("README.md", ".ci/run", "data/README.md", "docs/fidelity.md")
    documents = [ROOT / name for name in (*names, "docs/how-to/reproduce.md")] + PROFILES
    text = "\n".join(path.read_text(encoding="utf-8") for path in documents)
    found = set(re.findall(r"(?:[`;]\s*|^\s*)make (?:-n )?([\w./-]+)", text, re.MULTILINE))
    assert {"reproduce", "smoke"} <= found
    files = {target for target in found if "/" in target}
    assert found - files <= _helped()
    make(ROOT, "--dry-run", *sorted(files))  # fails with "No rule to make target"


def test_unknown_profile_is_reported_by_make() -> None:
    shown = make(ROOT, "reproduce", "PROFILE=lapotp", check=False)
    assert "unknown PROFILE 'lapotp'" in shown and "laptop" in shown
    assert not (ROOT / "build" / "lapotp").exists()


def test_make_knows_every_notebook() -> None:
    for path in NOTEBOOKS:
        assert path.stem in _makefile()


def test_recipes_do_not_depend_on_gnu_make_4() -> None:
    """MacOS ships 3.81: no grouped targets, no `file` function, no .ONESHELL."""
    assert not re.search(r"^[^#\t]*&:", _makefile(), re.MULTILINE)
    assert "$(file " not in _makefile()
    assert ".ONESHELL" not in _makefile()


# --- profiles without a corpus --------------------------------------------------------------------


def listed(project: Path, profile: str) -> list[str]:
    """Notebooks that the YAML of a profile lists, in the order of their names."""
    text = (project / "profiles" / f"{profile}.yaml").read_text(encoding="utf-8")
    return sorted(yaml.safe_load(text)["notebooks"])


def test_a_profile_without_a_corpus_runs_what_it_lists_and_trains_nothing(project: Path) -> None:
    (project / "ran").unlink(missing_ok=True)
    make(project, "reproduce", "PROFILE=open")
    names = listed(project, "open")
    assert set(names) <= {path.stem for path in EVERY}
    ran = (project / "ran").read_text().splitlines()
    assert [line for line in ran if line.startswith("notebook")] == [
        f"notebook notebooks/{name}.ipynb" for name in names
    ]
    # All but the last make passes over models: that one lays the tables of the others side by side.
    scored = [f"measure notebooks/{name}.ipynb" for name in names if not name.startswith("13")]
    assert sorted(line for line in ran if line.startswith("measure")) == scored
    others = [line.split()[0] for line in ran if not line.startswith(("notebook", "measure"))]
    assert others == ["manifest", "report", "summary"]
    assert make(project, "-n", "reproduce", "PROFILE=open").endswith(
        "Nothing to be done for 'reproduce'.\n"
    )
    assert not (project / "results" / "open" / "explorer.html").exists()


@pytest.mark.parametrize(
    ("changed", "stages"),
    [
        ("data/models.yaml", {"measure", "notebook", "manifest", *REPORTED}),
        ("src/contamination/scoring/head.py", {"measure", "notebook", "manifest", *REPORTED}),
        ("src/reproduction/report/render.py", {"manifest", *REPORTED}),
        ("paper/open.qmd", {*REPORTED}),
    ],
)
def test_what_a_change_remakes_of_a_profile_without_a_corpus(
    project: Path, changed: str, stages: set[str]
) -> None:
    make(project, "reproduce", "PROFILE=open")
    shown = make(project, "-n", "reproduce", "PROFILE=open", "-W", changed)
    assert set(re.findall(r"stage (\w+)", shown)) == stages


def test_parameters_of_a_listed_notebook_measure_it_alone(project: Path) -> None:
    make(project, "reproduce", "PROFILE=open")
    path = project / "profiles" / "open.yaml"
    before = path.read_text()
    try:
        assert "neighbours: 10" in before
        path.write_text(before.replace("neighbours: 10", "neighbours: 11"))
        shown = make(project, "-n", "reproduce", "PROFILE=open")
        assert re.findall(r"stage measure (\S+)", shown) == ["notebooks/06_wikimia.ipynb"]
    finally:
        path.write_text(before)
        make(project, "reproduce", "PROFILE=open")


def test_a_launcher_starts_the_passes_over_released_models(project: Path) -> None:
    shown = make(
        project, "-nB", "-o", ".venv/.installed", "reproduce", "PROFILE=open", "LAUNCH=torchrun"
    )
    commands = re.findall(r"^(.*)\.venv/bin/python -m reproduction (\w+) ", shown, re.M)
    launched = {verb for before, verb in commands if before.endswith("torchrun ")}
    assert launched == {"measure"}


def test_a_profile_may_take_its_notebooks_from_its_base(project: Path) -> None:
    mine = project / "profiles" / "mine.yaml"
    try:
        for text, names in [
            ("base: open\n", listed(project, "open")),
            ("base: open\nnotebooks:\n  06_wikimia: {}\nseed: 3\n", ["06_wikimia"]),
        ]:
            mine.write_text(text)
            shown = make(project, "-n", "reproduce", "PROFILE=mine")
            assert re.findall(r"stage notebook notebooks/(\w+)", shown) == names
    finally:
        mine.unlink()


def test_notebooks_of_released_models_are_of_profiles_without_a_corpus(project: Path) -> None:
    for profile in ("laptop", "quick", "benchmarks", "paper"):
        shown = make(project, "-nB", "-o", ".venv/.installed", "reproduce", f"PROFILE={profile}")
        assert not re.findall(r"notebooks/1[23]_", shown)


# --- what git holds -------------------------------------------------------------------------------


def test_cleaning_leaves_what_git_holds(tmp_path: Path) -> None:
    for name in ("Makefile", "profiles", "scripts"):
        (tmp_path / name).symlink_to(ROOT / name)
    made = [".unfinished", "manifest.json", "tables/a.csv", "figures/a.svg", "report/report.pdf"]
    kept = [f"reference/{name}" for name in made[1:]]
    others = ["quick/tables/a.csv", "explorer.html", "comparison.csv"]
    for name in (*made, *kept, *others):
        path = tmp_path / "results" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def left() -> list[str]:
        files = (p for p in (tmp_path / "results").rglob("*") if p.is_file())
        return sorted(p.relative_to(tmp_path / "results").as_posix() for p in files)

    make(tmp_path, "clean")
    assert left() == sorted([".unfinished", *kept, "quick/tables/a.csv"])
    make(tmp_path, "distclean")
    assert left() == sorted(kept)


def test_the_reference_is_of_all_that_a_run_writes(project: Path) -> None:
    (command,) = re.findall(
        r"stage reference --results results (.*)", make(project, "-n", "reference")
    )
    assert sorted(command.split()) == sorted(outputs())


def test_the_reference_in_git_is_complete() -> None:
    drawn = {path for path in outputs() if not path.endswith(".png")}
    reference = ROOT / "results" / "reference"
    held = {path.relative_to(reference).as_posix() for path in reference.rglob("*.*")}
    missing = {path.removeprefix("results/") for path in drawn} - held
    assert not missing
    assert {"manifest.json", "report/report.pdf", "tables/run_steps.md"} <= held
    assert not [path for path in held if path.endswith(".png")]
