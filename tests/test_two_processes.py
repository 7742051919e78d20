"""Two processes give what one gives: stores, measurements, notebook 03 and training.

One that ends too soon ends the other, and training that was killed goes on. All start in one
program, `fakes.joint_run`, so that torch is imported once; torchrun starts them where continuous
integration compares whole notebooks.
"""

import json
import os
import signal
import subprocess
import sys
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch
from accelerate.state import PartialState
from torch.distributed import TCPStore

from contamination.errors import InputError
from contamination.scoring import work
from contamination.scoring.processes import processes
from fakes import joint_run, measuring_run, scoring_run, training_run
from fakes.made_up_scorer import MadeUpScorer
from fakes.made_up_store import contents
from fakes.training_run import (
    CHECKPOINT,
    KILLS,
    SHAPE,
    SPEC,
    STEPS,
    largest_difference,
    record_steps,
    weights,
)
from reproduction.stages.closure import PACKAGES, closure

# What training imports is told before anything else is imported.
PROGRAM = """
import json, sys
from pathlib import Path
import reproduction.run.training
modules = [*sys.modules]
from fakes import joint_run
model, folder, *ports = sys.argv[1:]
statuses = joint_run.main(Path(model), Path(folder), ports)
print(json.dumps(statuses | {"modules": modules}))
"""


@pytest.fixture(scope="module")
def one(model_directory, tokenizer, tmp_path_factory) -> SimpleNamespace:
    """The results and files of a single process, this one."""
    assert torch.get_num_threads() == 1  # as in the processes below
    folder = tmp_path_factory.mktemp("one")
    joint_run.write_inputs(folder)
    with pytest.MonkeyPatch.context() as patch:
        return SimpleNamespace(
            folder=folder, seen=joint_run.run(model_directory, folder, patch.setattr)
        )


@pytest.fixture(scope="module")
def two(model_directory, tokenizer, tmp_path_factory) -> SimpleNamespace:
    """The results of two processes, three times, and of killed training; nobody guesses a port."""
    folder = tmp_path_factory.mktemp("two")
    joint_run.write_inputs(folder)
    for rank in range(2):
        os.mkfifo(folder / f"fifo-{rank}")
    meetings = [TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False) for _ in range(3)]
    ports = [str(meeting.port) for meeting in meetings]
    launched = subprocess.run(
        [sys.executable, "-c", PROGRAM, model_directory, folder, *ports],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},  # where the stand-ins are
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    told = json.loads(launched.stdout)
    (ended, *killed) = told["together"]
    errors = sorted(folder.glob("errors-none-*"))
    assert ended == [0, 0], [path.read_text() for path in errors]
    assert told["alone"] == [-signal.SIGKILL] * len(KILLS)
    seen = [json.loads((folder / f"seen-{rank}.json").read_text()) for rank in range(2)]
    return SimpleNamespace(folder=folder, seen=seen, killed=killed, modules=told["modules"])


def test_a_store_has_the_bytes_of_one(one, two) -> None:
    assert contents(two.folder / "store") == contents(one.folder / "store")
    assert len(contents(one.folder / "store")) > 6
    (record,) = (two.folder / "store").glob("run-*.json")
    assert json.loads(record.read_text())["processes"] == 2


def test_scores_of_texts_have_the_bytes_of_one_and_a_failure_is_everybodys(one, two) -> None:
    alone = one.seen["measured"]
    (first, second) = (seen["measured"] for seen in two.seen)
    assert first["table"] == second["table"] == alone["table"]
    assert np.isfinite(alone["table"]["neighbour"]).all()
    for part in ("parts", "spread", "large"):
        expected = contents(one.folder / "measured" / part)
        assert contents(two.folder / "measured" / part) == expected
    assert len(expected) > 3
    squares = [i * i for i in range(measuring_run.TASKS)]
    assert first["dealt"] == second["dealt"]
    assert first["dealt"] == [[value, i % 2] for i, value in enumerate(squares)]
    assert alone["dealt"] == [[value, 0] for value in squares]
    assert second["problems"] == alone["problems"] == ["no such model"] * 2
    assert first["problems"] == ["process 1 failed: no such model"] * 2
    assert first["spread"] == alone["spread"]
    assert second["spread"] == 0
    assert alone["large"] == [False, True]
    assert first["large"] == [True, True]
    assert second["large"] == [True, False]


