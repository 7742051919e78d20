"""The line of each step of `make reproduce`: its number, what it does, how long it takes about."""

import json
import re
from itertools import pairwise, product

import pytest

from fakes.data_fixtures import NOTEBOOKS, ROOT
from reproduction.stages import steps
from reproduction.stages.steps import Run, announcement, in_words, read_run, seconds_left

PLAN = """\
STEPS= OMP_NUM_THREADS=1 .venv/bin/python -m reproduction corpus --profile p --build b
STEPS= .venv/bin/accelerate launch .venv/bin/python -m reproduction train clean-64 --profile p
touch something
STEPS= .venv/bin/python -m reproduction notebook notebooks/06_wikimia.ipynb --profile p
STEPS= .venv/bin/python -m reproduction report --results r
STEPS= .venv/bin/python -m reproduction summary --results r
"""
SECONDS = {"corpus": 60.0, "train clean-64": 240.0, "notebook 06_wikimia": 120.0, "report": 20.0}


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """A run of `laptop` that make has planned, and a reference run; stages run in the root."""
    path = tmp_path / "laptop" / "steps"
    path.parent.mkdir()
    path.write_text(PLAN)
    manifest = tmp_path / "manifest.json"
    timed = {key: {"seconds": value} for key, value in SECONDS.items() if key != "report"}
    manifest.write_text(json.dumps({"profile": "laptop", "steps": timed}))
    monkeypatch.setenv("STEPS", str(path))
    monkeypatch.setattr(steps, "MEASURED", manifest)
    monkeypatch.chdir(ROOT)
    return path


def begun(capsys, *arguments: str):
    end = steps.begin([*arguments, "--profile", "p"])
    return end, capsys.readouterr().err.splitlines()


def test_steps_are_those_that_make_prints_but_for_the_summary(plan):
    run = read_run(plan)
    assert list(run.planned) == ["corpus", "train clean-64", "notebook 06_wikimia", "report"]


def test_every_step_has_its_number_and_two_at_once_have_two_rows(plan, capsys):
    end, lines = begun(capsys, "corpus")
    assert lines == [
        "4 steps, about 4 min",
        "[1/4] corpus, test sets to be planted, tokenizer        1 min, 4 min left",
    ]
    end()
    ends = []
    for number, arguments, text in [
        (2, ("train", "clean-64"), "train the clean-64 model"),
        (3, ("notebook", "notebooks/06_wikimia.ipynb"), "notebook 06 · WikiMIA"),
    ]:
        end, (line,) = begun(capsys, *arguments)
        assert line.startswith(f"[{number}/4] {text} ")
        ends.append(end)
    run = read_run(plan)
    assert run.rows == {"corpus": 0, "train clean-64": 0, "notebook 06_wikimia": 1}
    assert set(run.ended) == {"corpus"}
    ends[0]()
    assert read_run(plan).free_row() == 0
    # Nobody has measured this one.
    assert begun(capsys, "report", "--results")[1] == ["[4/4] report and slides"]


def test_a_stage_that_make_did_not_plan_says_nothing(plan, capsys, monkeypatch):
    before = plan.read_text()
    assert begun(capsys, "train", "clean") == (None, [])
    assert begun(capsys, "summary") == (None, [])
    monkeypatch.setenv("RANK", "1")  # the second of several processes of one step
    assert begun(capsys, "corpus") == (None, [])
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("STEPS", "")
    assert begun(capsys, "corpus") == (None, [])
    assert plan.read_text() == before


def test_the_summary_says_how_many_steps_there_were_and_how_long_they_took(plan, monkeypatch):
    assert steps.finished() is None
    times = "begun 1000.0 0 corpus|begun 1001.0 1 report|ended 1400.0 report|ended 1300.0 corpus"
    plan.write_text(PLAN + times.replace("|", "\n"))
    assert steps.finished() == "2 steps in 7 min"
    monkeypatch.delenv("STEPS")
    assert steps.finished() is None


def test_without_a_reference_of_this_profile_no_time_is_invented(plan, capsys, monkeypatch):
    quick = plan.parent.with_name("quick")
    plan.parent.rename(quick)
    monkeypatch.setenv("STEPS", str(quick / "steps"))
    assert begun(capsys, "corpus")[1] == [
        "4 steps",
        "[1/4] corpus, test sets to be planted, tokenizer",
    ]


def test_no_line_is_wider_than_80_columns():
    commands = [("train", "contaminated"), ("score", "contaminated"), *((v, "-") for v in "xy")]
    commands += [(verb, str(path)) for path in NOTEBOOKS for verb in ("notebook", "measure")]
    commands += [(verb, "--profile") for verb in steps.LABELS if "{}" not in steps.LABELS[verb]]
    run = Run({steps.key_of(*command): command for command in commands})
    run.begun["x"] = 0.0
    for key, minutes in product(run.planned, (0.01, 59)):
        line = announcement(run, key, dict.fromkeys(run.planned, minutes * 60), 1.0)
        assert re.fullmatch(r"\[ 2/\d+\] \S.* <?\d+ min, <?\d+ (min|h) left", line)
        assert len(line) <= 80


@pytest.mark.parametrize("slower", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("beside", [1, 2])
def test_the_estimate_comes_near_the_truth_as_the_run_goes_on(slower, beside):
    """Of 20 steps, one or two at a time, on a machine of another speed."""
    measured = {f"step {i}": 40.0 + 10 * (i % 5) for i in range(20)}
    run = Run({key: ("step", key) for key in measured})
    free = [0.0] * beside
    for key, seconds in measured.items():
        place = free.index(min(free))
        run.begun[key], run.ended[key] = free[place], free[place] + slower * seconds
        free[place] = run.ended[key]
    total = max(free)
    errors = []
    for share in (0.02, 0.4, 0.8):
        now = share * total
        begun = {k: t for k, t in run.begun.items() if t <= now}
        so_far = Run(run.planned, begun, {k: t for k, t in run.ended.items() if t <= now})
        truth = total - now
        errors.append(abs(seconds_left(so_far, measured, now) - truth) / truth)
    assert errors[1] < 0.35 and errors[2] < 0.3
    if slower == 1.0 and beside == 2:
        assert max(errors) < 0.2


def test_times_are_no_more_exact_than_they_are_known():
    seconds = (0, 59, 60, 89, 91, 25.5 * 60, 89 * 60, 100 * 60, 5 * 3600)
    expected = "<1 min|<1 min|1 min|1 min|2 min|26 min|89 min|2 h|5 h"
    assert "|".join(map(in_words, seconds)) == expected


def test_what_is_left_never_grows_while_nothing_is_late():
    """A step on time: the rest shrinks with the clock."""
    run = Run({key: ("x", key) for key in SECONDS}, {"corpus": 0.0})
    left = [seconds_left(run, SECONDS, now) for now in range(0, 60, 5)]
    assert all(after < before for before, after in pairwise(left))
