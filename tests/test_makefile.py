"""The Makefile: what an edit remakes, and nothing else.

The repository is copied beside a stand-in for `.venv/bin/python`, whose stages write what the real
ones would, empty. So a complete run takes seconds, and make and the stamps are what is tested. The
rules and the stamps are written by this process, since starting Python takes longer.
"""

import itertools
import os
import re
import shutil
import subprocess
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from contamination.scoring.models import load_models
from fakes.data_fixtures import ROOT
from reproduction.notebooks.table import NOTEBOOKS, RELEASED_MMLU, outputs
from reproduction.run.profile import RunFiles
from reproduction.stages.rules import write_rules

FOLDERS = ("data", "docs", "notebooks", "paper", "profiles", "scripts", "src")
FILES = ("Makefile", "README.md", "requirements.lock", "pyproject.toml")
STAND_IN = """#!/bin/sh
# -m reproduction VERB [NAME] ... --build B --results R
verb=$3; name=$4
[ "$verb" = rules ] && { echo "$5 $7 $9" > asked; exec cat answered; }
case $name in -*) name=;; esac
echo $verb $(basename "$name" .ipynb) >> ran
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
TRAINED = {name: row for name, row in NOTEBOOKS.items() if not row.released}
# Notebook 04 has passes over models only where a profile asks for them.
MEASURED = [f"measure {name}" for name, row in TRAINED.items() if row.passes and not row.needs]


def written(name: str) -> list[str]:
    return outputs(ROOT / "notebooks" / f"{name}.ipynb")


TRAIN = ["train contaminated", "train clean", "train clean-64"]
SCORE = ["score contaminated", "score clean"]


def make(project: Path, *arguments: str, check: bool = True) -> str:
    """Run make in a copy of the repository and return what it prints."""
    # `make test` may have started us; the make under test must not take itself for its child.
    theirs = ("MAKE", "MFLAGS", "OMP_NUM_THREADS", "STEPS")
    own = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
    command = ["make", "--no-print-directory", *arguments]
    shown = subprocess.run(command, cwd=project, env=own, capture_output=True, text=True)
    assert not check or shown.returncode == 0, shown.stdout + shown.stderr
    return shown.stdout + shown.stderr


def stages(shown: str) -> list[str]:
    """The stages in what `make -n` prints: "train clean", "measure 06_wikimia", "report"."""
    found = re.findall(r"-m reproduction (\w+)(?: (?:notebooks/)?([^\s.-][^\s.]*))?", shown)
    return [" ".join(filter(None, words)) for words in found]


def stale(project: Path, *arguments: str) -> list[str]:
    return stages(make(project, "-n", "reproduce", *arguments))


def ran(project: Path, *arguments: str) -> list[str]:
    (project / "ran").unlink(missing_ok=True)
    make(project, *arguments)
    return (project / "ran").read_text().splitlines()


def verbs(found: list[str]) -> set[str]:
    return {stage.split()[0] for stage in found}


@contextmanager
def edited(path: Path, old: str = "", new: str = "\nedited = 1\n") -> Iterator[None]:
    """Replace `old` in a file, or append to it; put it and the stamps back afterwards."""
    root = next(folder for folder in path.parents if (folder / "Makefile").is_file())
    kept = root.with_name("kept")
    shutil.copytree(root / "build", kept, ignore=shutil.ignore_patterns("docs"))
    before = path.read_text(encoding="utf-8"), path.stat()
    assert old in before[0]
    text = before[0].replace(old, new, 1) if old else before[0] + new
    path.write_text(text, encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(before[0], encoding="utf-8")
        os.utime(path, ns=(before[1].st_atime_ns, before[1].st_mtime_ns))
        shutil.rmtree(root / "build")
        kept.rename(root / "build")


def answer(project: Path) -> None:
    """Write rules and stamps whenever the stand-in asks for them; it waits for the answer."""
    asked = project / "asked"
    while words := asked.read_text().split():
        profile, build, results = words
        load_models.cache_clear()
        try:
            run = RunFiles(project / profile, project / build)
            write_rules(run, project / results, project)
        except Exception:  # make misses the rules, and the test fails
            traceback.print_exc()
        (project / "answered").write_text("")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a copy of the repository after a complete run."""
    copy = tmp_path_factory.mktemp("repository") / "copy"
    copy.mkdir()
    for name in FILES:
        shutil.copy(ROOT / name, copy)
    skipped = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, copy / name, ignore=skipped, symlinks=True)
    (copy / RELEASED_MMLU).parent.mkdir(parents=True)
    shutil.copy(ROOT / RELEASED_MMLU, copy / RELEASED_MMLU)
    program = copy / ".venv" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(STAND_IN)
    program.chmod(0o755)
    (copy / ".venv" / ".installed").touch()
    for name in NOTEBOOKS:
        for results in ("results", "results/open"):
            for path in written(name):
                (copy / results / path).parent.mkdir(parents=True, exist_ok=True)
                (copy / results / path).touch()
    for name in ("asked", "answered"):
        os.mkfifo(copy / name)
    answering = threading.Thread(target=answer, args=(copy,))
    answering.start()
    try:
        make(copy, "reproduce")
        yield copy
    finally:
        (copy / "asked").write_text("")
        answering.join()


