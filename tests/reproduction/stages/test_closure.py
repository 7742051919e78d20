"""The code that a stage depends on."""

import ast
import re
from importlib.metadata import version
from itertools import chain

import pytest

from fakes.data_fixtures import ROOT
from reproduction.notebooks.table import NOTEBOOKS
from reproduction.run.profile import RunFiles
from reproduction.stages.closure import READ_BY, closure, facts, homes_in
from reproduction.stages.digests import Digests
from reproduction.stages.rules import rules_of

TRAINING = "reproduction.run.training"
OWN_FILE = re.compile(r"Path\(__file__\)\.with_name\(|files\(__package__\)")


@pytest.fixture(scope="module")
def known() -> Digests:
    """Return digests and versions that are looked up once for all tests."""
    return Digests()


def test_training_reaches_no_more_of_scoring_than_its_processes() -> None:
    found = closure([TRAINING])
    scoring = {name for name in found if name.startswith("contamination.scoring.")}
    assert scoring == {"contamination.scoring.processes", "contamination.scoring.status"}
    packages = {".".join(name.split(".")[:2]) for name in found if "." in name}
    heavy = {"contamination.audit", "contamination.statistics", "reproduction.notebooks"}
    assert not packages & heavy


def test_the_code_of_every_statistic_is_in_a_stamp(tmp_path, known) -> None:
    """Their package imports them on first use; a corrected one must renew the tables."""
    run = RunFiles(ROOT / "profiles" / "laptop.yaml", tmp_path)
    stamps = rules_of(run, ROOT, known).stamps
    files = (ROOT / "src" / "contamination" / "statistics").glob("*.py")
    modules = {f"contamination.statistics.{file.stem}" for file in files}
    modules.remove("contamination.statistics.__init__")
    assert modules <= set(chain.from_iterable(stamps.values()))
    in_tables = {"sharded_exact", "t_test", "permutation", "successor", "multiple_testing"}
    needed = {f"contamination.statistics.{name}" for name in in_tables}
    assert needed <= set(stamps["notebook-01_canary_eval"])


@pytest.mark.parametrize(
    "code",
    [
        "from contamination.statistics import adjust",
        "from contamination import adjust as corrected",
        "from contamination import statistics\nstatistics.adjust(p)",
        "import contamination\ncontamination.adjust(p)",
    ],
)
def test_a_name_from_a_package_stands_for_the_module_that_defines_it(code: str) -> None:
    home = "contamination.statistics.multiple_testing"
    assert home in homes_in(ast.parse(code))
    assert home not in homes_in(ast.parse(code.replace("adjust", "permutation_test")))


def test_versions_and_the_files_that_a_module_reads_count(known) -> None:
    found = facts(ROOT, [TRAINING], known=known)
    assert found["torch"]
    assert found["transformers"]
    assert not {"ruff", "matplotlib", "papermill"} & set(found)
    assert found["yaml"] == version("pyyaml")
    read = facts(ROOT, ["reproduction.output.published"], known=known)
    assert "data/published/shi2023_headline.csv" in read


def test_a_module_of_a_stage_that_reads_a_file_of_its_folder_names_it(tmp_path, known) -> None:
    run = RunFiles(ROOT / "profiles" / "laptop.yaml", tmp_path)
    stamps = rules_of(run, ROOT, known).stamps
    reading = set()
    for name in set(chain.from_iterable(stamps.values())):
        path = ROOT / "src" / f"{name.replace('.', '/')}.py"
        if path.is_file() and OWN_FILE.search(path.read_text("utf-8")):
            reading.add(name)
    assert "contamination.audit.power" in reading
    assert reading - {"contamination.scoring.models"} <= set(READ_BY)
    assert "src/contamination/audit/effects.csv" in stamps["notebook-03_open_model_audit"]


def test_every_part_of_a_profile_is_in_a_stamp(tmp_path, known) -> None:
    """A part that no stamp names would change a run without remaking anything."""
    run = RunFiles(ROOT / "profiles" / "laptop.yaml", tmp_path)
    stamps = rules_of(run, ROOT, known).stamps
    lines = set(chain.from_iterable(stamps.values()))
    assert stamps["corpus"]["statsmodels"] == version("statsmodels")  # its text is in the sets
    notebooks = {name for name, row in NOTEBOOKS.items() if not row.released}
    expected = {"seed", *vars(run.profile.require_pretraining()), *notebooks}
    assert {line[9:] for line in lines if line.startswith("profile: ")} == expected
