"""A tokenizer, and networks small enough to be checked token by token.

Torch is imported by the fixtures, not here: tests of pure functions must not wait for it.
"""

import gc
import os
import random
import secrets
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from fakes.browser import Browser

gc.set_threshold(50_000)  # as `contamination.cli.ending.run`
# Before torch starts, and for subprocesses too: tiny matrices gain nothing from threads or a GPU.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["ACCELERATE_USE_CPU"] = "true"
# Before nbformat, as in reproduction.report.notebooks: it builds a grammar for seconds.
sys.modules.setdefault("rfc3987_syntax", None)

# How long one example takes says how busy the machine is, and nothing about the code.
hypothesis.settings.register_profile("no deadline", deadline=None)
hypothesis.settings.load_profile("no deadline")


# Files of tests that take ten seconds and more, the longest first.
LONG = (
    "test_docs_site.py",
    "test_documented_commands.py",
    "test_two_processes.py",
    "test_render.py",
    "test_attack.py",
    "test_makefile.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let long tests start first: else one process makes the last of them while others wait."""
    places = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path.name, len(LONG)))
    gc.freeze()  # what is imported by now, so that nothing walks through it again


@pytest.fixture(scope="module", autouse=True)
def little_to_collect() -> None:
    """Hide what modules before this one have made from the collector: code collects garbage itself.

    Half a second each time, once torch and the tests of all modules are in memory.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def nothing_waits_for_the_disk() -> Iterator[None]:
    """Let files lie in memory: a disk takes milliseconds for each, and no test cuts the power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)  # which refuses a closed file as well
        yield


@pytest.fixture(scope="session", autouse=True)
def a_cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what runs leave in the user's cache away from it, and what lies there from tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTAMINATION_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def the_same_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the same secrets of quizzes in every run: else an honest test fails one time in twenty.

    Within a test they differ.
    """
    drawn = random.Random(0)
    monkeypatch.setattr(secrets, "token_hex", lambda size: drawn.randbytes(size).hex())


@pytest.fixture(scope="session")
def prose() -> list[str]:
    """Return documents with a little structure to learn and enough merges for a BPE."""
    import numpy as np

    from fakes.data_fixtures import WORDS

    rng = np.random.default_rng(0)
    return [
        " ".join(rng.choice(WORDS, size=rng.integers(20, 60))) + ". "
        f"It was {rng.integers(1000)}.\nÉtude №{i}."
        for i in range(60)
    ]


@pytest.fixture(scope="session")
def tokenizer(prose):
    from reproduction.run.tokenizer import train_tokenizer

    return train_tokenizer(prose, 300)


@pytest.fixture(scope="session")
def make_model(tokenizer, tmp_path_factory) -> Callable[..., Path]:
    """Return a function that saves a random GPT-2 with its tokenizer and returns the directory."""
    import torch
    from transformers import GPT2LMHeadModel

    from reproduction.run.network import gpt2_config
    from reproduction.run.profile import Architecture

    def make(context: int, *, width: int = 32, layers: int = 2) -> Path:
        torch.manual_seed(context)
        shape = Architecture(n_embd=width, n_layer=layers, n_head=2, n_positions=context)
        model = GPT2LMHeadModel(gpt2_config(shape, len(tokenizer), tokenizer.eos_token_id))
        # Weights of the usual size give log-probabilities that hardly depend on the context; these
        # make each of them move by whole nats with any token that stands before.
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim >= 2:
                    parameter.mul_(8)
        directory = tmp_path_factory.mktemp("model")
        model.save_pretrained(directory)
        tokenizer.save_pretrained(directory)
        return directory

    return make


@pytest.fixture(scope="session")
def model_directory(make_model) -> Path:
    """Return a model with a context of 16 tokens."""
    return make_model(16)


@pytest.fixture(scope="session")
def commands_laid_out_once() -> Iterator[None]:
    """Keep what typer makes of the signatures of commands: each call would make it anew."""
    import typer.main

    from contamination.cli import main

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(main, "application", cache(main.application))
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


@pytest.fixture
def call(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    commands_laid_out_once: None,
):
    """Return a function that runs the command line here: (status, stdout, stderr)."""
    from contamination.cli.main import main as library
    from reproduction.__main__ import main as reproduction

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        main = library
        if arguments[:1] == ("stage",):
            main, arguments = reproduction, arguments[1:]
        monkeypatch.setattr(sys, "argv", ["contamination", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        shown = capsys.readouterr()
        return int(caught.value.code or 0), shown.out, shown.err

    return run


@pytest.fixture
def refused(call):
    """Return a function that gives the one line of an error."""

    def run(*arguments: str | Path) -> str:
        status, out, err = call(*arguments)
        assert status == 2
        assert out == ""
        assert err.endswith("\n")
        (line,) = err.splitlines()
        assert line.startswith("error: ")
        return line.removeprefix("error: ")

    return run


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    """Return the one browser of all tests."""
    from fakes.browser import Browser, find_programs

    programs = find_programs()
    if programs is None:
        pytest.skip("no Chromium with its chromedriver on PATH")
    tab = Browser(*programs)
    try:
        yield tab
    finally:
        tab.close()