def test_a_complete_run_and_another_docstring_leave_nothing_to_do(project: Path) -> None:
    assert "Nothing to be done" in make(project, "reproduce")
    words = ('    """', '    # A comment.\n    """Other words. ')
    with edited(project / "src/contamination/scoring/windows.py", *words):
        assert "Nothing to be done" in make(project, "reproduce")


def test_an_edit_that_is_taken_back_leaves_nothing_to_do(project: Path) -> None:
    profile = project / "profiles" / "laptop.yaml"
    written = profile.read_text(encoding="utf-8")
    with edited(profile, "warmup_steps: 50", "warmup_steps: 51"):
        assert "train clean" in stale(project)
        profile.write_text(written.replace("warmup_steps: 50", "warmup_steps: 52"))
        assert "train clean" in stale(project)
        profile.write_text(written)
        assert "Nothing to be done" in make(project, "reproduce")
        # What was made of the edit is stale once the edit is taken back.
        profile.write_text(written.replace("warmup_steps: 50", "warmup_steps: 51"))
        make(project, "reproduce")
        profile.write_text(written)
        assert "train clean" in stale(project)


EARLY = {"corpus", "train", "score", "measure"}


@pytest.mark.parametrize(
    ("changed", "expected", "without"),
    [
        ("src/contamination/scoring/windows.py", [*SCORE, *MEASURED], {"corpus", "train"}),
        ("src/reproduction/run/training.py", [*TRAIN, *SCORE, *MEASURED], {"corpus"}),
        ("data/published/oren2024_table4_mmlu.csv", ["notebook 04_mmlu_fisher"], EARLY),
        (
            "src/contamination/statistics/t_test.py",
            ["notebook 01_canary_eval", "measure 02_shard_permutation_ablation"],
            {"corpus", "train"},
        ),
        ("src/reproduction/report/readings.py", ["manifest"], EARLY | {"notebook"}),
        ("src/reproduction/report/filter.lua", ["report"], EARLY | {"notebook", "manifest"}),
        ("src/contamination/cli/audit.py", [], {*EARLY, "notebook", "manifest", "report"}),
    ],
)
def test_an_edit_remakes_what_reads_it(project: Path, changed, expected, without) -> None:
    with edited(project / changed, new="\nx = 1\n" if changed.endswith("py") else "\n"):
        found = stale(project)
    assert set(expected) <= set(found)
    assert not verbs(found) & without
    if "oren2024" in changed:
        assert "notebook 14_option_order" not in found