def test_the_passes_of_a_notebook_give_its_table(one, two) -> None:
    here, there = (pd.read_parquet(run.folder / "cells.parquet") for run in (one, two))
    assert here["status"].str.partition(":")[0].value_counts().to_dict() == {"ok": 12, "failed": 6}
    here = here.replace(str(one.folder), str(two.folder), regex=True)
    pd.testing.assert_frame_equal(there, here)
    for seen in two.seen:
        assert min(seen["scored"].values()) > 0  # both worked


def test_training_gives_the_weights_of_one(one, two) -> None:
    """Gradients are added up in another order; half a batch would differ by 0.1."""
    whole = STEPS * SPEC.batch_size * SHAPE.n_positions
    assert [one.seen["targets"]] == [whole]
    assert [seen["targets"] for seen in two.seen] == [whole // 2] * 2
    assert largest_difference(two.folder / "trained", one.folder / "trained") < 1e-3


def test_two_micro_batches_give_the_same_bits(one, two) -> None:
    models = [run.folder / "halves" for run in (one, two)]
    found = [weights(model) for model in models]
    losses = [json.loads((model / "training.json").read_text())["final_loss"] for model in models]
    assert found[0] == found[1]
    assert losses[0] == losses[1]


@pytest.mark.parametrize("killed", [0, 1])
def test_the_other_ends_with_a_message_and_a_later_run_goes_on(
    two, tmp_path, tokenizer, monkeypatch, killed
) -> None:
    monkeypatch.setattr(work, "SMALLEST_PART", scoring_run.SMALLEST_PART)
    scoring_run.run(MadeUpScorer(tokenizer), tmp_path / "one")
    expected = contents(tmp_path / "one")
    assert two.killed[killed][killed] == -signal.SIGKILL
    assert two.killed[killed][1 - killed] == 1
    errors = (two.folder / f"errors-{killed}-{1 - killed}").read_text()
    assert f"error: process {1 - killed}: another process has ended" in errors
    assert "Traceback" not in errors
    # It had finished its share first.
    store = two.folder / f"killed-{killed}"
    kept = contents(store)
    assert 1 < len(kept) < len(expected)
    assert kept.items() < expected.items()
    scoring_run.run(MadeUpScorer(tokenizer), store)
    assert contents(store) == expected


@pytest.mark.parametrize(("how", "saved"), [*zip(KILLS, (10, 5), strict=True)])
def test_killed_training_goes_on_to_the_same_bytes(one, two, tokenizer, monkeypatch, how, saved):
    left = two.folder / how
    assert not (left / "model").exists()
    assert (left / CHECKPOINT).exists()
    steps = record_steps(monkeypatch)
    summary = training_run.run(tokenizer, left / "model")
    assert len(steps) == STEPS - saved
    whole = one.folder / "trained"
    assert weights(left / "model") == weights(whole)
    assert summary["final_loss"] == json.loads((whole / "training.json").read_text())["final_loss"]
    assert not (left / CHECKPOINT).exists()


def test_what_training_imports_is_in_its_closure(two):
    ours = {name for name in two.modules if name.startswith(PACKAGES)}
    assert "reproduction.run.training" in ours <= closure(["reproduction.run.training"])


def test_several_processes_that_cannot_meet_are_refused(monkeypatch) -> None:
    monkeypatch.setattr(PartialState, "_shared_state", {})
    # The whole environment comes back: accelerate itself writes to it.
    with mock.patch.dict(os.environ, {"WORLD_SIZE": "2"}):
        for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
            os.environ.pop(name, None)
        with pytest.raises(InputError, match=r"WORLD_SIZE is 2.*start them with torchrun"):
            processes.__wrapped__()
