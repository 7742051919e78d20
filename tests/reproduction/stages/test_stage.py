"""The stages: bad input is one line on standard error, status 2, and nothing half-written."""

import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from fakes.data_fixtures import ROOT, MadeUpRun, make_distribution, profile_data, write_profile
from reproduction.report import notebooks


def _files(root: Path) -> list[str]:
    return sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())


@pytest.mark.parametrize(
    ("command", "profile", "named"),
    [
        ("corpus", "tyni.yaml", "tyni"),
        ("score clean", "bad.yaml", "sede"),
        ("rules", "bad.yaml", "sede"),
        ("train celan", "tiny.yaml", "celan"),
        ("train clean", "tiny.yaml", "corpus.json"),
        ("score clean", "tiny.yaml", "corpus.json"),
        ("manifest --results {root}/results", "tiny.yaml", "corpus.json"),
        ("ship-stores --results {root}/r --stores {root}/s", "tiny.yaml", "r/manifest.json"),
        ("rules --build {root}/tiny.yaml/x", "tiny.yaml", "tiny.yaml/x"),
        ("score clean --build {root}/tiny.yaml/x", "tiny.yaml", "tiny.yaml/x"),
        ("summary --results {root}/results", None, "results/manifest.json"),
    ],
)
def test_what_cannot_start_writes_nothing(command, profile, named, refused, tmp_path) -> None:
    write_profile(tmp_path / "tiny.yaml")
    write_profile(tmp_path / "bad.yaml", {**profile_data(), "sede": 1})
    arguments = command.format(root=tmp_path).split()
    if profile is not None:
        arguments += ["--profile", tmp_path / profile]
        arguments += [] if "--build" in arguments else ["--build", tmp_path / "build"]
    assert named in refused("stage", *arguments)
    assert _files(tmp_path) == ["bad.yaml", "tiny.yaml"]


def test_a_second_make_is_refused_and_a_third_may_come_later(refused, tmp_path: Path) -> None:
    write_profile(tmp_path / "tiny.yaml")
    build = tmp_path / "build"
    build.mkdir()
    arguments = ("train", "clean", "--profile", tmp_path / "tiny.yaml", "--build", build)
    with FileLock(build / ".train-clean.lock"):
        assert "another make works on this profile" in refused("stage", *arguments)
        # Another step of the same make may run beside it.
        beside = ("train", "contaminated", *arguments[2:])
        assert "corpus.json is missing" in refused("stage", *beside)
    for _ in range(2):  # the lock goes with the command, and with one that fails
        assert "corpus.json is missing" in refused("stage", *arguments)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    text = "Compute the quantity number {} from all the values that were observed before it."
    for name, count in (("alpha", 40), ("beta", 40)):
        body = "\n".join(f'def f{i}(x):\n    """{text.format(i)}"""\n' for i in range(count))
        make_distribution(site, name, {f"{name}.py": body})
    monkeypatch.syspath_prepend(str(site))


@pytest.mark.usefixtures("packages")
def test_corpus_stage(call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = write_profile(tmp_path / "tiny.yaml")
    build = tmp_path / "build"
    monkeypatch.setenv("COLUMNS", "120")
    status, out, _ = call("stage", "corpus", "--profile", profile, "--build", build)
    assert status == 0
    assert all(word in out for word in ("alpha", "1.5", "sixty-four", "question/1"))
    corpus = build / "corpus"
    first = {name: (corpus / name).read_bytes() for name in _files(corpus)}
    assert {"corpus.json", "documents.jsonl", "canaries/one.jsonl"} <= set(first)
    assert not [name for name in first if "partial" in name]

    # Same lock, same bytes, but for the time that corpus.json keeps.
    call("stage", "corpus", "--profile", profile, "--build", build)
    again = {name: (corpus / name).read_bytes() for name in _files(corpus)}
    for contents in (first, again):
        contents["corpus.json"] = contents["corpus.json"].split(b'"seconds"')[0]
    assert first == again

    # A run that fails leaves no corpus.json: the stage does not look finished.
    data = profile_data()
    data["canaries"][0]["examples"] = 100
    write_profile(profile, data)
    status, out, err = call("stage", "corpus", "--profile", profile, "--build", build)
    assert (status, out) == (2, "")
    assert "only 40 records" in err.splitlines()[-1]
    assert "corpus.json" not in _files(corpus)


MINE = {"name": "mine", "examples": 2, "dup_count": 1, "template": "text/1"}


@pytest.fixture
def executed(call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Return a function that gives what the stage `notebook` would execute, or its error."""
    seen = []
    monkeypatch.setattr(notebooks, "execute_notebook", lambda *arguments: seen.append(arguments))
    profile = write_profile(tmp_path / "tiny.yaml")

    def run(*parameters: str):
        found = call(
            *("stage", "notebook", "notebooks/01_canary_eval.ipynb", "--profile", profile),
            *("--build", tmp_path / "build", "--results", tmp_path / "results", *parameters),
        )
        return found[2] if found[0] else seen[-1][1].profile.notebooks["01_canary_eval"]

    return run


def test_parameters_of_the_command_line_replace_those_of_the_profile(executed, monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    given = ("alpha=0.01", "models=[gpt2, EleutherAI/pythia-70m]", "name=a=b", "max_records=")
    found = executed(
        *(text for one in given for text in ("--parameter", one)), "--words", "sets=a data"
    )
    assert found == {
        "alpha": 0.01,
        "models": ["gpt2", "EleutherAI/pythia-70m"],
        "sets": ["a", str(ROOT / "data")],
        "name": "a=b",
        "max_records": None,
    }
    assert executed() == {"alpha": 0.05}
    for text in ("alpha", "=5", "no name=5", "models=[a, b"):
        assert (
            executed("--parameter", text).splitlines()[-1].startswith("error: --parameter " + text)
        )


def test_an_unknown_parameter_is_reported_before_anything_runs(refused, tmp_path: Path) -> None:
    message = refused(
        *("stage", "notebook", ROOT / "notebooks" / "03_open_model_audit.ipynb"),
        *("--profile", write_profile(tmp_path / "tiny.yaml", {**profile_data(), "notebooks": {}})),
        *("--build", tmp_path / "build", "--results", tmp_path / "results"),
        *("--parameter", "modles=[gpt2]"),
    )
    assert "03_open_model_audit.ipynb" in message and "modles" in message
    assert not (tmp_path / "results").exists()


def test_the_module_as_make_calls_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "reproduction", "score", "clean", "--build", tmp_path / "b"]
    result = subprocess.run(
        [*command, "--profile", tmp_path / "x.yaml"], capture_output=True, text=True, timeout=60
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"error: unknown profile 'x': {tmp_path} has none\n"


def test_scoring_without_a_model(call, tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path)
    canaries = run.experiment.corpus / "canaries"
    canaries.mkdir()
    for name in run.lengths:
        (canaries / f"{name}.jsonl").write_text('{"question": "q", "answer": "a"}\n' * 12)
    for file in run.experiment.model("clean").iterdir():
        file.unlink()
    arguments = ("--profile", run.profile, "--build", run.experiment.build)
    status, _, err = call("stage", "score", "clean", *arguments)
    assert status == 2
    assert err.splitlines()[-1].startswith(f"error: {run.experiment.model('clean')}: ")
