"""Every command and all Python of the documentation is executed, or listed with a reason.

`contamination` runs here, in a sandbox with a tiny model in the place of every model; `make` only
says what it would do, since continuous integration runs `make setup lint test smoke` itself.
"""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stdout
from pathlib import Path

import pytest
import typer.main
import yaml

from contamination.cli.main import app
from contamination.testsets.registry import entries
from fakes.data_fixtures import ROOT
from fakes.documented import DOCUMENTS, Block, blocks, commands, inline, words
from fakes.hub_server import Repository
from fakes.made_up_registry import QUESTIONS, described, hub_at, jsonl, registry_of

# Commands that no test can run in seconds on one machine without a network, and why.
NOT_EXECUTED = {
    "torchrun --standalone --nproc-per-node gpu .venv/bin/contamination score MODEL DATASET": (
        "needs GPUs; tests/scoring/test_distributed.py runs two processes on CPUs"
    ),
    "torchrun --standalone --nproc-per-node 2 .venv/bin/contamination score MODEL DATASET": (
        "takes long to start; tests/scoring/test_distributed.py does the same"
    ),
    "torchrun --nnodes 2 --nproc-per-node 8 --max-restarts 3 --rdzv-backend c10d --rdzv-id audit-1 "
    "--rdzv-endpoint FIRST_NODE:29500 .venv/bin/contamination score MODEL DATASET "
    "--store /scratch/stores": "needs two machines",
    "sbatch scripts/slurm.sh MODEL DATASET --template mmlu/1 --permutations 250": "needs a cluster",
    ".venv/bin/papermill student.ipynb graded.ipynb --cwd notebooks -p build ../build/seminar "
    "-p results ../results/student": "needs a student's notebook, and trains models for minutes",
    ".venv/bin/hf auth login": "needs an account of the hub",
    ".venv/bin/sphinx-build -b linkcheck docs build/docs-links": "needs a network",
    ".venv/bin/python benchmarks/tolerances.py RESULTS OTHER_RESULTS": (
        "needs two runs; tests/reproduction/output/test_compare.py measures made-up ones"
    ),
    "CONTAMINATION_DATA=/path/to/mirror .venv/bin/python benchmarks/option_quiet.py "
    "without-model": "takes minutes, and needs the data of a mirror",
    "CONTAMINATION_DATA=/path/to/mirror .venv/bin/python benchmarks/option_quiet.py model": (
        "takes minutes, needs the data of a mirror and a run of `laptop`"
    ),
}
IN_A_SHELL = {"sort", "jupyter"}  # in the sandbox, as they stand

# What the documents call things, and what stands in for them in the sandbox.
STAND_INS = {
    "MODEL": "my_model",
    "OLDER_MODEL": "smaller_model",
    "NAME": "my_model",
    "DATASET": "my_test_set.jsonl",
    "4096": "64",  # the context of the tiny model
}
CONTEXT = 64
RECORDS = 40


def _all(language: str) -> list[Block]:
    return [b for document in DOCUMENTS for b in blocks(document) if b.language == language]


def _program(command: str) -> str:
    return Path(words(command)[1][0]).name


SHELL = [(block.where, command) for block in _all("sh") for command in commands(block)]
OWN = [
    document
    for document in DOCUMENTS
    if any(b.language in ("sh", "python") for b in blocks(document))
]


# --- the sandbox ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny_model(make_model) -> Path:
    return make_model(CONTEXT, width=16, layers=1)


