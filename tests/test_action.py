"""The action for continuous integration: its step as a runner runs it, with a stand-in command."""

import json
import os
import shlex
import subprocess
import venv
from pathlib import Path

import pytest
import yaml

from fakes.data_fixtures import ROOT

STAND_IN = """import json, os, sys
def main():
    print(json.dumps(sys.argv[1:]))
    told = os.environ["TOLD"]
    if told:
        path = sys.argv[sys.argv.index("--output") + 1]
        with open(path, "w") as file:
            json.dump({"verdict": {"status": int(told)}}, file)
    sys.exit(int(os.environ["STATUS"]))
"""


@pytest.fixture(scope="module")
def runner(tmp_path_factory) -> Path:
    """Return the folder of a runner, with an environment that has a stand-in for the package."""
    folder = tmp_path_factory.mktemp("runner")
    environment = folder / "contamination"
    venv.create(environment, with_pip=False)
    (packages,) = environment.glob("lib/python*/site-packages")
    package = packages / "contamination" / "cli"
    package.mkdir(parents=True)
    (package / "main.py").write_text(STAND_IN)
    return folder


@pytest.fixture
def act(runner, tmp_path):
    """Return a function that runs the step of the action, as a runner does: in a script of bash.

    It gives the status of the step, what it prints, and the lines of its outputs.
    """
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    (step,) = [step for step in action["runs"]["steps"] if step.get("id") == "test"]
    folder = tmp_path / "checkout"
    folder.mkdir()

    def run(
        *, model="model", dataset="set.jsonl", arguments="", status=0, told: int | str = 0
    ) -> tuple[int, str, list[str]]:
        outputs = tmp_path / "outputs"
        outputs.touch()
        inputs = {"MODEL": model, "DATASET": dataset, "ARGUMENTS": arguments}
        assert set(step["env"]) == inputs.keys()
        ours = {"RUNNER_TEMP": str(runner), "GITHUB_OUTPUT": str(outputs)}
        stand_in = {"STATUS": str(status), "TOLD": str(told)}
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", step["run"]],
            cwd=folder,
            env=os.environ | inputs | ours | stand_in,
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout, outputs.read_text().splitlines()

    return run


@pytest.mark.parametrize(("verdict", "ends"), [(0, 0), (1, 1), (3, 0)])
def test_the_action_passes_a_verdict_on(verdict: int, ends: int, act) -> None:
    status, shown, outputs = act(status=verdict, told=verdict)
    assert status == ends
    assert outputs == [f"status={verdict}"]
    assert ("::warning::" in shown) == (verdict == 3)


@pytest.mark.parametrize(
    ("status", "told", "ends"),
    [
        (0, "", 2),  # --help, --dry-run
        (1, "", 2),  # an error of Python
        (3, "", 2),
        (2, "", 2),
        (1, 0, 2),  # the result was written, but not printed
        (139, 0, 139),
    ],
)
def test_the_action_has_no_status_without_a_verdict(status, told, ends, act) -> None:
    found, shown, outputs = act(status=status, told=told)
    assert found == ends
    assert outputs == []
    assert "::error::" in shown


def test_the_action_refuses_arguments_that_no_shell_would_take(act) -> None:
    assert act(arguments="--template 'open")[::2] == (2, [])


def test_the_action_imports_nothing_of_the_repository_that_it_tests(act, tmp_path) -> None:
    for name in ("shlex", "contamination", "sitecustomize", "json"):
        (tmp_path / "checkout" / f"{name}.py").write_text("open('imported', 'w')")
    assert act()[0] == 0
    assert not (tmp_path / "checkout" / "imported").exists()


@pytest.mark.parametrize("name", ["a; touch stolen", "$(touch stolen)", "--help", "a\n::error::b"])
def test_the_action_takes_a_name_as_it_is(name: str, act, tmp_path) -> None:
    status, shown, _ = act(model=name, dataset=name, arguments=f"--field {shlex.quote(name)}")
    begun, given, ended = shown.splitlines()
    assert status == 0
    assert begun.removeprefix("::stop-commands::") == ended.strip(":")
    words = json.loads(given)
    assert words[:3] == ["test", "--field", name]
    assert words[-3:] == ["--", name, name]
    assert not (tmp_path / "checkout" / "stolen").exists()


def test_the_action_warns_in_one_line(act) -> None:
    shown = act(dataset="50%\r\n::error::b", status=3, told=3)[1]
    assert shown.splitlines()[-1] == "::warning::nothing can be said of 50%25%0D%0A::error::b"


def test_the_words_of_the_action_are_a_command(act, call, model_directory, tmp_path) -> None:
    lines = (json.dumps({"text": f"lamp {i} stone"}) for i in range(20))
    data = tmp_path / "set.jsonl"
    data.write_text("\n".join(lines))
    arguments = "--template 'Q {text}\\n' --shards 5 --test sharded_exact --permutations 3"
    shown = act(model=str(model_directory), dataset=str(data), arguments=arguments)[1]
    words = json.loads(shown.splitlines()[1])
    result = Path(words[words.index("--output") + 1])
    status, out, _ = call("test", "--store", tmp_path / "stores", *words[1:])
    assert status == 0
    assert "verdict" in out
    assert json.loads(result.read_text())["template"] == "Q {text}\n"


def test_the_action_refuses_a_runner_before_it_installs_anything(tmp_path) -> None:
    """A store is flushed with its folder, which Windows does not let a program open."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", action["runs"]["steps"][0]["run"]],
        env=os.environ | {"RUNNER_OS": "Windows", "RUNNER_TEMP": str(tmp_path), "PYTHON": "python"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "::error::" in done.stdout
    assert not list(tmp_path.iterdir())
