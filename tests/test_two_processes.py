"""Two processes of torchrun give what one gives: stores, measurements, notebook 03 and training.

They start once for all of it: see `fakes.joint_run`. Processes that end too soon are in
`scoring/test_distributed.py`.
"""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from fakes import joint_run, measuring_run
from fakes.made_up_store import contents
from fakes.training_run import SHAPE, SPEC, STEPS, largest_difference


@pytest.fixture(scope="module")
def one(model_directory, tokenizer, tmp_path_factory) -> SimpleNamespace:
    """What a single process, this one, does and writes."""
    assert torch.get_num_threads() == 1  # as in the processes below
    folder = tmp_path_factory.mktemp("one")
    joint_run.write_inputs(folder)
    with pytest.MonkeyPatch.context() as patch:
        return SimpleNamespace(
            folder=folder, seen=joint_run.run(model_directory, folder, patch.setattr)
        )


@pytest.fixture(scope="module")
def two(model_directory, tokenizer, tmp_path_factory) -> SimpleNamespace:
    folder = tmp_path_factory.mktemp("two")
    joint_run.write_inputs(folder)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launched = subprocess.run(
        [*launcher, "--nproc-per-node", "2", joint_run.__file__, model_directory, folder],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},  # where the stand-ins are
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert launched.returncode == 0, launched.stderr
    seen = [json.loads((folder / f"seen-{rank}.json").read_text()) for rank in range(2)]
    return SimpleNamespace(folder=folder, seen=seen)


def test_a_store_has_the_bytes_of_one(one, two) -> None:
    assert contents(two.folder / "store") == contents(one.folder / "store")
    assert len(contents(one.folder / "store")) > 6
    (record,) = (two.folder / "store").glob("run-*.json")
    assert json.loads(record.read_text())["processes"] == 2


def test_scores_of_texts_have_the_bytes_of_one_and_a_failure_is_everybodys(one, two) -> None:
    alone, (first, second) = one.seen["measured"], (seen["measured"] for seen in two.seen)
    assert first["table"] == second["table"] == alone["table"]
    assert np.isfinite(alone["table"]["neighbour"]).all()
    for part in ("parts", "spread", "large"):
        made, expected = (
            {path.name: path.read_bytes() for path in (run.folder / "measured" / part).iterdir()}
            for run in (two, one)
        )
        assert made == expected
    assert len(expected) > 3
    squares = [i * i for i in range(measuring_run.TASKS)]
    assert first["dealt"] == second["dealt"]
    assert first["dealt"] == [[value, i % 2] for i, value in enumerate(squares)]
    assert alone["dealt"] == [[value, 0] for value in squares]
    assert second["problems"] == alone["problems"] == ["no such model"] * 2
    assert first["problems"] == ["process 1 failed: no such model"] * 2
    assert (first["spread"], second["spread"]) == (alone["spread"], 0)
    assert alone["large"] == [None, True]
    assert (first["large"], second["large"]) == (["auto", True], ["auto", False])


def test_the_passes_of_a_notebook_give_its_table(one, two) -> None:
    here, there = (pd.read_parquet(run.folder / "cells.parquet") for run in (one, two))
    assert here["status"].str.partition(":")[0].value_counts().to_dict() == {"ok": 12, "failed": 6}
    here = here.replace(str(one.folder), str(two.folder), regex=True)
    pd.testing.assert_frame_equal(there, here)
    assert all(count > 0 for seen in two.seen for count in seen["scored"].values())  # both worked


def test_training_gives_the_weights_of_one(one, two) -> None:
    """Gradients are added up in another order; half a batch would differ by 0.1."""
    whole = STEPS * SPEC.batch_size * SHAPE.n_positions
    assert [one.seen["targets"]] == [whole]
    assert [seen["targets"] for seen in two.seen] == [whole // 2] * 2
    assert largest_difference(two.folder / "trained", one.folder / "trained") < 1e-3


def test_two_micro_batches_give_the_same_bits(one, two) -> None:
    models = [run.folder / "halves" for run in (one, two)]
    weights = [(model / "model.safetensors").read_bytes() for model in models]
    losses = [json.loads((model / "training.json").read_text())["final_loss"] for model in models]
    assert weights[0] == weights[1] and losses[0] == losses[1]