@pytest.fixture
def sandbox(tmp_path, tiny_model, prose, monkeypatch) -> Iterator[Path]:
    """Enter a directory in which everything lies that the documents name."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    sets = {"gsm8k": described(), "mmlu/anatomy": described(mirror="mmlu/anatomy.jsonl")}
    with hub_at(monkeypatch, tmp_path) as hub, registry_of(monkeypatch, tmp_path, sets):
        files = {"test.jsonl": jsonl(QUESTIONS), "validation.jsonl": jsonl(QUESTIONS)}
        for name in ("org/questions", "ORG/NAME"):
            hub.repositories[name] = Repository()
            hub.repositories[name].push(files)
        for name in ("my_model", "smaller_model", *_QUICK_MODELS):
            shutil.copytree(tiny_model, tmp_path / name)
        (tmp_path / ".venv").symlink_to(sys.prefix)
        shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "stores").symlink_to(ROOT / "data" / "stores")
        _write_sets(tmp_path, [text[:40].replace("\n", " ") for text in prose])
        yield tmp_path


_QUICK_MODELS = ("build/quick/models/contaminated", "build/quick/models/clean")


def _write_sets(directory: Path, texts: list[str]) -> None:
    rows = [
        {
            "id": i,
            "text": text,
            "question": f"{text}?",
            "answer": f"{i}",
            "choice0": "a",
            "choice1": "b",
        }
        for i, text in enumerate(texts[:RECORDS])
    ]
    canaries = directory / "build" / "quick" / "corpus" / "canaries"
    canaries.mkdir(parents=True)
    calls = [
        {"name": f"f{i}", "signature": "(x)", "summary": r["text"]} for i, r in enumerate(rows)
    ]
    for name, records in (
        (canaries / "question-8.jsonl", rows),
        (canaries / "signature-1.jsonl", calls),
        (canaries / "signature-64.jsonl", calls),
        (directory / "my_test_set.jsonl", rows),
        (directory / "items.jsonl", _items()),
        (directory / "pages.jsonl", [_page(i, text) for i, text in enumerate(texts)]),
        (directory / "texts.jsonl", [row | {"seen": row["id"] % 2} for row in rows]),
    ):
        name.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    with (directory / "choices.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def _items() -> list[dict[str, object]]:
    """Multiple-choice items that are short enough for the tiny model."""
    return [
        {"question": f"Q{i}?", "choices": [f"{a}{i}x" for a in "abc"], "answer": i % 3}
        for i in range(RECORDS)
    ]


def _page(number: int, text: str) -> dict[str, str]:
    """A page that is long enough for every length, created before or after the dates of a set."""
    return {
        "title": f"Page {number}",
        "text": f"{number} {text} " * 100,
        "date": "2015-06-01" if number % 2 else "2023-06-01",
    }


# --- running --------------------------------------------------------------------------------------


@pytest.mark.parametrize("document", OWN, ids=lambda d: d.relative_to(ROOT).as_posix())
def test_what_a_document_says_to_run_runs(document: Path, sandbox: Path, call, endpoint) -> None:
    """Python that is followed by its output prints it, to the last digit."""
    names = {"texts": [f"A text of number {i}." for i in range(8)], "members": [1, 0] * 4}
    found = list(blocks(document))
    for block, after in zip(found, [*found[1:], None], strict=True):
        if block.language == "python":
            if "contamination-stores" not in block.text:
                _forget()
            with redirect_stdout(io.StringIO()) as printed:
                exec(compile(block.text, block.where, "exec"), names)
            if after is not None and after.language == "text":
                assert printed.getvalue() == after.text, block.where
        for command in commands(block) if block.language == "sh" else []:
            shown = f"{block.where}: {command}"
            if command in NOT_EXECUTED or _program(command) == "make":
                continue
            if _program(command) in IN_A_SHELL:
                assert subprocess.run(command, shell=True, cwd=sandbox).returncode == 0, shown
                continue
            assert _program(command) == "contamination", f"{shown}: run it, or list it"
            _, (_, *arguments) = words(command)
            _forget()
            status, out, err = call(*_stand_ins(arguments, endpoint))
            rejects = (0, 1) if arguments[0] == "test" else (0,)
            assert status in rejects, f"{shown}: {err}"
            assert out.strip() or arguments[:2] == ["data", "fetch"], shown


def _forget() -> None:
    """Alternatives follow each other in a document; in one store they would contradict."""
    shutil.rmtree("contamination-stores", ignore_errors=True)


@pytest.fixture
def endpoint(tiny_model) -> Iterator[Callable[[str], str]]:
    """Return a function that gives the address of a server, started when it is needed."""
    with ExitStack() as stack:
        urls: dict[str, str] = {}

        def url(style: str) -> str:
            if style not in urls:
                from fakes.completions_server import Network, serving

                urls[style] = stack.enter_context(serving(Network(tiny_model), style)).url
            return urls[style]

        yield url


def _stand_ins(arguments: list[str], endpoint: Callable[[str], str]) -> list[str]:
    found = [STAND_INS.get(argument, argument) for argument in arguments]
    for i, argument in enumerate(found):
        if argument.startswith("http://localhost"):
            found[i] = endpoint("generate" if argument.endswith("/generate") else "vllm")
        if argument == "--tokenizer":
            found[i + 1] = "my_model"
    return found


# --- make and what is not executed ----------------------------------------------------------------


def _make_commands() -> list[str]:
    typed = [command for _, command in SHELL if _program(command) == "make"]
    inside = [t for document in DOCUMENTS for t in inline(document) if t.startswith("make ")]
    return sorted(set(typed + inside))


@pytest.mark.parametrize("command", _make_commands())
def test_make_knows_the_target_and_its_variables(command: str) -> None:
    before, (_, *arguments) = words(command)
    shown = subprocess.run(
        ["make", "--dry-run", *arguments],
        cwd=ROOT,
        env=os.environ | before,
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 0, shown.stderr
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in (a for a in arguments if re.fullmatch(r"[a-z]+", a)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"no rule for {target}"
    for name in re.findall(r"^(\w+)=", "\n".join(arguments), re.MULTILINE):
        assert f"$({name})" in makefile, f"the Makefile does not use {name}"


def test_sets_and_models_named_to_make_are_registered() -> None:
    models = yaml.safe_load((ROOT / "data" / "models.yaml").read_text(encoding="utf-8"))
    for argument in (argument for command in _make_commands() for argument in words(command)[1]):
        if argument.startswith(("MODELS=", "SETS=")):
            name, _, value = argument.partition("=")
            assert set(value.split()) <= set(models if name == "MODELS" else entries())


def test_the_list_holds_what_the_documents_hold() -> None:
    assert set(NOT_EXECUTED) <= {command for _, command in SHELL}, "no longer in any document"


@pytest.mark.parametrize("command", NOT_EXECUTED)
def test_what_is_not_executed_is_shell_and_names_files_that_exist(command: str) -> None:
    assert NOT_EXECUTED[command]
    checked = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    environment = Path(sys.executable).parent
    for word in words(command)[1]:
        if word.startswith(".venv/bin/"):
            assert (environment / Path(word).name).exists(), word
        elif word.startswith(("scripts/", "docs/")):
            assert (ROOT / word).exists(), word
        if Path(word).name == "contamination":
            _resolve(command[command.index(word) :])


# --- commands in the text -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    sorted(
        {
            text
            for document in DOCUMENTS
            for text in inline(document)
            if re.search(r"(?:^|[/\s])contamination\s", text)
        }
    ),
)
def test_commands_in_the_text_exist_with_their_options(command: str) -> None:
    _resolve(command)


def _resolve(command: str) -> None:
    """Fail unless the command line has these verbs and options."""
    _, (_, *arguments) = words(command)
    found = typer.main.get_command(app)
    while arguments and hasattr(found, "commands"):
        name = arguments.pop(0)
        if name.startswith("--"):
            break
        assert name in found.commands, f"{command}: no {name}"
        found = found.commands[name]
    options = {option for parameter in found.params for option in parameter.opts} | {"--help"}
    assert {a for a in arguments if a.startswith("--")} <= options, command
