"""Every command and all Python of the documentation is executed, or its program has a reason.

`contamination` runs here, in a sandbox with a tiny model in the place of every model; `make` only
says what it would do, since continuous integration runs `make setup lint test smoke` itself.
"""

import io
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stdout
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest
import yaml
from markdown_it import MarkdownIt

from contamination.testsets.registry import entries
from fakes.data_fixtures import ROOT
from fakes.hub_server import Repository
from fakes.made_up_registry import QUESTIONS, described, hub_at, jsonl, registry_of
from fakes.shipped_sets import link_shipped_sets
from reproduction.run import fine_tuning
from reproduction.run.profile import RunFiles
from reproduction.stages.rules import write_rules

# Programs that no test can run in seconds on one machine without a network, and why.
NOT_EXECUTED = {
    "torchrun": "needs GPUs or starts slowly; .ci/run starts it",
    "sbatch": "needs a cluster",
    "papermill": "needs a student's notebook, and trains models for minutes",
    "hf": "needs an account of the hub",
    "sphinx-build": "asks addresses of other sites",
    "python": "benchmarks take minutes, and need runs or data of a mirror",
    "sh": "measures a GPU; tests/test_gpu_benchmark.py rehearses it",
    "make": "only says what it would do, below",
}
IN_A_SHELL = {"sort", "jupyter"}  # in the sandbox, as they stand

# What the documents call things, and what stands in for them in the sandbox.
CONTEXT, RECORDS, FEW = 64, 24, 20
STAND_INS = {
    "MODEL": "my_model",
    "OLDER_MODEL": "smaller_model",
    "NAME": "my_model",
    "DATASET": "my_test_set.jsonl",
    "4096": str(CONTEXT),
}
SPLITS = ("test.jsonl", "validation.jsonl")
SHIPPED = ("parameter-16", "signature-64")  # of all sets a leaderboard would take seconds
QUICK = ("build/quick/models/contaminated", "build/quick/models/clean")


DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "data" / "README.md",
    # Pages of notebooks are made when the site is built.
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if "notebooks" not in p.parts),
]
INLINE = re.compile(r"(make|(\.venv/bin/)?contamination) \S.*")


class Block(NamedTuple):
    """A block between two fences: its place, its language and its text."""

    where: str
    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        if self.language != "sh":
            return []
        lines = self.text.replace("\\\n", " ").splitlines()
        bare = (re.sub(r"(^|\s)#\s.*", "", line) for line in lines)
        return [" ".join(line.split()) for line in bare if line.strip()]


@cache
def parsed(document: Path) -> tuple[list[Block], list[str]]:
    """The blocks between fences, and commands inside the text."""
    name = document.relative_to(ROOT).as_posix()
    text = document.read_text(encoding="utf-8")
    tokens = MarkdownIt().enable("table").parse(text)
    fences = [token for token in tokens if token.type == "fence"]
    children = itertools.chain.from_iterable(token.children or [] for token in tokens)
    found = [child.content for child in children if child.type == "code_inline"]
    return (
        [Block(f"{name}:{f.map[0] + 1}", f.info.strip(), f.content) for f in fences],
        [text for text in found if INLINE.fullmatch(text)],
    )


def words(command: str) -> tuple[dict[str, str], list[str]]:
    """Split a command into the variables set before it and its words."""
    variables = {}
    rest = shlex.split(command)
    while rest and re.match(r"[A-Z_]+=", rest[0]):
        name, _, value = rest.pop(0).partition("=")
        variables[name] = value
    return variables, rest


def _program(command: str) -> str:
    return Path(words(command)[1][0]).name


TYPED_COMMANDS: set[str] = set()
COMMANDS_IN_TEXT: set[str] = set()
for _document in DOCUMENTS:
    _blocks, _texts = parsed(_document)
    TYPED_COMMANDS.update(*(block.commands for block in _blocks))
    COMMANDS_IN_TEXT.update(_texts)
TYPED = sorted(TYPED_COMMANDS)
IN_TEXT = sorted(COMMANDS_IN_TEXT)
MADE = [command for command in {*TYPED, *IN_TEXT} if _program(command) == "make"]
RUN = [d for d in DOCUMENTS if any(b.language in ("sh", "python") for b in parsed(d)[0])]


