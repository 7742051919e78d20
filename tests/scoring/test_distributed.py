"""Two real processes score one store, on a CPU, with and without torchrun; and those alone."""

import json
import os
import signal
import subprocess
import sys
from unittest import mock

import pytest
import torch
from accelerate.state import PartialState
from torch.distributed import TCPStore

from contamination.errors import InputError
from contamination.scoring import score as scoring
from contamination.scoring.processes import gather, processes
from fakes import scoring_run
from fakes.made_up_store import contents

LIMIT = 240  # seconds, for a machine that does other things, too


@pytest.fixture
def one_process(model_directory, tmp_path, monkeypatch):
    """Return a function that gives the store of one process, by the kind of scorer."""
    monkeypatch.setattr(scoring, "SMALLEST_PART", scoring_run.SMALLEST_PART)
    assert torch.get_num_threads() == 1  # as in the processes below

    def score(kind: str) -> dict[str, bytes]:
        scoring_run.run(scoring_run.scorer_of(kind, model_directory), tmp_path / "one")
        files = contents(tmp_path / "one")
        assert len(files) > 6
        return files

    return score


@pytest.fixture
def fifo(tmp_path):
    os.mkfifo(tmp_path / "taken")
    return tmp_path / "taken"


def command(*arguments) -> list[str]:
    return [scoring_run.__file__, *map(str, arguments)]


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}  # where the stand-ins are


def torchrun(*arguments) -> subprocess.CompletedProcess:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    return subprocess.run(
        [*launcher, "--nproc-per-node", "2", *command(*arguments)],
        env=environment(),
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )


def records(directory) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(directory.glob("run-*.json"))]


def test_a_process_alone_meets_nobody():
    assert (processes().process_index, processes().num_processes) == (0, 1)
    assert gather({"parts": [1, 2]}) == [{"parts": [1, 2]}]


def test_several_processes_that_cannot_meet_are_refused(monkeypatch):
    monkeypatch.setattr(PartialState, "_shared_state", {})
    # The whole environment comes back: accelerate itself writes to it.
    with mock.patch.dict(os.environ, {"WORLD_SIZE": "2"}):
        for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
            os.environ.pop(name, None)
        with pytest.raises(InputError, match=r"WORLD_SIZE is 2.*start them with torchrun"):
            processes.__wrapped__()


def test_the_store_of_two_processes_is_that_of_one(tmp_path, one_process, model_directory):
    run = torchrun("network", model_directory, tmp_path / "store")
    assert run.returncode == 0, run.stderr
    expected = one_process("network")
    assert contents(tmp_path / "store") == expected
    (record,) = records(tmp_path / "store")
    assert record["processes"] == 2
    assert set(record["parts"]) == expected.keys() - {"store.json"}


def test_under_torchrun_a_killed_process_ends_the_run_and_the_next_does_the_rest(
    fifo, tmp_path, one_process, model_directory
):
    store, expected = tmp_path / "store", one_process("made-up")
    broken = torchrun("made-up", model_directory, store, 1, fifo)
    assert broken.returncode != 0
    kept = {path: path.stat().st_mtime_ns for path in store.glob("part-*")}
    assert len(kept) < len(expected) - 1
    again = torchrun("made-up", model_directory, store)
    assert again.returncode == 0, again.stderr
    assert contents(store) == expected
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    added = [set(record["parts"]) for record in records(store) if record["seconds"]]
    assert added[-1] == expected.keys() - {path.name for path in kept} - {"store.json"}


@pytest.mark.parametrize("killed", [0, 1])
def test_without_torchrun_the_other_ends_with_a_message_and_a_later_run_goes_on(
    fifo, tmp_path, one_process, model_directory, killed
):
    """The test keeps the store of the rendezvous, so nobody has to guess a port."""
    meeting = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    meeting_place = environment() | {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(meeting.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "WORLD_SIZE": "2",
    }
    store, expected = tmp_path / "store", one_process("made-up")
    running = [
        subprocess.Popen(
            [sys.executable, *command("made-up", model_directory, store, killed, fifo)],
            env=meeting_place | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        errors = [process.communicate(timeout=LIMIT)[1] for process in running]
    finally:
        for process in running:
            process.kill()
    assert running[killed].returncode == -signal.SIGKILL
    assert running[1 - killed].returncode == 1
    assert f"error: process {1 - killed}: another process has ended" in errors[1 - killed]
    assert "Traceback" not in errors[1 - killed]
    # It had finished its share first.
    kept = contents(store)
    assert 1 < len(kept) < len(expected)
    assert kept.items() < expected.items()
    scoring_run.run(scoring_run.scorer_of("made-up", model_directory), store)
    assert contents(store) == expected
