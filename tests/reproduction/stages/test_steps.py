"""The line of each step of `make reproduce`: its number, what it does, the time left."""

import json

import pytest

from fakes.data_fixtures import ROOT
from reproduction.stages import steps
from reproduction.stages.steps import Run, begin, finished, read_run

PLAN = """\
corpus --profile p --build b
train clean-64 --profile p
notebook notebooks/06_wikimia.ipynb --profile p
report --results r
summary --results r
"""
SECONDS = {"corpus": 60.0, "train clean-64": 240.0, "notebook 06_wikimia": 120.0}


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """A run of `laptop` that make has planned, and a reference run; stages run in the root."""
    path = tmp_path / "laptop" / "steps"
    path.parent.mkdir()
    path.write_text(PLAN)
    manifest = tmp_path / "manifest.json"
    timed = {step: {"seconds": value} for step, value in SECONDS.items()}
    manifest.write_text(json.dumps({"profile": "laptop", "steps": timed}))
    monkeypatch.setenv("STEPS", str(path))
    monkeypatch.setattr(steps, "MEASURED", manifest)
    monkeypatch.chdir(ROOT)
    return path


def begun(capsys, *arguments: str):
    end = begin([*arguments, "--profile", "p"])
    return end, capsys.readouterr().err.splitlines()


def test_every_step_has_its_number_and_two_at_once_have_two_rows(plan, capsys):
    assert read_run(plan).planned == ["corpus", "train clean-64", "notebook 06_wikimia", "report"]
    end, lines = begun(capsys, "corpus")
    assert lines == [f"{'[1/4] corpus':48} 4 min left"]
    end()
    end, (line,) = begun(capsys, "train", "clean-64")
    assert line.startswith("[2/4] train clean-64 ")
    _, (line,) = begun(capsys, "notebook", "notebooks/06_wikimia.ipynb")
    assert line.startswith("[3/4] notebook 06_wikimia ")
    assert read_run(plan).rows == {"corpus": 0, "train clean-64": 0, "notebook 06_wikimia": 1}
    assert begun(capsys, "train", "clean") == (None, [])  # make did not plan it
    end()
    begun(capsys, "report")
    assert read_run(plan).rows["report"] == 0
    assert set(read_run(plan).ended) == {"corpus", "train clean-64"}


def test_stages_by_hand_and_further_processes_say_nothing(plan, capsys, monkeypatch):
    assert begun(capsys, "summary") == (None, [])
    monkeypatch.setenv("RANK", "1")  # the second of several processes of one step
    assert begun(capsys, "corpus") == (None, [])
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("STEPS", "")
    assert begun(capsys, "corpus") == (None, []) and finished() is None
    assert plan.read_text() == PLAN
    # Without a reference run of this profile no time is invented.
    quick = plan.parent.rename(plan.parent.with_name("quick"))
    monkeypatch.setenv("STEPS", str(quick / "steps"))
    assert begun(capsys, "corpus")[1] == ["[1/4] corpus"]


def test_the_summary_says_how_many_steps_there_were_and_how_long_they_took(plan):
    assert finished() is None
    plan.write_text(
        f"{PLAN}begun 1000.0 0 corpus\nbegun 1001.0 1 report\n"
        "ended 1400.0 1 report\nended 1300.0 0 corpus\n"
    )
    assert finished() == "2 steps in 7 min"


@pytest.mark.parametrize("slower", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("beside", [1, 2])
def test_the_estimate_comes_near_the_truth_as_the_run_goes_on(slower, beside):
    measured = {f"step {i}": 40.0 + 10 * (i % 5) for i in range(20)}
    run = Run(list(measured))
    free = [0.0] * beside
    for step, seconds in measured.items():
        place = free.index(min(free))
        run.begun[step], run.ended[step] = free[place], free[place] + slower * seconds
        free[place] = run.ended[step]
    errors = []
    for share in (0.02, 0.4, 0.8):
        now = share * max(free)
        begun = {step: t for step, t in run.begun.items() if t <= now}
        so_far = Run(run.planned, begun, {step: t for step, t in run.ended.items() if t <= now})
        truth = max(free) - now
        errors.append(abs(so_far.seconds_left(measured, now) - truth) / truth)
    assert errors[1] < 0.35 and errors[2] < 0.3
    if slower == 1.0 and beside == 2:
        assert max(errors) < 0.2