@pytest.fixture(scope="module")
def tiny_models(make_model) -> tuple[Path, Path]:
    """Two models, as none may be its own control."""
    return make_model(CONTEXT, width=16, layers=1), make_model(CONTEXT, width=8, layers=1)


@pytest.fixture
def sandbox(tmp_path, tiny_models, prose, monkeypatch) -> Iterator[Path]:
    """Enter a directory in which everything lies that the documents name."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    sets = {"gsm8k": described(), "mmlu/anatomy": described(mirror="mmlu/anatomy.jsonl")}
    with hub_at(monkeypatch, tmp_path) as hub, registry_of(monkeypatch, tmp_path, sets):
        for name in ("org/questions", "ORG/NAME"):
            hub.repositories[name] = Repository()
            hub.repositories[name].push(dict.fromkeys(SPLITS, jsonl(QUESTIONS)))
        suspect, control = tiny_models
        for name in ("my_model", *QUICK):
            shutil.copytree(suspect, tmp_path / name)
        shutil.copytree(control, tmp_path / "smaller_model")
        (tmp_path / ".venv").symlink_to(sys.prefix)
        shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
        link_shipped_sets(tmp_path / "data" / "stores", SHIPPED)
        _read_little(monkeypatch)
        _write_sets(tmp_path, [text[:40].replace("\n", " ") for text in prose])
        yield tmp_path


def _read_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a model that a page trains further read a few of its texts, and not thousands."""
    whole = fine_tuning.fine_tune

    def fine_tune(model, texts, directory, **settings):
        return whole(model, texts[:FEW], directory, **settings)

    monkeypatch.setattr(fine_tuning, "fine_tune", fine_tune)


def _write_sets(directory: Path, texts: list[str]) -> None:
    rows = [
        {"id": i, "text": t, "question": f"{t}?", "answer": f"{i}", "choice0": "a", "choice1": "b"}
        for i, t in enumerate(texts[:RECORDS])
    ]
    calls = [{"name": f"f{i}", "signature": "(x)", "summary": t} for i, t in enumerate(texts)]
    items = [
        {"question": f"Q{i}?", "choices": [f"a{i}x", f"b{i}x", f"c{i}x"], "answer": i % 3}
        for i in range(RECORDS)
    ]
    pages = []
    for number, text in enumerate(texts):
        day = f"{2015 + number % 2 * 8}-06-01"
        page = {"title": f"Page {number}", "text": f"{number} {text} " * 100, "date": day}
        pages.append(page)
    canaries = "build/quick/corpus/canaries"
    (directory / canaries).mkdir(parents=True)
    for name, records in {
        f"{canaries}/question-8": rows,
        f"{canaries}/signature-1": calls[:RECORDS],
        f"{canaries}/signature-64": calls[:RECORDS],
        "my_test_set": rows,
        "items": items,
        "pages": pages,
        "published": rows[::2],
        "held_out": rows[1::2],
        "texts": [row | {"seen": row["id"] % 2} for row in rows],
    }.items():
        (directory / f"{name}.jsonl").write_bytes(jsonl(records))
    pd.DataFrame(rows).to_csv(directory / "choices.csv", index=False)


def _stand_ins(arguments: list[str], endpoint: Callable[[str], str]) -> list[str]:
    found = [STAND_INS.get(argument, argument) for argument in arguments]
    for i, argument in enumerate(found):
        if argument.startswith("http://localhost"):
            found[i] = endpoint("chat" if argument.endswith("/completions") else "vllm")
        if argument == "--tokenizer":
            found[i + 1] = "my_model"
    return found


@pytest.fixture
def endpoint(tiny_models) -> Iterator[Callable[[str], str]]:
    """Return a function that gives the address of a server, started when it is needed."""
    with ExitStack() as stack:

        @cache
        def url(style: str) -> str:
            from contamination.scoring.generation import LocalGenerator
            from contamination.scoring.local import TransformersScorer
            from fakes.completions_server import Network, serving

            network = writer = None
            if style == "chat":
                writer = LocalGenerator(TransformersScorer(tiny_models[0]), "my_model")
            else:
                network = Network(tiny_models[0])
            return stack.enter_context(serving(network, style, writer)).url

        yield url