def test_the_prose_of_a_notebook_executes_it_and_its_parameters_measure_anew(project: Path) -> None:
    path = project / "notebooks" / "14_option_order.ipynb"
    ran = ["notebook 14_option_order", "manifest", "report", "summary"]
    with edited(path, "# 14 ", "# More words: 14 "):
        for jobs in "17":  # threads of a step do not depend on what runs beside it
            shown = make(project, "-n", "reproduce", "CORES=8", f"-j{jobs}")
            assert stages(shown) == ran
            assert set(re.findall(r"OMP_NUM_THREADS=(\d+)", shown)) == {"4"}
    with edited(path, '"longest = ', '"one_more = 1\\n",\n    "longest = '):
        assert stale(project) == ["measure 14_option_order", *ran]


ALL = "corpus train train train score score measure notebook"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("# The default", "# The usual profile", ""),
        ("dup_count: 64", "dup_count: 63", ALL),
        ("model: { n_embd: 256", "model: { n_embd: 128", ALL.replace("corpus train ", "")),
        ("warmup_steps: 50", "warmup_steps: 51", ALL.removeprefix("corpus ")),
        ("{ n_embd: 64, n_layer: 4", "{ n_embd: 64, n_layer: 5", "train measure notebook"),
        ("permutations: 25, whole", "permutations: 26, whole", "score score measure notebook"),
        ("06_wikimia: { texts: 60", "06_wikimia: { texts: 61", "measure notebook"),
    ],
)
def test_a_profile_counts_by_its_sections(project: Path, old, new, expected) -> None:
    with edited(project / "profiles" / "laptop.yaml", old, new):
        found = [stage.split()[0] for stage in stale(project)]
    for stage in ("corpus", "train", "score"):
        assert found.count(stage) == expected.split().count(stage), stage
    assert {"measure", "notebook"} & set(found) == {"measure", "notebook"} & set(expected.split())


def test_a_launcher_starts_every_pass_over_a_model_and_no_notebook(project: Path) -> None:
    launcher, launched = "accelerate launch --multi_gpu", {"train", "score", "measure"}
    # What make would run if nothing but the environment were there.
    shown = make(project, "-nB", "-o", ".venv/.installed", "reproduce", f"LAUNCH={launcher}")
    start = f'PATH="{project}/.venv/bin:$PATH" {launcher} '
    lines = [line for line in shown.splitlines() if start in line]
    assert verbs(stages("\n".join(lines))) == launched
    assert all(line in lines for line in shown.splitlines() if verbs(stages(line)) & launched)


def test_stores_come_before_passes_that_do_not_read_them_where_all_is_made(project: Path) -> None:
    passes = "build/laptop/scores/14_option_order.json"
    anew = ("-nB", "-o", ".venv/.installed", passes)
    alone = stages(make(project, *anew))
    assert not set(SCORE) & set(alone)
    planned = stages(make(project, *anew, "scores"))
    assert max(map(planned.index, SCORE)) < planned.index("measure 14_option_order")


def test_what_make_plans_is_what_it_runs(project: Path) -> None:
    shutil.rmtree(project / "build")
    for changed, notebooks in [
        ("profiles/laptop.yaml", len(TRAINED)),
        ("notebooks/14_option_order.ipynb", 1),
    ]:
        (project / changed).touch()
        done = ran(project, "reproduce", "-j4")
        planned = (project / "build" / "laptop" / "steps").read_text().splitlines()
        assert sorted(line.split()[0] for line in planned) == sorted(s.split()[0] for s in done)
        assert sum(step.startswith("notebook") for step in done) == notebooks


def test_a_profile_without_a_corpus_runs_what_it_lists_and_trains_nothing(project: Path) -> None:
    listed = sorted(yaml.safe_load((project / "profiles/open.yaml").read_text())["notebooks"])
    done = ran(project, "reproduce", "PROFILE=open")
    assert [line for line in done if line[0] == "n"] == [f"notebook {n}" for n in listed]
    assert verbs(done) == {"measure", "notebook", "manifest", "report", "summary"}
    assert "Nothing to be done" in make(project, "reproduce", "PROFILE=open")
    models = project / "data" / "models.yaml"
    with edited(models, new="\n# A comment.\n"):
        assert "Nothing to be done" in make(project, "reproduce", "PROFILE=open")
    with edited(models, "context: 2048", "context: 2047"):
        again = [stage for stage in stale(project, "PROFILE=open") if stage.startswith("me")]
    assert "measure 03_open_model_audit" in again


