"""The line of each step of `make reproduce`: its number, what it does, the time left."""

import json

import pytest

from fakes.data_fixtures import ROOT
from reproduction.stages import steps
from reproduction.stages.steps import begin, finished, read_run, seconds_left

PLAN = """\
corpus --profile p --build b
train clean-64 --profile p
notebook notebooks/06_wikimia.ipynb --profile p
report --results r
summary --results r
"""
SECONDS = {"corpus": 90.0, "train clean-64": 240.0, "notebook 06_wikimia": 120.0}


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


def test_every_step_has_its_number_and_the_time_that_is_left(plan, capsys):
    end, lines = begun(capsys, "corpus")
    assert lines == [f"{'[1/4] corpus':48} 4 min left"]
    end()
    assert begun(capsys, "train", "clean-64")[1][0].startswith("[2/4] train clean-64 ")
    _, (line,) = begun(capsys, "notebook", "notebooks/06_wikimia.ipynb")
    assert line.startswith("[3/4] notebook 06_wikimia ")
    assert begun(capsys, "train", "clean") == (None, [])  # make did not plan it
    planned, started, ended = read_run(plan)
    assert planned == [*SECONDS, "report"]
    assert (list(started), list(ended)) == (list(SECONDS), ["corpus"])


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
        f"{PLAN}begun 1000.0 corpus\nbegun 1001.0 report\n"
        "ended 1400.0 report\nended 1300.0 corpus\n"
    )
    assert finished() == "2 steps in 7 min"


@pytest.mark.parametrize("slower", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("beside", [1, 2])
def test_the_estimate_comes_near_the_truth_as_the_run_goes_on(slower, beside):
    known = {f"step {i}": 40.0 + 10 * (i % 5) for i in range(20)}
    free, times = [0.0] * beside, {}
    for step, seconds in known.items():
        place = free.index(min(free))
        times[step] = free[place], free[place] + slower * seconds
        free[place] = times[step][1]
    errors = []
    for share in (0.02, 0.4, 0.8):
        now = share * max(free)
        begun, ended = ({s: t[i] for s, t in times.items() if t[i] <= now} for i in (0, 1))
        truth = max(free) - now
        errors.append(abs(seconds_left(known, begun, ended, now) - truth) / truth)
    assert errors[1] < 0.35 and errors[2] < 0.3
    if slower == 1.0 and beside == 2:
        assert max(errors) < 0.2