@pytest.mark.parametrize("document", RUN, ids=lambda d: d.relative_to(ROOT).as_posix())
def test_what_a_document_says_to_run_runs(document: Path, sandbox: Path, call, endpoint) -> None:
    """Python that is followed by its output prints it, to the last digit."""
    names = {"texts": [f"A text of number {i}." for i in range(8)], "members": [1, 0] * 4}
    found, _ = parsed(document)
    for block, after in zip(found, [*found[1:], None], strict=True):
        # Alternatives follow each other in a document; in one store they would contradict.
        shutil.rmtree("contamination-stores", ignore_errors=True)
        if block.language == "python":
            with redirect_stdout(io.StringIO()) as printed:
                exec(compile(block.text, block.where, "exec"), names)
            if after is not None and after.language == "text":
                assert printed.getvalue() == after.text, block.where
        for command in block.commands:
            shown = f"{block.where}: {command}"
            if _program(command) in NOT_EXECUTED:
                continue
            if _program(command) in IN_A_SHELL:
                assert subprocess.run(command, shell=True, cwd=sandbox).returncode == 0, shown
                continue
            assert _program(command) == "contamination", f"{shown}: run it, or give a reason"
            _, (_, *arguments) = words(command)
            shutil.rmtree("contamination-stores", ignore_errors=True)
            status, out, err = call(*_stand_ins(arguments, endpoint))
            has_verdict = arguments[0] in ("test", "audit", "audit-logs", "wikimia")
            assert status in ((0, 1, 3) if has_verdict else (0,)), f"{shown}: {err}"
            assert out.strip() or arguments[:2] == ["data", "fetch"], shown


@pytest.mark.parametrize("command", sorted(MADE))
def test_make_knows_the_target_and_its_variables(command: str, monkeypatch) -> None:
    before, (_, *arguments) = words(command)
    variables = dict(before)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    models = yaml.safe_load((ROOT / "data" / "models.yaml").read_text(encoding="utf-8"))
    known = {"MODELS": set(models), "SETS": set(entries())}
    known["PROFILE"] = {path.stem for path in (ROOT / "profiles").glob("*.yaml")}
    for argument in arguments:
        name, given, value = argument.partition("=")
        if given:
            variables[name] = value
            assert f"$({name})" in makefile, f"the Makefile does not use {name}"
            assert name not in known or set(value.split()) <= known[name]
        elif "/" not in argument and argument != "-n":
            assert re.search(rf"^{argument}:", makefile, re.MULTILINE), f"no rule for {argument}"
    if any("/" in argument for argument in arguments):  # of a file, the rule is made
        monkeypatch.chdir(ROOT)
        profile = variables.get("PROFILE", "laptop")
        # Here, since starting Python for it takes longer.
        write_rules(RunFiles(f"profiles/{profile}.yaml", f"build/{profile}"), Path("results"))
        dry = ["make", "--dry-run", "SETUP=", *arguments]  # SETUP would install
        shown = subprocess.run(dry, cwd=ROOT, env=os.environ | before, capture_output=True)
        assert shown.returncode == 0, shown.stderr


def test_what_is_not_executed_names_files_and_options_that_exist(call) -> None:
    skipped = [c for c in TYPED if _program(c) in NOT_EXECUTED and _program(c) != "make"]
    for command in skipped:
        assert subprocess.run(["bash", "-n", "-c", command]).returncode == 0, command
        for word in words(command)[1]:
            if word.startswith(".venv/bin/"):
                assert (Path(sys.executable).parent / Path(word).name).exists(), word
            elif word.startswith(("scripts/", "docs/", "benchmarks/")):
                assert (ROOT / word).exists(), word
    named = [c[c.index(".venv/bin/contamination") :] for c in skipped if "/contamination " in c]
    for command in named + [t for t in IN_TEXT if _program(t) == "contamination"]:
        _, (_, *arguments) = words(command)
        options = {argument for argument in arguments if argument.startswith("--")}
        status, shown, _ = call(*(a for a in arguments if a not in options), "--help")
        assert status == 0, command
        assert options <= {*re.findall(r"--[\w-]+", shown)}, command
