"""The code that a stage depends on, beside an import graph that others have built."""

import subprocess
import sys

import grimp
import pytest

from fakes.data_fixtures import ROOT
from reproduction.run.files import RunFiles
from reproduction.stages.closure import Code
from reproduction.stages.rules import Rules

TRAINING = "reproduction.run.training_stage"


@pytest.fixture(scope="module")
def code() -> Code:
    return Code(ROOT)


def test_it_is_what_an_import_graph_finds(code: Code) -> None:
    graph = grimp.build_graph(
        "contamination", "reproduction", cache_dir=None, exclude_type_checking_imports=True
    )
    ours = {name for name in graph.modules if name.startswith(("contamination", "reproduction"))}
    for start in ours:
        found = {name for name in code.closure([start]) if name in ours}
        assert found >= {start, *graph.find_upstream_modules(start)} & ours, start
        parents = {name.rpartition(".")[0] for name in found} - {""}
        assert parents <= found, start


def test_training_reaches_no_more_of_scoring_than_its_processes(code: Code) -> None:
    found = code.closure([TRAINING])
    scoring = {name for name in found if name.startswith("contamination.scoring.")}
    assert scoring == {"contamination.scoring.processes", "contamination.scoring.status"}
    rooms = {".".join(name.split(".")[:2]) for name in found if "." in name}
    assert not rooms & {"contamination.audit", "contamination.statistics", "reproduction.notebooks"}
    program = f"import sys, {TRAINING}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    ours = {n for n in loaded.stdout.split() if n.startswith(("contamination", "reproduction"))}
    assert ours and ours <= found


def test_a_newer_torch_is_part_of_training_and_a_newer_linter_is_not(code: Code) -> None:
    facts = code.facts([TRAINING])
    assert facts["torch"].startswith("==") and facts["transformers"].startswith("==")
    assert not {"ruff", "matplotlib", "papermill"} & set(facts)


def test_every_part_of_a_profile_is_in_a_stamp(tmp_path) -> None:
    """A part that no stamp names would change a run without remaking anything."""
    rules = Rules(RunFiles(ROOT / "profiles" / "laptop.yaml", tmp_path), ROOT)
    rules.collect()
    lines = {line for facts in rules.stamps.values() for line in facts}
    parts = rules.run.profile.require_pretraining()
    expected = {"seed", *vars(parts), *rules.notebooks}
    assert {line[9:] for line in lines if line.startswith("profile: ")} == expected
