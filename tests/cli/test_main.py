"""Every command answers `--help` at once, and bad options and paths in one line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from contamination.cli.main import application
from fakes.shipped_sets import link_shipped_sets
from fakes.tiny_models import common, save_model

STORE = "stores/contaminated/question-4/orderings-025"
SLOW = ("torch", "transformers", "numpy", "pandas", "pyarrow", "scipy", "matplotlib")


def _commands(command: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    paths = [path]
    for name, below in getattr(command, "commands", {}).items():
        paths += _commands(below, (*path, name))
    return paths


COMMANDS = _commands(typer.main.get_command(application()))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_is_whole_at_80_columns(path, call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, err = call(*path, "--help")
    assert status == 0
    assert err == ""
    assert "Usage" in out and "…" not in out
    assert all(command[-1] in out for command in COMMANDS if command and command[:-1] == path)


def test_nothing_slow_is_imported_before_it_is_needed():
    loads = "import sys; from contamination.cli.main import application; application()"
    code = f"{loads}; sys.exit(str(set({SLOW}) & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stderr == "set()\n"


# Runs commands one after the other in one process, and says what they have imported so far.
RUNS = """
import json, sys
from contamination.cli.main import command_line
for command in json.loads(sys.argv[1]):
    sys.argv[1:] = command
    command_line(standalone_mode=False)
    print(*sys.modules, file=sys.stderr)
"""
# What a plan needs none of, by the import of torch or by seconds.
NETWORK = {"torch._dynamo", "torch.distributed.tensor", "transformers.modeling_utils"}
UNPLANNED = NETWORK | {"datasets", "pandas", "scipy.stats", "sklearn"}


def imports_of(*commands: tuple[str, ...]) -> list[set[str]]:
    """Return the modules that are there after each of these commands, in a process of its own."""
    run = subprocess.run(
        [sys.executable, "-c", RUNS, json.dumps(commands)], capture_output=True, text=True
    )
    return [set(line.split()) for line in run.stderr.splitlines()]


# The class of Llama's configuration imports the code of networks, GPT-2's does not.
PLANNED = ("GPT-2", "Llama")


@pytest.mark.usefixtures("here")
def test_neither_full_stores_nor_models_that_were_run_need_their_networks(tokenizer, call):
    plans = []
    for architecture in PLANNED:
        kind, options = common(context=64, window=16)[architecture]
        save_model(Path(architecture), tokenizer, kind, options)
        batches = ("--batch-tokens", "64")
        audit = ("test", architecture, "in.jsonl", "--test", "successor", *batches)
        status, _, _ = call(*audit)
        assert status in (0, 3)  # a verdict, whichever: the weights are random
        of_full_store = (*audit, "--dry-run")
        # The time of an empty store follows from the run before.
        of_empty_store = (*of_full_store, "--store", "empty")
        plans += [of_full_store, of_empty_store]
    for plan, imported in zip(plans, imports_of(*plans), strict=True):
        assert "torch" in imported
        assert imported & UNPLANNED == set(), plan


# Each may import what the one before it may, and more.
WITHOUT_TORCH = {
    ("--version",): set(SLOW),
    ("data", "list"): set(SLOW),
    ("verify", STORE): {"torch", "transformers", "datasets", "pandas", "sklearn"},
    ("leaderboard", "stores"): {"torch", "transformers", "datasets", "sklearn"},
}


def test_what_needs_no_model_imports_no_torch():
    link_shipped_sets(Path("stores"), ["question-4"])
    imported_after = imports_of(*WITHOUT_TORCH)
    for command, imported in zip(WITHOUT_TORCH, imported_after, strict=True):
        assert "contamination.cli.main" in imported
        assert imported & WITHOUT_TORCH[command] == set(), command


TEST, MEMBERSHIP = ("test", "model", "in.jsonl"), ("membership", "model", "in.jsonl")
LONG = "n" * 5_000


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((*TEST, "--alpha", "nan"), "'--alpha'"),
        ((*TEST, "--permutations", "100000000"), "1 to 100,000"),
        ((*TEST, "--sed", "1"), "--sed"),
        ((*TEST, "more.jsonl"), "contamination audit SET"),
        (("test", LONG, "in.jsonl"), "nnn: File name too long"),
        (("test", "in.jsonl", "model"), "in.jsonl is a test set; name MODEL first"),
        (("membership", "other", "model"), "model is a model; name MODEL first"),
        (("test", "model", "in.jsonl", "--template", "{{text}}"), "write '{text}'"),
        (("seal", "in.jsonl", "--out", "o", "--axis=order", "--template", "{{text}}"), "'{text}'"),
        (("seal", "blank.jsonl", "--out", "o", "--axis=order"), "19 of 20 examples are blank"),
        (("test", "model", "blank.jsonl"), "19 of 20 examples are blank"),
        (("test", "model", "other.jsonl"), r"--template '{goal}\n{sol}\n'"),
        (("test", "model", "/"), "/: more than"),
        ((*MEMBERSHIP, "--csv", "/dev/null"), "/dev/null"),
        ((*MEMBERSHIP, "--csv", ""), ". is no file"),
        ((*MEMBERSHIP, "--csv", "/proc/x.csv"), "/proc/x.csv: cannot be written ("),
        ((*MEMBERSHIP, "--csv", LONG), "nnn: File name too long"),
        ((*MEMBERSHIP, "--csv", "./in.jsonl"), "in.jsonl is what is read"),
    ],
)
def test_a_bad_option_or_path_is_one_line(arguments, named, here, refused, monkeypatch) -> None:
    from contamination.scoring.local import TransformersScorer

    before = Path("in.jsonl").read_text()
    monkeypatch.setattr(TransformersScorer, "token_values", lambda *_: pytest.fail("scored"))
    found = refused(*arguments)
    assert named in found and len(found) < 400
    assert Path("in.jsonl").read_text() == before


def test_without_a_command_the_help_is_shown_as_it_is(call) -> None:
    status, out, err = call()
    assert status == 2
    assert out == ""
    assert len(err.splitlines()) > 10
