"""The stages: bad input is one line on standard error, status 2, and nothing half-written."""

import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from fakes.data_fixtures import ROOT, MadeUpRun, make_distribution, profile_data, write_profile
from reproduction.report import notebooks
from reproduction.run.experiment import Experiment


def _files(root: Path) -> list[str]:
    return sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())


MINE = {"name": "mine", "examples": 2, "dup_count": 1, "template": "text/1"}
MISSING_CORPUS = "{root}/build/corpus/corpus.json is missing: run `make"


@pytest.mark.parametrize(
    ("command", "profile", "message"),
    [
        ("corpus", "tyni.yaml", "unknown profile 'tyni': {root} has bad, tiny"),
        ("train clean", "tyni.yaml", "unknown profile 'tyni': {root} has bad, tiny"),
        ("score clean", "tyni.yaml", "unknown profile 'tyni': {root} has bad, tiny"),
        ("corpus", "bad.yaml", "{root}/bad.yaml: unknown key 'sede'"),
        ("train celan", "tiny.yaml", "unknown model 'celan': choose one of contaminated, clean"),
        ("score celan", "tiny.yaml", "unknown model 'celan': choose one of contaminated, clean"),
        ("train clean", "tiny.yaml", MISSING_CORPUS),
        ("score clean", "tiny.yaml", MISSING_CORPUS),
        ("manifest", "tiny.yaml", MISSING_CORPUS),
        (
            "ship-stores --results {root}/results --stores {root}/stores",
            "tiny.yaml",
            "{root}/results/manifest.json: cannot be read",
        ),
        *(
            (
                f"{command} --build {{root}}/tiny.yaml/x",
                "tiny.yaml",
                "{root}/tiny.yaml/x: no direct",
            )
            for command in ("corpus", "train clean", "score clean")
        ),
        ("summary", None, "{root}/results/manifest.json: cannot be read"),
    ],
)
def test_what_cannot_start_writes_nothing(command, profile, message, refused, tmp_path) -> None:
    write_profile(tmp_path / "tiny.yaml")
    write_profile(tmp_path / "bad.yaml", {**profile_data(), "sede": 1})
    arguments = command.format(root=tmp_path).split()
    if profile is not None:
        arguments += ["--profile", tmp_path / profile]
    if profile is not None and "--build" not in arguments:
        arguments += ["--build", tmp_path / "build"]
    if command in ("manifest", "summary"):
        arguments += ["--results", tmp_path / "results"]
    assert refused("stage", *arguments).startswith(message.format(root=tmp_path))
    assert _files(tmp_path) == ["bad.yaml", "tiny.yaml"]


def test_a_second_make_is_refused_and_a_third_may_come_later(refused, tmp_path: Path) -> None:
    write_profile(tmp_path / "tiny.yaml")
    build = tmp_path / "build"
    build.mkdir()
    arguments = ("train", "clean", "--profile", tmp_path / "tiny.yaml", "--build", build)
    with FileLock(build / ".train-clean.lock"):
        expected = f"{build}: another make works on this profile; wait until it ends, or stop it"
        assert refused("stage", *arguments) == expected
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
def test_corpus_stage(call, refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert status == 2
    assert out == ""
    assert err.splitlines()[-1].startswith("error: canary set one: only 40 records of kind quest")
    assert "corpus.json" not in _files(corpus)


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"text": "a"}\n{"txt": "b"}\n', "a.jsonl, line 2: field 'text' is"),
        ("a.jsonl", b'{"text": "a"}\n', "a.jsonl: 1 records, 2 wanted"),
        ("a.txt", b"a\n\xff\n", "a.txt, line 2: byte 2 is not UTF-8"),
        ("b.jsonl", None, "b.jsonl: no such file"),
    ],
)
def test_bad_canary_file(name, content, message, call, tmp_path, monkeypatch) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    monkeypatch.setenv("CONTAMINATION_DATA", str(tmp_path))
    build = tmp_path / "build"
    profile = write_profile(
        tmp_path / "tiny.yaml", profile_data() | {"canaries": [MINE | {"file": name}]}
    )
    status, out, err = call("stage", "corpus", "--profile", profile, "--build", build)
    assert (status, out) == (2, "")
    assert err.splitlines()[-1].startswith(f"error: {tmp_path}/{message}")
    assert not build.exists() or _files(build) == []


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("bom", ["", "\N{BYTE ORDER MARK}"])
def test_canary_files_of_every_format_arrive_whole(bom: str, call, tmp_path, monkeypatch) -> None:
    texts = ["one\nand a second line", "two\u2028three"]
    (tmp_path / "a.csv").write_text(
        f'{bom}text\n"{texts[0]}"\n{texts[1]}\nleft out\n', encoding="utf-8"
    )
    monkeypatch.setenv("CONTAMINATION_DATA", str(tmp_path))
    data = profile_data() | {"canaries": [MINE | {"file": "a.csv"}]}
    profile = write_profile(tmp_path / "tiny.yaml", data)
    status, _, err = call("stage", "corpus", "--profile", profile, "--build", tmp_path / "build")
    assert status == 0, err
    found = Experiment(profile, tmp_path / "build").test_set("mine").examples
    assert found == tuple(f"{text}\n" for text in texts)