def test_the_table_and_the_notebooks_agree(project: Path) -> None:
    assert {path.stem for path in ROOT.glob("notebooks/[01]*.ipynb")} == set(NOTEBOOKS)
    command = make(project, "-n", "reference").split("--results results ")[1].split("\n")[0]
    listed = list(itertools.chain.from_iterable(written(name) for name in TRAINED))
    assert sorted(command.split()) == sorted(f"results/{path}" for path in listed)


def test_cleaning_leaves_what_git_holds(tmp_path: Path) -> None:
    for name in ("Makefile", "profiles", "requirements.lock", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    made = ["manifest.json", "tables/a.csv", "report/report.pdf", "explorer.html"]
    kept = [f"reference/{name}" for name in made]
    quick = ["quick/tables/a.csv"]
    results = tmp_path / "results"
    for name in (*made, *kept, *quick):
        (results / name).parent.mkdir(parents=True, exist_ok=True)
        (results / name).touch()
    assert "unknown PROFILE 'lapotp'" in make(tmp_path, "PROFILE=lapotp", "reproduce", check=False)
    for goal, left in (("clean", [*quick, *kept]), ("distclean", kept)):
        make(tmp_path, goal)
        files = (path for path in results.rglob("*") if path.is_file())
        assert {path.relative_to(results).as_posix() for path in files} == {*left}
    assert not (tmp_path / "build").exists()
    assert not (tmp_path / ".venv").exists()


def test_a_mistyped_target_is_refused_before_anything_is_installed(tmp_path: Path) -> None:
    for name in ("Makefile", "profiles", "requirements.lock", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    shown = make(tmp_path, "reproduec", check=False)
    assert "reproduec" in shown
    assert "installing" not in shown
    assert not (tmp_path / "build").exists()


def test_the_documentation_needs_no_rules_of_a_profile(tmp_path: Path) -> None:
    for name in ("Makefile", "profiles", "requirements.lock", "pyproject.toml", "README.md"):
        (tmp_path / name).symlink_to(ROOT / name)
    shown = make(tmp_path, "-n", "docs", check=False)
    assert "sphinx-build" in shown
    assert "reproduction rules" not in shown


def test_the_list_of_targets_fits_a_terminal(tmp_path: Path) -> None:
    for name in ("Makefile", "profiles"):
        (tmp_path / name).symlink_to(ROOT / name)
    lines = make(tmp_path, "help").splitlines()
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("named", ["{folder}/conda", "conda", "conda/", "../{name}/conda"])
def test_cleaning_leaves_an_environment_that_is_named(tmp_path: Path, named: str) -> None:
    """As `make reproduce VENV=$CONDA_PREFIX` uses one that holds more than make has installed."""
    for name in ("Makefile", "profiles", "requirements.lock", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name in ("conda/bin/python", "conda/.installed", ".venv/bin/python"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    make(tmp_path, "distclean", f"VENV={named.format(folder=tmp_path, name=tmp_path.name)}")
    left = [path for path in (tmp_path / "conda").rglob("*") if path.is_file()]
    assert left == [tmp_path / "conda/bin/python"]
    make(tmp_path, "distclean", "VENV=./.venv/")
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("named", ["", "a b", ".venv a"])
def test_an_environment_is_one_path(tmp_path: Path, named: str) -> None:
    (tmp_path / "a").mkdir()
    for name in ("Makefile", "profiles", "requirements.lock", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    assert "VENV" in make(tmp_path, "distclean", f"VENV={named}", check=False)
    assert (tmp_path / "a").is_dir()
