"""The line of each step of `make reproduce`: its number, what it does, the time left."""

import json

import pytest

from fakes.data_fixtures import ROOT
from reproduction.stages import steps
from reproduction.stages.steps import begin, finished, longest_first, read_run, seconds_left

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
    begin([*arguments, "--profile", "p"])
    return capsys.readouterr().err.splitlines()


def test_every_step_has_its_number_and_the_time_that_is_left(plan, capsys):
    assert begun(capsys, "corpus") == [f"{'[1/4] corpus':48} 4 min left"]
    assert begun(capsys, "train", "clean-64")[0].startswith("[2/4] train clean-64 ")
    (line,) = begun(capsys, "notebook", "notebooks/06_wikimia.ipynb")
    assert line.startswith("[3/4] notebook 06_wikimia ")
    assert begun(capsys, "train", "clean") == []  # make did not plan it
    assert begun(capsys, "summary") == []
    run = read_run()
    assert run.planned == [*SECONDS, "report"]
    assert list(run.begun) == list(SECONDS)


def test_stages_by_hand_and_further_processes_say_nothing(plan, capsys, monkeypatch):
    monkeypatch.setenv("RANK", "1")  # the second of several processes of one step
    assert begun(capsys, "corpus") == []
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("STEPS", "")
    assert begun(capsys, "corpus") == []
    assert finished() is None
    assert plan.read_text() == PLAN
    # Without a reference run of this profile no time is invented.
    quick = plan.parent.rename(plan.parent.with_name("quick"))
    monkeypatch.setenv("STEPS", str(quick / "steps"))
    assert begun(capsys, "corpus") == ["[1/4] corpus"]


def test_the_summary_says_how_many_steps_there_were_and_how_long_they_took(plan, monkeypatch):
    assert finished() is None
    spent = "spent 300.0 corpus\nspent 360.0 report\n"
    plan.write_text(f"{PLAN}begun 1000.0 corpus\nbegun 1001.0 report\n{spent}")
    monkeypatch.setattr(steps.time, "time", lambda: 1420.0)
    assert finished() == "2 steps in 7 min by the clock, 11 min of processor time"


def test_a_slow_step_does_not_make_the_time_that_is_left_rise(plan, capsys, monkeypatch):
    """Training began an hour ago: by the measure of the corpus, ten hours are left."""
    clock = iter([1000.0, 4600.0, 4700.0])
    monkeypatch.setattr(steps.time, "time", lambda: next(clock))
    minutes = []
    for step in (("corpus",), ("train", "clean-64"), ("notebook", "notebooks/06_wikimia.ipynb")):
        (line,) = begun(capsys, *step)
        minutes.append(int(line.split()[-3]))
    assert minutes[0] >= minutes[1] >= minutes[2]


@pytest.mark.parametrize("slower", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("beside", [1, 2])
def test_the_estimate_comes_near_the_truth_as_the_run_goes_on(slower, beside):
    known = {f"step {i}": 40.0 + 10 * (i % 5) for i in range(20)}
    free = [0.0] * beside
    begins = {}
    for step, seconds in known.items():
        place = free.index(min(free))
        begins[step] = free[place]
        free[place] += slower * seconds
    errors = []
    for share in (0.02, 0.4, 0.8):
        now = share * max(free)
        truth = max(free) - now
        begun = [step for step, when in begins.items() if when <= now]
        errors.append(abs(seconds_left(known, now, begun) - truth) / truth)
    assert max(errors[1:] if slower * beside != 2 else errors) < 0.35


def test_a_long_notebook_is_made_before_short_ones(tmp_path, monkeypatch):
    manifest = tmp_path / "manifest.json"
    monkeypatch.setattr(steps, "MEASURED", manifest)
    notebooks = ["00_start", "06_wikimia", "07_min_k", "08_new"]
    assert longest_first(notebooks, tmp_path) == notebooks
    seconds = {"notebook 06_wikimia": 30.0, "notebook 07_min_k": 9.0, "measure 07_min_k": 22.0}
    timed = {step: {"seconds": value} for step, value in seconds.items()}
    manifest.write_text(json.dumps({"profile": "laptop", "steps": timed}))
    expected = ["07_min_k", "06_wikimia", "00_start", "08_new"]
    assert longest_first(notebooks, tmp_path) == expected