@pytest.fixture
def executed(call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Return a function that gives what `stage notebook 01_canary_eval` would execute."""
    seen = []
    monkeypatch.setattr(notebooks, "execute_notebook", lambda *arguments: seen.append(arguments))
    profile = write_profile(tmp_path / "tiny.yaml")

    def run(*parameters: str, status: int = 0):
        arguments = [argument for text in parameters for argument in ("--parameter", text)]
        found = call(
            *("stage", "notebook", "notebooks/01_canary_eval.ipynb", "--profile", profile),
            *("--build", tmp_path / "build", "--results", tmp_path / "results", *arguments),
        )
        assert found[0] == status, found[2]
        return seen[-1] if seen else found[2]

    return run


def test_parameters_of_the_command_line_take_the_place_of_the_profile_s(executed) -> None:
    models = "models=[gpt2, EleutherAI/pythia-70m]"
    source, experiment, profile, results = executed(
        "alpha=0.01", models, "sets=[]", "name=a=b", "max_records="
    )
    names = ["01_canary_eval.ipynb", "tiny.yaml", "results"]
    assert [path.name for path in (source, profile, results)] == names
    assert experiment.profile.notebooks["01_canary_eval"] == {
        "alpha": 0.01,
        "models": ["gpt2", "EleutherAI/pythia-70m"],
        "sets": [],
        "name": "a=b",
        "max_records": None,
    }
    assert executed()[1].profile.notebooks == {"01_canary_eval": {"alpha": 0.05}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("alpha", "--parameter alpha: write NAME=VALUE, as in max_records=50"),
        ("=5", "--parameter =5: write NAME=VALUE"),
        ("no name=5", "--parameter no name=5: write NAME=VALUE"),
        ("models=[a, b", "--parameter models=[a, b: the value is not YAML"),
    ],
)
def test_a_malformed_parameter_is_reported(text: str, message: str, executed) -> None:
    line = executed(text, status=2).splitlines()[-1]
    assert line.startswith(f"error: {message}")


def test_an_unknown_parameter_is_reported_before_anything_runs(refused, tmp_path: Path) -> None:
    message = refused(
        *("stage", "notebook", ROOT / "notebooks" / "03_open_model_audit.ipynb"),
        *("--profile", write_profile(tmp_path / "tiny.yaml", {**profile_data(), "notebooks": {}})),
        *("--build", tmp_path / "build", "--results", tmp_path / "results"),
        *("--parameter", "modles=[gpt2]"),
    )
    assert "03_open_model_audit.ipynb: unknown parameter 'modles'" in message
    assert "models, sets, tests" in message
    assert not (tmp_path / "results").exists()


def test_the_installed_command(tmp_path: Path) -> None:
    """Run as a person does it, once."""
    command = Path(sys.executable).with_name("contamination")
    where = ("--profile", tmp_path / "x.yaml", "--build", tmp_path / "b")
    result = subprocess.run(
        [command, "stage", "score", "clean", *where], capture_output=True, text=True, timeout=60
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
    status, _, err = call(
        "stage", "score", "clean", "--profile", run.profile, "--build", run.experiment.build
    )
    assert status == 2
    assert err.splitlines()[-1].startswith(f"error: {run.experiment.model('clean')}: ")
